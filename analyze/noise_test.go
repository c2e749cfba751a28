package analyze

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestResidualMedians draws the constants of the noise estimate again.
func TestResidualMedians(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, k := range []int{2, 3, 4, 6, 9, 12, 15, 20} {
		const draws = 20_000
		var residuals []float64
		var squares float64
		x := make([]float64, k)
		for range draws {
			for i := range x {
				x[i] = r.NormFloat64()
			}
			m := median(x)
			squares += m * m
			var own []float64
			for _, v := range x {
				own = append(own, math.Abs(v-m))
			}
			slices.Sort(own)
			residuals = append(residuals, own[k%2:]...)
		}
		if got, want := median(residuals), residualMedian(k); math.Abs(got/want-1) > 0.03 {
			t.Errorf("K = %d: median residual %.4f, the table has %.4f", k, got, want)
		}
		// Beyond the table the large-sample form is up to 5 % too large.
		if got, want := math.Sqrt(squares/draws), medianError(k); got > 1.03*want || got < 0.93*want {
			t.Errorf("K = %d: standard error of the median %.4f, the table has %.4f", k, got, want)
		}
	}
}

// TestNoiseMixedTrials: σ is found whatever K is, also when it differs from
// step to step.
func TestNoiseMixedTrials(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, ks := range [][]int{{3}, {6}, {2}, {3, 6, 9, 1}} {
		var c Curve
		for n := range 400 {
			p := Point{Clients: n + 1}
			for range ks[n%len(ks)] {
				p.Trials = append(p.Trials, plainTrial(1000*math.Exp(0.04*r.NormFloat64())))
			}
			c.Points = append(c.Points, p)
		}
		// 400 steps leave a standard error of about 4 %.
		if got := newTable(c).noise.Sigma; math.Abs(float64(got)/0.04-1) > 0.12 {
			t.Errorf("K = %v: σ = %.4f, drawn with 0.04", ks, float64(got))
		}
	}
}

func TestNoiseUnknown(t *testing.T) {
	c := Curve{Points: []Point{{1, []Trial{plainTrial(100)}}, {2, []Trial{plainTrial(200)}}}}
	table := newTable(c)
	if table.noise.Sigma.Known() || table.noise.PassEffect.Known() {
		t.Errorf("one trial a step has %+v, want both unknown", table.noise)
	}
	if table.nu[0] != minStandardError {
		t.Errorf("ν = %v, want the floor", table.nu[0])
	}
}

// sliced is a sweep of 12 passes, three trials of four slices a step, on a
// machine whose speed in each pass is given. Slices are off by sigma.
func sliced(r *rand.Rand, t truth, sigma float64, speed func(pass int) float64) Curve {
	var c Curve
	for _, n := range t.levels {
		p := Point{Clients: n}
		for k := range 3 {
			trial := plainTrial(0)
			for pass := 4 * k; pass < 4*k+4; pass++ {
				qps := t.x(float64(n)) * speed(pass) * math.Exp(sigma*r.NormFloat64())
				trial.Slices = append(trial.Slices, Slice{pass, qps})
				trial.QPS += qps / 4
			}
			p.Trials = append(p.Trials, trial)
		}
		c.Points = append(c.Points, p)
	}
	return c
}

// TestPassEffect: a machine that loses 40 % of its speed in mid-run makes the
// trials of a step differ, but not the steps of a pass. Slices with 5 % noise
// make trials with 2.5 %.
func TestPassEffect(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	slower := func(pass int) float64 {
		if pass >= 6 {
			return 0.6
		}
		return 1
	}
	for _, truth := range slices.Concat(truths["hard plateau"], truths["retrograde"]) {
		c := sliced(r, truth, 0.05, slower)
		a := Analyze(c, Options{})
		if a.Noise.Sigma > 0.04 {
			t.Errorf("%s: σ = %.3f with the pass effect taken out, want about 0.025", truth.name, float64(a.Noise.Sigma))
		}
		// 1/0.6 − 1 = 0.67, and more by the noise of twelve estimates.
		if p := a.Noise.PassEffect; p < 0.6 || p > 0.85 {
			t.Errorf("%s: pass effect %.2f, want about 0.7", truth.name, float64(p))
		}
		if a.Knee.Clients != truth.knee {
			t.Errorf("%s: %s, knee %d, want %d", truth.name, a.Knee.Shape, a.Knee.Clients, truth.knee)
		}
		if !hasWarning(a, WarnPassEffect) {
			t.Errorf("%s: no warning of the pass effect", truth.name)
		}
		for _, p := range c.Points {
			for i := range p.Trials {
				p.Trials[i].Slices = nil
			}
		}
		if a := Analyze(c, Options{}); a.Noise.Sigma < 0.15 {
			t.Errorf("%s: σ = %.3f with the pass effect left in, want 0.15 and more", truth.name, float64(a.Noise.Sigma))
		}
	}
}

// TestPassEffectStepAdded: a step that joins in late, on a slower machine, is
// judged as if it had been there from the start, as its neighbours join in
// again.
func TestPassEffectStepAdded(t *testing.T) {
	slice := func(pass int, qps float64) Slice { return Slice{pass, qps} }
	trial := func(s ...Slice) Trial {
		trial := plainTrial(s[0].QPS)
		trial.Slices = s
		return trial
	}
	// Passes 1 and 2 at full speed, 3 and 4 at half.
	c := Curve{Points: []Point{
		{10, []Trial{trial(slice(1, 100)), trial(slice(2, 100))}},
		{20, []Trial{trial(slice(1, 200)), trial(slice(2, 200)), trial(slice(3, 100)), trial(slice(4, 100))}},
		{30, []Trial{trial(slice(3, 150)), trial(slice(4, 150))}},
		{40, []Trial{trial(slice(1, 400)), trial(slice(2, 400)), trial(slice(3, 200)), trial(slice(4, 200))}},
	}}
	y := newTable(c).y
	for i, want := range []float64{1, 2, 3, 4} {
		if got := y[i] / y[0]; math.Abs(got-want) > 1e-6 {
			t.Errorf("%d clients: %.3f times the first, want %v", c.Points[i].Clients, got, want)
		}
	}
}

// TestPassEffectSmallPass: a pass over fewer steps than can be told apart from
// noise has no effect of its own.
func TestPassEffectSmallPass(t *testing.T) {
	var points []Point
	for _, n := range []int{1, 2} {
		trial := plainTrial(100)
		trial.Slices = []Slice{{1, 120}, {2, 80}}
		points = append(points, Point{n, []Trial{trial}})
	}
	if got := passEffects(points); len(got) != 0 {
		t.Errorf("effects %v, want none", got)
	}
}
