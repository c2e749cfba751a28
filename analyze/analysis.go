package analyze

import (
	"cmp"
	"fmt"
	"slices"
)

// An Analysis is everything that is concluded from one Curve. It holds the
// rows to print as well, so that a report needs nothing else.
type Analysis struct {
	Test      string  `json:"test"`
	Depth     int     `json:"pipeline_depth"`
	Node      string  `json:"node,omitempty"`  // of a cluster, when the curve is that of one node
	Tolerance float64 `json:"tolerance_ratio"` // δ
	Goal      Goal    `json:"goal"`

	// Answer is true when a knee is named that may be acted on. It is true
	// for curves with one trial a step as well, whose confidence is NONE.
	Answer bool `json:"answer"`

	// Reason says why there is no answer, a clause; empty when there is one.
	Reason string `json:"reason"`

	// RoundTrip is the shortest round trip to the idle server, R_min, in
	// seconds, and IdleClients X*·R_min, the connections that would be busy
	// at the plateau's throughput if no request ever waited. Both are unknown
	// when the round trip is; see Little (1961).
	RoundTrip   Quantity `json:"idle_round_trip_s"`
	IdleClients Quantity `json:"idle_clients"`

	Steps          []Step         `json:"steps"` // by clients
	Noise          Noise          `json:"noise"`
	Knee           Knee           `json:"knee"`
	USL            USL            `json:"usl"`
	Bottleneck     Bottleneck     `json:"bottleneck"`
	Recommendation Recommendation `json:"recommendation"`
	Warnings       []Warning      `json:"warnings"`

	// Next is what would make the answer better, as the function Next says;
	// empty when the curve is not the server's, for then nothing of that
	// kind would.
	Next Proposal `json:"next"`
}

// A Step is one row: the median trial of a step, as it was measured. With an
// even number of trials it is the lower of the middle two, so that a row is
// always one real trial whose latency and CPU belong to its throughput.
type Step struct {
	Clients  int `json:"clients"`
	InFlight int `json:"in_flight"` // clients × pipeline depth
	Trials   int `json:"trials"`    // K, those that could be used

	// MedianTrial is the index of the row's trial in Point.Trials.
	MedianTrial int `json:"median_trial"`

	QPS float64 `json:"qps"` // requests/s

	// Adjusted is what the step is judged by: the median of its trials with
	// the pass effect taken out, in requests/s. Where the machine changed its
	// speed between the passes, rows compare by it and not by QPS.
	Adjusted float64 `json:"adjusted_qps"`

	// Spread is how far the trials lie apart, highest less lowest over QPS;
	// unknown with one trial.
	Spread Quantity `json:"spread_ratio"`

	// Gain is how much of what a linear system would have gained since the
	// previous step was gained: 1 is linear, 0 is flat, negative is a loss.
	// Unknown for the first step.
	Gain Quantity `json:"gain_ratio"`

	Mean Quantity `json:"mean_s"`
	P50  Quantity `json:"p50_s"`
	P99  Quantity `json:"p99_s"`
	P999 Quantity `json:"p999_s"`

	ServerMain   Quantity `json:"server_main_cores"`
	ServerCPU    Quantity `json:"server_cores"`
	GeneratorCPU Quantity `json:"generator_cores"`
	HostCPU      Quantity `json:"host_cores"`

	// Invalid holds the codes of the validity gates that any of the trials
	// failed, sorted.
	Invalid []string `json:"invalid"`
}

// Analyze concludes from c what can be concluded. It is pure: one curve and
// one set of options always give the same Analysis. Points and trials may come
// in any order; those that cannot be used are left out with a warning.
func Analyze(c Curve, o Options) *Analysis {
	t := newTable(c)
	a := &Analysis{
		Test:      c.Test,
		Depth:     t.depth,
		Node:      c.Node,
		Tolerance: o.tolerance(),
		Goal:      cmp.Or(o.Goal, GoalKnee),
		Noise:     t.noise,

		RoundTrip: Unknown(), IdleClients: Unknown(),
	}
	if len(t.points) == 0 {
		a.Reason = "nothing was measured"
		a.Knee = unknownKnee()
		a.USL = t.usl()
		a.Bottleneck = Bottleneck{Cause: CauseUnknown}
		a.Recommendation = recommend(c, a.Knee, o)
		if t.dropped > 0 {
			a.Warnings = []Warning{t.unusable()}
		}
		a.fillLists()
		return a
	}
	f, r := t.find(a.Tolerance)
	gates := t.gateWarnings(f)
	a.Steps = t.steps()
	a.Knee = t.knee(f, a.Tolerance)
	a.USL = t.usl()
	if c.IdleRoundTrip > 0 {
		a.RoundTrip = Quantity(c.IdleRoundTrip)
		a.IdleClients = a.Knee.Plateau * a.RoundTrip / Quantity(t.depth)
	}
	a.Bottleneck = t.bottleneck(f)
	contested := t.contested(&a.Knee, f, r, gates)
	if cause := a.Bottleneck.Cause; cause != CauseGenerator && cause != CauseSharedCPU {
		a.Next = t.next(f, a.Knee, contested)
	}
	a.Reason = a.refusal()
	a.Answer = a.Reason == ""
	if !a.Answer {
		a.Knee.withdraw()
	}
	a.Recommendation = recommend(c, a.Knee, o)
	a.Warnings = append(a.warnings(t, f, contested, c.Limit), gates...)
	a.fillLists()
	return a
}

// fillLists makes lists without entries empty instead of nil, so that they are
// [] in JSON and not null, which would mean unknown.
func (a *Analysis) fillLists() {
	fill(&a.Steps)
	fill(&a.Warnings)
	fill(&a.Bottleneck.Evidence)
	for i := range a.Steps {
		fill(&a.Steps[i].Invalid)
	}
	for _, levels := range []*[]int{&a.Next.Extend, &a.Next.Below, &a.Next.Between, &a.Next.Repeat} {
		fill(levels)
	}
	fill(&a.Next.Why)
}

func fill[E any](list *[]E) {
	if *list == nil {
		*list = []E{}
	}
}

// tolerance returns δ.
func (o Options) tolerance() float64 { return cmp.Or(o.Tolerance, 0.05) }

// refusal says why no knee may be named, "" when one may. A curve that is not
// the server's comes first: more levels or trials would not mend it.
func (a *Analysis) refusal() string {
	last := a.Steps[len(a.Steps)-1].Clients
	switch {
	case a.Bottleneck.Cause == CauseGenerator:
		return "generator-bound: " + a.Bottleneck.Evidence[0]
	case a.Bottleneck.Cause == CauseSharedCPU:
		return "short of CPU: " + a.Bottleneck.Evidence[0]
	case a.Noise.Sigma > tooNoisySigma:
		return fmt.Sprintf("too noisy: the trials of a step scatter by σ = %.1f %%, and a knee needs %s or less",
			100*a.Noise.Sigma, percent(tooNoisySigma))
	case len(a.Steps) == 1:
		return fmt.Sprintf("only one level, %s, was measured", count(last, "client"))
	case a.Knee.Shape == ShapeRising:
		return fmt.Sprintf("still rising at %s", count(last, "client"))
	case a.Knee.Shape == ShapeUnconfirmed:
		return fmt.Sprintf("unconfirmed: too few levels above %s to say that the throughput stays flat", count(a.Knee.Apparent, "client"))
	}
	return ""
}

// steps returns the rows.
func (t *table) steps() []Step {
	steps := make([]Step, len(t.points))
	for i, p := range t.points {
		j := t.representative(i)
		trial := p.Trials[j]
		s := Step{
			Clients:      p.Clients,
			InFlight:     p.Clients * t.depth,
			Trials:       len(p.Trials),
			MedianTrial:  t.indexes[i][j],
			QPS:          trial.QPS,
			Adjusted:     t.y[i],
			Spread:       Unknown(),
			Gain:         Unknown(),
			Mean:         trial.Mean,
			P50:          trial.P50,
			P99:          trial.P99,
			P999:         trial.P999,
			ServerMain:   trial.Load.ServerMain,
			ServerCPU:    trial.Load.ServerCPU,
			GeneratorCPU: trial.Load.GeneratorCPU,
			HostCPU:      trial.Load.HostCPU,
		}
		low, high := trial.QPS, trial.QPS
		for _, other := range p.Trials {
			low, high = min(low, other.QPS), max(high, other.QPS)
			s.Invalid = append(s.Invalid, other.Invalid...)
		}
		slices.Sort(s.Invalid)
		s.Invalid = slices.Compact(s.Invalid)
		if len(p.Trials) > 1 {
			s.Spread = Quantity((high - low) / trial.QPS)
		}
		if i > 0 {
			before := steps[i-1]
			linear := float64(s.Clients)/float64(before.Clients) - 1
			s.Gain = Quantity((s.Adjusted/before.Adjusted - 1) / linear)
		}
		steps[i] = s
	}
	return steps
}

// representative returns the index of the trial that stands for step i: the
// one with the median QPS as measured, the lower of the middle two when their
// number is even.
func (t *table) representative(i int) int {
	trials := t.points[i].Trials
	order := make([]int, len(trials))
	for j := range order {
		order[j] = j
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(trials[a].QPS, trials[b].QPS) })
	return order[(len(order)-1)/2]
}

func (t *table) representativeTrial(i int) Trial {
	return t.points[i].Trials[t.representative(i)]
}

// notInFlight reports whether Little's law says that the clients of step i did
// not keep their requests in flight, or that its latency is of something else.
// False when the mean latency is unknown, and for pipelined requests: there a
// request waits for its batch after its own reply has come, so that the mean
// latency of requests says too little. Trials made of slices have passed the
// gate itself.
//
// See Little (1961), "A Proof for the Queuing Formula: L = λW".
func (t *table) notInFlight(i int) bool {
	trial := t.representativeTrial(i)
	if t.depth > 1 || len(trial.Slices) > 0 {
		return false
	}
	share := Quantity(float64(trial.Mean) * trial.QPS / t.n[i])
	return outsideLittle(share)
}
