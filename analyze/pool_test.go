package analyze

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// queueOf returns the queue of rate lambda before c connections that complete
// x(n) a second when n are in use.
func queueOf(x func(n float64) float64, lambda float64, c int) queue {
	q := newQueue(lambda)
	for n := 1; n <= c; n++ {
		q = q.add(x(float64(n)))
	}
	return q
}

// TestErlangC: with X(n) = n the queue is M/M/c, and P_w is Erlang's C(c, a).
func TestErlangC(t *testing.T) {
	for _, test := range []struct {
		c    int
		a    float64
		want float64 // six digits
	}{
		{3, 2, 4. / 9},    // Kleinrock (1975), §3.5, by hand: (8/6·3)/(1+2+2+4)
		{2, 1.5, .642857}, // 2ρ²/(1+ρ) with ρ = .75
		{10, 8, .409180},  // tables of Erlang's C
		{100, 90, .216940},
		{1, .8, .8}, // M/M/1: P_w = ρ
	} {
		got := queueOf(func(n float64) float64 { return n }, test.a, test.c).waitProbability()
		if !near(got, test.want, 6) {
			t.Errorf("C(%d, %g) = %.7f, want %.6f", test.c, test.a, got, test.want)
		}
	}
}

// TestSingleServer: with X ≡ 1 a single server works at the same pace for any
// number of connections: P(N ≥ c) = ρ^c.
func TestSingleServer(t *testing.T) {
	x := func(float64) float64 { return 1 }
	if got := queueOf(x, .8, 5).waitProbability(); !near(got, .32768, 6) {
		t.Errorf("P_w = %.6f, want .8⁵ = .32768", got)
	}
	// M/M/1: W_q = ρ/(μ−λ), P(W_q > w) = ρ·exp(−(μ−λ)w).
	q := queueOf(x, .8, 1)
	if got := q.wait(); !near(got, 4, 6) {
		t.Errorf("W_q = %g, want 4", got)
	}
	if got := q.waitQuantile(.99); !near(got, math.Log(80)/.2, 6) {
		t.Errorf("99 %% of W_q = %g, want ln 80/.2 = 21.910", got)
	}
	if got := q.waitQuantile(.1); got != 0 {
		t.Errorf("10 %% of W_q = %g, want 0: 20 %% do not wait", got)
	}
}

// TestThousandsOfConnections: the recurrence agrees with sums of logarithms
// where p_n itself would overflow, and a load of next to nothing gives 0.
func TestThousandsOfConnections(t *testing.T) {
	const c, a = 5000, 4950.
	terms := 0.0 // Σ_{n<c} of a^n/n! over a^c/c!
	logTerm := 0.0
	for n := c; n > 0; n-- {
		logTerm += math.Log(float64(n) / a)
		terms += math.Exp(logTerm)
	}
	tail := 1 / (1 - a/c)
	linear := func(n float64) float64 { return n }
	if got, want := queueOf(linear, a, c).waitProbability(), tail/(terms+tail); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("C(5000, 4950) = %.12g, want %.12g", got, want)
	}
	q := queueOf(linear, 1e-3, c)
	if q.waitProbability() != 0 || q.wait() != 0 || !near(q.service(), 1, 6) {
		t.Errorf("idle: P_w %g, W_q %g, S %g; want 0, 0, 1", q.waitProbability(), q.wait(), q.service())
	}
}

// TestHardKnee: a server that takes 120 µs for each of up to 12 requests at
// once. Connections beyond the knee move the wait from the pool to the server:
// what a request takes in all stays the same, 120 µs + C(12, 9.6)/(X*−λ) =
// 120 + .3688·50 µs.
func TestHardKnee(t *testing.T) {
	x := newCapacity(newTable(hardKnee(nil)), hardKneeFound)
	longest := math.Inf(1)
	for _, c := range []int{12, 16, 24, 32} {
		q := x.queue(80000, c)
		if got := (q.wait() + q.service()) * 1e6; !near(got, 138.4, 4) {
			t.Errorf("%d connections: W_q + S = %.2f µs, want 138.4", c, got)
		}
		if q.wait() >= longest {
			t.Errorf("%d connections: the wait for a connection did not become shorter", c)
		}
		longest = q.wait()
	}
}

// hardKnee is the curve of TestHardKnee, with p99 where it is not nil.
func hardKnee(p99 func(n float64) float64) Curve {
	c := model(func(n float64) float64 { return 1e5 * min(n/12, 1) }, 3, 1, 4, 8, 12, 24, 48)
	for i := range c.Points {
		for j := range c.Points[i].Trials {
			if p99 != nil {
				c.Points[i].Trials[j].P99 = Quantity(p99(float64(c.Points[i].Clients)))
			}
		}
	}
	return c
}

// hardKneeFound is its knee, free of noise.
var hardKneeFound = Knee{Shape: ShapePlateau, Clients: 12, Peak: 12, Plateau: 1e5, Low: 12, High: 24, Confidence: ConfidenceHigh}

// retroFound is the knee of retro(16, …), with levels to twice and more.
var retroFound = Knee{Shape: ShapeRetrograde, Clients: 16, Peak: 16, Plateau: 16000, Ceiling: 24, Low: 16, High: 16, Confidence: ConfidenceHigh}

// p99Doubling is 200 µs up to the knee and then in proportion to clients.
func p99Doubling(n float64) float64 { return 200e-6 * max(1, n/12) }

// TestQueueBalance holds the recurrences against the equilibrium written out:
// p_n for every n far into the tail.
func TestQueueBalance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.IntRange(1, 40).Draw(t, "c")
		x := make([]float64, c+1)
		for n := 1; n <= c; n++ {
			x[n] = rapid.Float64Range(.5, 2).Draw(t, "X")
		}
		lambda := x[c] * rapid.Float64Range(.05, .9).Draw(t, "ρ")
		p, total := 1., 1.
		var waiting, inUse, queued float64
		for n := 1; n < 3000; n++ {
			p *= lambda / x[min(n, c)]
			total += p
			if n >= c {
				waiting += p
				queued += p * float64(n-c)
			}
			inUse += p * float64(min(n, c))
		}
		q := queueOf(func(n float64) float64 { return x[int(n)] }, lambda, c)
		// Little's law for those who wait: λ·W_q = queued.
		for _, v := range []struct {
			name      string
			got, want float64
		}{
			{"P_w", q.waitProbability(), waiting / total},
			{"busy", q.busy(), inUse / total},
			{"W_q", q.wait(), queued / total / lambda},
		} {
			if math.Abs(v.got/v.want-1) > 1e-9 {
				t.Fatalf("%s = %.12g, want %.12g", v.name, v.got, v.want)
			}
		}
	})
}

func TestCapacity(t *testing.T) {
	plateau := newCapacity(newTable(hardKnee(p99Doubling)), hardKneeFound)
	falling := newCapacity(newTable(model(retro(16, .2), 3, 4, 8, 16, 24, 48, 96)), retroFound)
	lucky := hardKneeFound
	lucky.Plateau = 98000
	capped := newCapacity(newTable(hardKnee(nil)), lucky)
	for _, test := range []struct {
		name      string
		got, want float64
	}{
		{"at a level", plateau.requests(8), 8e5 / 12},
		{"linear between levels", plateau.requests(6), 5e4},
		{"flat beyond the last level", plateau.requests(1000), 1e5},
		{"through the origin below the first", falling.requests(1), 1000},
		{"not beyond the ceiling", falling.requests(96), 16000},
		{"at most X*", capped.requests(24), 98000},
		{"p99 below the knee", plateau.p99At(2), 200e-6},
		{"p99 between levels", plateau.p99At(18), 300e-6},
		{"p99 beyond the last level", plateau.p99At(96), 1600e-6},
	} {
		if !near(test.got, test.want, 9) {
			t.Errorf("%s: %g, want %g", test.name, test.got, test.want)
		}
	}
}

// TestPools holds the pools; each row has its sum.
func TestPools(t *testing.T) {
	hard, falling := hardKnee(p99Doubling), model(retro(16, .2), 3, 4, 8, 16, 24, 48, 96)
	wide := Knee{Shape: ShapePlateau, Clients: 60, Peak: 100, Plateau: 1e5}
	tests := []struct {
		name     string
		curve    Curve
		knee     Knee
		o        Options
		need     int
		process  int
		pool     int
		shards   int
		feasible bool
		clipped  Limit
	}{
		{"A: the knee", hard, hardKneeFound, Options{}, 12, 12, 12, 1, true, ""},
		{"A: the peak", hard, wide, Options{Goal: GoalPeak}, 100, 100, 100, 1, true, ""},

		// n(50k) = 6; L = 40k·120 µs = 4.8; 4.8 + 2.33·√4.8 = 9.90.
		{"B: half the rate", hard, hardKneeFound, Options{TargetQPS: 40000}, 10, 10, 10, 1, true, ""},
		// n(100k) = 12; L = 9.6; 9.6 + 2.33·√9.6 = 16.8.
		{"B: ρ = .8", hard, hardKneeFound, Options{TargetQPS: 80000}, 17, 17, 17, 1, true, ""},
		// 200k/80k = 2.5, so three; each 66.7k: n(83.3k) = 10, L = 8, 8 + 2.33·√8 = 14.6.
		{"B: too much", hard, hardKneeFound, Options{TargetQPS: 200000}, 15, 15, 15, 3, false, ""},
		{"B: just too much", hard, hardKneeFound, Options{TargetQPS: 80001}, 10, 10, 10, 2, false, ""},
		// 12.8k is .8·16k: n = 16, L = 12.8, 12.8 + 2.33·√12.8 = 21.1.
		{"B: falling", falling, retroFound, Options{TargetQPS: 12800}, 22, 22, 22, 1, true, ""},
		// A little noise apart the ceiling is at the knee: 22 is too many.
		{"B: low ceiling", falling, ceilingAt(16), Options{TargetQPS: 12800}, 22, 16, 16, 1, true, LimitCeiling},

		// C(12, 9.6) = .3688: ln 36.88/20k = 180.4 µs, and 200 µs: 380 µs.
		// Below 12, ρ is above .8.
		{"C: 400 µs", hard, hardKneeFound, Options{TargetQPS: 80000, SLOP99: 400e-6}, 12, 12, 12, 1, true, ""},
		// More connections do not help: 16 have 136 + 267 µs. At 40k, 7 have
		// C(7, 4.8) = .2783: ln 27.83/18.3k = 181 µs, and 200 µs: 381 µs;
		// 8 have C(8, 4.8) = .1395: ln 13.95/26.7k = 99 µs, 299 µs in all.
		{"C: 350 µs", hard, hardKneeFound, Options{TargetQPS: 80000, SLOP99: 350e-6}, 8, 8, 8, 2, false, ""},
		{"C: impossible", hard, hardKneeFound, Options{TargetQPS: 80000, SLOP99: 199e-6}, 0, 0, 0, 0, false, ""},
		{"C: p99 unknown", hardKnee(nil), hardKneeFound, Options{TargetQPS: 40000, SLOP99: 1}, 10, 10, 10, 1, false, ""},

		// ⌈60/7⌉ = 9.
		{"D: seven instances", hard, wide, Options{Instances: 7}, 60, 9, 63, 1, true, ""},
		// ⌈60/(5·4)⌉ = 3.
		{"D: with four processes", hard, wide, Options{Instances: 5, Procs: 4}, 60, 3, 60, 1, true, ""},
		// ⌊.8·(500−20)⌋ = 384 over (5+2)·8 = 56: 6; ⌈60/40⌉ = 2 is less.
		{"D: within maxclients", hard, wide, Options{Instances: 5, Procs: 8, MaxClients: 500, ReservedClients: 20}, 60, 2, 80, 1, true, ""},
		// ⌊.8·(80−20)⌋ = 48 over 5+2 = 7: 6; ⌈60/5⌉ = 12 is more.
		{"D: clipped by maxclients", hard, wide, Options{Instances: 5, MaxClients: 80, ReservedClients: 20}, 60, 6, 30, 1, true, LimitMaxClients},
		// One instance, and a second one while deploying: ⌊.8·20⌋/2 = 8.
		{"D: one instance", hard, wide, Options{MaxClients: 20}, 60, 8, 8, 1, true, LimitMaxClients},
		{"D: no connection left", hard, wide, Options{MaxClients: 20, ReservedClients: 20}, 60, 0, 0, 1, false, LimitMaxClients},
		// ⌈16/5⌉ = 4, 20 in all, below the ceiling 24.
		{"D: below the ceiling", falling, retroFound, Options{Instances: 5}, 16, 4, 20, 1, true, ""},
		// ⌈16/15⌉ = 2 would make 30 in all: ⌊24/15⌋ = 1.
		{"D: clipped by the ceiling", falling, retroFound, Options{Instances: 15}, 16, 1, 15, 1, true, LimitCeiling},
		{"D: more processes than the ceiling", falling, retroFound, Options{Instances: 30}, 16, 1, 30, 1, true, ""},
		// Busy 4.8/4 = 1.2 each; 1.2 + 2.33·√1.2 = 3.75 is more than 10/4.
		{"B, D: a rate divided", hard, hardKneeFound, Options{TargetQPS: 40000, Instances: 4}, 10, 4, 16, 1, true, ""},
		// With 6 in all, X = 50k and ρ = 78k/50k.
		{"B, D: clipped too far", hard, hardKneeFound, Options{TargetQPS: 78000, Instances: 2, MaxClients: 12}, 17, 3, 6, 1, false, LimitMaxClients},

		{"no knee", hard, Knee{Shape: ShapeRising, Apparent: 48}, Options{TargetQPS: 100}, 0, 0, 0, 1, false, ""},
		{"nothing measured", Curve{}, unknownKnee(), Options{}, 0, 0, 0, 1, false, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := recommend(test.curve, test.knee, test.o)
			if r.Need != test.need || r.PerProcess != test.process || r.Pool != test.pool || r.Shards != test.shards ||
				r.Feasible != test.feasible || r.ClippedBy != test.clipped {
				t.Errorf("need %d, %d a process, %d in all, %d shards, feasible %t, clipped by %q (%s);\nwant %d, %d, %d, %d, %t, %q",
					r.Need, r.PerProcess, r.Pool, r.Shards, r.Feasible, r.ClippedBy, r.Reason,
					test.need, test.process, test.pool, test.shards, test.feasible, test.clipped)
			}
			if r.Reason == "" || strings.Contains(r.Reason, "NaN") {
				t.Errorf("reason %q", r.Reason)
			}
		})
	}
}

func ceilingAt(n int) Knee {
	k := retroFound
	k.Ceiling = n
	return k
}

// TestPrediction holds what a rate leads to, and that a pipeline stretches
// time: ten requests at a time are a batch that takes ten times as long.
func TestPrediction(t *testing.T) {
	c := hardKnee(p99Doubling)
	o := Options{TargetQPS: 80000, SLOP99: 400e-6}
	p := recommend(c, hardKneeFound, o).Load
	for _, v := range []struct {
		name string
		got  Quantity
		want float64
	}{
		{"λ", p.Rate, 80000},
		{"ρ", p.Utilisation, .8},
		{"busy", p.Busy, 9.6},                            // M/M/c: a = λ·120 µs
		{"P_w", p.WaitProbability, .368841},              // Erlang C(12, 9.6)
		{"W_q", p.Wait, .368841 / 20000},                 // P_w/(X*−λ)
		{"W_q 99 %", p.Wait99, math.Log(36.8841) / 2e4},  // ln(P_w/.01)/(X*−λ)
		{"R", p.Response, 120e-6 + .368841/20000},        // and the service
		{"R 99 %", p.Response99, 200e-6 + 3.607782/20e3}, // ln 36.8841 = 3.607782
	} {
		if !near(float64(v.got), v.want, 5) {
			t.Errorf("%s = %.7g, want %.7g", v.name, v.got, v.want)
		}
	}
	c.Depth = 10
	o.SLOP99 *= 10
	deep := recommend(c, hardKneeFound, o)
	if !near(float64(deep.Load.Wait), 10*float64(p.Wait), 9) || deep.Load.Busy != p.Busy {
		t.Errorf("depth 10: wait %g, busy %g; want %g, %g", deep.Load.Wait, deep.Load.Busy, 10*p.Wait, p.Busy)
	}
	if load := recommend(c, hardKneeFound, Options{}).Load; load.Rate.Known() || load.Wait.Known() {
		t.Errorf("no rate: %+v", load)
	}
}

// TestAdvice holds the settings that come with a pool size.
func TestAdvice(t *testing.T) {
	slow := hardKnee(func(float64) float64 { return .0801 })
	tests := []struct {
		name  string
		curve Curve
		o     Options
		idle  int
		wait  float64 // seconds
	}{
		{"half, and the least wait", hardKnee(p99Doubling), Options{}, 6, .25},
		{"p99 unknown", hardKnee(nil), Options{}, 6, 1},
		{"five p99, rounded up", slow, Options{}, 6, .41},
		// 4.8 busy over four processes.
		{"what is busy", hardKnee(p99Doubling), Options{TargetQPS: 40000, Instances: 2, Procs: 2}, 2, .25},
		{"one connection", hardKnee(p99Doubling), Options{Instances: 12}, 1, .25},
	}
	for _, test := range tests {
		if r := recommend(test.curve, hardKneeFound, test.o); r.MinIdle != test.idle || math.Abs(r.WaitTimeout-test.wait) > 1e-9 {
			t.Errorf("%s: idle %d, wait %g s; want %d, %g", test.name, r.MinIdle, r.WaitTimeout, test.idle, test.wait)
		}
	}
}

// TestRecommendLaws: the pool is what its parts are, fits the budget, is above
// no ceiling unless there are more processes, and a pool that is feasible for
// a rate is used to at most ρ_max.
func TestRecommendLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := curves(t)
		for i := range c.Points {
			for j := range c.Points[i].Trials {
				trial := &c.Points[i].Trials[j]
				trial.P99 = 3 * trial.Mean
			}
		}
		o := Options{
			Instances:       rapid.IntRange(0, 40).Draw(t, "K"),
			Procs:           rapid.IntRange(0, 8).Draw(t, "procs"),
			MaxClients:      rapid.IntRange(0, 1000).Draw(t, "maxclients"),
			ReservedClients: rapid.IntRange(0, 50).Draw(t, "reserved"),
			TargetQPS:       rapid.Float64Range(0, 3000).Draw(t, "λ"),
			SLOP99:          rapid.Float64Range(0, .1).Draw(t, "T"),
		}
		a := Analyze(c, o)
		r := a.Recommendation
		pools := r.Instances * r.Procs
		switch {
		case r.Pool != r.PerProcess*pools || r.PerInstance != r.PerProcess*r.Procs:
			t.Fatalf("parts: %+v", r)
		case a.Knee.Clients == 0 && r.Pool != 0, r.Pool == 0 && r.Feasible:
			t.Fatalf("a pool from nothing: %+v", r)
		case o.MaxClients > 0 && r.Pool > 0 && r.Pool+o.ReservedClients > o.MaxClients:
			t.Fatalf("above maxclients %d: %+v", o.MaxClients, r)
		case a.Knee.Ceiling > 0 && r.Pool > max(a.Knee.Ceiling, pools):
			t.Fatalf("above the ceiling %d: %+v", a.Knee.Ceiling, r)
		case r.Feasible && r.Load.Utilisation > maxUtilisation+1e-6:
			t.Fatalf("used too much: %+v", r)
		case r.Feasible && o.TargetQPS > 0 && o.SLOP99 > 0 && !(r.Load.Response99 <= Quantity(o.SLOP99*(1+1e-6))):
			t.Fatalf("p99 above %g: %+v", o.SLOP99, r)
		case r.Pool > 0 && (r.MinIdle < 1 || r.MinIdle > r.PerProcess || r.WaitTimeout < minWaitTimeout || !r.Capacity.Known()):
			t.Fatalf("advice: %+v", r)
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var back Recommendation
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, back, sameQuantity); diff != "" {
			t.Fatalf("through JSON:\n%s", diff)
		}
	})
}

// On a cluster the settings of a client count for each node.
func TestPoolOfCluster(t *testing.T) {
	c := Curve{Nodes: 3}
	for _, n := range []int{1, 2, 5, 10, 20, 40, 80} {
		x := hard(10)(float64(n))
		c.Points = append(c.Points, Point{Clients: n, Trials: []Trial{plainTrial(x), plainTrial(.99 * x), plainTrial(1.01 * x)}})
	}
	r := Analyze(c, Options{}).Recommendation
	if r.PerNode != 4 || r.PerProcess != 12 || r.Pool != 12 {
		t.Errorf("knee 10 on 3 nodes gives %d to each, %d a process, %d in all; want 4, 12, 12", r.PerNode, r.PerProcess, r.Pool)
	}
	text, err := Snippet("go-redis", r)
	if err != nil || !strings.Contains(text, "PoolSize:              4,") {
		t.Errorf("the settings are %s, %v; want PoolSize 4", text, err)
	}
	// 80 % of 25, half of it during a deployment, are 10: three for each node.
	r = Analyze(c, Options{MaxClients: 25}).Recommendation
	if r.ClippedBy != LimitMaxClients || r.PerNode != 3 {
		t.Errorf("clipped by %q to %d a node; want by maxclients to 3", r.ClippedBy, r.PerNode)
	}
}
