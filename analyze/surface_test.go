package analyze

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// atDepth is the analysis of a server with a hard knee: each request in flight
// gives 1,000 requests/s until most requests/s are reached.
func atDepth(depth int, most float64, levels ...int) *Analysis {
	c := model(func(n float64) float64 { return min(1000*n*float64(depth), most) }, 1, levels...)
	c.Test, c.Depth = "set", depth
	return Analyze(c, Options{})
}

// stoppedAt returns a as if cause had stopped it.
func stoppedAt(a *Analysis, cause Cause, reason string) *Analysis {
	b := *a
	b.Answer, b.Reason, b.Bottleneck = false, reason, Bottleneck{Cause: cause}
	b.Knee.withdraw()
	return &b
}

// TestSurface: with 1,000 requests/s for each one in flight, 12,000 at most at
// depth 1 and 96,000 at depth 16, the knees are 12/1 = 12 and 96/16 = 6 clients.
// At depth 1 up to 48 are in flight, at depth 16 from 16 on; what was measured
// in between and is divisible by 16 are 16, 32 and 48.
func TestSurface(t *testing.T) {
	deep := atDepth(16, 96000, 1, 2, 3, 6, 12, 24)
	shallow := atDepth(1, 12000, 1, 2, 4, 8, 12, 16, 24, 48)
	got := Surfaces([]*Analysis{deep, shallow})
	want := []Surface{{
		Test: "set", Tolerance: .05,
		Depths: []DepthKnee{
			{1, 12, 12000, 12, 12, 12000, ConfidenceNone, CauseUnknown, ""},
			{16, 6, 96000, 96, 6, 96000, ConfidenceNone, CauseUnknown, ""},
		},
		Best:   Pair{6, 16, 96000, false},
		Fewest: Pair{6, 16, 96000, false},
		Gains: []DepthGain{
			{16, Pair{16, 1, 12000, false}, Pair{1, 16, 16000, false}, 16. / 12},
			{32, Pair{32, 1, 12000, true}, Pair{2, 16, 32000, false}, 32. / 12},
			{48, Pair{48, 1, 12000, false}, Pair{3, 16, 48000, false}, 48. / 12},
		},
	}}
	if diff := cmp.Diff(want, got, sameQuantity); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	wantText := []string{
		"Best pair: 6 clients at depth 16 give 96,000 requests/s, the highest throughput of all depths; no fewer connections come within 5 % of it.",
		"Knee by depth: 12 clients at depth 1 (12 in flight); 6 clients at depth 16 (96 in flight).",
		"Depth 16 buys: with 48 in flight, 3 clients at depth 16 give 4.00 times the throughput of 48 clients at depth 1 (48,000 against 12,000 requests/s); " +
			"with 16 in flight, 1 client at depth 16 gives 1.33 times the throughput of 16 clients at depth 1 (16,000 against 12,000 requests/s).",
		"Depth is the application's choice: a sweep at depth 16 says nothing about a pool of an application that sends one request at a time, " +
			"and a knee is never converted from one depth to another.",
	}
	if diff := cmp.Diff(wantText, got[0].Sentences()); diff != "" {
		t.Errorf("sentences, -want +got:\n%s", diff)
	}
}

// TestSurfaceMembers: which analyses make a surface.
func TestSurfaceMembers(t *testing.T) {
	one, four := atDepth(1, 8000, 1, 10, 40), atDepth(4, 8000, 1, 10, 40)
	get := *atDepth(4, 8000, 1, 10, 40)
	get.Test = "get"
	nothing := Analyze(Curve{Test: "set", Depth: 4}, Options{})
	tests := []struct {
		name string
		all  []*Analysis
		want int
	}{
		{"none", nil, 0},
		{"one depth", []*Analysis{one}, 0},
		{"the same depth twice", []*Analysis{one, one}, 0},
		{"another test", []*Analysis{one, &get}, 0},
		{"nothing measured at the other", []*Analysis{one, nothing}, 0},
		{"two depths", []*Analysis{one, &get, nothing, four}, 1},
	}
	for _, test := range tests {
		got := Surfaces(test.all)
		if got == nil || len(got) != test.want {
			t.Errorf("%s: %d surfaces (nil: %t), want %d", test.name, len(got), got == nil, test.want)
		}
	}
}

// TestSurfaceFewest: the plateau at depth 4 is 50,000 requests/s, though its
// best level had the luck to give 53,000. With a tolerance of 5 % every pair
// from 47,500 on will do. Of these, 10 clients are the fewest, but at depth 8,
// the sweep of the generator; then 20 at depth 4.
func TestSurfaceFewest(t *testing.T) {
	sweep := func(depth int, plateau Quantity, steps ...Step) *Analysis {
		a := &Analysis{Test: "set", Depth: depth, Tolerance: .05, Answer: true, Steps: steps}
		for i := range steps {
			steps[i].InFlight = steps[i].Clients * depth
			if x := Quantity(steps[i].Adjusted); x > a.Knee.PeakQPS {
				a.Knee.Peak, a.Knee.PeakQPS = steps[i].Clients, x
			}
		}
		a.Knee.Plateau = plateau
		return a
	}
	one := sweep(1, 48000, Step{Clients: 60, Adjusted: 40000}, Step{Clients: 100, Adjusted: 48000})
	four := sweep(4, 50000, Step{Clients: 10, Adjusted: 47000}, Step{Clients: 20, Adjusted: 47700}, Step{Clients: 40, Adjusted: 53000})
	eight := stoppedAt(sweep(8, 60000, Step{Clients: 10, Adjusted: 60000}), CauseGenerator, "generator-bound: its threads were full")
	s := Surfaces([]*Analysis{one, four, eight})[0]
	if want := (Pair{40, 4, 53000, false}); s.Best != want {
		t.Errorf("best %+v, want %+v", s.Best, want)
	}
	if want := (Pair{20, 4, 47700, false}); s.Fewest != want {
		t.Errorf("fewest %+v, want %+v", s.Fewest, want)
	}
}

// TestSurfaceWords: what is said where a sweep has no answer or nothing is in
// common.
func TestSurfaceWords(t *testing.T) {
	one := atDepth(1, 12000, 1, 2, 4, 8, 12, 16, 24, 48)
	full := func(a *Analysis) *Analysis {
		return stoppedAt(a, CauseGenerator, "generator-bound: its only event loop used 99 % of a core")
	}
	starved := func(a *Analysis) *Analysis {
		return stoppedAt(a, CauseSharedCPU, "short of CPU: the server waited for a core")
	}
	sixteen := atDepth(16, 96000, 1, 2, 3, 6, 12, 24)
	tests := []struct {
		name string
		all  []*Analysis
		want []string
		not  string
	}{
		{"deep generator-bound", []*Analysis{one, full(sixteen)}, []string{
			"Best pair: 12 clients at depth 1 give 12,000 requests/s",
			"Not counted: depth 16 (generator-bound), where 6 clients give 96,000 requests/s; the server may",
			"; none at depth 16 (generator-bound).",
			"; depth 16 is generator-bound, so that is not the gain of the server alone.",
		}, "NaN"},
		{"none the server's", []*Analysis{starved(one), full(sixteen)}, []string{
			"Best pair: none can be named",
			"Not counted: depth 1 (short of CPU)",
			"; depth 1 is short of CPU, so that is not the gain of the server alone; depth 16 is generator-bound",
		}, "NaN"},
		{"rising", []*Analysis{one, atDepth(16, 1e9, 1, 2, 4)}, []string{
			"Best pair: 4 clients at depth 16 give 64,000 requests/s, the highest throughput of all depths (but that sweep names no knee: still rising at 4 clients)",
			"none at depth 16 (still rising at 4 clients)",
		}, "Not counted"},
		// 16 × 10 = 160 in flight are more than 48 × 1.
		{"nothing in common", []*Analysis{one, atDepth(16, 96000, 10, 20, 40)}, []string{
			"Depth 16 buys: not known, as depths 1 and 16 were not measured with as many requests in flight",
		}, "times the throughput"},
		// From 16 × 1 to 24 × 1 there is one multiple of 16.
		{"one in common, interpolated", []*Analysis{atDepth(1, 12000, 1, 12, 24), atDepth(16, 96000, 1, 6, 12)}, []string{
			"Depth 16 buys: with 16 in flight, 1 client at depth 16 gives 1.33 times the throughput of 16 clients at depth 1 " +
				"(16,000 against 12,000 requests/s, depth 1 interpolated).",
		}, "NaN"},
	}
	for _, test := range tests {
		text := strings.Join(Surfaces(test.all)[0].Sentences(), "\n")
		for _, want := range test.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", test.name, want, text)
			}
		}
		if strings.Contains(text, test.not) {
			t.Errorf("%s: %q in\n%s", test.name, test.not, text)
		}
	}
}

// TestSurfacePowerLaw: X = 1000·√L and 2000·√L are straight lines in a log-log
// plot, so the ratio is 2 wherever the two are compared.
func TestSurfacePowerLaw(t *testing.T) {
	sweep := func(depth int, factor float64, levels ...int) *Analysis {
		c := model(func(n float64) float64 { return factor * math.Sqrt(n*float64(depth)) }, 1, levels...)
		c.Test, c.Depth = "set", depth
		return Analyze(c, Options{})
	}
	s := Surfaces([]*Analysis{sweep(1, 1000, 2, 100, 1000), sweep(8, 2000, 1, 7, 30, 200)})[0]
	var at []int
	for _, g := range s.Gains {
		at = append(at, g.InFlight)
		if math.Abs(g.Ratio-2) > 1e-9 {
			t.Errorf("with %d in flight: ratio %v, want 2", g.InFlight, g.Ratio)
		}
	}
	// Divisible by 8, up to 1000.
	if want := []int{8, 56, 240, 1000}; !slices.Equal(at, want) {
		t.Errorf("compared at %v in flight, want %v", at, want)
	}
}

// TestSurfaceLaws: the order of the analyses does not matter; no counted step
// is above the best pair, and no knee of its sweep has fewer clients than the
// fewest; nothing is extrapolated; a surface survives JSON.
func TestSurfaceLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []*Analysis
		for _, depth := range rapid.SliceOfNDistinct(rapid.IntRange(1, 20), 2, 4, rapid.ID[int]).Draw(t, "depths") {
			c := curves(t)
			c.Depth = depth
			all = append(all, Analyze(c, Options{}))
		}
		s := Surfaces(all)[0]
		reversed := slices.Clone(all)
		slices.Reverse(reversed)
		if diff := cmp.Diff(s, Surfaces(reversed)[0], sameQuantity); diff != "" {
			t.Fatalf("in another order:\n%s", diff)
		}
		if s.Fewest.Clients > s.Best.Clients || s.Fewest.QPS > s.Best.QPS {
			t.Fatalf("best %+v, fewest %+v", s.Best, s.Fewest)
		}
		ranges := make(map[int][2]int) // in flight, by depth
		for _, a := range all {
			ranges[a.Depth] = [2]int{a.Steps[0].InFlight, a.last().InFlight}
			if a.Knee.PeakQPS > s.Best.QPS {
				t.Fatalf("depth %d has %v, best %v", a.Depth, a.Knee.PeakQPS, s.Best)
			}
			if a.Depth == s.Best.Depth && a.Answer && a.Knee.Clients < s.Fewest.Clients {
				t.Fatalf("knee %d, fewest %v", a.Knee.Clients, s.Fewest)
			}
		}
		for _, g := range s.Gains {
			for _, p := range []Pair{g.Shallow, g.Deep} {
				if r := ranges[p.Depth]; g.InFlight < r[0] || g.InFlight > r[1] || p.Clients*p.Depth != g.InFlight {
					t.Fatalf("%+v, range %v", g, r)
				}
			}
		}
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back Surface
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s, back, sameQuantity); diff != "" {
			t.Fatalf("-before +after JSON:\n%s", diff)
		}
		if text := strings.Join(s.Sentences(), "\n"); strings.Contains(text, "NaN") {
			t.Fatal(text)
		}
	})
}
