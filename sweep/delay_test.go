package sweep

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/faultproxy"
	"github.com/poolsweep/poolsweep/internal/modelserver"
	"github.com/poolsweep/poolsweep/internal/redistest"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// A delay before a real server moves the knee to about X·D, by Little's law: so
// many requests are on the way while the server works at its capacity X. The
// command takes the server about a millisecond, so that its capacity is not the
// proxy's.
func TestDelayOfServerInRealTime(t *testing.T) {
	server := redistest.Start(t)
	proxy, err := faultproxy.Start(server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	const delay = 5 * time.Millisecond // each way
	proxy.Delay(delay)

	spec, err := workload.Custom([]string{"EVAL", "local n = 0 for i = 1, 50000 do n = n + i end return n", "0"})
	if err != nil {
		t.Fatal(err)
	}
	spec.Values.Sizes = []workload.Size{{Min: 1, Max: 1}}
	sweep := func(addr string) *analyze.Analysis {
		t.Helper()
		p := DefaultPlan()
		p.Workloads, p.Clients, p.Fixed = []workload.Spec{spec}, []int{1, 2, 4, 8, 16}, true
		p.Duration, p.MinRequests, p.Slices, p.Trials, p.Budget = 300*time.Millisecond, 50, 1, 2, time.Second
		res, err := Run(t.Context(), Config{Plan: p, Server: connect(t, addr)})
		if err != nil {
			t.Fatal(err)
		}
		return analyze.Analyze(res.Curves()[0], analyze.Options{})
	}
	modelserver.Holds(t, func() error {
		near, far := sweep(server.Addr), sweep(proxy.Addr)
		// The levels double, so that half and double of what is wanted are its
		// neighbours.
		want := float64(far.Knee.Plateau) * (2 * delay).Seconds()
		t.Logf("knee %d at %.0f/s, with the delay %d at %.0f/s, X·D %.1f", near.Knee.Apparent, float64(near.Knee.Plateau),
			far.Knee.Apparent, float64(far.Knee.Plateau), want)
		if 2*near.Knee.Apparent > far.Knee.Apparent {
			return fmt.Errorf("the knee is at %d clients without a delay and at %d with one", near.Knee.Apparent, far.Knee.Apparent)
		}
		if off := math.Abs(math.Log2(float64(far.Knee.Apparent) / want)); off > 1.2 {
			return fmt.Errorf("with a delay of %v each way and %.0f requests/s the knee is at %d clients, want about %.0f",
				delay, float64(far.Knee.Plateau), far.Knee.Apparent, want)
		}
		return nil
	})
}
