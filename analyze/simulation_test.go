package analyze

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// A truth is a curve without noise, and where its knee is known to be.
type truth struct {
	name   string
	levels []int
	x      func(n float64) float64 // requests/s
	knee   int                     // exact level; 0 where there is none
}

var (
	tens      = []int{10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120}
	geometric = []int{1, 2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 135}
)

// hard is the throughput of c workers of fixed service time: min(N, c)/S.
// Its knee is c.
func hard(c float64) func(float64) float64 {
	return func(n float64) float64 { return 1000 * min(n, c) }
}

// retro is hard up to c, from 1.5c on falling by loss for every doubling. Its
// knee is c.
func retro(c, loss float64) func(float64) float64 {
	return func(n float64) float64 {
		x := 1000 * min(n, c)
		if n > 1.5*c {
			x *= math.Pow(1-loss, math.Log2(n/(1.5*c)))
		}
		return x
	}
}

// rising grows without end, as n to the power e.
func rising(e float64) func(float64) float64 {
	return func(n float64) float64 { return 1000 * math.Pow(n, e) }
}

func exponential(a float64) func(float64) float64 {
	return func(n float64) float64 { return 1e5 * -math.Expm1(-n/a) }
}

func usl(alpha, beta float64) func(float64) float64 {
	return func(n float64) float64 { return 1000 * n / (1 + alpha*(n-1) + beta*n*(n-1)) }
}

var truths = map[string][]truth{
	"hard plateau": {
		{"c=20", tens, hard(20), 20},
		{"c=40", tens, hard(40), 40},
		{"c=50", tens, hard(50), 50},
		{"c=60", tens, hard(60), 60},
		{"c=2", geometric, hard(2), 2},
		{"c=8", geometric, hard(8), 8},
		{"c=12", geometric, hard(12), 12},
		{"c=40", geometric, hard(40), 40},
	},
	"retrograde": {
		{"c=20", tens, retro(20, 0.15), 20},
		{"c=30", tens, retro(30, 0.20), 30},
		{"c=40", tens, retro(40, 0.25), 40},
		{"c=50", tens, retro(50, 0.30), 50},
		{"c=5", geometric, retro(5, 0.15), 5},
		{"c=12", geometric, retro(12, 0.15), 12},
		{"c=27", geometric, retro(27, 0.20), 27},
	},
	"rising": {
		{"linear", tens, rising(1), 0},
		{"N^.6", tens, rising(.6), 0},
		{"N^.3", tens, rising(.3), 0},
		{"linear", geometric, rising(1), 0},
		{"N^.3", geometric, rising(.3), 0},
		{"c beyond", tens, hard(200), 0},
	},
	// The knee of a soft curve is where the curve itself reaches 95 % of its
	// highest level; no level is exactly right.
	"soft": {
		{"exp a=15", tens, exponential(15), 50},
		{"exp a=4", geometric, exponential(4), 12},
		{"usl", geometric, usl(.1, .0002), 40},
	},
}

// shapes is the order of truths in print.
var shapes = []string{"hard plateau", "retrograde", "rising", "soft"}

// draw measures t with trials of which each is off by sigma, and one in twenty
// by another 30 %, as if something had disturbed it.
func (t truth) draw(r *rand.Rand, trials int, sigma float64) Curve {
	c := Curve{Test: t.name}
	for _, n := range t.levels {
		p := Point{Clients: n}
		for range trials {
			x := t.x(float64(n)) * math.Exp(sigma*r.NormFloat64())
			if r.Float64() < 0.05 {
				x *= 0.7
			}
			p.Trials = append(p.Trials, plainTrial(x))
		}
		c.Points = append(c.Points, p)
	}
	return c
}

// plainTrial is a trial of which nothing but the throughput is known.
func plainTrial(qps float64) Trial {
	u := Unknown()
	return Trial{QPS: qps, Mean: u, P50: u, P99: u, P999: u, LatencyMin: u, Load: UnknownLoad()}
}

// A score counts outcomes over many draws of the curves of one kind.
type score struct {
	draws    int
	exact    int // the knee of the truth was named
	near     int // that or a neighbouring level
	inRange  int // the 95 % range holds it
	named    int
	believed int // a knee was named with HIGH or MEDIUM
	high     int // with HIGH
	sure     int // P ≥ .95 was stated
	sureOK   int // and the level was exact
}

func (s score) share(n int) float64 { return float64(n) / float64(max(s.draws, 1)) }

func simulate(kind string, sigma float64, draws int) score {
	r := rand.New(rand.NewPCG(1, uint64(sigma*1000)))
	var s score
	for i := range draws {
		t := truths[kind][i%len(truths[kind])]
		k := Analyze(t.draw(r, 3, sigma), Options{}).Knee
		s.draws++
		if k.Clients == 0 {
			continue
		}
		s.named++
		if k.Confidence == ConfidenceHigh || k.Confidence == ConfidenceMedium {
			s.believed++
		}
		if k.Confidence == ConfidenceHigh {
			s.high++
		}
		if k.Clients == t.knee {
			s.exact++
		}
		if t.knee > 0 && k.Low <= t.knee && t.knee <= k.High {
			s.inRange++
		}
		for j, n := range t.levels {
			if n == t.knee && (k.Clients == n || k.Clients == t.levels[max(j-1, 0)] || k.Clients == t.levels[min(j+1, len(t.levels)-1)]) {
				s.near++
			}
		}
		if k.Probability >= sure {
			s.sure++
			if k.Clients == t.knee {
				s.sureOK++
			}
		}
	}
	return s
}

// TestDetector holds the rule to what it promises on curves of which the truth
// is known, three trials a step, one trial in twenty 30 % too low. The bounds
// are those of issue 3; what is measured is a few points better. On rising
// curves a knee is never named up to 3 % noise; above, one may be named with
// confidence LOW on a curve that grows by 23 % a doubling, less than such
// noise lets one see, in a few cases of a hundred, but never with MEDIUM up to
// 6 % and never with HIGH.
func TestDetector(t *testing.T) {
	const draws = 168     // a multiple of the number of curves of each kind
	var stated, right int // cases with P ≥ .95
	for _, test := range []struct {
		kind  string
		sigma float64
		exact float64 // least share of draws
	}{
		{"hard plateau", .01, .95},
		{"hard plateau", .03, .90},
		{"hard plateau", .06, .80},
		{"hard plateau", .12, 0},
		{"retrograde", .01, .95},
		{"retrograde", .03, .90},
		{"retrograde", .06, .90},
		{"retrograde", .12, 0},
	} {
		s := simulate(test.kind, test.sigma, draws)
		t.Logf("%s", s.line(test.kind, test.sigma))
		if s.share(s.exact) < test.exact {
			t.Errorf("%s at %.0f %%: exact level in %.3f of the draws, want %.2f", test.kind, test.sigma*100, s.share(s.exact), test.exact)
		}
		stated += s.sure
		right += s.sureOK
	}
	if float64(right) < 0.9*float64(stated) {
		t.Errorf("P ≥ .95 was right %d times of %d", right, stated)
	}
	for _, test := range []struct {
		sigma           float64
		named, believed float64 // most, shares of draws
	}{
		{.01, 0, 0},
		{.03, 0, 0},
		{.06, .05, 0},
		{.12, .05, .01},
	} {
		s := simulate("rising", test.sigma, draws)
		t.Logf("%s", s.line("rising", test.sigma))
		if s.share(s.named) > test.named || s.share(s.believed) > test.believed || s.high > 0 {
			t.Errorf("rising at %.0f %%: a knee in %.3f of the draws, %.3f HIGH or MEDIUM, %d HIGH; want at most %.2f, %.2f and 0",
				test.sigma*100, s.share(s.named), s.share(s.believed), s.high, test.named, test.believed)
		}
	}
}

// line is the score as a row of a table.
func (s score) line(kind string, sigma float64) string {
	return fmt.Sprintf("%-12s noise %2.0f %%: exact %.3f, neighbour %.3f, in range %.3f, named %.3f, HIGH or MEDIUM %.3f; P ≥ .95 right %d of %d",
		kind, sigma*100, s.share(s.exact), s.share(s.near), s.share(s.inRange), s.share(s.named), s.share(s.believed), s.sureOK, s.sure)
}

// BenchmarkDetector reports, for each kind of curve and each noise, the shares
// of draws with the exact level, with it or a neighbour, and with it inside
// the 95 % range, so that a change of the rule shows.
func BenchmarkDetector(b *testing.B) {
	for _, kind := range shapes {
		for _, sigma := range []float64{.01, .03, .06, .09, .12} {
			b.Run(fmt.Sprintf("%s/%.0f%%", kind, sigma*100), func(b *testing.B) {
				s := simulate(kind, sigma, b.N)
				b.ReportMetric(s.share(s.exact), "exact")
				b.ReportMetric(s.share(s.near), "near")
				b.ReportMetric(s.share(s.inRange), "in-range")
				b.ReportMetric(s.share(s.named), "named")
				b.ReportMetric(s.share(s.believed), "believed")
			})
		}
	}
}

// BenchmarkAnalyze is a whole analysis of 12 levels × 3 trials, with its 500
// redraws.
func BenchmarkAnalyze(b *testing.B) {
	c := truths["hard plateau"][0].draw(rand.New(rand.NewPCG(1, 1)), 3, .03)
	for b.Loop() {
		Analyze(c, Options{})
	}
}

// BenchmarkThousandSteps is the largest result there may be: a thousand steps
// of nine trials. It is to take less than a second.
func BenchmarkThousandSteps(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	c := Curve{Test: "GET", Depth: 1}
	for n := 1; n <= 1000; n++ {
		p := Point{Clients: n}
		for range 9 {
			x := 1000 * float64(min(n, 300)) * (1 + .03*rng.NormFloat64())
			p.Trials = append(p.Trials, Trial{QPS: x, Load: UnknownLoad()})
		}
		c.Points = append(c.Points, p)
	}
	b.ReportAllocs()
	for b.Loop() {
		Analyze(c, Options{})
	}
}
