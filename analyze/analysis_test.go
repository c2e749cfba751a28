package analyze

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// sameQuantity makes unknown equal to unknown.
var sameQuantity = cmp.Comparer(func(a, b Quantity) bool {
	return a == b || !a.Known() && !b.Known()
})

// curves generates curves of up to 12 levels with up to six trials each, some
// of them with slices and latency.
func curves(t *rapid.T) Curve {
	levels := rapid.SliceOfNDistinct(rapid.IntRange(1, 500), 1, 12, rapid.ID[int]).Draw(t, "levels")
	c := Curve{Test: "set", Depth: rapid.IntRange(0, 4).Draw(t, "depth")}
	sliced := rapid.Bool().Draw(t, "sliced")
	latency := rapid.Bool().Draw(t, "latency")
	for _, n := range levels {
		p := Point{Clients: n}
		for range rapid.IntRange(1, 6).Draw(t, "K") {
			trial := plainTrial(rapid.Float64Range(100, 1000).Draw(t, "qps"))
			if latency { // the same for equal trials, of which either may be the row
				trial.Mean = Quantity(1 / trial.QPS)
			}
			if sliced {
				for pass := range 3 {
					trial.Slices = append(trial.Slices, Slice{pass, trial.QPS * rapid.Float64Range(.8, 1.2).Draw(t, "slice")})
				}
			}
			p.Trials = append(p.Trials, trial)
		}
		c.Points = append(c.Points, p)
	}
	return c
}

// shuffled returns c with its points and their trials in another order.
func shuffled(c Curve, seed uint64) Curve {
	r := rand.New(rand.NewPCG(seed, 0))
	points := slices.Clone(c.Points)
	r.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	for i := range points {
		trials := slices.Clone(points[i].Trials)
		r.Shuffle(len(trials), func(i, j int) { trials[i], trials[j] = trials[j], trials[i] })
		points[i].Trials = trials
	}
	c.Points = points
	return c
}

// TestAnalyzeLaws: the same curve gives the same analysis, in whatever order
// its points and trials come, and its input is left as it was; a knee is named
// exactly when there is an answer; the range holds it; the ceiling and the
// peak are not below it.
func TestAnalyzeLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := curves(t)
		before, _ := json.Marshal(c)
		a := Analyze(c, Options{})
		if after, _ := json.Marshal(c); string(before) != string(after) {
			t.Fatal("the curve was changed")
		}
		b := Analyze(shuffled(c, rapid.Uint64().Draw(t, "seed")), Options{})
		for i := range b.Steps {
			// The index of a trial depends on the order, of course.
			b.Steps[i].MedianTrial = a.Steps[i].MedianTrial
		}
		if diff := cmp.Diff(a, b, sameQuantity); diff != "" {
			t.Fatalf("in another order:\n%s", diff)
		}
		if k := a.Knee; a.Answer {
			if k.Clients != k.Apparent || k.Peak < k.Clients || k.Ceiling != 0 && k.Ceiling < k.Peak {
				t.Fatalf("knee %d, apparent %d, peak %d, ceiling %d", k.Clients, k.Apparent, k.Peak, k.Ceiling)
			}
			if k.Low != 0 && (k.Low > k.Clients || k.High < k.Clients) {
				t.Fatalf("knee %d outside of %d to %d", k.Clients, k.Low, k.High)
			}
		} else if k.Clients != 0 || k.Confidence != ConfidenceNone || a.Reason == "" {
			t.Fatalf("no answer (%q), but knee %d with %s", a.Reason, k.Clients, k.Confidence)
		}
		if len(a.Sentences()) < 3 {
			t.Fatalf("sentences %q", a.Sentences())
		}
	})
}

// TestAnalyzeScale: in which unit throughput is counted does not matter. A
// factor that is a power of two leaves no rounding.
func TestAnalyzeScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := curves(t)
		a := Analyze(c, Options{})
		factor := math.Ldexp(1, rapid.IntRange(-6, 6).Draw(t, "exponent"))
		for i := range c.Points {
			for j := range c.Points[i].Trials {
				trial := &c.Points[i].Trials[j]
				trial.QPS *= factor
				for s := range trial.Slices {
					trial.Slices[s].QPS *= factor
				}
			}
		}
		b := Analyze(c, Options{})
		if a.Knee.Shape != b.Knee.Shape || a.Knee.Apparent != b.Knee.Apparent || a.Knee.Peak != b.Knee.Peak || a.Knee.Low != b.Knee.Low {
			t.Fatalf("times %v: %+v becomes %+v", factor, a.Knee, b.Knee)
		}
	})
}

// TestAnalysisJSON: an analysis survives JSON, with unknown quantities as null.
func TestAnalysisJSON(t *testing.T) {
	for _, file := range []string{"seed_redis_benchmark_set.csv", "mysql_innodb_ro.csv", "usl_raytracer.csv"} {
		a := Analyze(readOracle(t, file), Options{})
		b, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), `"p999_s":null`) {
			t.Errorf("%s: an unknown latency is not null in %.300s…", file, b)
		}
		var back Analysis
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(*a, back, sameQuantity); diff != "" {
			t.Errorf("%s (-before +after JSON):\n%s", file, diff)
		}
	}
}

// TestListsAreNotNil: no list of an analysis is null in JSON, however little
// there is in it.
func TestListsAreNotNil(t *testing.T) {
	check := func(t *rapid.T, c Curve) {
		if path := nilList("Analysis", reflect.ValueOf(Analyze(c, Options{}))); path != "" {
			t.Fatalf("%s is nil", path)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, Curve{})
		check(t, curves(t))
	})
}

// nilList returns the path of a nil slice in v, "" when there is none.
func nilList(path string, v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		return nilList(path, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if found := nilList(path+"."+v.Type().Field(i).Name, v.Field(i)); found != "" {
				return found
			}
		}
	case reflect.Slice:
		if v.IsNil() {
			return path
		}
		for i := range v.Len() {
			if found := nilList(fmt.Sprintf("%s[%d]", path, i), v.Index(i)); found != "" {
				return found
			}
		}
	}
	return ""
}

// TestAnalyzeNothing: an analysis of nothing says so and nothing else.
func TestAnalyzeNothing(t *testing.T) {
	for name, c := range map[string]Curve{
		"empty":    {},
		"no trial": {Points: []Point{{Clients: 10}}},
		"unusable": {Points: []Point{{0, []Trial{plainTrial(100)}}, {10, []Trial{plainTrial(0), plainTrial(math.NaN())}}}},
	} {
		a := Analyze(c, Options{})
		if a.Answer || a.Knee.Shape != ShapeUnknown || len(a.Steps) != 0 || a.Reason != "nothing was measured" {
			t.Errorf("%s: %+v", name, a)
		}
		if got := a.Sentences(); len(got) != 1 {
			t.Errorf("%s: sentences %q", name, got)
		}
	}
}

// TestSteps: the row is one real trial, of four the second lowest; spread and
// gain follow their definitions.
func TestSteps(t *testing.T) {
	first := Point{10, []Trial{plainTrial(1000)}}
	second := Point{20, nil}
	for _, x := range []float64{1600, 1700, 1400, 1500} {
		trial := plainTrial(x)
		trial.P99 = Quantity(x / 1e6)
		trial.Invalid = []string{GateSteal}
		second.Trials = append(second.Trials, trial)
	}
	got := Analyze(Curve{Depth: 4, Points: []Point{second, first}}, Options{}).Steps[1]
	u := Unknown()
	want := Step{
		Clients: 20, InFlight: 80, Trials: 4, MedianTrial: 3, QPS: 1500,
		Adjusted: math.Sqrt(1500 * 1600),       // geometric mean of the middle two
		Spread:   0.2,                          // (1700 − 1400)/1500
		Gain:     Quantity(math.Sqrt(2.4) - 1), // of that over 1000, where linear is 100 %
		Mean:     u, P50: u, P99: 0.0015, P999: u,
		ServerMain: u, ServerCPU: u, GeneratorCPU: u, HostCPU: u,
		Invalid: []string{GateSteal},
	}
	if diff := cmp.Diff(want, got, sameQuantity); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestKneeCompanions: on c workers of service time S, X*·R_min = c and the
// highest X²/N is at c as well.
func TestKneeCompanions(t *testing.T) {
	c := model(hard(12), 3, 4, 8, 12, 24, 48) // 1000/s a worker: S = 1 ms
	for i := range c.Points {
		for j := range c.Points[i].Trials {
			trial := &c.Points[i].Trials[j]
			trial.Mean = Quantity(float64(c.Points[i].Clients) / trial.QPS)
		}
	}
	k := Analyze(c, Options{}).Knee
	// X* is 12,000/s less the winner's curse of three equal levels with the
	// least ν: .005 × .846.
	if want := 12 * (1 - .005*.846); math.Abs(float64(k.Little)-want) > 1e-9 {
		t.Errorf("N_little = %v, want %v", k.Little, want)
	}
	if k.Power != 12 || k.Sharpness != 1 || k.Soft {
		t.Errorf("N_power = %d, sharpness %v, soft %v; want 12, 1, false", k.Power, k.Sharpness, k.Soft)
	}
	if k.Confidence != ConfidenceHigh || k.Probability != 1 || k.Low != 12 || k.High != 12 {
		t.Errorf("without noise: %s, P %v, %d to %d; want HIGH, 1, 12 to 12", k.Confidence, k.Probability, k.Low, k.High)
	}
}

// TestSoftKnee: X ∝ N/(1+α(N−1)) bends over more than a decade; a range is
// given, and no probability of one level.
func TestSoftKnee(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	soft := truth{"", []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}, usl(.3, 0), 64}
	a := Analyze(soft.draw(r, 3, .02), Options{})
	k := a.Knee
	if !k.Soft || k.Probability.Known() || k.Low == 0 || k.Confidence == ConfidenceHigh || !hasWarning(a, WarnSoftKnee) {
		t.Errorf("%+v, want a soft knee with a range and no P", k)
	}
}

// TestWarningCodes: every code can occur.
func TestWarningCodes(t *testing.T) {
	gates := []string{GateErrors, GateNotInFlight, GateSteal, GateThrottled, GateEvictions, GateFork, GateOtherClients, GateHitRatio, GateUnsteady}
	invalid := model(hard(12), 3, 4, 8, 12, 24, 48)
	invalid.Points[1].Trials[0].Invalid = gates
	limited := model(rising(1), 1, 10, 20, 30)
	limited.Limit = "--max-clients 30"
	generator := model(hard(12), 3, 4, 8, 12, 24, 48)
	starved := model(hard(12), 3, 4, 8, 12, 24, 48)
	for i := range generator.Points {
		for j := range 3 {
			generator.Points[i].Trials[j].Load.GeneratorCeiling = 12500
			starved.Points[i].Trials[j].Load.ServerMain = .5
			starved.Points[i].Trials[j].Load.ServerWait = .5
		}
	}
	disagreeing := model(hard(12), 3, 4, 8, 12, 24, 48)
	for j := range 3 {
		l := &disagreeing.Points[2].Trials[j].Load
		l.ServerCPU, l.ServerCPUSeen = .95, .84
	}
	r := rand.New(rand.NewPCG(11, 12))
	plateau := truths["hard plateau"][0]
	seen := make(map[string]bool)
	for _, c := range []Curve{
		invalid, limited, generator, starved, disagreeing,
		plateau.draw(r, 3, .09), plateau.draw(r, 3, .3),
		sliced(r, plateau, .01, func(pass int) float64 { return 1 + float64(pass)/10 }),
		readOracle(t, "seed_redis_benchmark_set.csv"),
		readOracle(t, "redis_edinburgh_baseline.csv"),
		readOracle(t, "kneed_concave_increasing.csv"),
		readOracle(t, "rsa_sign_2core.csv"),
	} {
		for _, w := range Analyze(c, Options{}).Warnings {
			seen[w.Code] = true
		}
	}
	want := append([]string{
		WarnNoisy, WarnTooNoisy, WarnNoiseUnknown, WarnPassEffect, WarnFirstLevel, WarnIsolatedPeak, WarnSoftKnee,
		WarnFewLevels, WarnContested, WarnLimitReached, WarnGeneratorBound, WarnCPUStarved, WarnCPUDisagree, WarnUnusableTrials,
	}, gates...)
	for _, code := range want {
		if !seen[code] {
			t.Errorf("%s does not occur", code)
		}
		delete(seen, code)
	}
	if len(seen) > 0 {
		t.Errorf("codes that are not listed: %v", slices.Sorted(maps.Keys(seen)))
	}
}

// TestSentences holds the words of the verdict.
func TestSentences(t *testing.T) {
	c := model(retro(12, .2), 3, 4, 8, 12, 24, 48) // at 48: .8^log2(48/18) = 73 %
	for i := range c.Points {
		for j := range c.Points[i].Trials {
			trial := &c.Points[i].Trials[j]
			trial.QPS += float64(j-1) * 60 // σ: ±60 is 0.69 % of the middle step, over 0.689
			trial.Load.ServerMain = .97
		}
	}
	got := Analyze(c, Options{}).Sentences()
	want := []string{
		"Knee: 12 clients give 12,000 requests/s, the highest throughput measured, with the fewest connections.",
		"Peak: the same level; QPS stops rising at 12 clients.",
		"Ceiling: beyond 12 clients throughput falls; at 48 clients it is 27 % below the peak. Do not exceed it, all pools together.",
		"Confidence: HIGH. The knee is at 12 clients with 95 % (noise of one trial: σ = 1 %).",
		"Stopped by: the server's CPU (server main thread 97 % of a core at 12 clients). The server's thread is full: more throughput needs pipelining, more shards or a faster core, not more connections.",
	}
	if len(got) < len(want) {
		t.Fatalf("%q", got)
	}
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if text := got[len(want)]; !strings.HasPrefix(text, "Recommendation: ") || !strings.Contains(text, "12") {
		t.Errorf("%q, want a recommendation of 12", text)
	}
}

func TestNumbersInWords(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{thousands(98412.4), "98,412"}, {thousands(1458451), "1,458,451"}, {thousands(999), "999"}, {thousands(3.5398), "3.54"},
		{percent(.9712), "97 %"}, {percent(.0343), "3.4 %"}, {percent(.05), "5 %"}, {percent(.0996), "10 %"},
		{signed(.058), "+5.8 %"}, {signed(-.1), "−10 %"},
		{count(1, "client"), "1 client"}, {count(12, "client"), "12 clients"},
		{milliseconds(.000403), "0.403 ms"},
	} {
		if test.got != test.want {
			t.Errorf("%q, want %q", test.got, test.want)
		}
	}
}

// A level that stands out above a flat stretch is not the peak: the knee
// would follow it. The throughputs are those of a real sweep on a machine that
// was fast for a moment. A cliff at the end of a linear rise is a peak, however
// sharp.
func TestSpikeIsNoPeak(t *testing.T) {
	for _, tt := range []struct {
		name              string
		clients           []int
		kqps              []float64
		knee, peak, spike int
	}{
		{"spike", []int{1, 2, 3, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110},
			[]float64{34.9, 77.6, 96.1, 109, 115.6, 118.6, 121, 117.8, 118.3, 117.5, 120.8, 138.5, 118.2, 122.7, 120.4}, 10, 100, 80},
		{"cliff", []int{50, 60, 70, 80, 90, 100}, []float64{50, 60, 70, 80, 64, 55}, 80, 80, 0},
	} {
		c := Curve{}
		for i, n := range tt.clients {
			x := 1000 * tt.kqps[i]
			c.Points = append(c.Points, Point{Clients: n, Trials: []Trial{plainTrial(.99 * x), plainTrial(x), plainTrial(1.01 * x)}})
		}
		k := Analyze(c, Options{}).Knee
		if k.Apparent != tt.knee || k.Peak != tt.peak || k.Spike != tt.spike {
			t.Errorf("%s: knee %d, peak %d, spike %d; want %d, %d, %d", tt.name, k.Apparent, k.Peak, k.Spike, tt.knee, tt.peak, tt.spike)
		}
	}
}

// What an idle round trip says: by Little's law 100,000 requests/s of 0.05 ms
// each keep 5 connections busy.
func TestIdleRoundTrip(t *testing.T) {
	c := Curve{IdleRoundTrip: 50e-6}
	for _, n := range []int{10, 20, 40, 80, 160} {
		x := 100_000 * min(1, float64(n)/20)
		c.Points = append(c.Points, Point{Clients: n, Trials: []Trial{plainTrial(x), plainTrial(x), plainTrial(x)}})
	}
	a := Analyze(c, Options{})
	if math.Abs(float64(a.IdleClients)-5) > .1 {
		t.Errorf("%v connections are busy, want 5", a.IdleClients)
	}
	if text := strings.Join(a.Sentences(), "\n"); !strings.Contains(text, "Idle: a round trip takes 0.05 ms at least; 5 connections would be busy") {
		t.Errorf("the sentences are %s", text)
	}
	c.IdleRoundTrip = 0
	if a := Analyze(c, Options{}); a.RoundTrip.Known() || a.IdleClients.Known() {
		t.Errorf("without a round trip: %v, %v", a.RoundTrip, a.IdleClients)
	}
}
