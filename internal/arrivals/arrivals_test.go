package arrivals

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"
)

// gaps returns the gaps of the first n arrivals in seconds, rising.
func gaps(t *testing.T, kind Kind, rate float64, seed uint64, n int) []float64 {
	t.Helper()
	p, err := New(kind, rate, seed)
	if err != nil {
		t.Fatal(err)
	}
	var all []float64
	last := time.Duration(0)
	for range n {
		at := p.Next()
		if at < last {
			t.Fatalf("arrival at %v after one at %v", at, last)
		}
		all = append(all, (at - last).Seconds())
		last = at
	}
	slices.Sort(all)
	return all
}

func TestMeanRate(t *testing.T) {
	const n = 100_000 // a standard error of 0.3 %, 1 % is three of them
	for _, kind := range []Kind{Poisson, Constant} {
		for _, rate := range []float64{0.5, 1000, 50_000} {
			sum := 0.0
			for _, g := range gaps(t, kind, rate, 1, n) {
				sum += g
			}
			if got := n / sum; math.Abs(got/rate-1) > .01 {
				t.Errorf("%s: %v arrivals a second, want %v", kind, got, rate)
			}
		}
	}
}

// Anderson and Darling's A² of n values against a distribution with a mean
// that is known: 2.492 is exceeded with 5 %, 3.857 with 1 %. See Stephens
// (1974), "EDF Statistics for Goodness of Fit and Some Comparisons", table 1A.
func TestGapsAreExponential(t *testing.T) {
	const rate, n = 1000, 5000
	andersonDarling := func(rising []float64) float64 {
		cdf := func(x float64) float64 { return -math.Expm1(-rate * x) }
		sum := 0.0
		for i, x := range rising {
			sum += float64(2*i+1) * (math.Log(cdf(x)) + math.Log1p(-cdf(rising[n-1-i])))
		}
		return -n - sum/n
	}
	for seed := range uint64(5) {
		if a := andersonDarling(gaps(t, Poisson, rate, seed, n)); a > 3.857 {
			t.Errorf("seed %d: A² = %.2f, want at most 3.857", seed, a)
		}
	}
	// The test tells other gaps from exponential ones.
	if a := andersonDarling(gaps(t, Constant, rate, 0, n)); a < 3.857 {
		t.Errorf("constant gaps: A² = %.2f, want more than 3.857", a)
	}
}

func TestConstantDoesNotDrift(t *testing.T) {
	p, _ := New(Constant, 3, 0)
	var at time.Duration
	for range 3_000_000 {
		at = p.Next()
	}
	if want := 1_000_000 * time.Second; at != want {
		t.Errorf("arrival 3,000,000 at 3/s is due after %v, want %v", at, want)
	}
}

func TestSameSeedSameArrivals(t *testing.T) {
	a, b, c := gaps(t, Poisson, 10, 7, 100), gaps(t, Poisson, 10, 7, 100), gaps(t, Poisson, 10, 8, 100)
	if !slices.Equal(a, b) {
		t.Error("the same seed gives other arrivals")
	}
	if slices.Equal(a, c) {
		t.Error("another seed gives the same arrivals")
	}
}

func TestNewRefuses(t *testing.T) {
	for _, tt := range []struct {
		kind Kind
		rate float64
	}{{"uniform", 1}, {Poisson, 0}, {Poisson, -1}, {Poisson, math.NaN()}, {Constant, math.Inf(1)}} {
		if _, err := New(tt.kind, tt.rate, 0); err == nil {
			t.Errorf("New(%q, %v) is no error", tt.kind, tt.rate)
		}
	}
}

func TestNextAllocatesNothing(t *testing.T) {
	p, _ := New(Poisson, 1000, 0)
	var times Times
	times.Record(0, 1, 2)
	if n := testing.AllocsPerRun(1000, func() { at := p.Next(); times.Record(at, at, at+1) }); n != 0 {
		t.Errorf("%v allocations an arrival", n)
	}
}

// Pace sends every arrival before the end once, in order and none early,
// whatever send takes.
func TestPace(t *testing.T) {
	const rate, end = 5000, 100 * time.Millisecond
	want, _ := New(Poisson, rate, 3)
	p, _ := New(Poisson, rate, 3)
	origin := time.Now()
	sent := 0
	err := Pacer{}.Pace(t.Context(), origin, p, end, func(due time.Duration) {
		if w := want.Next(); due != w {
			t.Fatalf("arrival %d is due at %v, want %v", sent, due, w)
		}
		if now := time.Since(origin); now < due {
			t.Fatalf("arrival %d was sent at %v, before it was due at %v", sent, now, due)
		}
		if sent == 0 {
			for time.Since(origin) < 50*time.Millisecond { // hold the generator up
			}
		}
		sent++
	})
	if err != nil {
		t.Fatal(err)
	}
	if next := want.Next(); next < end {
		t.Errorf("%d arrivals were sent, but one is due at %v", sent, next)
	}
	if took := time.Since(origin); took < end {
		t.Errorf("Pace has returned after %v, want %v", took, end)
	}
}

func TestPaceEndsWithItsContext(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	p, _ := New(Constant, 1000, 0)
	err := Pacer{}.Pace(ctx, time.Now(), p, time.Hour, func(time.Duration) { cancel(why) })
	if !errors.Is(err, why) {
		t.Errorf("Pace returned %v, want %v", err, why)
	}
}

func TestTimes(t *testing.T) {
	const ms = time.Millisecond
	// Latencies 1 to 100 ms, each sent 1 ms late; divided among two and
	// merged, they are the same as whole.
	var a, b, whole Times
	for i := range 100 {
		due, done := time.Second, time.Second+time.Duration(i+1)*ms
		whole.Record(due, due+ms, done)
		[]*Times{&a, &b}[i%2].Record(due, due+ms, done)
	}
	a.Merge(&b)
	a.Merge(new(Times))
	for name, x := range map[string]*Times{"whole": &whole, "merged": &a} {
		if n := x.Count(); n != 100 {
			t.Errorf("%s: %d requests, want 100", name, n)
		}
		if m := x.MeanLatency(); m != 50500*time.Microsecond {
			t.Errorf("%s: mean latency %v, want 50.5ms", name, m)
		}
		if m := x.MeanSlip(); m != ms {
			t.Errorf("%s: mean slip %v, want 1ms", name, m)
		}
		if s := x.FromSent(.5); !near(s, 49*ms) { // 50 ms and 1 ms late
			t.Errorf("%s: p50 from sent %v, want 49ms", name, s)
		}
		if s := x.Slip(.99); !near(s, ms) {
			t.Errorf("%s: slip p99 %v, want 1ms", name, s)
		}
		for _, tt := range []struct {
			q       float64
			missing int64
			want    time.Duration
			known   bool
		}{
			{.5, 0, 50 * ms, true},
			{.99, 0, 99 * ms, true},
			{1, 0, 100 * ms, true},
			// Of 125 requests the 100 that were sent are the fastest 80 %.
			{.4, 25, 50 * ms, true},
			{.8, 25, 100 * ms, true},
			{.81, 25, 0, false},
		} {
			got, known := x.Latency(tt.q, tt.missing)
			if known != tt.known || known && !near(got, tt.want) {
				t.Errorf("%s: Latency(%v, %d) = %v, %v; want %v, %v", name, tt.q, tt.missing, got, known, tt.want, tt.known)
			}
		}
	}
	if _, known := new(Times).Latency(.5, 0); known {
		t.Error("a latency of no request is known")
	}
}

// near allows for three significant digits.
func near(got, want time.Duration) bool {
	return math.Abs(got.Seconds()/want.Seconds()-1) < 2e-3
}
