package sweep

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep/load"
)

// A Result is what a run has measured: the contents of a result file.
type Result struct {
	Header       Header
	Slices       []Slice // in the order in which they were measured
	Calibrations []Calibration
	RoundTrips   []RoundTrip
	RateTrials   []RateTrial
}

// A Header says what was measured, on what and by what. It holds no secret,
// no path and no name of the machine.
type Header struct {
	Schema  string    `json:"schema"` // "poolsweep/1"
	Build   string    `json:"build"`  // version of poolsweep
	Started time.Time `json:"started"`

	Target   string         `json:"target"`             // URL without a password
	Embedded string         `json:"embedded,omitempty"` // program, when the server was the run's own
	RESP3    bool           `json:"resp3,omitempty"`    // what the connections of the load speak
	Tracking bool           `json:"tracking,omitempty"` // and that they asked for client-side caching
	Server   probe.Identity `json:"server"`
	Host     Host           `json:"host"`
	Plan     Plan           `json:"plan"`

	// Prefix stands before every key of the run.
	Prefix string `json:"key_prefix"`

	// Limit names what bounds the number of clients and Clients the bound.
	Limit   string `json:"limit"`
	Clients int    `json:"limit_clients"`
}

// A Host is the machine that the generator ran on.
type Host struct {
	OS    string `json:"os"`
	Arch  string `json:"arch"`
	Cores int    `json:"cores"`
	Go    string `json:"go"`
}

// A Slice is the smallest piece of measuring: one step, driven for a moment in
// one pass.
type Slice struct {
	Test string `json:"test"`
	Pass int    `json:"pass"` // over the steps of the sweep, from 1

	Measurement *load.Measurement `json:"measurement"`
	Window      *probe.Window     `json:"window"`

	// Invalid holds the codes of the validity gates that the slice failed.
	Invalid []string `json:"invalid,omitempty"`

	// Guard names the guard that the slice has passed, which ended the sweep
	// below its level; empty for none.
	Guard string `json:"guard,omitempty"`

	// Superseded is true when the slice was measured again, because it
	// failed a gate or was too short. It is kept, but is in no trial.
	Superseded bool `json:"superseded,omitempty"`
}

// A Calibration is what the generator reached against a null responder in one
// pass of a sweep.
type Calibration struct {
	Test  string  `json:"test"`
	Depth int     `json:"depth"`
	Pass  int     `json:"pass"`
	Loops int     `json:"loops"` // event loops
	QPS   float64 `json:"qps"`   // of all of them
}

// A RoundTrip is what a PING to the idle server took before a sweep.
type RoundTrip struct {
	Test  string `json:"test"` // name of the workload
	Depth int    `json:"depth"`
	probe.RoundTrips
}

// A Sweep is one test at one pipeline depth: the slices that belong to one
// curve.
type Sweep struct {
	Test   string
	Depth  int
	Slices []Slice // without those superseded

	// ceilings is what one event loop can reach, by pass.
	ceilings map[int]float64
}

// Sweeps returns the sweeps in the order in which they were begun.
func (r *Result) Sweeps() []Sweep {
	var sweeps []Sweep
	for _, s := range r.Slices {
		i := slices.IndexFunc(sweeps, func(w Sweep) bool {
			return w.Test == s.Test && w.Depth == s.Measurement.Depth
		})
		if i < 0 {
			i = len(sweeps)
			sweeps = append(sweeps, Sweep{
				Test: s.Test, Depth: s.Measurement.Depth,
				ceilings: r.calibrations(s.Test, s.Measurement.Depth),
			})
		}
		if !s.Superseded {
			sweeps[i].Slices = append(sweeps[i].Slices, s)
		}
	}
	return slices.DeleteFunc(sweeps, func(w Sweep) bool { return len(w.Slices) == 0 })
}

// begunAfter reports whether a sweep was begun that comes after that of the
// workload-th workload and the depth-th depth of a plan.
func (r *Result) begunAfter(p Plan, workload, depth int) bool {
	first := ""
	if len(p.Vary.Values) > 0 {
		first = p.Vary.Values[0]
	}
	for i, w := range p.Workloads[workload:] {
		for j, d := range p.Depths {
			if (i > 0 || j > depth) && slices.ContainsFunc(r.Slices, func(s Slice) bool {
				return s.Test == p.sweepName(w, first) && s.Measurement.Depth == d
			}) {
				return true
			}
		}
	}
	return false
}

// calibrations returns what one event loop could reach in each pass of a sweep.
func (r *Result) calibrations(test string, depth int) map[int]float64 {
	byPass := make(map[int]float64)
	for _, c := range r.Calibrations {
		if c.Test == test && c.Depth == depth {
			byPass[c.Pass] = c.QPS / float64(max(1, c.Loops))
		}
	}
	return byPass
}

// Curves returns the curve of each sweep, for package analyze.
func (r *Result) Curves() []analyze.Curve {
	var curves []analyze.Curve
	for _, w := range r.Sweeps() {
		c := curve(w, r.Header.Plan.Slices, r.Header.Server.Local)
		c.Nodes = len(r.Header.Server.Nodes)
		if r.Header.limited(c.Points[len(c.Points)-1].Clients) {
			c.Limit = r.Header.Limit
		}
		c.IdleRoundTrip = r.idleRoundTrip(c)
		for _, s := range w.Slices {
			if s.Guard != "" {
				c.Limit = s.Guard
			}
		}
		curves = append(curves, c)
	}
	return curves
}

// limited reports whether the limit kept a sweep from more than last clients:
// it was reached, or planned levels lie beyond it.
func (h Header) limited(last int) bool {
	planned := h.Plan.Clients
	return h.Clients > 0 && (last >= h.Clients || len(planned) > 0 && planned[len(planned)-1] > h.Clients)
}

// A Trial is the slices of one step in consecutive passes, merged.
type Trial struct {
	Slices      []Slice
	Measurement *load.Measurement
	Window      *probe.Window
}

// Trials returns the trials of each step, by clients: per slices each, in the
// order of their passes. The slices that are left over make a trial only when
// a step has no whole one (of a run that was interrupted).
func (w Sweep) Trials(per int) map[int][]Trial {
	steps := make(map[int][]Slice)
	for _, s := range w.Slices {
		steps[s.Measurement.Clients] = append(steps[s.Measurement.Clients], s)
	}
	trials := make(map[int][]Trial)
	for clients, all := range steps {
		slices.SortStableFunc(all, func(a, b Slice) int { return a.Pass - b.Pass })
		for group := range slices.Chunk(all, max(1, per)) {
			if len(group) == per || len(trials[clients]) == 0 {
				trials[clients] = append(trials[clients], merge(group))
			}
		}
	}
	return trials
}

// merge makes a trial of slices of one step.
func merge(group []Slice) Trial {
	t := Trial{Slices: group, Measurement: group[0].Measurement.Clone()}
	if w := group[0].Window; w != nil {
		t.Window = w.Clone()
	}
	for _, s := range group[1:] {
		_ = t.Measurement.Merge(s.Measurement) // the steps are the same
		if t.Window != nil && s.Window != nil {
			t.Window.Merge(s.Window)
		}
	}
	t.Measurement.Pack()
	return t
}

// curve turns a sweep into what package analyze judges.
func curve(w Sweep, per int, local bool) analyze.Curve {
	c := analyze.Curve{Test: w.Test, Depth: w.Depth}
	steps := w.Trials(per)
	for _, clients := range slices.Sorted(maps.Keys(steps)) {
		p := analyze.Point{Clients: clients}
		for _, t := range steps[clients] {
			trial := analyzeTrial(t, per, local)
			trial.Load.GeneratorCeiling = ceiling(t, w.ceilings)
			loadOfAgents(&trial, t.Measurement)
			p.Trials = append(p.Trials, trial)
		}
		c.Points = append(c.Points, p)
	}
	markHitRatios(c.Points, steps)
	return c
}

// idleRoundTrip returns the shortest idle round trip before a sweep, in seconds;
// 0 when it is unknown.
func (r *Result) idleRoundTrip(c analyze.Curve) float64 {
	shortest := time.Duration(0)
	for _, t := range r.RoundTrips {
		of := c.Test == t.Test || strings.HasPrefix(c.Test, t.Test+", ") // with the value of a setting
		if of && t.Depth == c.Depth && t.Min > 0 && (shortest == 0 || t.Min < shortest) {
			shortest = t.Min
		}
	}
	return shortest.Seconds()
}

// NodeCurves returns the curve of each master of a cluster, with its own
// clients; none for a single server.
func (r *Result) NodeCurves(w Sweep) []analyze.Curve {
	var curves []analyze.Curve
	for i, node := range w.Slices[0].Measurement.Nodes {
		c := analyze.Curve{Test: w.Test, Depth: w.Depth, Node: node.Name}
		steps := w.Trials(r.Header.Plan.Slices)
		for _, clients := range slices.Sorted(maps.Keys(steps)) {
			p := analyze.Point{Clients: steps[clients][0].Measurement.Nodes[i].Clients}
			for _, t := range steps[clients] {
				p.Trials = append(p.Trials, nodeTrial(t, i))
			}
			// Neighbouring steps of a sweep can be the same for a node.
			if n := len(c.Points); n > 0 && c.Points[n-1].Clients == p.Clients {
				c.Points[n-1].Trials = append(c.Points[n-1].Trials, p.Trials...)
				continue
			}
			c.Points = append(c.Points, p)
		}
		curves = append(curves, c)
	}
	return curves
}

// nodeTrial is what one master has done in a trial.
func nodeTrial(t Trial, node int) analyze.Trial {
	part := t.Measurement.Nodes[node]
	out := latencies(part.Latency)
	out.QPS = float64(part.Requests) / t.Measurement.Elapsed.Seconds()
	out.Load = analyze.UnknownLoad()
	if t.Window != nil {
		for _, n := range t.Window.Nodes {
			if n.Addr == part.Name {
				out.Load.ServerMain = mainThread(n)
			}
		}
	}
	for _, s := range t.Slices {
		n := s.Measurement.Nodes[node]
		out.Slices = append(out.Slices, analyze.Slice{Pass: s.Pass, QPS: float64(n.Requests) / s.Measurement.Elapsed.Seconds()})
		out.Invalid = append(out.Invalid, s.Invalid...)
	}
	slices.Sort(out.Invalid)
	out.Invalid = slices.Compact(out.Invalid)
	return out
}

// markHitRatios marks the trials of a curve, made of those of steps, whose hit
// ratio differs from that of the others.
func markHitRatios(points []analyze.Point, steps map[int][]Trial) {
	var ratios []analyze.Quantity
	for _, p := range points {
		for _, t := range steps[p.Clients] {
			ratios = append(ratios, hitRatio(t))
		}
	}
	differ := analyze.HitRatiosDiffer(ratios)
	for _, p := range points {
		for i := range p.Trials {
			if differ[i] {
				p.Trials[i].Invalid = append(p.Trials[i].Invalid, analyze.GateHitRatio)
			}
		}
		differ = differ[len(p.Trials):]
	}
}

// ceiling returns the median of what the trial's event loops could reach in its
// passes. A step with fewer clients than loops uses fewer loops.
func ceiling(t Trial, byPass map[int]float64) analyze.Quantity {
	var qps []float64
	for _, s := range t.Slices {
		if x, ok := byPass[s.Pass]; ok {
			qps = append(qps, x)
		}
	}
	if len(qps) == 0 {
		return analyze.Unknown()
	}
	slices.Sort(qps)
	return analyze.Quantity((qps[(len(qps)-1)/2] + qps[len(qps)/2]) / 2 * float64(max(1, t.Measurement.Loops)))
}

// latencies returns a trial of which the latency is known, as far as there is
// any.
func latencies(l *load.Latency) analyze.Trial {
	seconds := func(d time.Duration) analyze.Quantity {
		if l.Count() == 0 {
			return analyze.Unknown()
		}
		return analyze.Quantity(d.Seconds())
	}
	return analyze.Trial{
		Mean:       seconds(l.Mean()),
		P50:        seconds(l.Quantile(0.50)),
		P99:        seconds(l.Quantile(0.99)),
		P999:       seconds(l.Quantile(0.999)),
		LatencyMin: seconds(l.Min()),
	}
}

// analyzeTrial turns a trial of that many slices into what package analyze
// judges. Its throughput is that of the parts in steady state; its latency and
// its load are those of all of it, since histograms and counters are not cut.
func analyzeTrial(t Trial, per int, local bool) analyze.Trial {
	out := latencies(t.Measurement.Latency)
	out.Load = loadOf(t, local)
	var steady part
	for _, s := range t.Slices {
		p := steadyPart(s.Measurement, per == 1)
		steady.requests += p.requests
		steady.elapsed += p.elapsed
		out.Slices = append(out.Slices, analyze.Slice{Pass: s.Pass, QPS: p.qps()})
		for _, code := range s.Invalid {
			if !slices.Contains(out.Invalid, code) {
				out.Invalid = append(out.Invalid, code)
			}
		}
	}
	out.QPS = steady.qps()
	return out
}
