package sweep

import (
	"strings"
	"testing"
	"time"

	"github.com/poolsweep/poolsweep/internal/redistest"
)

// A master that is killed ends the run with its name; what was measured is
// kept, and our keys are removed from the masters that are left.
func TestMasterKilled(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	p := DefaultPlan()
	p.Workloads, p.Clients, p.Fixed = specs("set", 100), []int{3, 6}, true
	p.Slices, p.Duration, p.Warmup, p.Budget = 1, 50*time.Millisecond, 10*time.Millisecond, 0
	done := 0
	res, err := Run(t.Context(), Config{Plan: p, Server: connect(t, cluster.Masters[0].Addr), Progress: func(e Event) {
		if e.Clients > 0 {
			if done++; done == 2 {
				cluster.Masters[1].Kill()
			}
		}
	}})
	if err == nil || !strings.Contains(err.Error(), cluster.Masters[1].Addr) {
		t.Errorf("got error %v, want one that names %s", err, cluster.Masters[1].Addr)
	}
	if len(res.Slices) < 2 {
		t.Errorf("%d slices are kept, want 2 or more", len(res.Slices))
	}
	for _, i := range []int{0, 2} {
		if n := cluster.Masters[i].Client(t).DBSize(t.Context()).Val(); n != 0 {
			t.Errorf("%d keys are left on master %d", n, i)
		}
	}
}
