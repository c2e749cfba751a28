package analyze

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// queueTrial is M/M/1 with a mean service time of a millisecond: the response
// time is exponential with mean S/(1−ρ), its p99 ln 100 times that; beyond ρ = 1
// there is none.
func queueTrial(rate float64) RateTrial {
	const service = 1e-3
	u := Unknown()
	t := RateTrial{
		Offered: rate, Achieved: min(rate, 1/service), Mean: u, P50: u, P99: u, P999: u, SlipMean: 1e-5, SlipP99: 3e-5,
		Waited: u, WaitMean: u, Load: UnknownLoad(),
	}
	if rho := rate * service; rho < 1 {
		t.Mean = Quantity(service / (1 - rho))
		t.P50, t.P99, t.P999 = t.Mean*Quantity(math.Ln2), t.Mean*Quantity(math.Log(100)), t.Mean*Quantity(math.Log(1000))
	} else {
		t.Missing = .2
	}
	return t
}

// search measures what NextRate asks for until it asks no more.
func search(t interface{ Fatal(...any) }, planned []float64, slo float64) (*RateAnalysis, int) {
	c := RateCurve{Test: "GET", Clients: 10, Capacity: 1000}
	for range 100 {
		rate := NextRate(c, planned, slo)
		if rate == 0 {
			return AnalyzeRates(c, slo), len(c.Points)
		}
		c.Points = append(c.Points, RatePoint{rate, []RateTrial{queueTrial(rate)}})
	}
	t.Fatal("the search does not end")
	return nil, 0
}

// Without a p99 all planned rates are measured, whatever they show.
func TestNextRateClimbs(t *testing.T) {
	planned := []float64{200, 600, 1000, 1400}
	a, _ := search(t, planned, 0)
	var got []float64
	for _, r := range a.Rows {
		got = append(got, r.Rate)
	}
	if !slices.Equal(got, planned) {
		t.Errorf("measured %v, want %v", got, planned)
	}
	if a.Highest.Known() || a.Failing.Known() {
		t.Errorf("highest %v, failing %v; want none without a p99", a.Highest, a.Failing)
	}
	// The model has no end of its queue at ρ = 1.
	if text := strings.Join(a.Sentences, "\n"); !strings.HasPrefix(text, "Overloaded: of 1,000 requests/s") {
		t.Error(text)
	}
}

// The law of the search: the wanted rate of the model, 1/S·(1 − S·ln 100/T),
// lies between the last good and the first failing rate, which are 5 % apart
// at most.
func TestNextRateBisects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slo := rapid.Float64Range(.005, .2).Draw(t, "T")
		planned := rapid.SliceOfN(rapid.Float64Range(100, 1500), 1, 6).Draw(t, "planned")
		slices.Sort(planned)
		planned = slices.Compact(planned)
		want := 1000 * (1 - 1e-3*math.Log(100)/slo)
		a, measured := search(t, planned, slo)
		if measured > 20 {
			t.Errorf("%d rates were measured", measured)
		}
		last := planned[len(planned)-1]
		switch {
		case want >= last:
			if float64(a.Highest) != last || a.Failing.Known() {
				t.Errorf("highest %v, failing %v; want the last planned one, %v", a.Highest, a.Failing, last)
			}
		case want < planned[0]/32:
			if a.Highest.Known() {
				t.Errorf("highest %v, want none: the rate is %v", a.Highest, want)
			}
		case a.Highest.Known():
			if float64(a.Highest) > want*(1+1e-9) || float64(a.Failing) < want*(1-1e-9) || a.Failing > a.Highest*1.05 {
				t.Errorf("highest %v, failing %v; want %v between them and at most 5 %% apart", a.Highest, a.Failing, want)
			}
		case float64(a.Failing) > planned[0]/16:
			t.Errorf("nothing found, want %v; the search ended at %v", want, a.Failing)
		}
		for _, s := range a.Sentences {
			if strings.Contains(s, "NaN") {
				t.Error(s)
			}
		}
	})
}

func TestRateRows(t *testing.T) {
	trial := func(p99 float64, change func(*RateTrial)) RateTrial {
		x := queueTrial(500)
		x.P99 = Quantity(p99)
		if change != nil {
			change(&x)
		}
		return x
	}
	row := func(trials ...RateTrial) RateRow {
		a := AnalyzeRates(RateCurve{Capacity: 1000, Points: []RatePoint{{500, trials}}}, 0)
		return a.Rows[0]
	}
	r := row(trial(.03, nil), trial(.01, nil), trial(.02, func(x *RateTrial) { x.Invalid = []string{GateSteal} }))
	// (30 − 10)/20
	if r.P99 != .02 || math.Abs(float64(r.Spread)-1) > 1e-9 || r.Share != .5 || r.Overloaded || r.Late || !slices.Equal(r.Invalid, []string{GateSteal}) {
		t.Errorf("the median of 10, 20 and 30 ms: %+v", r)
	}
	if r := row(trial(.01, nil), trial(math.NaN(), nil)); r.P99 != .01 || r.Spread.Known() {
		t.Errorf("an unknown p99 is the worst: %+v", r)
	}
	for name, change := range map[string]func(*RateTrial){
		"89 % in time": func(x *RateTrial) { x.Achieved = 445 },
		"0.2 % never":  func(x *RateTrial) { x.Missing = .002 },
	} {
		if r := row(trial(.01, change)); !r.Overloaded || r.meets(1) {
			t.Errorf("%s: %+v, want it overloaded", name, r)
		}
	}
	if r := row(trial(.01, func(x *RateTrial) { x.Failed = .01 })); r.meets(1) {
		t.Error("one in a hundred fails, and the p99 is met")
	}
	late := AnalyzeRates(RateCurve{Points: []RatePoint{{500, []RateTrial{trial(.01, func(x *RateTrial) { x.SlipP99 = .006 })}}}}, 0)
	if !late.Rows[0].Late || len(late.Warnings) != 1 || late.Warnings[0].Code != WarnGeneratorLate || late.Rows[0].Share.Known() {
		t.Errorf("6 of 10 ms are the generator's: %+v", late)
	}
}

// A higher rate that goes better than a lower one is the machine's doing.
func TestRatesDisagree(t *testing.T) {
	slow := queueTrial(300)
	slow.P99 = 1
	c := RateCurve{Capacity: 1000, Points: []RatePoint{{200, []RateTrial{queueTrial(200)}}, {300, []RateTrial{slow}}, {400, []RateTrial{queueTrial(400)}}}}
	if a := AnalyzeRates(c, .05); a.Highest != 200 || a.Failing != 300 || len(a.Warnings) != 1 || a.Warnings[0].Code != WarnRatesDisagree {
		t.Errorf("300 failed and 400 did not: %+v", a)
	}
	// Without a p99 only what is overloaded did not go well.
	if a := AnalyzeRates(c, 0); len(a.Warnings) != 0 {
		t.Errorf("without a p99: %+v", a.Warnings)
	}
}

// What is said of a search, by its outcome.
func TestRateSentences(t *testing.T) {
	for _, tt := range []struct {
		planned []float64
		slo     float64 // the model meets 1000·(1 − ln 100/T ms)
		want    string
	}{
		{[]float64{100, 200}, .02, "Highest rate: 200 requests/s, 20 % of X*, keep p99 within 20 ms (5.76 ms); no higher rate was tried."},
		{[]float64{800, 820}, .024, "Highest rate: 800 requests/s, 80 % of X*, keep p99 within 24 ms (23 ms); 820 give 25.6 ms."},
		{[]float64{980, 1020}, .3, "Highest rate: 980 requests/s, 98 % of X*, keep p99 within 300 ms (230 ms); 1,020 are more than is answered."},
		{[]float64{320}, .001, "Highest rate: none keeps p99 within 1 ms; 10 give 4.65 ms."},
	} {
		a, _ := search(t, tt.planned, tt.slo)
		if len(a.Sentences) == 0 || a.Sentences[0] != tt.want {
			t.Errorf("got %q, want %q", a.Sentences, tt.want)
		}
	}
}
