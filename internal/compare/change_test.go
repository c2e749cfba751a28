package compare

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/aclements/go-moremath/stats"
	"pgregory.net/rapid"

	"github.com/poolsweep/poolsweep/analyze"
)

// near reports whether a is b but for rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(1, math.Abs(b)) }

// curve returns a curve of trials of which only the throughput is known, those
// of trials[i] at 1, 2, 4, … clients.
func curve(trials ...[]float64) analyze.Curve {
	c := analyze.Curve{Test: "SET", Depth: 1}
	for i, all := range trials {
		p := analyze.Point{Clients: 1 << i}
		for _, x := range all {
			u := analyze.Unknown()
			p.Trials = append(p.Trials, analyze.Trial{QPS: x, Mean: u, P50: u, P99: u, P999: u, LatencyMin: u, Load: analyze.UnknownLoad()})
		}
		c.Points = append(c.Points, p)
	}
	return c
}

// run returns a run of one curve from another tool.
func run(name string, c analyze.Curve) Run {
	return Run{Name: name, Curves: []analyze.Curve{c}, Analyses: []*analyze.Analysis{analyze.Analyze(c, analyze.Options{})}}
}

// drawTrials draws steps with one to six trials each.
func drawTrials(t *rapid.T, name string, steps int) [][]float64 {
	var all [][]float64
	for range steps {
		all = append(all, rapid.SliceOfN(rapid.Float64Range(1000, 2000), 1, 6).Draw(t, name))
	}
	return all
}

// TestSwap: what the new run is above the old one, the old one is below it.
func TestSwap(t *testing.T) {
	inverse := func(q analyze.Quantity) float64 { return 1/(1+float64(q)) - 1 }
	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.IntRange(1, 4).Draw(t, "steps")
		a, b := curve(drawTrials(t, "old", steps)...), curve(drawTrials(t, "new", steps)...)
		there, back := compareCurves(a, b), compareCurves(b, a)
		check := func(x, y Change) {
			if !near(float64(x.Ratio), inverse(y.Ratio)) || x.Significant != y.Significant || !near(float64(x.P), float64(y.P)) {
				t.Fatalf("there %+v, back %+v", x, y)
			}
			if x.Low.Known() != y.Low.Known() || x.Low.Known() && (!near(float64(x.Low), inverse(y.High)) || !near(float64(x.High), inverse(y.Low))) {
				t.Fatalf("there %+v, back %+v", x, y)
			}
		}
		check(there.QPS, back.QPS)
		for i := range there.Steps {
			check(there.Steps[i].QPS, back.Steps[i].QPS)
		}
	})
}

// TestScale: a run that is f times as fast in everything moves every change and
// both ends of its interval by f.
func TestScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.IntRange(1, 4).Draw(t, "steps")
		f := rapid.Float64Range(.5, 2).Draw(t, "f")
		trials := drawTrials(t, "new", steps)
		a, b := curve(drawTrials(t, "old", steps)...), curve(trials...)
		for _, step := range trials {
			for i := range step {
				step[i] *= f
			}
		}
		before, after := compareCurves(a, b), compareCurves(a, curve(trials...))
		check := func(x, y analyze.Quantity) {
			if x.Known() != y.Known() || x.Known() && !near((1+float64(x))*f, 1+float64(y)) {
				t.Fatalf("%v became %v, not %v times it", x, y, f)
			}
		}
		check(before.QPS.Ratio, after.QPS.Ratio)
		check(before.QPS.Low, after.QPS.Low)
		check(before.QPS.High, after.QPS.High)
		for i := range before.Steps {
			check(before.Steps[i].QPS.Ratio, after.Steps[i].QPS.Ratio)
			check(before.Steps[i].QPS.Low, after.Steps[i].QPS.Low)
		}
	})
}

// TestSelf: a run against itself has no change, and p is 1.
func TestSelf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := curve(drawTrials(t, "trials", rapid.IntRange(1, 4).Draw(t, "steps"))...)
		s := compareCurves(c, c)
		changes := []Change{s.QPS}
		for _, st := range s.Steps {
			changes = append(changes, st.QPS)
		}
		for _, ch := range changes {
			if !near(float64(ch.Ratio), 0) || ch.Significant || ch.P < .99 {
				t.Fatalf("%+v", ch)
			}
		}
	})
}

// TestInterval: the interval of all steps together, of one step with three
// rounds on each side, in numbers that can be followed by hand.
func TestInterval(t *testing.T) {
	rounds := func(center float64) []float64 {
		return []float64{math.Exp(center - .1), math.Exp(center), math.Exp(center + .1)}
	}
	s := compareCurves(curve(rounds(7)), curve(rounds(7.3)))
	// Both variances are .01 and of the mean .01/3; equal variances of three
	// and three give Welch's test 4 degrees of freedom; Student's t has its
	// 97.5 % quantile at 2.776445 there.
	half := 2.776445 * math.Sqrt(.02/3)
	if got, want := float64(s.QPS.Low), math.Expm1(.3-half); !near(got, want) {
		t.Errorf("low end %v, want %v", got, want)
	}
	if got, want := float64(s.QPS.High), math.Expm1(.3+half); !near(got, want) {
		t.Errorf("high end %v, want %v", got, want)
	}
	// A single step has the same noise, and the variance of its median is π/2
	// of that of its mean.
	half *= math.Sqrt(math.Pi / 2)
	if got, want := float64(s.Steps[0].QPS.Low), math.Expm1(.3-half); !near(got, want) {
		t.Errorf("low end of the step %v, want %v", got, want)
	}
	if !s.QPS.Significant || !s.Steps[0].QPS.Significant {
		t.Error("not significant")
	}
}

// TestWelch: of all steps together, zero is outside the interval where Welch's
// test, in another's code, has p below .05.
func TestWelch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) []float64 {
			return rapid.SliceOfN(rapid.Float64Range(1000, 1200), 2, 9).Draw(t, name)
		}
		old, new := draw("old"), draw("new")
		logs := func(x []float64) *stats.Sample {
			var s stats.Sample
			for _, v := range x {
				s.Xs = append(s.Xs, math.Log(v))
			}
			return &s
		}
		a, b := logs(old), logs(new)
		for _, s := range []*stats.Sample{a, b} {
			if s.Variance()/s.Weight() <= minStandardError*minStandardError {
				t.Skip("the least standard error holds")
			}
		}
		want, err := stats.TwoSampleWelchTTest(a, b, stats.LocationDiffers)
		if err != nil || math.Abs(want.P-.05) < 1e-6 {
			t.Skip("cannot be told")
		}
		got := compareCurves(curve(old), curve(new)).QPS
		if outside := got.Low > 0 || got.High < 0; outside != (want.P < .05) {
			t.Fatalf("interval %v to %v, Welch's p %v", got.Low, got.High, want.P)
		}
	})
}

// permutations returns the p value of the two-sided U test by its definition:
// twice the smaller tail of U over all ways to divide the values, 1 at most.
func permutations(a, b []float64) float64 {
	all := slices.Concat(a, b)
	u := func(mask int) float64 {
		var sum float64
		for i, x := range all {
			for j, y := range all {
				if mask>>i&1 == 1 && mask>>j&1 == 0 {
					switch {
					case x > y:
						sum++
					case x == y:
						sum += .5
					}
				}
			}
		}
		return sum
	}
	seen := u(1<<len(a) - 1)
	var below, above, ways float64
	for mask := range 1 << len(all) {
		if bits.OnesCount(uint(mask)) != len(a) {
			continue
		}
		ways++
		v := u(mask)
		if v <= seen {
			below++
		}
		if v >= seen {
			above++
		}
	}
	return min(1, 2*min(below, above)/ways)
}

// TestMannWhitney: p is that of all permutations; with equal values it is never
// less.
func TestMannWhitney(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) []float64 {
			var x []float64
			for _, v := range rapid.SliceOfN(rapid.IntRange(1, 8), 1, 5).Draw(t, name) {
				x = append(x, float64(v))
			}
			return x
		}
		a, b := draw("a"), draw("b")
		got, want := mannWhitney(a, b), permutations(a, b)
		all := slices.Sorted(slices.Values(slices.Concat(a, b)))
		tied := len(slices.Compact(all)) < len(a)+len(b)
		if !tied && !near(got, want) || got < want-1e-9 || got > 1 {
			t.Fatalf("p %v, by permutations %v (ties: %t)", got, want, tied)
		}
	})
}

// TestLeastP: 2 / C(n+m, n), the table of benchmath for n = m.
func TestLeastP(t *testing.T) {
	tests := []struct {
		n, m int
		want float64
	}{
		{1, 1, 1}, {2, 2, 1. / 3}, {3, 3, .1}, {4, 4, 0.02857142857142857}, {9, 9, 4.113533525298231e-05},
		{3, 5, 2. / 56}, {1, 100, 2. / 101},
	}
	for _, test := range tests {
		if got := leastP(test.n, test.m); !near(got, test.want) {
			t.Errorf("%d and %d: %v, want %v", test.n, test.m, got, test.want)
		}
	}
}

// simulate counts in how many of n sweeps, of ten steps with so many trials and
// σ = 3 %, any step and all steps together have a significant change; the new
// run is f times as fast.
func simulate(n, trials int, f float64) (any, all float64) {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(f float64) analyze.Curve {
		var steps [][]float64
		for i := range 10 {
			var step []float64
			for range trials {
				step = append(step, f*1e4*float64(i+1)*math.Exp(.03*r.NormFloat64()))
			}
			steps = append(steps, step)
		}
		return curve(steps...)
	}
	for range n {
		s := compareCurves(draw(1), draw(f))
		if s.QPS.Significant {
			all++
		}
		if slices.ContainsFunc(s.Steps, func(st Step) bool { return st.QPS.Significant }) {
			any++
		}
	}
	return any / float64(n), all / float64(n)
}

// TestFalseAlarms: without a change, at most 5 % of the sweeps have a
// significant one, of whichever step; three standard errors are allowed.
func TestFalseAlarms(t *testing.T) {
	const n = 300
	limit := .05 + 3*math.Sqrt(.05*.95/n)
	for _, trials := range []int{2, 3, 5} {
		any, all := simulate(n, trials, 1)
		t.Logf("%d trials: any step %.3f, all steps %.3f", trials, any, all)
		if any > limit || all > limit {
			t.Errorf("%d trials: any step %.3f, all steps %.3f, want %.3f at most", trials, any, all, limit)
		}
	}
}

// TestPower: ten steps that all lost 5 % at σ = 3 % are seen together in nine of
// ten sweeps: the standard error of the difference is .03·√(2/30) = .8 %.
func TestPower(t *testing.T) {
	_, all := simulate(200, 3, .95)
	t.Logf("all steps %.3f", all)
	if all < .9 {
		t.Errorf("seen in %.3f of the sweeps", all)
	}
}

// TestMargin: a change no larger than that of the generator's own speed is not
// significant where server and generator share a machine.
func TestMargin(t *testing.T) {
	on := func(qps, ceiling float64, shared bool, loops int) analyze.Curve {
		c := curve([]float64{qps, qps * 1.001, qps * .999}, []float64{qps * 2, qps * 2.001, qps * 1.999})
		for _, p := range c.Points {
			for i := range p.Trials {
				p.Trials[i].Load.GeneratorCeiling = analyze.Quantity(ceiling)
				p.Trials[i].Load.SharedHost, p.Trials[i].Load.GeneratorLoops = shared, loops
			}
		}
		return c
	}
	tests := []struct {
		name        string
		new         analyze.Curve
		significant bool
		ratio       float64 // of the generator's speed
	}{
		{"the same speed", on(1200, 5000, true, 1), true, 1},
		{"as much faster", on(1200, 6000, true, 1), false, 1.2},
		{"as much slower", on(1200, 5000/1.2, true, 1), false, 1 / 1.2},
		{"a little faster", on(1200, 5100, true, 1), true, 1.02},
		{"another machine", on(1200, 6000, false, 1), true, 1.2},
		{"other event loops", on(1200, 6000, true, 2), true, math.NaN()},
	}
	for _, test := range tests {
		old := on(1000, 5000, true, 1)
		s := compareCurves(old, test.new)
		if s.QPS.Significant != test.significant || s.Steps[0].QPS.Significant != test.significant {
			t.Errorf("%s: significant %t and %t, want %t", test.name, s.QPS.Significant, s.Steps[0].QPS.Significant, test.significant)
		}
		if got := float64(speed(old, test.new).ratio); !near(got, test.ratio) && !(math.IsNaN(got) && math.IsNaN(test.ratio)) {
			t.Errorf("%s: speed %v, want %v", test.name, got, test.ratio)
		}
	}
}

// TestTail: nothing is said of p99 when the machine moved by more than a fifth.
func TestTail(t *testing.T) {
	on := func(p99, ceiling float64) analyze.Curve {
		c := curve([]float64{1000, 1001, 999})
		for i := range c.Points[0].Trials {
			t := &c.Points[0].Trials[i]
			t.P99 = analyze.Quantity(p99 * (1 + .001*float64(i)))
			t.Load.GeneratorCeiling, t.Load.SharedHost = analyze.Quantity(ceiling), true
		}
		return c
	}
	for ceiling, want := range map[float64]bool{5000: true, 4500: true, 5500: true, 4000: false, 6500: false} {
		s := compareCurves(on(.001, 5000), on(.003, ceiling))
		if s.P99.Low.Known() != want || s.P99.Significant != want || !s.QPS.Low.Known() {
			t.Errorf("generator at %v of 5000/s: p99 %+v", ceiling, s.P99)
		}
	}
}

// TestOneTrial: nothing is significant and no interval is known without a
// second trial; and what is not in both runs has no change.
func TestOneTrial(t *testing.T) {
	s := compareCurves(curve([]float64{100}, []float64{200}), curve([]float64{1000}, []float64{2000}, []float64{3000}))
	if len(s.Steps) != 3 || s.Common != 2 {
		t.Fatalf("%d steps, %d common", len(s.Steps), s.Common)
	}
	for _, c := range []Change{s.QPS, s.Steps[0].QPS} {
		if !near(float64(c.Ratio), 9) || c.Low.Known() || c.High.Known() || c.Significant || c.Reachable || c.P != 1 {
			t.Errorf("%+v", c)
		}
	}
	alone := s.Steps[2].QPS
	if alone.Old.Trials != 0 || alone.New.Trials != 1 || alone.New.Median != 3000 || alone.Ratio.Known() || alone.P.Known() {
		t.Errorf("in one run only: %+v", alone)
	}
	if s.P99.Ratio.Known() || s.P99.Significant {
		t.Errorf("p99, not known: %+v", s.P99)
	}
}
