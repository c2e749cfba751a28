package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A RateCurve is what one step of a sweep did under requests that came at given
// rates and did not wait for each other's replies: an open loop.
type RateCurve struct {
	Test    string
	Depth   int // pipeline depth P; requests come in batches of P
	Clients int // connections N

	// Capacity is X*, what the sweep found to be carried, in requests/s;
	// unknown when it is not known.
	Capacity Quantity

	Points []RatePoint // in any order, of different Rates
}

// A RatePoint is one offered rate.
type RatePoint struct {
	Rate   float64 // requests/s, above 0
	Trials []RateTrial
}

// A RateTrial is one measurement of a RatePoint. Times are seconds, counted
// from when requests were due.
type RateTrial struct {
	Offered  float64 // requests/s that were due: about the rate
	Achieved float64 // replies/s that came in the same time

	// Mean and quantiles of the latency. Requests that were never answered
	// are slower than all others; a quantile that they reach is unknown, and
	// so is one beyond which there are fewer than ten requests.
	Mean, P50, P99, P999 Quantity

	SlipMean, SlipP99 Quantity // how late the generator sent requests
	Waited            Quantity // share of the requests that waited for a connection
	WaitMean          Quantity // for how long, over all requests

	Missing Quantity // share of the requests that were never answered
	Failed  Quantity // share that was answered with an error

	Load    Load
	Invalid []string // as in Trial
}

// A RateRow is the median trial at a rate, by P99; of an even number the lower
// of the middle two.
type RateRow struct {
	Rate     float64  `json:"rate_qps"`
	Share    Quantity `json:"share_ratio"` // of Capacity
	Offered  float64  `json:"offered_qps"` // as the draws had it
	Achieved float64  `json:"achieved_qps"`
	Mean     Quantity `json:"mean_s"`
	P50      Quantity `json:"p50_s"`
	P99      Quantity `json:"p99_s"`
	P999     Quantity `json:"p999_s"`

	// Spread is how far the P99 of the trials lie apart, highest less lowest
	// over P99; unknown with one trial.
	Spread Quantity `json:"p99_spread_ratio"`

	SlipMean Quantity `json:"slip_mean_s"`
	SlipP99  Quantity `json:"slip_p99_s"`
	Waited   Quantity `json:"waited_ratio"`
	WaitMean Quantity `json:"wait_mean_s"`
	Missing  Quantity `json:"missing_ratio"`
	Failed   Quantity `json:"failed_ratio"`

	ServerMain   Quantity `json:"server_main_cores"`
	ServerCPU    Quantity `json:"server_cores"`
	GeneratorCPU Quantity `json:"generator_cores"`

	// Overloaded: less than 90 % of what was due was answered in time, or more
	// than 0.1 % of the requests never were.
	Overloaded bool `json:"overloaded"`

	// Late: the generator was so late that the P99 is more its own than the
	// server's.
	Late bool `json:"generator_late"`

	// Invalid holds the codes of the validity gates that any of the trials
	// failed, sorted.
	Invalid []string `json:"invalid"`
}

// A RateAnalysis is what is concluded from a RateCurve.
type RateAnalysis struct {
	Test     string    `json:"test"`
	Depth    int       `json:"depth"`
	Clients  int       `json:"clients"`
	Capacity Quantity  `json:"capacity_qps"`
	Rows     []RateRow `json:"rows"` // by rate, rising

	// SLOP99 is the longest p99 that was asked for, in seconds, unknown for
	// none; Highest the highest rate at which it was met and below which it
	// was always met, unknown for none; and Failing the lowest at which it
	// was not, unknown when that was not found.
	SLOP99  Quantity `json:"slo_p99_s"`
	Highest Quantity `json:"highest_qps"`
	Failing Quantity `json:"failing_qps"`

	Sentences []string  `json:"sentences"`
	Warnings  []Warning `json:"warnings"`
}

const (
	// keepsUp is the share of the offered rate below which a server is
	// overloaded. Its queue then grows as long as the rate lasts.
	keepsUp = 0.90

	// tooLate is the share of the p99 that the p99 of the generator's own
	// lateness may be.
	tooLate = 0.50

	// rateStep is how near the search comes: the lowest failing rate is at
	// most so much above the highest good one.
	rateStep = 0.05

	// lowestSearched bounds the search below the lowest planned rate, as a
	// share of it.
	lowestSearched = 1. / 32
)

// AnalyzeRates concludes from c. sloP99 is the longest p99 allowed, in seconds;
// 0 for none.
func AnalyzeRates(c RateCurve, sloP99 float64) *RateAnalysis {
	a := &RateAnalysis{
		Test: c.Test, Depth: max(1, c.Depth), Clients: c.Clients, Capacity: c.Capacity,
		SLOP99: Unknown(), Highest: Unknown(), Failing: Unknown(),
	}
	for _, p := range c.Points {
		if len(p.Trials) > 0 && p.Rate > 0 {
			a.Rows = append(a.Rows, rateRow(p, c.Capacity))
		}
	}
	slices.SortFunc(a.Rows, func(x, y RateRow) int { return cmp.Compare(x.Rate, y.Rate) })
	if sloP99 > 0 {
		a.SLOP99 = Quantity(sloP99)
		a.Highest, a.Failing = a.bounds(sloP99)
	}
	a.conclude()
	fill(&a.Rows)
	fill(&a.Sentences)
	fill(&a.Warnings)
	return a
}

func rateRow(p RatePoint, capacity Quantity) RateRow {
	trials := slices.Clone(p.Trials)
	slices.SortStableFunc(trials, func(a, b RateTrial) int { return cmp.Compare(unknownLast(a.P99), unknownLast(b.P99)) })
	t := trials[(len(trials)-1)/2]
	r := RateRow{
		Rate: p.Rate, Share: Quantity(p.Rate) / capacity, Offered: t.Offered, Achieved: t.Achieved,
		Mean: t.Mean, P50: t.P50, P99: t.P99, P999: t.P999, Spread: Unknown(),
		SlipMean: t.SlipMean, SlipP99: t.SlipP99, Waited: t.Waited, WaitMean: t.WaitMean,
		Missing: t.Missing, Failed: t.Failed,
		ServerMain: t.Load.ServerMain, ServerCPU: t.Load.ServerCPU, GeneratorCPU: t.Load.GeneratorCPU,
		Overloaded: t.Achieved < keepsUp*t.Offered || t.Missing > tooManyErrors,
	}
	r.Late = !r.Overloaded && t.SlipP99 > tooLate*t.P99
	if first, last := trials[0].P99, trials[len(trials)-1].P99; len(trials) > 1 && first.Known() && last.Known() {
		r.Spread = (last - first) / t.P99
	}
	for _, t := range trials {
		r.Invalid = append(r.Invalid, t.Invalid...)
	}
	slices.Sort(r.Invalid)
	r.Invalid = slices.Compact(r.Invalid)
	fill(&r.Invalid)
	return r
}

// unknownLast makes an unknown time compare as the longest.
func unknownLast(q Quantity) float64 {
	if !q.Known() {
		return 1e300
	}
	return float64(q)
}

// meets reports whether the rate is carried with that p99.
func (r RateRow) meets(sloP99 float64) bool {
	return !r.Overloaded && r.P99 <= Quantity(sloP99) && !(r.Failed > tooManyErrors)
}

// bounds returns the highest good rate below the lowest failing one, and that;
// unknown where there is none.
func (a *RateAnalysis) bounds(sloP99 float64) (good, failing Quantity) {
	good = Unknown()
	for _, r := range a.Rows {
		if !r.meets(sloP99) {
			return good, Quantity(r.Rate)
		}
		good = Quantity(r.Rate)
	}
	return good, Unknown()
}

// NextRate returns the rate to be measured next, in requests/s, 0 for none.
// Without a sloP99 that is the lowest planned rate that has not been measured.
// With one the planned rates are climbed until one fails it; then the gap
// between the last good and the first failing rate is halved until it is 5 %.
// Where even the lowest planned rate fails, lower ones are tried, down to a
// 32nd of it. planned must rise.
func NextRate(c RateCurve, planned []float64, sloP99 float64) float64 {
	a := AnalyzeRates(c, sloP99)
	if sloP99 <= 0 || !a.Failing.Known() {
		for _, x := range planned {
			if !slices.ContainsFunc(a.Rows, func(r RateRow) bool { return r.Rate == x }) {
				return x
			}
		}
		return 0
	}
	good, bad := float64(a.Highest), float64(a.Failing)
	switch {
	case a.Highest.Known() && bad > good*(1+rateStep):
		return (good + bad) / 2
	case a.Highest.Known(), len(planned) == 0, bad <= planned[0]*lowestSearched:
		return 0
	}
	return bad / 2
}

// conclude says what was found.
func (a *RateAnalysis) conclude() {
	if a.SLOP99.Known() && len(a.Rows) > 0 {
		a.Sentences = append(a.Sentences, "Highest rate: "+a.found())
	}
	i := slices.IndexFunc(a.Rows, func(r RateRow) bool { return r.Overloaded })
	if i >= 0 {
		r := a.Rows[i]
		a.Sentences = append(a.Sentences, fmt.Sprintf("Overloaded: of %s requests/s %s were answered in time; the queue grows as long as such a rate lasts.",
			thousands(r.Rate), thousands(r.Achieved)))
	}
	if low, high := a.disagreeing(); low > 0 {
		a.Warnings = append(a.Warnings, Warning{WarnRatesDisagree,
			fmt.Sprintf("%s requests/s went better than %s: the machine's speed changed between them", thousands(high), thousands(low))})
	}
	var late []string
	for _, r := range a.Rows {
		if r.Late {
			late = append(late, thousands(r.Rate))
		}
	}
	if len(late) > 0 {
		a.Warnings = append(a.Warnings, Warning{WarnGeneratorLate,
			fmt.Sprintf("at %s requests/s the generator itself sent so late that most of the p99 may be its own", strings.Join(late, ", "))})
	}
}

// disagreeing returns the lowest rate that did not go well though a higher one
// did, and that; 0 for none.
func (a *RateAnalysis) disagreeing() (low, high float64) {
	well := func(r RateRow) bool { return !r.Overloaded && (!a.SLOP99.Known() || r.meets(float64(a.SLOP99))) }
	for _, r := range a.Rows {
		switch {
		case low == 0 && !well(r):
			low = r.Rate
		case low > 0 && well(r):
			return low, r.Rate
		}
	}
	return 0, 0
}

// found says which rate meets the p99.
func (a *RateAnalysis) found() string {
	limit := milliseconds(a.SLOP99)
	failing := func() string {
		i := slices.IndexFunc(a.Rows, func(r RateRow) bool { return Quantity(r.Rate) == a.Failing })
		switch r := a.Rows[i]; {
		case r.Overloaded:
			return thousands(r.Rate) + " are more than is answered"
		case !r.P99.Known():
			return thousands(r.Rate) + " give too few requests for a p99"
		case r.P99 <= a.SLOP99:
			return fmt.Sprintf("of %s %s fail", thousands(r.Rate), percent(r.Failed))
		default:
			return fmt.Sprintf("%s give %s", thousands(r.Rate), milliseconds(r.P99))
		}
	}
	if !a.Highest.Known() {
		return fmt.Sprintf("none keeps p99 within %s; %s.", limit, failing())
	}
	i := slices.IndexFunc(a.Rows, func(r RateRow) bool { return Quantity(r.Rate) == a.Highest })
	r := a.Rows[i]
	text := fmt.Sprintf("%s requests/s keep p99 within %s (%s)", thousands(r.Rate), limit, milliseconds(r.P99))
	if r.Share.Known() {
		text = fmt.Sprintf("%s requests/s, %s of X*, keep p99 within %s (%s)", thousands(r.Rate), percent(r.Share), limit, milliseconds(r.P99))
	}
	if !a.Failing.Known() {
		return text + "; no higher rate was tried."
	}
	return text + "; " + failing() + "."
}
