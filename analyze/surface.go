package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Surface is what the sweeps of one test at several pipeline depths say
// together: throughput over clients and depth. It compares what was measured;
// it converts nothing, as the knee of one depth does not follow from that of
// another.
type Surface struct {
	Test string `json:"test"`

	// Tolerance is δ, that of the analysis of the smallest depth.
	Tolerance float64 `json:"tolerance_ratio"`

	Depths []DepthKnee `json:"depths"` // by depth, at least two

	// Best is the pair of clients and depth with the highest throughput of
	// any step, as the steps are judged: Step.Adjusted. Of equal ones it is
	// that with the fewest clients, then with the smallest depth. A sweep that
	// was limited by the generator or short of CPU has no part in it; when all
	// were, Best is none.
	Best Pair `json:"best"`

	// Fewest is the pair with the fewest clients that gives the throughput of
	// Best less the tolerance; of equal ones that with the smallest depth. As
	// for a knee, the throughput of Best counts as the plateau X* of its
	// sweep: the highest of several noisy levels is partly luck.
	Fewest Pair `json:"fewest"`

	// Gains is what depth buys at equal in-flight, by depth and in-flight.
	// Empty when no two depths have in-flight values in common.
	Gains []DepthGain `json:"gains"`
}

// A DepthKnee is the outcome of the sweep at one depth.
type DepthKnee struct {
	Depth int `json:"pipeline_depth"` // P

	// Clients is the knee, QPS its throughput in requests/s and InFlight its
	// clients × depth. 0, unknown and 0 when no knee is named.
	Clients  int      `json:"clients"`
	QPS      Quantity `json:"qps"`
	InFlight int      `json:"in_flight"`

	Peak    int      `json:"peak_clients"`
	PeakQPS Quantity `json:"peak_qps"` // requests/s

	Confidence Confidence `json:"confidence"`
	Cause      Cause      `json:"cause"` // what stopped the throughput

	// Mark says in a few words why no knee is named ("generator-bound");
	// empty when one is.
	Mark string `json:"mark"`
}

// A Pair is a number of clients at a pipeline depth, with their throughput.
// Clients and Depth 0 with an unknown QPS are none.
type Pair struct {
	Clients int      `json:"clients"`
	Depth   int      `json:"pipeline_depth"`
	QPS     Quantity `json:"qps"` // requests/s

	// Interpolated is true when that number of clients was not measured. QPS
	// then lies on the line between its two neighbours in a log-log plot.
	Interpolated bool `json:"interpolated"`
}

// A DepthGain compares two depths with as many requests in flight: few clients
// that send many requests at a time, and many that send few.
type DepthGain struct {
	InFlight int `json:"in_flight"` // clients × depth, the same on both sides

	Shallow Pair `json:"shallow"` // at the smallest depth of the surface
	Deep    Pair `json:"deep"`

	// Ratio is the throughput of Deep over that of Shallow: 1 is no gain.
	Ratio float64 `json:"throughput_ratio"`
}

// Surfaces returns a surface for each test that was swept at two or more
// depths, in the order in which the tests first occur; it is never nil.
// Analyses of which nothing was measured have no part in it. Of two analyses of
// one test and depth the first counts.
func Surfaces(all []*Analysis) []Surface {
	var tests []string
	byTest := make(map[string][]*Analysis)
	for _, a := range all {
		sweeps := byTest[a.Test]
		again := slices.ContainsFunc(sweeps, func(b *Analysis) bool { return b.Depth == a.Depth })
		if len(a.Steps) == 0 || again {
			continue
		}
		if len(sweeps) == 0 {
			tests = append(tests, a.Test)
		}
		byTest[a.Test] = append(sweeps, a)
	}
	surfaces := []Surface{}
	for _, test := range tests {
		if sweeps := byTest[test]; len(sweeps) > 1 {
			slices.SortFunc(sweeps, func(a, b *Analysis) int { return cmp.Compare(a.Depth, b.Depth) })
			surfaces = append(surfaces, newSurface(sweeps))
		}
	}
	return surfaces
}

// newSurface returns the surface of sweeps of one test at different depths,
// which must rise.
func newSurface(sweeps []*Analysis) Surface {
	s := Surface{
		Test:      sweeps[0].Test,
		Tolerance: sweeps[0].Tolerance,
		Best:      Pair{QPS: Unknown()},
		Fewest:    Pair{QPS: Unknown()},
		Gains:     []DepthGain{},
	}
	for _, a := range sweeps {
		s.Depths = append(s.Depths, newDepthKnee(a))
	}
	s.choose(sweeps)
	for _, deep := range sweeps[1:] {
		s.Gains = append(s.Gains, gains(sweeps[0], deep)...)
	}
	return s
}

func newDepthKnee(a *Analysis) DepthKnee {
	d := DepthKnee{
		Depth:      a.Depth,
		QPS:        Unknown(),
		Peak:       a.Knee.Peak,
		PeakQPS:    a.Knee.PeakQPS,
		Confidence: a.Knee.Confidence,
		Cause:      a.Bottleneck.Cause,
	}
	if a.Answer {
		d.Clients, d.QPS, d.InFlight = a.Knee.Clients, a.Knee.QPS, a.Knee.Clients*a.Depth
		return d
	}
	// What stands behind the colon is said where the sweep is reported.
	d.Mark, _, _ = strings.Cut(a.Reason, ":")
	return d
}

// serverOwn reports whether the sweep shows the server: neither the generator
// nor a shared CPU was its limit.
func (d DepthKnee) serverOwn() bool {
	return d.Cause != CauseGenerator && d.Cause != CauseSharedCPU
}

// choose sets Best and Fewest.
func (s *Surface) choose(sweeps []*Analysis) {
	var pairs []Pair
	plateau := make(map[int]Quantity) // by depth
	for i, a := range sweeps {
		if !s.Depths[i].serverOwn() {
			continue
		}
		plateau[a.Depth] = a.Knee.Plateau
		for _, step := range a.Steps {
			pairs = append(pairs, Pair{Clients: step.Clients, Depth: a.Depth, QPS: Quantity(step.Adjusted)})
		}
	}
	if len(pairs) == 0 {
		return
	}
	fewer := func(a, b Pair) int {
		return cmp.Or(cmp.Compare(a.Clients, b.Clients), cmp.Compare(a.Depth, b.Depth))
	}
	s.Best = slices.MinFunc(pairs, func(a, b Pair) int {
		return cmp.Or(cmp.Compare(b.QPS, a.QPS), fewer(a, b))
	})
	highest := s.Best.QPS
	if x := plateau[s.Best.Depth]; x < highest {
		highest = x
	}
	enough := highest * Quantity(1-s.Tolerance)
	s.Fewest = slices.MinFunc(slices.DeleteFunc(pairs, func(p Pair) bool { return p.QPS < enough }), fewer)
}

// gains compares two sweeps at each in-flight value that one of them measured,
// that lies within the range of both and that is a whole number of clients at
// both depths. Nothing is extrapolated.
func gains(shallow, deep *Analysis) []DepthGain {
	a, b := inFlightCurve(shallow), inFlightCurve(deep)
	values := slices.Concat(a.inFlight, b.inFlight)
	slices.Sort(values)
	var g []DepthGain
	for _, v := range slices.Compact(values) {
		at := int(v)
		if !a.covers(v) || !b.covers(v) || at%shallow.Depth != 0 || at%deep.Depth != 0 {
			continue
		}
		x, y := a.at(v), b.at(v)
		g = append(g, DepthGain{InFlight: at, Shallow: x, Deep: y, Ratio: float64(y.QPS / x.QPS)})
	}
	return g
}

// A sweptRange is the throughput of one sweep over the requests in flight.
type sweptRange struct {
	depth    int
	inFlight []float64 // rising
	qps      []float64 // requests/s
}

func inFlightCurve(a *Analysis) sweptRange {
	r := sweptRange{depth: a.Depth}
	for _, s := range a.Steps {
		r.inFlight = append(r.inFlight, float64(s.InFlight))
		r.qps = append(r.qps, s.Adjusted)
	}
	return r
}

func (r sweptRange) covers(inFlight float64) bool {
	return r.inFlight[0] <= inFlight && inFlight <= r.inFlight[len(r.inFlight)-1]
}

func (r sweptRange) at(inFlight float64) Pair {
	i, measured := slices.BinarySearch(r.inFlight, inFlight)
	p := Pair{Clients: int(inFlight) / r.depth, Depth: r.depth, Interpolated: !measured}
	if measured {
		p.QPS = Quantity(r.qps[i])
	} else {
		p.QPS = Quantity(interpolate(r.inFlight, r.qps, inFlight))
	}
	return p
}

// Sentences returns in plain words the best pair, the knee of each depth, what
// depth buys, and what may not be concluded from it.
func (s Surface) Sentences() []string {
	text := []string{s.bestSentence()}
	for _, d := range s.Depths {
		if !d.serverOwn() {
			text = append(text, fmt.Sprintf("Not counted: depth %d (%s), where %s requests/s; the server may be able to do more there.",
				d.Depth, d.Mark, gives(d.Peak, float64(d.PeakQPS))))
		}
	}
	text = append(text, s.kneesSentence())
	for _, d := range s.Depths[1:] {
		text = append(text, s.gainSentence(d))
	}
	return append(text, fmt.Sprintf("Depth is the application's choice: a sweep at depth %d says nothing about a pool of "+
		"an application that sends one request at a time, and a knee is never converted from one depth to another.",
		s.Depths[len(s.Depths)-1].Depth))
}

func (s Surface) bestSentence() string {
	if s.Best.Clients == 0 {
		return "Best pair: none can be named, as no depth shows the limit of the server."
	}
	text := fmt.Sprintf("Best pair: %s %s requests/s, the highest throughput of all depths", s.Best.give(), thousands(float64(s.Best.QPS)))
	if mark := s.depth(s.Best.Depth).Mark; mark != "" {
		text += fmt.Sprintf(" (but that sweep names no knee: %s)", mark)
	}
	if s.Fewest == s.Best {
		return text + fmt.Sprintf("; no fewer connections come within %s of it.", percent(Quantity(s.Tolerance)))
	}
	return text + fmt.Sprintf("; %s %s of it with the fewest connections.", s.Fewest.give(), percent(s.Fewest.QPS/s.Best.QPS))
}

func (s Surface) kneesSentence() string {
	var knees []string
	for _, d := range s.Depths {
		if d.Clients == 0 {
			knees = append(knees, fmt.Sprintf("none at depth %d (%s)", d.Depth, d.Mark))
			continue
		}
		knees = append(knees, fmt.Sprintf("%s at depth %d (%d in flight)", count(d.Clients, "client"), d.Depth, d.InFlight))
	}
	return "Knee by depth: " + strings.Join(knees, "; ") + "."
}

// gainSentence says what depth d buys, at the largest in-flight in common with
// the smallest depth and at the smallest.
func (s Surface) gainSentence(d DepthKnee) string {
	var common []DepthGain
	for _, g := range s.Gains {
		if g.Deep.Depth == d.Depth {
			common = append(common, g)
		}
	}
	shallow := s.Depths[0]
	if len(common) == 0 {
		return fmt.Sprintf("Depth %d buys: not known, as depths %d and %d were not measured with as many requests in flight; "+
			"more clients at one or fewer at the other would tell.", d.Depth, shallow.Depth, d.Depth)
	}
	clauses := []string{common[len(common)-1].clause()}
	if len(common) > 1 {
		clauses = append(clauses, common[0].clause())
	}
	text := fmt.Sprintf("Depth %d buys: %s", d.Depth, strings.Join(clauses, "; "))
	for _, side := range []DepthKnee{shallow, d} {
		if !side.serverOwn() {
			text += fmt.Sprintf("; depth %d is %s, so that is not the gain of the server alone", side.Depth, side.Mark)
		}
	}
	return text + "."
}

func (g DepthGain) clause() string {
	note := ""
	for _, p := range []Pair{g.Shallow, g.Deep} {
		if p.Interpolated {
			note = fmt.Sprintf(", depth %d interpolated", p.Depth)
		}
	}
	return fmt.Sprintf("with %d in flight, %s %.2f times the throughput of %s (%s against %s requests/s%s)",
		g.InFlight, g.Deep.give(), g.Ratio, g.Shallow,
		thousands(float64(g.Deep.QPS)), thousands(float64(g.Shallow.QPS)), note)
}

// depth returns the row of that depth, which must exist.
func (s Surface) depth(depth int) DepthKnee {
	i := slices.IndexFunc(s.Depths, func(d DepthKnee) bool { return d.Depth == depth })
	return s.Depths[i]
}

// String returns "16 clients at depth 1".
func (p Pair) String() string {
	return fmt.Sprintf("%s at depth %d", count(p.Clients, "client"), p.Depth)
}

// give returns "16 clients at depth 1 give".
func (p Pair) give() string {
	if p.Clients == 1 {
		return p.String() + " gives"
	}
	return p.String() + " give"
}
