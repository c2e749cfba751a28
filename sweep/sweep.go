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
	"time"

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

	// NewDriver makes the driver of one sweep. It is nil but in tests:
	// then the load comes from event loops.
	NewDriver func(*workload.Workload) (load.Driver, error)

	// Unobserved leaves the machines alone: for a driver that does no work.
	Unobserved bool

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
	Done    int     // slices measured of this sweep
	Total   int     // slices planned for it, as far as is known
	Left    time.Duration
	Note    string // why the plan has changed, or what went wrong
}

// removeTimeout bounds the removal of our keys at the end.
const removeTimeout = 30 * time.Second

// Run measures what the plan says. When it fails, or ctx ends, it returns
// what it has measured so far together with the error; our keys are removed
// in any case in which the server still answers.
func Run(ctx context.Context, c Config) (*Result, error) {
	limit := clientLimit(c.Plan, c.Server.Identity)
	if first := c.Plan.Clients[0]; first > limit.clients {
		return nil, fmt.Errorf("sweeping from %d clients: %s allows no more than %d", first, limit.name, limit.clients)
	}
	h := c.Header
	h.Schema, h.Target, h.Server, h.Plan = Schema, c.Server.Target.String(), c.Server.Identity, c.Plan
	h.Host, h.Limit, h.Clients = thisHost(), limit.name, limit.clients
	res := &Result{Header: h}
	if err := c.Journal.header(h); err != nil {
		return res, err
	}
	prefix := workload.NewPrefix()
	for _, test := range c.Plan.Tests {
		for _, depth := range c.Plan.Depths {
			if err := runSweep(ctx, c, res, limit, test, depth, prefix); err != nil {
				return res, fmt.Errorf("sweeping %s at pipeline depth %d: %w", test, depth, err)
			}
		}
	}
	return res, nil
}

// runSweep measures one test at one depth and appends its slices to res.
func runSweep(ctx context.Context, c Config, res *Result, limit limit, test string, depth int, prefix string) (err error) {
	w, err := workload.New(c.Plan.spec(test, prefix))
	if err != nil {
		return err
	}
	defer func() {
		// Our keys go even when ctx is over.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
		defer cancel()
		if rerr := w.Remove(ctx, c.Server.Client); rerr != nil {
			err = errors.Join(err, rerr)
		}
	}()
	if err := w.Preload(ctx, c.Server.Client); err != nil {
		return err
	}
	newDriver := c.NewDriver
	if newDriver == nil {
		newDriver = func(w *workload.Workload) (load.Driver, error) {
			return load.NewEventLoops(c.Plan.Threads, w, c.Server.Target.Dial)
		}
	}
	driver, err := newDriver(w)
	if err != nil {
		return err
	}
	s := &sweeper{
		Config: c, res: res, limit: limit, test: test, depth: depth,
		driver: driver,
		rng:    rand.New(rand.NewPCG(c.Plan.Seed, uint64(depth))),
		length: make(map[int]time.Duration),
		begun:  time.Now(),
	}
	if !c.Unobserved {
		s.sampler = probe.NewSampler(c.Server)
		if s.ceiling, err = load.NewCalibrator(c.Plan.Threads, w); err != nil {
			return errors.Join(err, driver.Close())
		}
		defer func() { err = errors.Join(err, s.ceiling.Close()) }()
	}
	return errors.Join(s.run(ctx), driver.Close())
}
