// Package sweep is the controller: it decides what to measure next, has
// package load drive it and package probe observe it, asks package analyze
// whether the answer is good enough, and keeps everything measured in the
// result file. It prints nothing; progress goes out as Events.
//
// A step is never measured in one piece. A pass visits every step for a short
// slice; a trial of a step is its slices in consecutive passes. The reasons,
// with numbers, are in docs/method.md.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep/load"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// A Config is what a run needs besides its plan.
type Config struct {
	Plan   Plan
	Server *probe.Server

	// Header is completed by Run: schema, target, server, host, plan and
	// limit are filled in.
	Header Header

	// NewDriver makes the driver of one sweep; nil: the load comes from this
	// process. A driver with a method Calibrate calibrates itself.
	NewDriver func(*workload.Workload) (load.Driver, error)

	// Room is how many connections the driver of NewDriver can open; 0 means
	// what the limit of open files leaves this process.
	Room int

	// Unobserved leaves the machines alone: for a driver that does no work.
	Unobserved bool

	// Resume is what an earlier run has measured, which had the same plan;
	// nil for none. Run goes on from there.
	Resume *Result

	// Journal gets every slice as soon as it is measured; nil keeps none.
	Journal *Journal

	// Progress is called between slices, on the goroutine of Run; it may be
	// nil.
	Progress func(Event)
}

// An Event tells how far a run is.
type Event struct {
	Test    string
	Depth   int
	Clients int     // of the slice just measured; 0 at the begin of a sweep and when Note is set
	QPS     float64 // of that slice

	// CPU of the slice in cores: the server's thread that runs commands, and
	// the generator. Unknown when nothing was observed.
	ServerMain, Generator analyze.Quantity

	Done  int // slices measured of this sweep
	Total int // slices planned for it, as far as is known
	Left  time.Duration
	Note  string // why the plan has changed, or what went wrong

	// Keys of a number are written before the sweep; both are 0 after that.
	Loaded, Load int64
}

// Run measures what the plan says. When it fails, or ctx ends, it returns
// what it has measured so far together with the error; our keys are removed
// in any case in which the server still answers.
func Run(ctx context.Context, c Config) (*Result, error) {
	if c.Plan.Rates.any() && c.NewDriver == nil && c.goroutines() {
		return nil, errors.New("offering rates: it takes event loops, which have no TLS; leave out --rate or see poolsweep verify")
	}
	limit := clientLimit(c.Plan, c.Server, c.Room)
	if first := c.Plan.Clients[0]; first > limit.clients {
		return nil, fmt.Errorf("sweeping from %d clients: %s allows no more than %d", first, limit.name, limit.clients)
	}
	res := c.Resume
	if res == nil {
		res = &Result{Header: c.header(limit)}
		if err := c.resolve(ctx, res.Header.Prefix); err != nil {
			return res, err
		}
		if err := c.Journal.header(res.Header); err != nil {
			return res, err
		}
	}
	for i, spec := range c.Plan.Workloads {
		spec.Prefix = res.Header.Prefix
		for j, depth := range c.Plan.Depths {
			if res.begunAfter(c.Plan, i, j) {
				continue // an earlier run was done with it
			}
			if err := runSweep(ctx, c, res, limit, spec, c.Plan.Workloads[i+1:], depth); err != nil {
				return res, fmt.Errorf("sweeping %s at pipeline depth %d: %w", spec.Name, depth, err)
			}
		}
	}
	return res, nil
}

// resolve finds the keys of recordings. It is done before the header is
// written, which says what of them is left out.
func (c Config) resolve(ctx context.Context, prefix string) error {
	for _, spec := range c.Plan.Workloads {
		if spec.Replay == nil {
			continue
		}
		if err := spec.Replay.Resolve(ctx, c.Server.Keys, prefix, spec.KeepKeys); err != nil {
			return err
		}
	}
	return nil
}

// header completes the header of a new run.
func (c Config) header(limit limit) Header {
	h := c.Header
	h.Schema, h.Target, h.Server, h.Plan = Schema, c.Server.Target.String(), c.Server.Identity, c.Plan
	h.RESP3, h.Tracking = c.Server.Target.RESP3, c.Server.Target.Tracking
	h.Host, h.Limit, h.Clients = thisHost(), limit.name, limit.clients
	h.Prefix = workload.NewPrefix()
	return h
}

// runSweep measures one workload at one depth, for each value of a setting that
// is varied, and appends the slices to res. later are the workloads that
// follow.
func runSweep(ctx context.Context, c Config, res *Result, limit limit, spec workload.Spec, later []workload.Spec, depth int) (err error) {
	all := sweepers(c, res, limit, spec, depth)
	w, err := prepare(ctx, c.Server, spec, all[0].loading)
	defer func() { err = errors.Join(err, w.clean(ctx, later)) }()
	if err != nil {
		return err
	}
	idle, err := load.HoldIdle(ctx, c.Plan.Idle, endpoints(c.Server)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, idle.Close()) }()
	driver, err := c.driver(w.Workload)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, driver.Close()) }()
	var sampler *probe.Sampler
	var calibrate calibration
	if !c.Unobserved {
		sampler = probe.NewSampler(c.Server)
		if own, ok := driver.(interface {
			Calibrate(ctx context.Context, depth int) (*load.Measurement, error)
		}); ok {
			calibrate = own.Calibrate
		} else {
			ceiling, err := c.calibrator(w.Workload)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, ceiling.Close()) }()
			calibrate = ceiling.Run
		}
		if err := res.ping(ctx, c, spec.Name, depth); err != nil {
			return err
		}
	}
	setting, err := vary(ctx, c.Server, c.Plan.Vary)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, setting.restore(ctx)) }()
	for _, s := range all {
		s.driver, s.sampler, s.ceiling, s.setting = driver, sampler, calibrate, setting
	}
	if err = runTogether(ctx, all); err == nil {
		err = all[0].offerRates(ctx) // the only one, as a setting is not varied then
	}
	if lost := idle.Lost(); lost > 0 {
		err = errors.Join(err, fmt.Errorf("the server closed %d of the %d idle connections; is its timeout shorter than the sweep?", lost, c.Plan.Idle))
	}
	return err
}

// sweepers returns the sweeps of one workload at one depth: one, or one for
// each value of a setting.
func sweepers(c Config, res *Result, limit limit, spec workload.Spec, depth int) []*sweeper {
	values := c.Plan.Vary.Values
	if len(values) == 0 {
		values = []string{""}
	}
	var all []*sweeper
	for i, value := range values {
		all = append(all, &sweeper{
			Config: c, res: res, limit: limit, test: c.Plan.sweepName(spec, value), depth: depth, value: value,
			rng:    rand.New(rand.NewPCG(c.Plan.Seed, uint64(depth)<<8+uint64(i))),
			length: make(map[int]time.Duration),
			exact:  !c.Plan.PerRequest && !scripted(spec),
		})
	}
	return all
}

// roundTripTime is how long the idle round trip is measured before a sweep.
const roundTripTime = 300 * time.Millisecond

// ping measures the idle round trip before a sweep.
func (r *Result) ping(ctx context.Context, c Config, test string, depth int) error {
	t, err := probe.RoundTrip(ctx, masters(c.Server)[0].Target, roundTripTime)
	if err != nil {
		return err
	}
	p := RoundTrip{Test: test, Depth: depth, RoundTrips: t}
	r.RoundTrips = append(r.RoundTrips, p)
	return c.Journal.roundTrip(p)
}

// scripted reports whether a workload runs scripts or functions on the server.
func scripted(spec workload.Spec) bool {
	return spec.Replay != nil || slices.ContainsFunc(spec.Commands, func(c workload.Command) bool {
		name := strings.ToUpper(c.Args[0])
		return strings.HasPrefix(name, "EVAL") || strings.HasPrefix(name, "FCALL")
	})
}

// driver makes what drives the load: event loops where they can, a goroutine
// a connection where not.
func (c Config) driver(w *workload.Workload) (load.Driver, error) {
	switch {
	case c.NewDriver != nil:
		return c.NewDriver(w)
	case c.goroutines():
		return load.NewConns(w, c.Plan.PerRequest, endpoints(c.Server)...)
	}
	return load.NewEventLoops(c.Plan.Threads, w, endpoints(c.Server)...)
}

// calibrator makes what calibrates that driver.
func (c Config) calibrator(w *workload.Workload) (*load.Calibrator, error) {
	t := load.Transport{Loops: c.Plan.Threads, TLS: c.Server.Target.TLS != nil, PerRequest: c.Plan.PerRequest}
	if c.goroutines() {
		t.Loops = 0
	}
	return load.NewCalibrator(w, t)
}

// goroutines reports whether the load needs the transport with a goroutine a
// connection.
func (c Config) goroutines() bool { return c.Server.Target.TLS != nil || c.Plan.PerRequest }
