package analyze

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// series returns n values of f.
func series(n int, f func(i int) float64) []float64 {
	z := make([]float64, n)
	for i := range z {
		z[i] = f(i)
	}
	return z
}

// The wanted cuts follow from how each series is made.
func TestSteady(t *testing.T) {
	const n = 40
	step := func(at int, from, to float64) []float64 {
		return series(n, func(i int) float64 {
			if i < at {
				return from
			}
			return to
		})
	}
	for _, tt := range []struct {
		name   string
		z      []float64
		drop   int
		steady bool
	}{
		{"nothing", nil, 0, true},
		{"too short to tell", []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}, 0, true},
		{"constant", step(0, 0, 5000), 0, true},
		{"all stalled", step(0, 0, 0), 0, true},
		{"slow start", step(7, 3000, 5000), 7, true},
		{"fast start", step(7, 6000, 5000), 7, true},
		{"one stalled interval at the start", step(1, 0, 5000), 1, true},
		{"changed in the middle", step(n/2, 3000, 5000), n / 2, false},
		// The cut may not reach the change: what is left has a trend.
		{"changed near the end", step(35, 3000, 5000), 0, false},
		// 1 % is less than the trend allowed; the cut may not reach the change.
		{"a step of 1 %", step(30, 5000, 5050), 0, true},
		// A straight line's best cut is the last one allowed: its remaining
		// variance falls with the square of its length.
		{"ramp", series(n, func(i int) float64 { return 5000 + 50*float64(i) }), n / 2, false},
		{"falling ramp", series(n, func(i int) float64 { return 5000 - 50*float64(i) }), n / 2, false},
	} {
		if drop, steady := Steady(tt.z); drop != tt.drop || steady != tt.steady {
			t.Errorf("%s: %d dropped, steady %t; want %d, %t", tt.name, drop, steady, tt.drop, tt.steady)
		}
	}
}

// noise returns a stationary series around mean with that coefficient of
// variation and autocorrelation ρ^k at lag k, AR(1).
func noise(r *rand.Rand, n int, mean, cv, rho float64) []float64 {
	x := r.NormFloat64()
	return series(n, func(int) float64 {
		v := mean * (1 + cv*x)
		x = rho*x + math.Sqrt(1-rho*rho)*r.NormFloat64()
		return v
	})
}

// Stationary series are steady, but for what chance makes of them: white
// noise, and the AR(1) of docs/method.md, whose autocorrelation is .73 at
// lag 1, with the CV of 8.8 % that its blocks of 200 ms have. The bounds are a
// little above what is seen; without the test against the standard error,
// white noise of 8 % would be called unsteady in 59 % of the cases with 20
// intervals.
func TestSteadyFalseAlarms(t *testing.T) {
	const draws = 1000
	for _, tt := range []struct {
		n       int
		cv, rho float64
		most    float64 // share called unsteady
	}{
		{10, .01, 0, .15},
		{20, .01, 0, .05},
		{20, .08, 0, .10},
		{50, .08, 0, .08},
		// Wander of seconds is no steady state of two seconds.
		{20, .088, .73, .40},
		{100, .088, .73, .45},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		unsteady, dropped := 0, 0
		for range draws {
			drop, steady := Steady(noise(r, tt.n, 5000, tt.cv, tt.rho))
			dropped += drop
			if !steady {
				unsteady++
			}
		}
		share := float64(unsteady) / draws
		t.Logf("n = %d, CV %.1f %%, ρ %.2f: unsteady %.3f, dropped %.1f on average", tt.n, 100*tt.cv, tt.rho, share, float64(dropped)/draws)
		if share > tt.most {
			t.Errorf("n = %d, CV %.1f %%, ρ %.2f: unsteady in %.3f of the draws, want %.2f at most", tt.n, 100*tt.cv, tt.rho, share, tt.most)
		}
	}
}

// What is there is found under noise of 3 %: a start at half the speed is cut,
// to two intervals, and a ramp of 30 % is unsteady.
func TestSteadyUnderNoise(t *testing.T) {
	const draws, n, start = 500, 40, 8
	r := rand.New(rand.NewPCG(3, 4))
	cut, ramps := 0, 0
	for range draws {
		z := noise(r, n, 5000, .03, 0)
		slow := series(n, func(i int) float64 {
			if i < start {
				return z[i] / 2
			}
			return z[i]
		})
		if drop, _ := Steady(slow); drop >= start && drop <= start+2 {
			cut++
		}
		if _, steady := Steady(series(n, func(i int) float64 { return z[i] * (1 + .3*float64(i)/n) })); !steady {
			ramps++
		}
	}
	t.Logf("start cut %d, ramp found %d of %d", cut, ramps, draws)
	if cut < draws*75/100 || ramps < draws*99/100 {
		t.Errorf("start cut in %d and ramp found in %d of %d draws, want 75 %% and 99 %%", cut, ramps, draws)
	}
}

// Laws: a constant series drops nothing; at most half is dropped; the unit
// does not matter (a power of two leaves no rounding).
func TestSteadyLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "n")
		c := rapid.Float64Range(0, 1e7).Draw(t, "constant")
		if drop, steady := Steady(series(n, func(int) float64 { return c })); drop != 0 || !steady {
			t.Fatalf("constant %v, %d times: %d dropped, steady %t", c, n, drop, steady)
		}
		z := rapid.SliceOfN(rapid.Float64Range(0, 1e6), n, n).Draw(t, "z")
		drop, steady := Steady(z)
		if drop < 0 || drop > n/2 {
			t.Fatalf("%d of %d dropped", drop, n)
		}
		if d, s := Steady(series(n, func(i int) float64 { return 8 * z[i] })); d != drop || s != steady {
			t.Fatalf("times 8: %d, %t become %d, %t", drop, steady, d, s)
		}
	})
}
