package verify

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/poolsweep/poolsweep/analyze"
)

// A Verdict is what may be concluded from a Result.
type Verdict struct {
	// Pool is the smallest size whose p99 is within 10 % of the best at
	// Rate, the highest rate at which a size keeps up and the generator was
	// not so late that sizes cannot be compared. Both are 0 when there is
	// none, or when too few requests were sent for a p99.
	Pool int     `json:"pool"`
	Rate float64 `json:"rate_qps"`

	// Believe says whom to believe where Pool differs from the size in
	// question; "" where it does not.
	Believe Believe `json:"believe"`

	// Processes is how many such clients it takes to carry the server to its
	// knee, 1 when this one can and 0 when that is unknown.
	Processes int `json:"processes"`

	Sentences []string `json:"sentences"`
	Warnings  []string `json:"warnings"` // clauses
}

// Believe is one of two answers.
type Believe string

const (
	BelieveSweep        Believe = "sweep"
	BelieveVerification Believe = "verification"
)

const (
	// p99Tolerance is the share of the best p99 that may be given up for
	// fewer connections.
	p99Tolerance = 0.10

	// overloaded is the share of the requests due below which a pool does
	// not keep up.
	overloaded = 0.90

	// lateness is the share of the p99 that may come from sending late before
	// the p99 is no longer the server's and the pool's.
	lateness = 0.10

	// tooLate is the share from which on sizes cannot be compared either. Up
	// to it most of a p99 is the pool's, and the rest is the same for all.
	tooLate = 0.50

	// fullThread is the share of a core at which the thread that runs
	// commands counts as full. It is that of the sweep's verdict.
	fullThread = 0.90

	// crowd is how many cores others may use on this machine before what the
	// client carries is no longer its own limit.
	crowd = 0.25
)

// Overloaded reports whether the pool did not keep up with the arrivals.
func (r Row) Overloaded() bool { return r.Achieved() < overloaded || r.Dropped > 0 }

// Late reports whether the generator was too late for its latencies to be
// those of the pool and the server.
func (r Row) Late() bool { return r.late(lateness) }

func (r Row) late(share analyze.Quantity) bool {
	return !r.Overloaded() && r.P99-r.P99Sent > share*r.P99
}

// Verdict concludes. It is pure.
func (res *Result) Verdict() Verdict {
	var v Verdict
	level, row := res.judged()
	if row == nil {
		v.Sentences = append(v.Sentences, "Verified: no size. "+res.whyNone())
	} else {
		v.Pool, v.Rate = row.Pool, level.Rate
		v.Sentences = append(v.Sentences, res.verified(level, row))
		v.Believe = res.disagreement(level, row, &v)
		v.forecast(res, level)
	}
	v.processes(res)
	v.warn(res)
	return v
}

// judged returns the level that decides and the row that is chosen in it; nil
// when there is none.
func (res *Result) judged() (*Level, *Row) {
	for i := len(res.Levels) - 1; i >= 0; i-- {
		l := &res.Levels[i]
		best := l.best()
		if best == nil || l.late() {
			continue
		}
		for j := range l.Rows {
			if r := &l.Rows[j]; !r.Overloaded() && r.P99 <= best.P99*(1+p99Tolerance) {
				return l, r
			}
		}
	}
	return nil, nil
}

// best returns the row with the lowest p99 of those that keep up.
func (l *Level) best() *Row {
	var best *Row
	for i := range l.Rows {
		if r := &l.Rows[i]; !r.Overloaded() && r.P99.Known() && (best == nil || r.P99 < best.P99) {
			best = r
		}
	}
	return best
}

// late reports whether the generator was so late for a size that keeps up that
// the sizes cannot be compared.
func (l *Level) late() bool {
	return slices.ContainsFunc(l.Rows, func(r Row) bool { return r.late(tooLate) })
}

// size returns the row of a size, nil when it was not tried.
func (l *Level) size(n int) *Row {
	for i := range l.Rows {
		if l.Rows[i].Pool == n {
			return &l.Rows[i]
		}
	}
	return nil
}

func (res *Result) whyNone() string {
	few := false
	for _, l := range res.Levels {
		if l.late() {
			return "The generator itself was late wherever a pool kept up, and most of a p99 is its own. " +
				"Verify from a machine with more free cores, or at a lower --rate."
		}
		few = few || slices.ContainsFunc(l.Rows, func(r Row) bool { return !r.Overloaded() })
	}
	if few {
		return "Too few requests were sent for a p99, which takes 1,000: give a longer --duration."
	}
	return "At every rate all were overloaded: they answered less than 90 % of what was due. Give a lower --rate."
}

// verified says what was found.
func (res *Result) verified(l *Level, chosen *Row) string {
	var all []string
	for _, r := range l.Rows {
		text := fmt.Sprintf("%d: %s", r.Pool, milliseconds(r.P99))
		if r.Overloaded() {
			text = fmt.Sprintf("%d: overloaded", r.Pool)
		}
		all = append(all, text)
	}
	return fmt.Sprintf("Verified: a pool of %d is the smallest whose p99 at %s requests/s is within 10 %% of the best (%s).",
		chosen.Pool, thousands(l.Rate), strings.Join(all, ", "))
}

// disagreement says whether the size in question has held, and whom to believe
// when it has not.
func (res *Result) disagreement(l *Level, chosen *Row, v *Verdict) Believe {
	source := "the size in question"
	if res.Swept {
		source = "the sweep's pool"
	}
	asked := l.size(res.Pool)
	switch {
	case asked == nil:
		return "" // other sizes were asked for
	case chosen.Pool == res.Pool:
		v.Sentences = append(v.Sentences, fmt.Sprintf("Agreement: %s of %d is confirmed.", source, res.Pool))
		return ""
	}
	say := func(b Believe, why string) Believe {
		v.Sentences = append(v.Sentences, fmt.Sprintf("Disagreement: %s was %d. %s", source, res.Pool, why))
		return b
	}
	best := l.best()
	noise := max(known(asked.Spread), known(chosen.Spread), known(best.Spread))
	switch {
	case chosen.Pool > res.Pool && !asked.Overloaded() && asked.P99-best.P99 <= analyze.Quantity(noise)*best.P99,
		chosen.Pool < res.Pool && !asked.Overloaded() && noise > p99Tolerance:
		return say(BelieveSweep, fmt.Sprintf("Believe the former: the rounds of one size differ by %s, too much to tell these sizes apart. "+
			"More --rounds or a longer --duration would tell them apart.", percent(noise)))
	case res.clientBound():
		return say(BelieveVerification, fmt.Sprintf("Believe the verification for this process: here the client is full before the server, "+
			"and more connections than %d only queue inside of it. The sweep's pool is what all processes may use together.", chosen.Pool))
	case chosen.Pool > res.Pool:
		return say(BelieveVerification, fmt.Sprintf("Believe the verification: with %d, requests wait for a connection in bursts that a closed loop does not have.", res.Pool))
	}
	return say(BelieveVerification, fmt.Sprintf("Believe the verification for rates up to this one: %s are enough for it. "+
		"For the highest throughput keep %d.", connections(chosen.Pool), res.Pool))
}

// clientBound reports whether the client was full before the server.
func (res *Result) clientBound() bool {
	c := res.Capacity
	if c.ServerMain.Known() {
		return c.ServerMain < fullThread
	}
	return res.Knee.Known() && c.QPS < fullThread*float64(res.Knee)
}

// forecast compares the waits with those that the sweep leads one to expect.
func (v *Verdict) forecast(res *Result, l *Level) {
	r := l.size(res.Pool)
	if r == nil || !r.Predicted.WaitProbability.Known() || !r.WaitShare.Known() {
		return
	}
	expected := max(0, r.Predicted.Response-r.Predicted.Wait) // how long a connection is held
	text := fmt.Sprintf("Forecast: from the sweep, %s of the requests should wait for one of %s; %s did.",
		percent(float64(r.Predicted.WaitProbability)), connections(r.Pool), percent(float64(r.WaitShare)))
	if r.Held.Known() && expected > 0 && r.Held > 1.25*expected {
		text += fmt.Sprintf(" The client holds a connection for %s a request and the sweep's generator for %s: the difference is the client's own work.",
			milliseconds(r.Held), milliseconds(expected))
	}
	v.Sentences = append(v.Sentences, text)
}

// processes says how many clients it takes to carry the server to its knee.
func (v *Verdict) processes(res *Result) {
	c := res.Capacity
	knee, from := float64(res.Knee), "at the sweep's knee"
	if !res.Knee.Known() {
		if !c.ServerMain.Known() || c.ServerMain <= 0 || res.others() > crowd {
			return
		}
		// A guess: with more load the server does more requests each time it
		// looks, and each costs less.
		knee, from = c.QPS/float64(min(c.ServerMain, 1)), "with its thread full, by proportion"
	}
	v.Processes = max(1, int(math.Ceil(fullThread*knee/c.QPS*(1-1e-9)))) // not one more for rounding
	text := fmt.Sprintf("Processes: one client carries %s requests/s with %s, and the server %s %s. ",
		thousands(c.QPS), connections(res.Pool), thousands(knee), from)
	if v.Processes == 1 {
		text += "One such process brings it there."
	} else {
		text += fmt.Sprintf("It takes %d such processes to bring it there.", v.Processes)
	}
	v.Sentences = append(v.Sentences, text)
}

// others returns the cores that neither the client nor the server used in the
// closed loop; 0 when that is unknown.
func (res *Result) others() float64 {
	c := res.Capacity
	if !c.HostCPU.Known() || !c.ClientCPU.Known() || res.Local && !c.ServerCPU.Known() {
		return 0
	}
	o := c.HostCPU - c.ClientCPU
	if res.Local {
		o -= c.ServerCPU
	}
	return float64(max(0, o))
}

// warn lists what makes the numbers doubtful.
func (v *Verdict) warn(res *Result) {
	if o := res.others(); o > crowd {
		v.Warnings = append(v.Warnings, fmt.Sprintf("others took %.1f of the %d cores of this machine: what the client carries is too low, and the latencies are too high",
			o, res.Capacity.Cores))
	}
	for _, doubt := range []struct {
		has  func(Row) bool
		text string
	}{
		{Row.Late, "the generator was late, so that more than a tenth of the p99 is its own and not the server's"},
		{Row.Overloaded, "overloaded, so that latency grows for as long as one measures"},
		{func(r Row) bool { return r.Dropped > 0 }, "requests were dropped, as too many were waiting"},
		{func(r Row) bool { return r.Timeouts > 0 }, fmt.Sprintf("requests had no connection within %v", res.PoolTimeout)},
	} {
		if at := res.where(doubt.has); at != "" {
			v.Warnings = append(v.Warnings, doubt.text+": "+at)
		}
	}
	if at := res.where(func(r Row) bool { return r.Failed > r.Timeouts }); at != "" {
		v.Warnings = append(v.Warnings, fmt.Sprintf("requests failed, one with %q: %s", res.firstError(), at))
	}
}

// where lists the rows that have something: "5, 10 at 19,738/s; 5 at 27,633/s".
func (res *Result) where(has func(Row) bool) string {
	var levels []string
	for _, l := range res.Levels {
		var pools []string
		for _, r := range l.Rows {
			if has(r) {
				pools = append(pools, strconv.Itoa(r.Pool))
			}
		}
		if len(pools) > 0 {
			levels = append(levels, strings.Join(pools, ", ")+" at "+thousands(l.Rate)+"/s")
		}
	}
	return strings.Join(levels, "; ")
}

// firstError returns the text of the first error that is no pool timeout.
func (res *Result) firstError() string {
	for _, t := range res.Trials {
		if t.Failed > t.Timeouts && t.FirstError != "" {
			return t.FirstError
		}
	}
	return ""
}

func connections(n int) string {
	if n == 1 {
		return "1 connection"
	}
	return strconv.Itoa(n) + " connections"
}

func known(q analyze.Quantity) float64 {
	if !q.Known() {
		return 0
	}
	return float64(q)
}

func milliseconds(q analyze.Quantity) string {
	if !q.Known() {
		return "unknown"
	}
	return strconv.FormatFloat(1000*float64(q), 'g', 3, 64) + " ms"
}

func percent(ratio float64) string {
	p := 100 * ratio
	if p > 0 && p < 1 {
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	}
	return strconv.FormatFloat(p, 'f', 0, 64) + " %"
}

// thousands prints a whole number with separators: 104,355.
func thousands(x float64) string {
	s := strconv.FormatFloat(x, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
