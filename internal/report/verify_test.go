package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/arrivals"
	"github.com/poolsweep/poolsweep/internal/golden"
	"github.com/poolsweep/poolsweep/internal/verify"
)

// verifiedPool is a pool of 10 that a sweep recommends at two rates: at the
// lower one 10 is verified, at the higher one all are overloaded.
func verifiedPool() *verify.Result {
	load := verify.Load{ClientCPU: .9, ServerMain: .5, ServerCPU: .52, HostCPU: 1.5, Cores: 4}
	res := &verify.Result{
		Workload: "GET", Arrivals: arrivals.Poisson, Rounds: 3, Duration: 2 * time.Second, PoolTimeout: time.Second,
		Pool: 10, Swept: true, Local: true, Knee: 104_355,
		Capacity: verify.Closed{QPS: 46_000, P50: .0002, P99: .0004, Load: load},
	}
	row := func(pool int, rate, p99, waited float64) verify.Row {
		q := func(x float64) analyze.Quantity { return analyze.Quantity(x) }
		due := int64(2 * rate)
		r := verify.Row{
			Trial: verify.Trial{
				Pool: pool, Rate: rate, Round: 2, Due: due, Sent: due, Answered: due - 3,
				Mean: q(p99 / 4), P50: q(p99 / 5), P95: q(p99 / 2), P99: q(p99), P999: q(2 * p99), P99Sent: q(p99 * .97),
				Slip: q(.00001), SlipP99: q(.00003), WaitShare: q(waited), Wait: q(waited / 1e4), Held: q(p99/4 - .00001 - waited/1e4), Load: load,
			},
			Spread: .07,
			Predicted: analyze.Prediction{
				Rate: q(rate), Utilisation: .22, Busy: 1.1, WaitProbability: .004, Wait: 1e-6, Wait99: 0, Response: .00006, Response99: .0002,
			},
		}
		return r
	}
	low := []verify.Row{row(5, 23_000, .0009, .2), row(10, 23_000, .0005, .01), row(20, 23_000, .00048, 0)}
	high := []verify.Row{row(5, 36_800, .4, 1), row(10, 36_800, .3, .9), row(20, 36_800, .2, .8)}
	for i := range high {
		r := &high[i]
		r.Answered, r.Dropped, r.Timeouts, r.Failed = r.Due*8/10, int64(100-i), int64(7*i), int64(7*i)
		r.P99, r.P999, r.P99Sent = unknown, unknown, unknown
	}
	res.Levels = []verify.Level{{Rate: 23_000, Share: .5, Rows: low}, {Rate: 36_800, Share: .8, Rows: high}}
	for _, l := range res.Levels {
		for _, r := range l.Rows {
			res.Trials = append(res.Trials, r.Trial)
		}
	}
	return res
}

func TestVerifyGolden(t *testing.T) {
	for _, name := range []string{"table", "json"} {
		t.Run(name, func(t *testing.T) {
			format, err := VerifyNamed(name)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := format(&got, verifiedPool()); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, "verification."+name, got.String())
		})
	}
}

// What the JSON says is what was measured: decode ∘ encode = identity.
func TestVerifyJSONIsTheResult(t *testing.T) {
	var text bytes.Buffer
	want := verifiedPool()
	if err := verifyJSON(&text, want); err != nil {
		t.Fatal(err)
	}
	var got verify.Result
	if err := json.Unmarshal(text.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, &got, sameQuantity); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestVerifyRefuses(t *testing.T) {
	if _, err := VerifyNamed("xml"); err == nil || !strings.Contains(err.Error(), `unknown format "xml"; the formats of verify are json, table`) {
		t.Errorf("error %v", err)
	}
	if err := verifyTable(&brokenWriter{10}, verifiedPool()); !errors.Is(err, errFull) {
		t.Errorf("error %v, want %v", err, errFull)
	}
}
