package verify

import (
	"strings"
	"testing"
	"time"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/arrivals"
)

// row is a pool that keeps up, of which a generator in time has measured p99
// in milliseconds.
func row(pool int, p99 float64) Row {
	u := analyze.Unknown()
	return Row{
		Trial: Trial{
			Pool: pool, Due: 10000, Sent: 10000, Answered: 9990,
			P50: u, P95: u, P99: analyze.Quantity(p99 / 1000), P999: u, Mean: u, Slip: 0, SlipP99: 0,
			P99Sent:   analyze.Quantity(p99 / 1000),
			WaitShare: .02, Wait: 1e-6, Held: 1e-4,
			Load: Load{ClientCPU: .5, ServerMain: .5, ServerCPU: .5, HostCPU: u},
		},
		Spread: .02, Predicted: unpredicted(),
	}
}

func with(r Row, change func(*Row)) Row {
	change(&r)
	return r
}

func overload(r *Row) { r.Answered = 8000 }
func late(r *Row)     { r.P99Sent = .85 * r.P99 }
func tooMuch(r *Row)  { r.P99Sent = .45 * r.P99 }
func noisy(r *Row)    { r.Spread = .5 }

// found is the result of these rows at rates of 1000, 2000, … requests/s, for
// a pool of 10 that a sweep recommends.
func found(levels ...[]Row) *Result {
	u := analyze.Unknown()
	res := &Result{
		Workload: "GET", Arrivals: arrivals.Poisson, Rounds: 3, Duration: 2 * time.Second, PoolTimeout: time.Second,
		Pool: 10, Swept: true, Local: true, Knee: 90_000,
		Capacity: Closed{QPS: 100_000, P50: u, P99: u, Load: Load{ClientCPU: 1, ServerMain: .95, ServerCPU: .95, HostCPU: 2, Cores: 4}},
	}
	for i, rows := range levels {
		rate := float64(1000 * (i + 1))
		res.Levels = append(res.Levels, Level{Rate: rate, Share: analyze.Quantity(rate / res.Capacity.QPS), Rows: rows})
	}
	return res
}

// The rule: the smallest size whose p99 is within 10 % of the best, at the
// highest rate at which a size keeps up.
func TestVerdict(t *testing.T) {
	tests := []struct {
		name    string
		res     *Result
		pool    int
		rate    float64
		believe Believe
		say     string // part of the sentences and warnings
	}{
		{"agreement", found([]Row{row(5, 3), row(10, 1), row(20, 1)}), 10, 1000, "",
			"the sweep's pool of 10 is confirmed"},
		{"within 10 %", found([]Row{row(5, 1.1), row(10, 1), row(20, 1)}), 5, 1000, BelieveVerification,
			"5 connections are enough for it"},
		{"beyond 10 %", found([]Row{row(5, 1.11), row(10, 1), row(20, 1.2)}), 10, 1000, "", "confirmed"},
		{"the highest rate decides", found([]Row{row(5, 1), row(10, 1), row(20, 1)}, []Row{row(5, 3), row(10, 2), row(20, 1)}),
			20, 2000, BelieveVerification, "with 10, requests wait for a connection in bursts"},
		{"unless all are overloaded", found([]Row{row(5, 1), row(10, 1), row(20, 1)},
			[]Row{with(row(5, 9), overload), with(row(10, 9), overload), with(row(20, 9), overload)}),
			5, 1000, BelieveVerification, "Warning: overloaded, so that latency grows for as long as one measures: 5, 10, 20 at 2,000/s"},
		{"an overloaded size is not chosen", found([]Row{with(row(5, .5), overload), row(10, 1), row(20, 1)}), 10, 1000, "", "5: overloaded"},
		{"nor one that dropped", found([]Row{with(row(5, .5), func(r *Row) { r.Dropped = 1 }), row(10, 1), row(20, 1)}), 10, 1000, "", "dropped"},
		{"all overloaded", found([]Row{with(row(10, 1), overload)}), 0, 0, "", "Give a lower --rate"},
		{"no p99", found([]Row{with(row(10, 1), func(r *Row) { r.P99 = analyze.Unknown() })}), 0, 0, "", "give a longer --duration"},
		{"noise", found([]Row{row(5, 2), with(row(10, 1.2), noisy), row(20, 1)}), 20, 1000, BelieveSweep,
			"the rounds of one size differ by 50 %"},
		{"noise below", found([]Row{row(5, 1), with(row(10, 1), noisy), row(20, 1)}), 5, 1000, BelieveSweep,
			"the rounds of one size differ by 50 %"},
		{"a generator that is late at the higher rate", found([]Row{row(5, 2), row(10, 1), row(20, 1)}, []Row{row(5, 3), row(10, 2), with(row(20, 1), tooMuch)}),
			10, 1000, "", "more than a tenth of the p99 is its own and not the server's: 20 at 2,000/s"},
		{"a generator that is a little late", found([]Row{row(5, 2), with(row(10, 1), late), row(20, 1)}), 10, 1000, "",
			"more than a tenth of the p99 is its own and not the server's: 10 at 1,000/s"},
		{"a late generator", found([]Row{row(5, 2), with(row(10, 2), tooMuch), row(20, 1)}), 0, 0, "",
			"Warning: the generator was late, so that more than a tenth of the p99 is its own and not the server's: 10 at 1,000/s"},
		{"asked for other sizes", found([]Row{row(1, 1), row(2, 1)}), 1, 1000, "", "a pool of 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := tt.res.Verdict()
			if v.Pool != tt.pool || v.Rate != tt.rate || v.Believe != tt.believe {
				t.Errorf("pool %d at %v, believe %q; want %d at %v, %q", v.Pool, v.Rate, v.Believe, tt.pool, tt.rate, tt.believe)
			}
			if text := said(v); !strings.Contains(text, tt.say) {
				t.Errorf("the verdict does not say %q:\n%s", tt.say, text)
			}
		})
	}
}

func said(v Verdict) string {
	return strings.Join(v.Sentences, "\n") + "\nWarning: " + strings.Join(v.Warnings, "\nWarning: ")
}

// The server's knee over what a client carries, the knee less the 10 % that a
// full thread may lack.
func TestProcesses(t *testing.T) {
	u := analyze.Unknown()
	tests := []struct {
		name       string
		knee       analyze.Quantity
		serverMain analyze.Quantity
		hostCPU    analyze.Quantity
		want       int
	}{
		{"as much as the knee", 100_000, .95, 2, 1},
		{"a little less", 110_000, .92, 2, 1},
		{"half of it", 200_000, .5, 2, 2},
		{"a third of it", 300_000, .33, 2, 3},
		{"no sweep, a full thread", u, .95, 2, 1},
		{"no sweep, a thread at 30 %", u, .3, 1.35, 3},
		{"no sweep, and others on the machine", u, .3, 3.9, 0},
		{"nothing is known", u, u, u, 0},
	}
	for _, tt := range tests {
		res := found([]Row{row(10, 1)})
		res.Knee, res.Capacity.ServerMain, res.Capacity.ServerCPU, res.Capacity.HostCPU = tt.knee, tt.serverMain, tt.serverMain, tt.hostCPU
		if v := res.Verdict(); v.Processes != tt.want {
			t.Errorf("%s: %d processes, want %d\n%s", tt.name, v.Processes, tt.want, said(v))
		}
	}
}

func TestForecastIsCompared(t *testing.T) {
	r := row(10, 1)
	r.Predicted.WaitProbability, r.Predicted.Wait, r.Predicted.Response = .004, 1e-6, 21e-6
	text := said(found([]Row{r}).Verdict())
	for _, want := range []string{"0.4 % of the requests should wait", "2 % did", "0.1 ms a request and the sweep's generator for 0.02 ms"} {
		if !strings.Contains(text, want) {
			t.Errorf("the verdict does not say %q:\n%s", want, text)
		}
	}
}

// The median by p99, whole, and the worst is what has none.
func TestMedian(t *testing.T) {
	trial := func(round int, p99 analyze.Quantity) Trial { return Trial{Round: round, P99: p99} }
	tests := []struct {
		name   string
		trials []Trial
		round  int
		spread analyze.Quantity
	}{
		{"three", []Trial{trial(1, 3), trial(2, 1), trial(3, 2)}, 3, 1},
		{"two", []Trial{trial(1, 3), trial(2, 2)}, 2, .5},
		{"one", []Trial{trial(1, 3)}, 1, analyze.Unknown()},
		{"one without", []Trial{trial(1, analyze.Unknown()), trial(2, 1), trial(3, 2)}, 3, analyze.Unknown()},
	}
	for _, tt := range tests {
		got := median(tt.trials)
		if got.Round != tt.round || got.Spread != tt.spread && got.Spread.Known() {
			t.Errorf("%s: round %d, spread %v; want %d, %v", tt.name, got.Round, got.Spread, tt.round, tt.spread)
		}
	}
}
