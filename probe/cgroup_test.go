package probe

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Texts of real systems, shortened to the lines that matter and some that do
// not.
const (
	// A VM whose init mounts both versions; the controllers are in v1.
	hybridGroup = `9:name=systemd:/
8:pids:/
4:memory:/process_api/9388516a000038d6f0cefc4da19a762c
3:cpuset:/
2:cpuacct:/
1:cpu:/limited/redis
0::/
`
	hybridMounts = `23 1 259:0 / / rw,relatime - ext4 /dev/root rw
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`
	// systemd with v2 only.
	unifiedGroup  = "0::/system.slice/redis-server.service\n"
	unifiedMounts = `22 28 0:20 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw
29 22 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
`
	// Docker on v1, seen from inside the container: two controllers in one
	// hierarchy, and the mount shows the container's group only.
	dockerGroup = `12:memory:/docker/1f0c
4:cpu,cpuacct:/docker/1f0c
0::/system.slice/containerd.service
`
	dockerMounts = `1083 1082 0:29 /docker/1f0c /sys/fs/cgroup/cpu,cpuacct ro,nosuid,nodev,noexec,relatime master:12 - cgroup cgroup rw,cpu,cpuacct
1084 1082 0:30 /docker/1f0c /sys/fs/cgroup/cpuset ro,nosuid,nodev,noexec,relatime master:13 - cgroup cgroup rw,cpuset
`
	// A container on v2 with a cgroup namespace of its own.
	namespaceGroup  = "0::/\n"
	namespaceMounts = `1701 1700 0:27 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw,nsdelegate
`
)

func TestFindCPUGroups(t *testing.T) {
	for _, tt := range []struct {
		name, groups, mounts string
		v2                   bool
		want                 []string // directories
	}{
		{"hybrid", hybridGroup, hybridMounts, false,
			[]string{"/sys/fs/cgroup/cpu/limited/redis", "/sys/fs/cgroup/cpu/limited", "/sys/fs/cgroup/cpu"}},
		{"v2", unifiedGroup, unifiedMounts, true,
			[]string{"/sys/fs/cgroup/system.slice/redis-server.service", "/sys/fs/cgroup/system.slice", "/sys/fs/cgroup"}},
		{"Docker on v1", dockerGroup, dockerMounts, false, []string{"/sys/fs/cgroup/cpu,cpuacct"}},
		{"namespace", namespaceGroup, namespaceMounts, true, []string{"/sys/fs/cgroup"}},
		{"another container", strings.ReplaceAll(dockerGroup, "1f0c", "1f0c2"), dockerMounts, false, nil},
		{"outside of the namespace", "0::/../other\n", namespaceMounts, true, nil},
		{"a hybrid's v2 has the controller", "2:cpuset:/\n0::/redis\n", hybridMounts, true,
			[]string{"/sys/fs/cgroup/unified/redis", "/sys/fs/cgroup/unified"}},
		{"a space in the mount point", namespaceGroup, `1 0 0:27 / /mnt/a\040b rw - cgroup2 cgroup rw`, true, []string{"/mnt/a b"}},
		{"nothing mounted", hybridGroup, "", false, nil},
		{"no groups", "", hybridMounts, false, nil},
		{"damaged", "x\n1:cpu\n::\n", "1 - \n- cgroup\n", false, nil},
	} {
		var want []cpuGroup
		for _, dir := range tt.want {
			want = append(want, cpuGroup{dir, tt.v2})
		}
		if d := cmp.Diff(want, findCPUGroups(tt.groups, tt.mounts), cmp.AllowUnexported(cpuGroup{})); d != "" {
			t.Errorf("%s, -want +got:\n%s", tt.name, d)
		}
	}
}

func TestParseCPULimit(t *testing.T) {
	for _, tt := range []struct {
		text string // cpu.max, or quota and period of v1 with a bar between
		want float64
		ok   bool
	}{
		{"max 100000\n", 0, true},
		{"30000 100000\n", .3, true},
		{"250000 50000\n", 5, true},
		{"-1\n|100000\n", 0, true},
		{"30000\n|100000\n", .3, true},
		{"0 100000", 0, false}, // the kernel takes no quota below 1 ms
		{"30000 0", 0, false},
		{"30000", 0, false},
		{"", 0, false},
		{"|", 0, false},
		{"max", 0, false},
	} {
		got, ok := parseCPUMax(tt.text)
		if quota, period, v1 := strings.Cut(tt.text, "|"); v1 {
			got, ok = parseCPUQuota(quota, period)
		}
		if got != tt.want || ok != tt.ok {
			t.Errorf("%q: %v cores, %t; want %v, %t", tt.text, got, ok, tt.want, tt.ok)
		}
	}
}

const (
	statV1 = "nr_periods 120\nnr_throttled 41\nthrottled_time 2786543210\nnr_bursts 0\nburst_time 0\n"
	statV2 = `usage_usec 3996233392
user_usec 2176542853
system_usec 1819690538
nice_usec 1616838
core_sched.force_idle_usec 0
nr_periods 120
nr_throttled 41
throttled_usec 2786543
nr_bursts 0
burst_usec 0
`
	statV2Root = "usage_usec 3996233392\nuser_usec 2176542853\nsystem_usec 1819690538\nnice_usec 1616838\n"
)

func TestParseCPUStat(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		throttled  uint64
		seconds    float64
	}{
		{"v1", statV1, 41, 2.78654321},
		{"v2", statV2, 41, 2.786543},
		{"root of v2", statV2Root, 0, 0},
		{"empty", "", 0, 0},
		{"damaged", "nr_throttled\nthrottled_usec x\nthrottled_time -1\n", 0, 0},
	} {
		if throttled, seconds := parseCPUStat(tt.text); throttled != tt.throttled || seconds != tt.seconds {
			t.Errorf("%s: %d periods, %v s; want %d, %v", tt.name, throttled, seconds, tt.throttled, tt.seconds)
		}
	}
}

// The tightest of the groups' limits counts, and the throttling of all.
func TestReadCPULimit(t *testing.T) {
	group := func(v2 bool, files map[string]string) cpuGroup {
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return cpuGroup{dir, v2}
	}
	v1 := func(quota string) cpuGroup {
		return group(false, map[string]string{"cpu.cfs_quota_us": quota, "cpu.cfs_period_us": "100000\n", "cpu.stat": statV1})
	}
	v2 := func(limit string) cpuGroup {
		return group(true, map[string]string{"cpu.max": limit, "cpu.stat": statV2})
	}
	root := group(true, map[string]string{"cpu.stat": statV2Root})
	for _, tt := range []struct {
		name   string
		groups []cpuGroup
		want   cpuLimit
		ok     bool
	}{
		{"none", nil, cpuLimit{}, false},
		{"the root alone", []cpuGroup{root}, cpuLimit{}, false},
		{"v1 without a limit", []cpuGroup{v1("-1\n")}, cpuLimit{0, 41, 2.78654321}, true},
		{"v1", []cpuGroup{v1("50000\n"), v1("-1\n")}, cpuLimit{.5, 82, 2 * 2.78654321}, true},
		{"v2, the parent is tighter", []cpuGroup{v2("200000 100000\n"), v2("30000 100000\n"), root}, cpuLimit{.3, 82, 2 * 2.786543}, true},
		{"a group that is gone", []cpuGroup{{filepath.Join(t.TempDir(), "gone"), true}}, cpuLimit{}, false},
	} {
		got, ok := readCPULimit(tt.groups)
		if got != tt.want || ok != tt.ok {
			t.Errorf("%s: %+v, %t; want %+v, %t", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}

func TestParseSwap(t *testing.T) {
	const status = "Name:\tredis-server\nVmRSS:\t   14592 kB\nVmSwap:\t    2048 kB\nHugetlbPages:\t       0 kB\nThreads:\t5\n"
	for _, tt := range []struct {
		text string
		want int64
		ok   bool
	}{
		{status, 2 << 20, true},
		{"VmSwap:\t       0 kB\n", 0, true},
		{"Name:\tkthreadd\n", 0, false}, // a kernel thread has no memory
		{"VmSwap:\t1 MB\n", 0, false},
		{"VmSwap:\t-1 kB\n", 0, false},
		{"VmSwap:\t9223372036854775807 kB\n", 0, false},
	} {
		if got, ok := parseSwap(tt.text); got != tt.want || ok != tt.ok {
			t.Errorf("%q: %d, %t; want %d, %t", tt.text, got, ok, tt.want, tt.ok)
		}
	}
}

func TestLinkSpeed(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files []string // a name ending in / is a folder
		speed string
		want  int64
		ok    bool
	}{
		{"Gigabit card", []string{"device/"}, "1000\n", 1_000_000_000, true},
		{"virtio", []string{"device/"}, "-1\n", 0, false},
		{"-1 in 16 bits", []string{"device/"}, "65535\n", 0, false},
		{"-1 in 32 bits", []string{"device/"}, "4294967295\n", 0, false},
		{"no cable", []string{"device/"}, "", 0, false}, // reading it fails
		{"tun", nil, "10\n", 0, false},
		{"veth", nil, "10000\n", 0, false},
		{"bond of two", []string{"lower_eth0/", "lower_eth1/"}, "20000\n", 20_000_000_000, true},
	} {
		dir := t.TempDir()
		for _, name := range tt.files {
			if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if tt.speed != "" {
			if err := os.WriteFile(filepath.Join(dir, "speed"), []byte(tt.speed), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, ok := linkSpeed(dir); got != tt.want || ok != tt.ok {
			t.Errorf("%s: %d bits/s, %t; want %d, %t", tt.name, got, ok, tt.want, tt.ok)
		}
	}
	if speed, ok := linkSpeed("/sys/class/net/lo"); ok {
		t.Errorf("loopback has a speed of %d bits/s", speed)
	}
}

// Merging adds what was throttled and keeps the tightest limit, the most swap
// and the slowest link; what one of the two lacks is dropped, but a missing
// limit is none.
func TestMergeLimits(t *testing.T) {
	swap := func(n int64) *ProcessWindow { return &ProcessWindow{SwapBytes: &n} }
	link := func(n int64) *NetworkWindow { return &NetworkWindow{SpeedBitsPerSec: &n} }
	for _, tt := range []struct {
		name       string
		a, b, want Window
	}{
		{"both known",
			Window{CPULimit: &CPULimitWindow{known(.5), 3, 1}, Process: swap(5), Network: link(1000)},
			Window{CPULimit: &CPULimitWindow{known(.3), 4, 2}, Process: swap(7), Network: link(100)},
			Window{CPULimit: &CPULimitWindow{known(.3), 7, 3}, Process: swap(7), Network: link(100)}},
		{"limit in one, swap and speed in one",
			Window{CPULimit: &CPULimitWindow{nil, 0, 0}, Process: swap(5), Network: &NetworkWindow{}},
			Window{CPULimit: &CPULimitWindow{known(2), 1, .5}, Process: &ProcessWindow{}, Network: link(10)},
			Window{CPULimit: &CPULimitWindow{known(2), 1, .5}, Process: &ProcessWindow{}, Network: &NetworkWindow{}}},
		{"groups not seen in one", Window{CPULimit: &CPULimitWindow{nil, 3, 1}}, Window{}, Window{}},
	} {
		got, original := tt.a.Clone(), tt.a.Clone()
		got.Merge(&tt.b)
		if d := cmp.Diff(tt.want, *got); d != "" {
			t.Errorf("%s, -want +got:\n%s", tt.name, d)
		}
		if d := cmp.Diff(*original, tt.a); d != "" {
			t.Errorf("%s: merging into a clone changed the original:\n%s", tt.name, d)
		}
	}
}

// FuzzFindCPUGroups: whatever the texts, each directory is at or below a mount
// point of the text, the first is the deepest and each is the parent of the
// one before.
func FuzzFindCPUGroups(f *testing.F) {
	f.Add(hybridGroup, hybridMounts)
	f.Add(unifiedGroup, unifiedMounts)
	f.Add(dockerGroup, dockerMounts)
	f.Add("0::/..\n", namespaceMounts)
	f.Fuzz(func(t *testing.T, groups, mounts string) {
		found := findCPUGroups(groups, mounts)
		if len(found) > maxGroups {
			t.Fatalf("%d groups", len(found))
		}
		for i := 1; i < len(found); i++ {
			if filepath.Dir(found[i-1].dir) != found[i].dir {
				t.Fatalf("%q is not the parent of %q", found[i].dir, found[i-1].dir)
			}
		}
		for _, m := range parseCgroupMounts(mounts) {
			for _, dir := range m.dirs("/a/b") {
				if rel, err := filepath.Rel(filepath.Clean(m.point), dir); err == nil && strings.HasPrefix(rel, "..") {
					t.Fatalf("%q is outside of %q", dir, m.point)
				}
			}
		}
	})
}

// FuzzParseCPU: no text gives a negative or infinite limit or time.
func FuzzParseCPU(f *testing.F) {
	f.Add("30000 100000\n", statV1)
	f.Add("max 100000\n", statV2)
	f.Add("-1\n100000\n", statV2Root)
	f.Fuzz(func(t *testing.T, limit, stat string) {
		if cores, ok := parseCPUMax(limit); !(cores >= 0 && cores <= 1<<63) || !ok && cores != 0 {
			t.Fatalf("%q: %v cores, %t", limit, cores, ok)
		}
		if _, seconds := parseCPUStat(stat); !(seconds >= 0 && seconds <= 1<<64) {
			t.Fatalf("%q: %v s", stat, seconds)
		}
	})
}

// FuzzParseSystem: no text gives a negative amount of swap or a speed of 0.
func FuzzParseSystem(f *testing.F) {
	f.Add("VmSwap:\t    2048 kB\n", "1000\n")
	f.Add("VmSwap:\t 9223372036854775807 kB\n", "-1\n")
	f.Fuzz(func(t *testing.T, status, speed string) {
		if n, ok := parseSwap(status); n < 0 || n%1024 != 0 || !ok && n != 0 {
			t.Fatalf("%q: %d bytes, %t", status, n, ok)
		}
		if n, ok := parseLinkSpeed(speed); ok != (n > 0) {
			t.Fatalf("%q: %d bits/s, %t", speed, n, ok)
		}
	})
}
