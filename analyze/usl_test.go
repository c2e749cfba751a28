package analyze

import (
	"bufio"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// readPairs reads "clients,qps" with fractional clients.
func readPairs(t *testing.T, name string) (n, x []float64) {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "oracles", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		clients, qps, _ := strings.Cut(lines.Text(), ",")
		a, err := strconv.ParseFloat(clients, 64)
		if err != nil {
			continue // comments and header
		}
		b, err := strconv.ParseFloat(qps, 64)
		if err != nil {
			t.Fatal(err)
		}
		n, x = append(n, a), append(x, b)
	}
	return n, x
}

// near reports whether got agrees with want to that many significant digits,
// give or take one of the last.
func near(got, want float64, digits int) bool {
	unit := math.Pow10(int(math.Floor(math.Log10(math.Abs(want)))) + 1 - digits)
	return math.Abs(got-want) <= unit
}

// TestUSLReferences holds the fit to published ones, five digits each.
func TestUSLReferences(t *testing.T) {
	tests := []struct {
		file               string
		alpha, beta, gamma float64
		peak               float64 // N*
		source             string
	}{
		{"usl_specsdm91.csv", .0277285, .000104366, 89.9952, 96.52, "R package usl, README and tests/peak-scalability.R"},
		{"usl_raytracer.csv", .0577708, 0, 21.8488, math.Inf(1), "R package usl, vignette: no peak"},
		{"usl_codahale_book.csv", .0267159, .000769094, 995.649, 35.57, "codahale/usl, model_test.go"},
		{"usl_oracledb_raw.csv", .441372, .0452983, 3.38609, 3.512, "R package usl, vignette; N* = √((1−α)/β) of these"},
	}
	for _, test := range tests {
		n, x := readPairs(t, test.file)
		got := fitUSL(n, x)
		if !near(got.alpha, test.alpha, 5) || !near(got.gamma, test.gamma, 5) ||
			got.beta != test.beta && !near(got.beta, test.beta, 5) || got.peak() != test.peak && !near(got.peak(), test.peak, 4) {
			t.Errorf("%s: α %.7g β %.7g γ %.7g N* %.6g, want %g %g %g %g (%s)", test.file,
				got.alpha, got.beta, got.gamma, got.peak(), test.alpha, test.beta, test.gamma, test.peak, test.source)
		}
	}

	// codahale/usl takes Xmax at ⌊N*⌋ = 35.
	n, x := readPairs(t, "usl_codahale_book.csv")
	if got := fitUSL(n, x).at(35); !near(got, 12341.75, 7) {
		t.Errorf("X(35) = %.2f, want 12341.75", got)
	}
	// Made with α = β = 0.02, γ = 1, and rounded to five digits.
	n, x = readPairs(t, "usl_synthetic_a02_b02.csv")
	if got := fitUSL(n, x); math.Abs(got.alpha-.02) > 1e-5 || math.Abs(got.beta-.02) > 1e-5 || !near(got.gamma, 1, 5) || !near(got.peak(), 7, 4) {
		t.Errorf("synthetic: %+v, want .02, .02, 1, N* 7", got)
	}
}

// TestUSLRecovers: a curve that follows the law gives back its parameters, and
// in which unit X is counted does not matter.
func TestUSLRecovers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := uslFit{
			alpha: rapid.Float64Range(0, .95).Draw(t, "α"),
			beta:  rapid.Float64Range(0, .01).Draw(t, "β"),
			gamma: math.Pow(10, rapid.Float64Range(-2, 6).Draw(t, "log γ")),
		}
		var n, x []float64
		for _, v := range []float64{1, 2, 4, 8, 16, 32, 64, 128} {
			n, x = append(n, v), append(x, want.at(v))
		}
		got := fitUSL(n, x)
		if math.Abs(got.alpha-want.alpha) > 1e-5 || math.Abs(got.beta-want.beta) > 1e-6 || math.Abs(got.gamma/want.gamma-1) > 1e-5 {
			t.Fatalf("α %g β %g γ %g, want %g %g %g", got.alpha, got.beta, got.gamma, want.alpha, want.beta, want.gamma)
		}
	})
}

// TestUSLBest: no other parameters within the bounds do better, with points up
// to 30 % off the law.
func TestUSLBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := []float64{1, 2, 5, 10, 20, 40, 80}
		truth := uslFit{rapid.Float64Range(0, .5).Draw(t, "α"), rapid.Float64Range(0, .002).Draw(t, "β"), 100, 0}
		x := make([]float64, len(n))
		for i := range x {
			x[i] = truth.at(n[i]) * rapid.Float64Range(.7, 1.3).Draw(t, "noise")
		}
		best := fitUSL(n, x)
		if best.alpha < 0 || best.alpha > 1 || best.beta < 0 {
			t.Fatalf("out of bounds: %+v", best)
		}
		// Small steps away from a minimum lead up, be it an inner one or one
		// on a bound.
		for _, a := range []float64{-1e-3, 0, 1e-3} {
			for _, b := range []float64{-1e-5, 0, 1e-5} {
				alpha, beta := min(max(best.alpha+a, 0), 1), max(best.beta+b, 0)
				if f := profile(n, x, alpha, beta); f.sse < best.sse*(1-1e-6) {
					t.Fatalf("α %g β %g: %g is less than %g at α %g β %g", alpha, beta, f.sse, best.sse, best.alpha, best.beta)
				}
			}
		}
	})
}

var (
	law       = uslFit{alpha: .03, beta: .0005, gamma: 1000} // N* = √(.97/.0005) = 44.05
	lawLevels = []int{1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192}
)

// TestUSLIntervals: the intervals hold what the curve was made with in as many
// draws as the comment of Interval says, 40 draws being good for ± 7 points.
func TestUSLIntervals(t *testing.T) {
	const draws = 40
	r := rand.New(rand.NewPCG(5, 6))
	var alpha, beta, gamma, peak int
	for range draws {
		c := model(law.at, 3, lawLevels...)
		for i := range c.Points {
			for j := range c.Points[i].Trials {
				c.Points[i].Trials[j].QPS *= math.Exp(.03 * r.NormFloat64())
			}
		}
		u := newTable(c).usl()
		count := func(held *int, i Interval, v float64) {
			if i.Low <= Quantity(v) && Quantity(v) <= i.High {
				*held++
			}
		}
		count(&alpha, u.AlphaRange, law.alpha)
		count(&beta, u.BetaRange, law.beta)
		count(&gamma, u.GammaRange, law.gamma)
		count(&peak, u.PeakRange, law.peak())
		if !u.Fitted || u.Beyond || u.Superlinear || u.BetaZero != 0 || math.Abs(float64(u.Misfit)-.02) > .015 {
			// The median of three trials with σ = 3 % has ν = 2 %.
			t.Fatalf("%+v", u)
		}
		if width := (u.PeakRange.High - u.PeakRange.Low) / u.Peak; width > .3 {
			t.Errorf("N* between %g and %g: too wide to mean anything", u.PeakRange.Low, u.PeakRange.High)
		}
	}
	for name, held := range map[string]int{"α": alpha, "β": beta, "γ": gamma, "N*": peak} {
		if held < draws*82/100 {
			t.Errorf("the interval of %s held it in %d of %d draws", name, held, draws)
		}
	}
}

// TestFitUSL holds the special cases.
func TestFitUSL(t *testing.T) {
	amdahl := newTable(model(uslFit{alpha: .05, gamma: 1000}.at, 3, lawLevels...)).usl()
	if amdahl.Beta != 0 || amdahl.BetaZero != 1 || amdahl.Peak.Known() || amdahl.PeakQPS.Known() || amdahl.BetaRange.Low.Known() || !amdahl.Beyond {
		t.Errorf("β = 0: %+v", amdahl)
	}

	early := newTable(model(law.at, 3, lawLevels[:6]...)).usl()
	if !near(float64(early.Peak), 44.05, 4) || !early.Beyond {
		t.Errorf("levels to 24: N* %g, beyond %t; want 44.05, beyond", early.Peak, early.Beyond)
	}

	few := newTable(model(law.at, 3, 1, 2, 4)).usl()
	if few.Fitted || few.Reason == "" || few.Alpha.Known() || few.PeakRange.High.Known() {
		t.Errorf("3 levels: %+v", few)
	}
	if empty := newTable(Curve{}).usl(); empty.Fitted || empty.Reason == "" {
		t.Errorf("no level: %+v", empty)
	}
}

// TestSuperlinear: 1000·2^1.1 = 2144 at two clients is 1.07 of linear.
func TestSuperlinear(t *testing.T) {
	u := newTable(model(func(n float64) float64 { return min(1000*math.Pow(n, 1.1), 9000) }, 3, 1, 2, 4, 8, 16)).usl()
	// The highest is at 4: 4^.1 = 1.149; at 8 it is 9000/8000 = 1.125.
	if !u.Superlinear || u.Efficient != 4 || !near(float64(u.Efficiency), 1.1487, 5) {
		t.Errorf("superlinear %t, %g at %d; want true, 1.1487 at 4", u.Superlinear, u.Efficiency, u.Efficient)
	}
	// 1.04 is not enough.
	u = newTable(model(func(n float64) float64 { return min(1000*n*1.04, 9000) }, 3, 2, 4, 8, 16)).usl()
	if u.Superlinear {
		t.Errorf("linear from two clients on: %+v", u)
	}
}

// TestUSLPure: one curve, one fit; and it survives JSON.
func TestUSLPure(t *testing.T) {
	c := readOracle(t, "seed_redis_benchmark_get.csv")
	u := newTable(c).usl()
	if diff := cmp.Diff(u, newTable(c).usl(), sameQuantity); diff != "" {
		t.Errorf("a second time:\n%s", diff)
	}
	text, err := json.Marshal(u)
	if err != nil {
		t.Fatal(err)
	}
	var back USL
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(u, back, sameQuantity); diff != "" {
		t.Errorf("through JSON:\n%s", diff)
	}
}

// BenchmarkFitUSL is a fit of 12 levels × 3 trials with its 200 redraws, which
// must stay below 50 ms.
func BenchmarkFitUSL(b *testing.B) {
	c := truths["retrograde"][0].draw(rand.New(rand.NewPCG(1, 1)), 3, .03)
	for b.Loop() {
		newTable(c).usl()
	}
	if each := b.Elapsed() / time.Duration(b.N); each > 50*time.Millisecond {
		b.Errorf("%s a fit", each)
	}
}
