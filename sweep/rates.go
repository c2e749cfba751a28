package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/arrivals"
	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep/load"
)

// Rates are offered to the server after each sweep, in an open loop over the
// clients of the knee. The zero value offers none.
type Rates struct {
	// Offered are requests/s, or shares of the throughput of the plateau.
	Offered []arrivals.Rate `json:"offered"`

	// SLOP99 makes a search of it: the highest rate whose p99, from when
	// requests were due, is no longer. Offered is then what is climbed. 0:
	// each of Offered is measured.
	SLOP99 time.Duration `json:"slo_p99_ns,omitempty"`

	Arrivals arrivals.Kind `json:"arrivals"`
}

func (r Rates) any() bool { return len(r.Offered) > 0 }

// check reports what makes the rates of a plan impossible.
func (r Rates) check(p Plan) error {
	if !r.any() {
		return nil
	}
	switch {
	case p.Vary.Setting != "":
		return errors.New("plan: --rate and --vary do not go together; sweep for each value with --rate")
	case p.PerRequest:
		return errors.New("plan: --rate takes connections that are kept; leave out -k 0")
	case r.SLOP99 < 0:
		return fmt.Errorf("plan: a p99 of %v; want more than 0", r.SLOP99)
	}
	_, err := arrivals.New(r.Arrivals, 1, 0)
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	return nil
}

// A RateTrial is one step in an open loop for a moment, after its sweep.
type RateTrial struct {
	Test  string `json:"test"`
	Round int    `json:"round"` // of the trials at its rate, from 1

	// Capacity is X*, the throughput of the plateau, as the sweep had it, in
	// requests/s.
	Capacity float64 `json:"capacity_qps"`

	Measurement *load.Measurement `json:"measurement"`
	Window      *probe.Window     `json:"window"`

	Invalid []string `json:"invalid,omitempty"` // as of a Slice
	Guard   string   `json:"guard,omitempty"`   // the guard that ended the open loop; empty for none
}

// check reports what makes a trial of a damaged file unusable.
func (t *RateTrial) check() error {
	m := t.Measurement
	switch {
	case m == nil || m.Latency == nil || m.Open == nil || m.Open.Slip == nil:
		return errors.New("a rate trial without a measurement")
	case m.Clients < 1 || m.Depth < 1 || t.Round < 1:
		return fmt.Errorf("a rate trial of %d clients, depth %d, round %d", m.Clients, m.Depth, t.Round)
	case m.Elapsed <= 0 || !(m.Open.Rate > 0) || !(t.Capacity > 0):
		return fmt.Errorf("a rate trial of %v requests/s, of %v, for %v", m.Open.Rate, t.Capacity, m.Elapsed)
	}
	return nil
}

// RateCurves returns what was measured in open loops, a curve a sweep, for
// package analyze.
func (r *Result) RateCurves() []analyze.RateCurve {
	var curves []analyze.RateCurve
	for _, t := range r.RateTrials {
		m := t.Measurement
		i := slices.IndexFunc(curves, func(c analyze.RateCurve) bool { return c.Test == t.Test && c.Depth == m.Depth })
		if i < 0 {
			i = len(curves)
			curves = append(curves, analyze.RateCurve{Test: t.Test, Depth: m.Depth, Clients: m.Clients, Capacity: analyze.Quantity(t.Capacity)})
		}
		c := &curves[i]
		j := slices.IndexFunc(c.Points, func(p analyze.RatePoint) bool { return p.Rate == m.Open.Rate })
		if j < 0 {
			j = len(c.Points)
			c.Points = append(c.Points, analyze.RatePoint{Rate: m.Open.Rate})
		}
		c.Points[j].Trials = append(c.Points[j].Trials, t.analyzed(r.Header.Server.Local))
	}
	return curves
}

// analyzed turns a trial into what package analyze judges.
func (t RateTrial) analyzed(local bool) analyze.RateTrial {
	m, o := t.Measurement, t.Measurement.Open
	u := analyze.Unknown()
	out := analyze.RateTrial{
		Offered: float64(o.Due) / m.Elapsed.Seconds(), Achieved: float64(o.Answered) / m.Elapsed.Seconds(),
		Mean: u, P50: quantile(m, .5), P99: quantile(m, .99), P999: quantile(m, .999),
		SlipMean: u, SlipP99: u, Waited: u, WaitMean: u, Missing: u, Failed: u,
		Load: loadOf(Trial{Measurement: m, Window: t.Window}, local), Invalid: t.Invalid,
	}
	if due := analyze.Quantity(o.Due); due > 0 {
		out.Waited, out.Missing = analyze.Quantity(o.Waited)/due, analyze.Quantity(m.Missing())/due
		out.WaitMean = analyze.Quantity(o.Wait.Seconds()) / due
	}
	if n := m.Latency.Count(); n > 0 {
		out.Mean = analyze.Quantity(m.Latency.Mean().Seconds())
		out.Failed = analyze.Quantity(m.ErrorCount()) / analyze.Quantity(n)
	}
	if o.Slip.Count() > 0 {
		out.SlipMean = analyze.Quantity(o.Slip.Mean().Seconds())
		out.SlipP99 = analyze.Quantity(o.Slip.Quantile(.99).Seconds())
	}
	return out
}

// quantile returns a quantile of the latency of an open loop in seconds, where
// requests that are missing are the slowest. It is unknown when that is one of
// them, and when fewer than ten requests lie beyond it.
func quantile(m *load.Measurement, q float64) analyze.Quantity {
	const beyond = 10
	count := float64(m.Latency.Count())
	all := count + float64(m.Missing())
	if all*(1-q) < beyond*(1-1e-9) || q*all > count {
		return analyze.Unknown()
	}
	return analyze.Quantity(m.Latency.Quantile(q * all / count).Seconds())
}

// enoughForP99 is how many requests a trial at a rate has: a tenth more than
// a p99 takes, as arrivals are random.
const enoughForP99 = 1100

// offerRates drives the open loop after a sweep: the planned rates in rounds,
// or those of a search.
func (s *sweeper) offerRates(ctx context.Context) error {
	r := s.Plan.Rates
	if !r.any() {
		return nil
	}
	k := analyze.Analyze(s.curve(), s.options()).Knee
	o := &offering{
		sweeper: s, clients: min(cmp.Or(k.Clients, k.Peak), s.limit.clients),
		capacity: float64(k.Plateau), seed: s.Plan.Seed,
	}
	if o.clients == 0 || !k.Plateau.Known() {
		s.note("no rates are offered: the sweep has nothing to go by")
		return nil
	}
	planned := slices.DeleteFunc(arrivals.QPS(r.Offered, o.capacity), func(x float64) bool {
		above := s.Plan.Guards.MaxRate > 0 && x > s.Plan.Guards.MaxRate
		if above {
			s.note(fmt.Sprintf("no rate above --max-rate %.0f is offered", s.Plan.Guards.MaxRate))
		}
		return above
	})
	if r.SLOP99 > 0 {
		return o.search(ctx, planned)
	}
	for round := 1; round <= s.Plan.Trials; round++ {
		for _, rate := range planned {
			if err := o.offer(ctx, rate, round); err != nil || o.guard != "" {
				return err
			}
		}
	}
	return nil
}

// An offering is the open loop after a sweep.
type offering struct {
	*sweeper
	clients  int
	capacity float64 // requests/s of the plateau
	seed     uint64  // of the arrivals of the next trial
	guard    string  // that was passed
}

// search measures the rates that the analysis asks for.
func (o *offering) search(ctx context.Context, planned []float64) error {
	for {
		var c analyze.RateCurve
		for _, x := range o.res.RateCurves() {
			if x.Test == o.test && x.Depth == o.depth {
				c = x
			}
		}
		rate := analyze.NextRate(c, planned, o.Plan.Rates.SLOP99.Seconds())
		if rate == 0 {
			return nil
		}
		for round := 1; round <= o.Plan.Trials; round++ {
			if err := o.offer(ctx, rate, round); err != nil || o.guard != "" {
				return err
			}
		}
	}
}

// offer measures one trial at a rate, unless an earlier run has.
func (o *offering) offer(ctx context.Context, rate float64, round int) error {
	o.seed++
	if slices.ContainsFunc(o.res.RateTrials, func(t RateTrial) bool {
		m := t.Measurement
		return t.Test == o.test && m.Depth == o.depth && m.Open.Rate == rate && t.Round == round
	}) {
		return nil
	}
	o.note(fmt.Sprintf("open loop, %d clients: %.0f requests/s", o.clients, rate))
	m, w, err := o.observe(ctx, load.Job{
		Step: load.Step{Clients: o.clients, Depth: o.depth}, Warmup: o.warmup(o.clients), Duration: o.lasting(rate),
		Rate: rate, Arrivals: o.Plan.Rates.Arrivals, Seed: o.seed,
	})
	if err != nil {
		return fmt.Errorf("offering %.0f requests/s: %w", rate, err)
	}
	f := facts(m, w)
	f.Utilisation = analyze.Unknown() // connections idle in an open loop
	t := RateTrial{
		Test: o.test, Round: round, Capacity: o.capacity, Measurement: m, Window: w,
		Invalid: analyze.Gates(f), Guard: o.Plan.Guards.tripped(m, w),
	}
	if o.guard = t.Guard; o.guard != "" {
		o.note(fmt.Sprintf("%s ends the open loop at %.0f requests/s", o.guard, rate))
	}
	err = o.Journal.rateTrial(t)
	t.Measurement.Pack()
	o.res.RateTrials = append(o.res.RateTrials, t)
	return err
}

// lasting returns how long a trial at a rate is: as planned, or as long as a
// p99 takes.
func (o *offering) lasting(rate float64) time.Duration {
	d := max(o.Plan.Duration, min(longestSlice, time.Duration(enoughForP99/rate*float64(time.Second))))
	if o.Plan.Guards.any() {
		d = min(d, guardSlice)
	}
	return d
}
