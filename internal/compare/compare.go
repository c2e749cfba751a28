// Package compare holds one run against another: which steps changed, by how
// much, whether that is more than noise, and what else was different. It
// judges from curves and their analyses and prints nothing; package report
// prints a Comparison, and the command decides about the exit code with
// Condition.
//
// # Method
//
// All is done with ln x, because noise multiplies a throughput or a latency.
//
// A step: the change is the ratio of the medians of its trials. Three trials
// alone tell little, so the noise σ of one trial is pooled over the steps of a
// run (the within-group mean square of an analysis of variance). The variance
// of a median of K trials is taken as σ²/K for K ≤ 2, where it is the mean,
// and else as its large-sample form σ²·π/(2K), which for few trials is a
// little wide (David and Nagaraja, "Order Statistics", 2003). The interval of
// the difference is Welch's (1947), its level raised by Bonferroni's
// inequality so that all steps of a sweep together are covered with 95 %.
// Trials are taken as they were measured: the changes of the machine's speed
// that package analyze takes out within a run are just what two runs differ by.
//
// The whole sweep: steps of a pass share the mood of the machine, so steps are
// not independent and trials are. The k-th trials of all steps that both runs
// have are a round; the rounds of the two runs are compared by Welch's t-test.
//
// Where server and generator share a machine, its speed shows in what the
// generator reached against the null responder. What that moved by between the
// runs is added to both ends of every interval. Where cores are taken away, the
// slowest requests grow slower out of all proportion: of a p99 nothing is said
// when that speed moved by more than a fifth.
//
// Beside that stands p of the Mann-Whitney U test, which assumes no
// distribution, as in benchstat. A change is significant when its interval
// leaves zero out and, where there are trials enough for Mann-Whitney to reach
// .05, p is below that.
package compare

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/sweep"
)

// A Run is what was measured and concluded, from one file or folder.
type Run struct {
	Name   string        // of the file, for print
	Header *sweep.Header // nil when it comes from another tool

	// Curves and Analyses belong together, one for each test and depth.
	Curves   []analyze.Curve
	Analyses []*analyze.Analysis
}

// A Comparison holds runs against the first of them. Its JSON form is that of
// compare --format json.
type Comparison struct {
	Pairs []Pair `json:"pairs"` // one for each run but the first
}

// A Pair is an old and a new run.
type Pair struct {
	Old Origin `json:"old"`
	New Origin `json:"new"`

	// Differences is what differs beside the numbers, and can therefore be
	// the reason of a change.
	Differences []Difference `json:"differences"`

	// Sweeps are the tests and depths that both runs have, in the order of
	// the old one.
	Sweeps []Sweep `json:"sweeps"`

	Warnings []analyze.Warning `json:"warnings"`
}

// An Origin says which run it was. All but the name is empty when the run comes
// from another tool.
type Origin struct {
	Name    string    `json:"name"` // of the file
	Started time.Time `json:"started,omitzero"`
	Server  string    `json:"server,omitempty"` // kind and version
}

// A Sweep is one test at one pipeline depth in both runs.
type Sweep struct {
	Test  string `json:"test"`
	Depth int    `json:"pipeline_depth"`

	// Steps are those of either run, by clients; what was measured in one run
	// only has no change.
	Steps []Step `json:"steps"`

	// QPS and P99 are the changes over all steps that both runs have. Their
	// medians are not medians but geometric means over all rounds, so they
	// have no interval of their own. They rest on Common steps.
	QPS    Change `json:"all_qps"`
	P99    Change `json:"all_p99_s"`
	Common int    `json:"common_steps"`

	Old Verdict `json:"old"`
	New Verdict `json:"new"`

	Warnings []analyze.Warning `json:"warnings"`
}

// A Step is one number of clients.
type Step struct {
	Clients int    `json:"clients"`
	QPS     Change `json:"qps"`
	P99     Change `json:"p99_s"`
}

// A Change is one quantity in two runs.
type Change struct {
	Old Sample `json:"old"`
	New Sample `json:"new"`

	// Ratio is new over old, less 1: 0.05 is five percent more. Low and High
	// are the ends of its 95 % interval, for steps together with the other
	// steps of the sweep. Low and High are unknown when no step of one of the
	// runs has two trials, and of P99 when the machine changed its speed too
	// much.
	Ratio analyze.Quantity `json:"change_ratio"`
	Low   analyze.Quantity `json:"change_low_ratio"`
	High  analyze.Quantity `json:"change_high_ratio"`

	// P is the p value of the Mann-Whitney U test; unknown when one side has
	// no trial.
	P analyze.Quantity `json:"mann_whitney_p"`

	// Reachable is true when there are trials enough for P to be .05 or less.
	Reachable bool `json:"p_reachable"`

	Significant bool `json:"significant"`
}

// A Sample is what the trials of one side say, in the unit of the quantity.
type Sample struct {
	Median analyze.Quantity `json:"median"`

	// Low and High are the ends of the 95 % interval of the median, by order
	// statistics: unknown with fewer than six trials.
	Low  analyze.Quantity `json:"low"`
	High analyze.Quantity `json:"high"`

	Trials int `json:"trials"`
}

// A Verdict is what was concluded from one side.
type Verdict struct {
	// Knee and the ends of its 95 % range are in clients; all are 0 when no
	// knee is named, and Reason says why.
	Knee   int    `json:"knee_clients"`
	Low    int    `json:"low_clients"`
	High   int    `json:"high_clients"`
	Reason string `json:"reason"`

	Peak    int              `json:"peak_clients"`
	PeakQPS analyze.Quantity `json:"peak_qps"`

	Confidence analyze.Confidence `json:"confidence"`
	Cause      analyze.Cause      `json:"stopped_by"`
	Pool       int                `json:"pool"` // 0: none is recommended
}

// Runs compares each run with the first. There must be two at least.
func Runs(runs []Run) *Comparison {
	c := new(Comparison)
	for _, r := range runs[1:] {
		c.Pairs = append(c.Pairs, pair(runs[0], r))
	}
	return c
}

func pair(old, new Run) Pair {
	p := Pair{Old: old.origin(), New: new.origin(), Differences: differences(old.Header, new.Header)}
	for i, c := range old.Curves {
		j := slices.IndexFunc(new.Curves, func(other analyze.Curve) bool { return same(c, other) })
		if j < 0 {
			continue
		}
		s := compareCurves(c, new.Curves[j])
		s.Old, s.New = verdict(old.Analyses[i]), verdict(new.Analyses[j])
		s.warn(old.Analyses[i], new.Analyses[j], speed(c, new.Curves[j]))
		p.Sweeps = append(p.Sweeps, s)
	}
	p.warn(old, new)
	return p
}

func (r Run) origin() Origin {
	o := Origin{Name: r.Name}
	if r.Header != nil {
		o.Started, o.Server = r.Header.Started, r.Header.Server.Title()
	}
	return o
}

// same reports whether two curves are of the same test at the same depth. Tools
// write the names of tests in small letters or in capitals.
func same(a, b analyze.Curve) bool {
	return strings.EqualFold(a.Test, b.Test) && max(1, a.Depth) == max(1, b.Depth)
}

func verdict(a *analyze.Analysis) Verdict {
	return Verdict{
		Knee: a.Knee.Clients, Low: a.Knee.Low, High: a.Knee.High, Reason: a.Reason,
		Peak: a.Knee.Peak, PeakQPS: a.Knee.PeakQPS,
		Confidence: a.Knee.Confidence, Cause: a.Bottleneck.Cause, Pool: a.Recommendation.Pool,
	}
}

// compareCurves fills in all that follows from the trials.
func compareCurves(old, new analyze.Curve) Sweep {
	s := Sweep{Test: old.Test, Depth: max(1, old.Depth)}
	points := align(old, new)
	for _, p := range points {
		s.Steps = append(s.Steps, Step{Clients: p.clients})
		if len(p.old) > 0 && len(p.new) > 0 {
			s.Common++
		}
	}
	moved := speed(old, new).margin()
	for _, m := range metrics {
		margin := moved
		if m.tail && moved > maxMoved {
			margin = math.Inf(1)
		}
		changes := stepChanges(points, m.of, margin)
		for i := range s.Steps {
			*m.step(&s.Steps[i]) = changes[i]
		}
		*m.all(&s) = wholeChange(points, m.of, margin)
	}
	return s
}

// A metric is a quantity that is compared: where it is in a trial, and where
// its changes go.
type metric struct {
	name string // in a Condition
	tail bool   // it is of a few slow requests: see maxMoved
	of   func(analyze.Trial) analyze.Quantity
	step func(*Step) *Change
	all  func(*Sweep) *Change
}

var metrics = []metric{
	{
		name: "qps",
		of:   func(t analyze.Trial) analyze.Quantity { return analyze.Quantity(t.QPS) },
		step: func(s *Step) *Change { return &s.QPS },
		all:  func(s *Sweep) *Change { return &s.QPS },
	},
	{
		name: "p99", tail: true,
		of:   func(t analyze.Trial) analyze.Quantity { return t.P99 },
		step: func(s *Step) *Change { return &s.P99 },
		all:  func(s *Sweep) *Change { return &s.P99 },
	},
}

// A point is the trials of both runs at one number of clients; none where a run
// has not been there.
type point struct {
	clients  int
	old, new []analyze.Trial
}

// align brings the points of two curves together, by clients.
func align(old, new analyze.Curve) []point {
	var points []point
	at := func(clients int) *point {
		i := slices.IndexFunc(points, func(p point) bool { return p.clients == clients })
		if i < 0 {
			i = len(points)
			points = append(points, point{clients: clients})
		}
		return &points[i]
	}
	for _, p := range old.Points {
		q := at(p.Clients)
		q.old = append(q.old, p.Trials...)
	}
	for _, p := range new.Points {
		q := at(p.Clients)
		q.new = append(q.new, p.Trials...)
	}
	slices.SortFunc(points, func(a, b point) int { return cmp.Compare(a.clients, b.clients) })
	return points
}
