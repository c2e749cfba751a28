package probe_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/poolsweep/poolsweep/probe"
)

// limitCPU puts a process into a new control group with a limit of 0.3 cores,
// in another one of 0.8, until the test ends. It skips the test where that is
// not allowed.
func limitCPU(t *testing.T, pid int) {
	t.Helper()
	write := func(text string, path ...string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(path...), []byte(text), 0o600); err != nil {
			t.Skipf("no control group can be set up here: %v", err)
		}
	}
	root, v1 := "/sys/fs/cgroup/cpu", true
	if _, err := os.Stat(filepath.Join(root, "cpu.cfs_quota_us")); err != nil {
		root, v1 = "/sys/fs/cgroup", false
	}
	outer := filepath.Join(root, "poolsweep-test-"+strconv.Itoa(os.Getpid()))
	inner := filepath.Join(outer, "server")
	for _, dir := range []string{outer, inner} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Skipf("no control group can be made here: %v", err)
		}
		t.Cleanup(func() {
			if err := os.Remove(dir); err != nil {
				t.Errorf("the control group is left behind: %v", err)
			}
		})
	}
	if v1 {
		write("80000", outer, "cpu.cfs_quota_us")
		write("30000", inner, "cpu.cfs_quota_us")
	} else {
		write("+cpu", outer, "cgroup.subtree_control")
		write("80000 100000", outer, "cpu.max")
		write("30000 100000", inner, "cpu.max")
	}
	t.Cleanup(func() { // a group with a process in it cannot be removed
		_ = os.WriteFile(filepath.Join(root, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600)
	})
	write(strconv.Itoa(pid), inner, "cgroup.procs")
}

// A server that wants a whole core and may have 0.3 of one is throttled in
// each period of 100 ms.
func TestThrottled(t *testing.T) {
	s := connect(t)
	limitCPU(t, s.Identity.PID)
	ctx := t.Context()
	sm := probe.NewSampler(s)
	a := sm.Sample(ctx)
	// Scripts keep the server busy however slow the client is, as it is under
	// the race detector: some milliseconds of CPU each.
	for begun := time.Now(); time.Since(begun) < 500*time.Millisecond; {
		p := s.Client.Pipeline()
		for range 10 {
			p.Eval(ctx, "local n = 0; for i = 1, 300000 do n = n + i % 7 end; return n", nil)
		}
		if _, err := p.Exec(ctx); err != nil {
			t.Fatal(err)
		}
	}
	w := sm.Between(a, sm.Sample(ctx))
	l := w.CPULimit
	if l == nil || l.LimitCores == nil {
		t.Fatalf("no CPU limit was seen: %+v", l)
	}
	t.Logf("limit %v cores, throttled in %d periods for %.3f s of %v; the process used %.2f s",
		*l.LimitCores, l.Throttled, l.ThrottledSeconds, w.Elapsed, w.Process.CPUSeconds)
	if *l.LimitCores != 0.3 {
		t.Errorf("limit of %v cores, want 0.3, the tighter of two", *l.LimitCores)
	}
	if l.Throttled < 1 || l.ThrottledSeconds <= 0 {
		t.Errorf("throttled in %d periods for %v s, want some", l.Throttled, l.ThrottledSeconds)
	}
}
