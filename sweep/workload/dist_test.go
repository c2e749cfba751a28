package workload

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func sqrt(x float64) float64 { return math.Sqrt(x) }
func abs(x float64) float64  { return math.Abs(x) }

// chiSquare compares counts with the probabilities they should have. Classes
// are joined until 10 draws are expected in each. The limit is the quantile
// 1 − 3·10⁻⁵ by Wilson and Hilferty (1931): ν·(1 − 2/9ν + z·√(2/9ν))³ with
// z = 4 and ν classes less one.
func chiSquare(t *testing.T, name string, counts []int, p []float64) {
	t.Helper()
	draws := 0
	for _, c := range counts {
		draws += c
	}
	var sum, seen, want float64
	classes := 0
	left := float64(draws)
	for i := range counts {
		seen += float64(counts[i])
		want += p[i] * float64(draws)
		if last := i == len(counts)-1; want >= 10 && left-want >= 10 || last {
			if want < 1e-9 {
				want = 1e-9
			}
			sum += (seen - want) * (seen - want) / want
			left -= want
			classes++
			seen, want = 0, 0
		}
	}
	v := float64(classes - 1)
	limit := v * math.Pow(1-2/(9*v)+4*sqrt(2/(9*v)), 3)
	if sum > limit {
		t.Errorf("%s: χ² = %.1f with %.0f degrees of freedom, want at most %.1f", name, sum, v, limit)
	}
}

func harmonic(n int, e float64) []float64 {
	p := make([]float64, n)
	sum := 0.0
	for k := range p {
		p[k] = math.Pow(float64(k+1), -e)
		sum += p[k]
	}
	for k := range p {
		p[k] /= sum
	}
	return p
}

func TestDraws(t *testing.T) {
	const draws = 300_000
	uniform := func(n int) []float64 { return harmonic(n, 0) }
	hot := func(n, keys int, requests float64) []float64 {
		p := make([]float64, n)
		for k := range p {
			if p[k] = (1 - requests) / float64(n-keys); k < keys {
				p[k] = requests / float64(keys)
			}
		}
		return p
	}
	normal := func(n int, sd float64) []float64 {
		cdf := func(x float64) float64 { return 0.5 * math.Erfc(-(x-float64(n)/2)/sd/math.Sqrt2) }
		p := make([]float64, n)
		for k := range p {
			p[k] = (cdf(float64(k+1)) - cdf(float64(k))) / (cdf(float64(n)) - cdf(0))
		}
		return p
	}
	newest := func(n, inserted int, e float64) []float64 {
		p, h := make([]float64, n+inserted), harmonic(n, e)
		for k, x := range h {
			p[n+inserted-1-k] = x
		}
		return p
	}
	for _, tt := range []struct {
		name     string
		keys     Keys
		inserted int64
		want     []float64 // probability of each key, by the definition of the distribution
	}{
		{"one key", Keys{Space: 1}, 0, uniform(1)},
		{"no keyspace", Keys{}, 0, uniform(1)},
		{"uniform", Keys{Space: 100}, 0, uniform(100)},
		{"uniform by name", Keys{Space: 7, Dist: Uniform}, 0, uniform(7)},
		{"zipfian 0.5", Keys{Space: 1000, Dist: Zipfian, Exponent: 0.5}, 0, harmonic(1000, 0.5)},
		{"zipfian 0.99", Keys{Space: 1000, Dist: Zipfian}, 0, harmonic(1000, 0.99)},
		{"zipfian 1", Keys{Space: 1000, Dist: Zipfian, Exponent: 1}, 0, harmonic(1000, 1)},
		{"zipfian 1.5", Keys{Space: 1000, Dist: Zipfian, Exponent: 1.5}, 0, harmonic(1000, 1.5)},
		{"zipfian of two keys", Keys{Space: 2, Dist: Zipfian, Exponent: 1}, 0, harmonic(2, 1)},
		{"gaussian", Keys{Space: 100, Dist: Gaussian}, 0, normal(100, 100.0/6)},
		{"gaussian, wide", Keys{Space: 100, Dist: Gaussian, StdDev: 80}, 0, normal(100, 80)},
		{"gaussian, flat", Keys{Space: 100, Dist: Gaussian, StdDev: 1e9}, 0, uniform(100)},
		{"gaussian, narrow", Keys{Space: 100, Dist: Gaussian, StdDev: 0.5}, 0, normal(100, 0.5)},
		{"latest", Keys{Space: 100, Dist: Latest}, 0, newest(100, 0, 0.99)},
		{"latest with inserts", Keys{Space: 100, Dist: Latest, Exponent: 1.2}, 30, newest(100, 30, 1.2)},
		{"latest of one", Keys{Space: 1, Dist: Latest}, 4, newest(1, 4, 1)},
		{"hotspot", Keys{Space: 100, Dist: HotSpot}, 0, hot(100, 20, 0.8)},
		{"hotspot of its own", Keys{Space: 100, Dist: HotSpot, HotKeys: 0.015, HotRequests: 0.5}, 0, hot(100, 2, 0.5)},
		{"hotspot of two", Keys{Space: 2, Dist: HotSpot}, 0, hot(2, 1, 0.8)},
		{"sequential", Keys{Space: 100, Dist: Sequential}, 0, uniform(100)},
	} {
		if err := tt.keys.check(); err != nil {
			t.Fatal(err)
		}
		var inserted insertions
		inserted.count.Store(tt.inserted)
		d := tt.keys.drawer(rand.New(rand.NewPCG(1, 2)), &inserted)
		counts := make([]int, len(tt.want))
		for range draws {
			k := d.draw()
			if k >= uint64(len(counts)) {
				t.Fatalf("%s: key %d is drawn of %d", tt.name, k, len(counts))
			}
			counts[k]++
		}
		if len(counts) == 1 || tt.name == "latest of one" {
			if counts[len(counts)-1] != draws {
				t.Errorf("%s: not always the only key: %v", tt.name, counts)
			}
			continue
		}
		chiSquare(t, tt.name, counts, tt.want)
	}
}

// A large keyspace takes no more time and no table: the most frequent key of
// a thousand million has the share 1/H, with H the harmonic sum by Euler and
// Maclaurin, ln n + γ + 1/2n.
func TestZipfianOfManyKeys(t *testing.T) {
	const n, draws = 1_000_000_000, 200_000
	d := Keys{Space: n, Dist: Zipfian, Exponent: 1}.drawer(rand.New(rand.NewPCG(1, 2)), nil)
	first := 0.0
	for range draws {
		if d.draw() == 0 {
			first++
		}
	}
	p := 1 / (math.Log(n) + 0.5772156649)
	if sd := sqrt(draws * p * (1 - p)); abs(first-draws*p) > 5*sd {
		t.Errorf("the first key is drawn %v times, want %.0f ± %.0f", first, draws*p, 5*sd)
	}
}

// Sequential takes each key in turn, whatever it starts with.
func TestSequential(t *testing.T) {
	d := Keys{Space: 17, Dist: Sequential}.drawer(rand.New(rand.NewPCG(1, 2)), nil)
	last := d.draw()
	for range 100 {
		next := d.draw()
		if next != (last+1)%17 {
			t.Fatalf("%d follows %d", next, last)
		}
		last = next
	}
}

func TestParseDist(t *testing.T) {
	for _, tt := range []struct {
		in, out string // out: String, or a part of the error after "!"
		want    Keys
	}{
		{"uniform", "uniform", Keys{Dist: Uniform}},
		{"zipfian", "zipfian", Keys{Dist: Zipfian}},
		{"Zipfian:1.1", "zipfian:1.1", Keys{Dist: Zipfian, Exponent: 1.1}},
		{"latest:0.5", "latest:0.5", Keys{Dist: Latest, Exponent: .5}},
		{"gaussian:1000", "gaussian:1000", Keys{Dist: Gaussian, StdDev: 1000}},
		{"sequential", "sequential", Keys{Dist: Sequential}},
		{"hotspot:0.1:0.9", "hotspot:0.1:0.9", Keys{Dist: HotSpot, HotKeys: .1, HotRequests: .9}},
		{"", "uniform", Keys{}},
		{"pareto", "!unknown distribution", Keys{}},
		{"uniform:1", "!takes 0 numbers", Keys{}},
		{"hotspot:0.1", "!takes 2 numbers", Keys{}},
		{"zipfian:1:2", "!takes 1 numbers", Keys{}},
		{"zipfian:0", "!above 0", Keys{}},
		{"zipfian:-1", "!above 0", Keys{}},
		{"zipfian:NaN", "!above 0", Keys{}},
		{"zipfian:Inf", "!exponent", Keys{}},
		{"zipfian:", "!above 0", Keys{}},
		{"hotspot:1:0.5", "!hot spot", Keys{}},
		{"gaussian:1e300", "!deviation", Keys{}},
	} {
		got, err := ParseDist(tt.in)
		if msg, bad := strings.CutPrefix(tt.out, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), msg) {
				t.Errorf("%q: error %v, want one with %q", tt.in, err, msg)
			}
			continue
		}
		if err != nil || got != tt.want || got.String() != tt.out {
			t.Errorf("%q: %+v (%s), %v; want %+v (%s)", tt.in, got, got, err, tt.want, tt.out)
		}
	}
}

// String gives what leads to the same draws, also when a field is left out.
func TestDistStringIsComplete(t *testing.T) {
	for k, want := range map[Keys]string{
		{}:                                "uniform",
		{Dist: Uniform, Exponent: 2}:      "uniform",
		{Dist: HotSpot, HotKeys: .1}:      "hotspot:0.1:0.8",
		{Dist: HotSpot, HotRequests: .5}:  "hotspot:0.2:0.5",
		{Dist: Zipfian, StdDev: 5}:        "zipfian",
		{Dist: Gaussian, StdDev: 1234567}: "gaussian:1.234567e+06",
	} {
		if got := k.String(); got != want {
			t.Errorf("%+v: %q, want %q", k, got, want)
		}
	}
}

func FuzzParseDist(f *testing.F) {
	for _, s := range []string{"uniform", "zipfian:1.1", "gaussian:1e3", "hotspot:.2:.8", "latest", "sequential", ":", "zipfian:0x1p-1074"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		k, err := ParseDist(s)
		if err != nil {
			return
		}
		if again, err := ParseDist(k.String()); err != nil || again.String() != k.String() || again.parametersEqual(k) != true {
			t.Errorf("%q: %+v is %q, which is %+v, %v", s, k, k, again, err)
		}
		k.Space = 100
		d := k.drawer(rand.New(rand.NewPCG(1, 2)), new(insertions))
		for range 10 {
			if n := d.draw(); n >= 100 {
				t.Fatalf("%q: key %d is drawn of 100", s, n)
			}
		}
	})
}

func (k Keys) parametersEqual(o Keys) bool {
	k.Dist, o.Dist = "", ""
	return k == o
}
