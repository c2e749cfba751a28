package probe

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A cpuGroup is a control group that can limit the CPU of a process. Both
// versions are read: v1 has a hierarchy for the controller "cpu", v2 one for
// all controllers; a machine may have mounted both, and the controller is in
// one of them. See Linux, Documentation/scheduler/sched-bwc.rst (v1) and
// Documentation/admin-guide/cgroup-v2.rst.
type cpuGroup struct {
	dir string
	v2  bool
}

// cpuLimit is the CPU limit of a process and what it has done so far.
type cpuLimit struct {
	cores     float64 // the lowest limit of its groups, 0 when none has one
	throttled uint64  // periods in which a group was stopped
	seconds   float64 // for how long, of all cores together
}

// cpuGroups returns the process's group and those above it, as far as they
// can be seen from here; empty when none can.
func cpuGroups(pid int) []cpuGroup {
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return nil
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	return findCPUGroups(string(groups), string(mounts))
}

// findCPUGroups is cpuGroups of the text of /proc/<pid>/cgroup and
// /proc/self/mountinfo.
func findCPUGroups(groups, mounts string) []cpuGroup {
	v1, v2 := parseCgroup(groups)
	all := parseCgroupMounts(mounts)
	for _, path := range []struct {
		group string
		v2    bool
	}{{v1, false}, {v2, true}} {
		if path.group == "" {
			continue
		}
		for _, m := range all {
			if m.v2 != path.v2 {
				continue
			}
			// A mount that does not show the group is one of another
			// namespace.
			if dirs := m.dirs(path.group); len(dirs) > 0 {
				var found []cpuGroup
				for _, dir := range dirs {
					found = append(found, cpuGroup{dir, m.v2})
				}
				return found
			}
		}
	}
	return nil
}

// parseCgroup finds, in the text of /proc/<pid>/cgroup, the process's group in
// the v1 hierarchy of the controller "cpu" and in that of v2; each is empty
// when there is none. See cgroups(7).
func parseCgroup(text string) (v1, v2 string) {
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3) // number:controllers:path
		switch {
		case len(fields) != 3 || !strings.HasPrefix(fields[2], "/"):
		case fields[0] == "0" && fields[1] == "":
			v2 = fields[2]
		case slices.Contains(strings.Split(fields[1], ","), "cpu"):
			v1 = fields[2]
		}
	}
	return v1, v2
}

// A cgroupMount is where a hierarchy of groups is mounted that may limit CPU.
type cgroupMount struct {
	root  string // the group that is seen at point
	point string
	v2    bool
}

// parseCgroupMounts finds the mounts of v2 and of the v1 controller "cpu" in
// the text of /proc/self/mountinfo. See proc_pid_mountinfo(5).
func parseCgroupMounts(text string) []cgroupMount {
	var mounts []cgroupMount
	for line := range strings.Lines(text) {
		// ID, parent, device, root, mount point, options, optional fields,
		// "-", type, source, options of the file system.
		front, back, found := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		place, kind := strings.Fields(front), strings.Fields(back)
		if !found || len(place) < 5 || len(kind) < 3 {
			continue
		}
		v1 := kind[0] == "cgroup" && slices.Contains(strings.Split(kind[2], ","), "cpu")
		if v1 || kind[0] == "cgroup2" {
			mounts = append(mounts, cgroupMount{unescapeMount(place[3]), unescapeMount(place[4]), !v1})
		}
	}
	return mounts
}

// mountEscapes are the characters that mountinfo writes in octal.
var mountEscapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

func unescapeMount(s string) string { return mountEscapes.Replace(s) }

// maxGroups bounds how many groups above a process are read. Kubernetes needs
// five, a login three.
const maxGroups = 16

// dirs returns the directories of a group and of those above it up to the
// mount point; none when the mount does not show the group.
func (m cgroupMount) dirs(group string) []string {
	if slices.Contains(strings.Split(group, "/"), "..") {
		return nil // outside of our cgroup namespace
	}
	rest := group
	if m.root != "/" {
		var found bool
		rest, found = strings.CutPrefix(group, m.root)
		if !found || rest != "" && rest[0] != '/' {
			return nil
		}
	}
	top := filepath.Clean(m.point)
	var dirs []string
	for dir := filepath.Join(top, rest); len(dirs) < maxGroups; dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
		if len(dir) <= len(top) {
			break
		}
	}
	return dirs
}

// readCPULimit returns the tightest limit of the groups and the sum of what
// they have been throttled. A group that cannot be read, or which has no
// limit as the root of v2, counts for nothing; false when that is all of them.
func readCPULimit(groups []cpuGroup) (cpuLimit, bool) {
	var l cpuLimit
	any := false
	for _, g := range groups {
		cores, ok := g.limit()
		if !ok {
			continue
		}
		any = true
		if cores > 0 && (l.cores == 0 || cores < l.cores) {
			l.cores = cores
		}
		if stat, err := os.ReadFile(filepath.Join(g.dir, "cpu.stat")); err == nil {
			throttled, seconds := parseCPUStat(string(stat))
			l.throttled += throttled
			l.seconds += seconds
		}
	}
	return l, any
}

// limit returns the CPU limit of the group in cores, 0 when it has none;
// false when it cannot be read.
func (g cpuGroup) limit() (float64, bool) {
	if g.v2 {
		b, err := os.ReadFile(filepath.Join(g.dir, "cpu.max"))
		if err != nil {
			return 0, false
		}
		return parseCPUMax(string(b))
	}
	quota, err := os.ReadFile(filepath.Join(g.dir, "cpu.cfs_quota_us"))
	if err != nil {
		return 0, false
	}
	period, err := os.ReadFile(filepath.Join(g.dir, "cpu.cfs_period_us"))
	if err != nil {
		return 0, false
	}
	return parseCPUQuota(string(quota), string(period))
}

// parseCPUMax reads a cpu.max of v2, "max 100000" or "30000 100000": the
// limit in cores, 0 when there is none; false when the text is neither.
func parseCPUMax(text string) (cores float64, ok bool) {
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return 0, false
	}
	quota := fields[0]
	if quota == "max" {
		quota = "-1"
	}
	return parseCPUQuota(quota, fields[1])
}

// parseCPUQuota reads the cpu.cfs_quota_us and cpu.cfs_period_us of v1: the
// limit in cores, 0 when there is none, which is a quota of -1; false when
// they make no limit.
func parseCPUQuota(quota, period string) (cores float64, ok bool) {
	q, err := strconv.ParseInt(strings.TrimSpace(quota), 10, 64)
	if err != nil {
		return 0, false
	}
	p, err := strconv.ParseInt(strings.TrimSpace(period), 10, 64)
	if err != nil || p <= 0 {
		return 0, false
	}
	if q < 0 {
		return 0, true
	}
	return float64(q) / float64(p), q > 0
}

// parseCPUStat reads a cpu.stat: in how many periods the group was throttled
// and for how many seconds, summed over the cores (v1 has nanoseconds, v2
// microseconds). What is not there, as in the root of v2, is 0.
func parseCPUStat(text string) (throttled uint64, seconds float64) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			continue
		}
		switch name {
		case "nr_throttled":
			throttled = n
		case "throttled_time":
			seconds = float64(n) / 1e9
		case "throttled_usec":
			seconds = float64(n) / 1e6
		}
	}
	return throttled, seconds
}
