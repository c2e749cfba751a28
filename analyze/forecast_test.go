package analyze

import (
	"math"
	"testing"
)

// With X(n) = nμ the pool is Erlang's queue M/M/c: P_w = C(c, λ/μ) and
// W_q = P_w/(cμ − λ).
func TestForecast(t *testing.T) {
	const mu = 1000.0
	c := Curve{Test: "get"}
	for _, n := range []int{1, 2, 3, 5, 10, 100} {
		c.Points = append(c.Points, Point{Clients: n, Trials: []Trial{{QPS: mu * float64(n), P99: Unknown(), Load: UnknownLoad()}}})
	}
	k := Knee{Clients: 100, Plateau: 100 * mu}
	tests := []struct {
		n    int
		rate float64
		wait float64 // probability; docs/method.md
	}{
		{3, 2 * mu, 4. / 9}, {2, 1.5 * mu, .642857}, {10, 8 * mu, .409180}, {100, 90 * mu, .216940},
	}
	for _, tt := range tests {
		got := Forecast(c, k, tt.n, tt.rate)
		if math.Abs(float64(got.WaitProbability)-tt.wait) > 1e-5 {
			t.Errorf("%d connections at %v/s: P_w = %v, want %v", tt.n, tt.rate, got.WaitProbability, tt.wait)
		}
		if want := tt.wait / (float64(tt.n)*mu - tt.rate); math.Abs(float64(got.Wait)/want-1) > 1e-4 {
			t.Errorf("%d connections at %v/s: W_q = %v, want %v", tt.n, tt.rate, got.Wait, want)
		}
	}
	if got := Forecast(c, k, 2, 3*mu); got.WaitProbability.Known() || math.Abs(float64(got.Utilisation)-1.5) > 1e-9 {
		t.Errorf("overloaded: %+v; want a utilisation of 1.5 and no more", got)
	}
	if got := Forecast(c, Knee{}, 2, mu); got.Utilisation.Known() {
		t.Errorf("without a knee: %+v; want nothing", got)
	}
}
