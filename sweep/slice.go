package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep/load"
)

const (
	// A slice is made long enough for this many batches of each client and
	// for the plan's MinRequests, so that a step with many clients or a slow
	// server is measured by more than its first replies.
	batchesPerClient = 20
	longestSlice     = 10 * time.Second

	// comeBack is how long a server may be away that was not started anew.
	comeBack = 10 * time.Second

	// repeatsPerSlice and repeatsInAll bound how often slices are measured
	// again: twice each, and, but for those that were too short, a quarter of
	// the plan in all, so that a machine that is never in order does not
	// triple the run.
	repeatsPerSlice = 2
	repeatsInAll    = 0.25

	// maxVoids bounds how often a slice is measured again in which something
	// of the generator's own broke.
	maxVoids = 5

	// maxLosses bounds how often a slice is measured again of which all
	// connections were lost.
	maxLosses = 2

	// handshake is how many commands a connection may send before the load:
	// HELLO, AUTH, SELECT, CLIENT SETNAME and CLIENT TRACKING.
	handshake = 5

	// samples is how many commands the control connection sends in a slice:
	// three INFO, and what opening it again takes.
	samples = 8
)

// measure measures one step for a slice, and again when the slice fails a
// validity gate, was too short or, once and twice as long, when it did not
// reach a steady state.
func (s *sweeper) measure(ctx context.Context, clients int) error {
	length, extended, voids, losses := time.Duration(0), false, 0, 0
	for attempt := 0; ; attempt++ {
		x, steady, err := s.take(ctx, clients, length)
		if errors.Is(err, load.ErrVoid) && voids < maxVoids {
			voids++
			s.note(fmt.Sprintf("%v; %d clients are measured again", err, clients))
			continue
		}
		if errors.Is(err, errStalled) && losses < maxLosses {
			losses++
			length = longestSlice // a stall is over by then, or it is none
			continue
		}
		if errors.Is(err, load.ErrLost) && losses < maxLosses {
			losses++
			if gone := s.Server.Same(ctx, comeBack); gone != nil {
				return fmt.Errorf("%w; %w", err, gone)
			}
			s.note(fmt.Sprintf("%v; the server is as before, and %d clients are measured again", err, clients))
			continue
		}
		if err != nil {
			return err
		}
		short := s.lengthen(x.Measurement)
		repeat := s.worthRepeating(x)
		if voids > 0 {
			x.Invalid = append(x.Invalid, analyze.GateVoid)
		}
		if losses > 0 {
			x.Invalid = append(x.Invalid, analyze.GateLost)
		}
		length = 0
		switch {
		case x.Guard != "": // the server has had enough
		case attempt < repeatsPerSlice && (short || repeat):
			x.Superseded = true
		case !steady && !extended && s.affordable() && s.Plan.Requests == 0 && x.Measurement.Elapsed < longestSlice:
			x.Superseded, extended = true, true
			length = min(2*x.Measurement.Elapsed, longestSlice)
		}
		s.rate = x.Measurement.Throughput()
		s.res.Slices = append(s.res.Slices, x)
		if err := s.Journal.slice(x); err != nil {
			return err
		}
		x.Measurement.Pack()
		if !x.Superseded {
			s.done++
			s.have[visit{clients, s.pass}] = true
			l := loadOf(Trial{Measurement: x.Measurement, Window: x.Window}, false)
			s.event(Event{Clients: clients, QPS: x.Measurement.Throughput(), ServerMain: l.ServerMain, Generator: l.GeneratorCPU})
			return s.heed(x)
		}
		if !short {
			s.repeats++
		}
	}
}

// errStalled says that a slice had neither an answer nor an error.
var errStalled = errors.New("the server answered nothing")

// take measures a slice of that length, 0 for the step's own, and asks the
// validity gates.
func (s *sweeper) take(ctx context.Context, clients int, length time.Duration) (x Slice, steady bool, err error) {
	m, w, others, err := s.drive(ctx, clients, length)
	if err != nil {
		return x, false, err
	}
	if m.Requests == 0 {
		err := fmt.Errorf("driving %d clients: no request succeeded in %v%s", clients, m.Elapsed, firstError(m))
		if m.FirstError() == "" {
			err = fmt.Errorf("%w: %w", errStalled, err)
		}
		return x, false, err
	}
	f := facts(m, w)
	f.Commands, f.Others = others.commands, others.others
	x = Slice{Test: s.test, Pass: s.pass, Measurement: m, Window: w, Invalid: analyze.Gates(f), Guard: s.Plan.Guards.tripped(m, w)}
	if steady = steadyPart(m, s.Plan.Slices == 1).steady; !steady {
		x.Invalid = append(x.Invalid, analyze.GateUnsteady)
	}
	return x, steady, nil
}

// worthRepeating reports whether a slice failed a gate that it may pass when it
// is measured again. A CPU limit throttles it each time, and an unsteady slice
// wants more time instead.
func (s *sweeper) worthRepeating(x Slice) bool {
	return s.affordable() && slices.ContainsFunc(x.Invalid, func(code string) bool {
		return code != analyze.GateThrottled && code != analyze.GateUnsteady
	})
}

// affordable reports whether slices may still be measured again.
func (s *sweeper) affordable() bool { return float64(s.repeats) < repeatsInAll*float64(s.total) }

func firstError(m *load.Measurement) string {
	if text := m.FirstError(); text != "" {
		return ": " + text
	}
	return ""
}

// lengthen makes later slices of the step longer when m had too few requests,
// and reports whether it did.
func (s *sweeper) lengthen(m *load.Measurement) bool {
	need := max(s.Plan.MinRequests, int64(batchesPerClient*m.InFlight()))
	if s.Plan.Requests > 0 || s.Plan.Guards.any() || m.Requests >= need || m.Elapsed >= longestSlice {
		return false
	}
	// A tenth more, so that noise does not make it fall short again.
	wanted := time.Duration(1.1 * float64(need) / m.Throughput() * float64(time.Second))
	s.length[m.Clients] = min(wanted, longestSlice)
	return true
}

// traffic is what the server processed between the ends of two slices.
type traffic struct {
	commands, others int64
}

// drive runs the load of one slice and samples at both ends of its window.
// The window is nil when nothing is observed.
func (s *sweeper) drive(ctx context.Context, clients int, length time.Duration) (*load.Measurement, *probe.Window, traffic, error) {
	job := load.Job{Step: load.Step{Clients: clients, Depth: s.depth}, Warmup: s.warmup(clients)}
	if s.Plan.Requests > 0 {
		job.Requests = s.quota()
	} else {
		job.Duration = cmp.Or(length, s.length[clients], s.Plan.Duration/time.Duration(s.Plan.Slices))
		if s.Plan.Guards.any() {
			job.Duration = min(job.Duration, guardSlice)
		}
	}
	m, w, err := s.observe(ctx, job)
	if err != nil || w == nil {
		return m, nil, traffic{}, err
	}
	return m, w, s.otherClients(ctx, m), nil
}

// observe runs a job and samples at both ends of its window, which is nil when
// nothing is observed.
func (s *sweeper) observe(ctx context.Context, job load.Job) (*load.Measurement, *probe.Window, error) {
	if s.sampler == nil {
		m, err := s.driver.Run(ctx, job)
		return m, nil, err
	}
	var begin, end *probe.Sample
	begun := make(chan struct{})
	job.Begin = func() {
		defer close(begun)
		begin = s.sampler.Sample(ctx)
	}
	job.End = func() {
		<-begun
		end = s.sampler.Sample(ctx)
	}
	m, err := s.driver.Run(ctx, job)
	if err != nil {
		return nil, nil, err
	}
	if begin == nil || end == nil {
		return nil, nil, fmt.Errorf("driving %d clients: the load ended before its window%s", job.Clients, firstError(m))
	}
	return m, s.sampler.Between(begin, end), nil
}

// otherClients returns what the server has processed since the last slice, and
// how much of it was not ours. It is asked when nothing of ours is in flight,
// so that the difference is exact.
func (s *sweeper) otherClients(ctx context.Context, m *load.Measurement) traffic {
	commands, ok := s.sampler.Commands(ctx)
	before := s.commands
	s.commands = commands
	if !ok || before == 0 {
		return traffic{}
	}
	nodes := int64(len(masters(s.Server)))
	if !s.exact {
		return traffic{commands: commands - before}
	}
	// A redirect that was ASKed for is preceded by ASKING.
	ours := m.Sent + m.Redirects + int64(m.Clients)*handshake + nodes*samples
	return traffic{commands - before, max(0, commands-before-ours)}
}

// quota returns how many requests the slice under way has: a trial's requests
// spread over its slices, to the request.
func (s *sweeper) quota() int64 {
	n := int64(s.Plan.Slices)
	q := s.Plan.Requests / n
	if int64((s.pass-1)%s.Plan.Slices) < s.Plan.Requests%n {
		q++
	}
	return q
}

// warmup returns the plan's warm-up, or twice the time that the step needs to
// answer one batch of each client, if that is longer.
func (s *sweeper) warmup(clients int) time.Duration {
	w := s.Plan.Warmup
	if s.rate > 0 {
		round := time.Duration(float64(clients*s.depth) / s.rate * float64(time.Second))
		w = max(w, min(2*round, longestSlice))
	}
	return w
}
