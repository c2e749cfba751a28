package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep/load"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// A work is what an agent drives for one sweep.
type work struct {
	work       *workload.Workload
	driver     load.Driver
	calibrator *load.Calibrator
	perRequest bool
	endpoints  int
	trial      atomic.Pointer[trial] // the last one begun

	mu      sync.Mutex
	ceiling map[int]float64 // requests/s of one event loop, by depth
}

// newWork makes what a setup asks for.
func newWork(ctx context.Context, a *Agent, loops int, x *setup) (*work, error) {
	var parts []workload.Part
	for _, n := range x.Nodes {
		parts = append(parts, workload.Part{Slots: n.Slots})
	}
	spec := x.Workload
	if spec.Replay != nil {
		return nil, errors.New("a recording cannot be sent by agents")
	}
	// Agents draw other keys each; the odd number keeps their seeds apart.
	spec.Seed += uint64(x.Index) * 0x9e3779b97f4a7c15
	made, err := workload.New(spec, parts...)
	if err != nil {
		return nil, err
	}
	made.Stripe(x.Index, x.Agents)
	made.Cover(x.Inserted, 1)

	w := &work{work: made, perRequest: x.PerRequest, ceiling: make(map[int]float64)}
	t := x.Target.probe(a)
	if err := t.Check(); err != nil {
		return nil, err
	}
	var endpoints []load.Endpoint
	if len(x.Nodes) == 0 {
		endpoints = append(endpoints, load.Endpoint{Addr: t.Addr(), Dial: w.gated(t)})
	}
	for _, n := range x.Nodes {
		at := t
		at.Network, at.Host, at.Port, at.Socket = "tcp", n.Host, n.Port, ""
		endpoints = append(endpoints, load.Endpoint{Addr: at.Addr(), Dial: w.gated(at)})
	}
	w.endpoints = len(endpoints)
	transport := load.Transport{Loops: loops, TLS: t.TLS != nil, PerRequest: x.PerRequest}
	if transport.TLS || transport.PerRequest {
		transport.Loops = 0
		w.driver, err = load.NewConns(made, x.PerRequest, endpoints...)
	} else {
		w.driver, err = load.NewEventLoops(loops, made, endpoints...)
	}
	if err != nil {
		return nil, err
	}
	if w.calibrator, err = load.NewCalibrator(made, transport); err != nil {
		return nil, errors.Join(err, w.driver.Close())
	}
	return w, nil
}

// probe returns the target as an agent dials it.
func (t target) probe(a *Agent) probe.Target {
	out := probe.Target{
		Network: t.Network, Host: t.Host, Port: t.Port, Socket: t.Socket,
		User: t.User, DB: t.DB, RESP3: t.RESP3, Tracking: t.Tracking,
		Password: a.Password,
	}
	if out.Password.Reveal() == "" && t.Password != "" {
		out.Password = probe.NewSecret(string(t.Password))
	}
	if t.TLS != nil {
		out.TLS = new(probe.TLS)
		if a.TLS != nil {
			*out.TLS = *a.TLS
		}
		if out.TLS.SNI == "" {
			out.TLS.SNI = t.TLS.SNI
		}
		out.TLS.Insecure = out.TLS.Insecure || t.TLS.Insecure
	}
	return out
}

// close ends the trial under way and what drives it.
func (w *work) close() {
	if t := w.trial.Load(); t != nil {
		t.finish()
		<-t.done
	}
	// There is nobody to tell: event loops that cannot be stopped have ended.
	_ = w.driver.Close()
	_ = w.calibrator.Close()
}

// calibrated keeps what one event loop has reached.
func (w *work) calibrated(m *load.Measurement) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ceiling[m.Depth] = m.Throughput() / float64(max(1, m.Loops))
}

// capacity returns how many requests the loops of a measurement could have
// sent in its window, 0 when that is unknown.
func (w *work) capacity(m *load.Measurement) float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ceiling[m.Depth] * float64(max(1, m.Loops)) * m.Elapsed.Seconds()
}

// A trial is one job of the driver, held at its start and at its end.
type trial struct {
	number  int64
	ctx     context.Context
	awaited int64        // connections that are opened before the start
	opened  atomic.Int64 // those that are

	ready chan struct{} // closed when all are open
	gate  chan struct{} // closed at the start
	ended chan struct{} // closed when the window is over
	stop  chan struct{} // closed when the load may stop
	done  chan struct{} // closed when m and err are known

	starting, stopping sync.Once
	read               time.Time     // when the start order was
	held               time.Duration // between ready and the start

	before, after probe.GeneratorSample // at both ends of the window
	observed      bool

	m   *load.Measurement
	err error
}

// begin begins a trial. The one before it must be over.
func (w *work) begin(ctx context.Context, number int64, j *share) (*trial, error) {
	if last := w.trial.Load(); last != nil {
		select {
		case <-last.done:
		default:
			return nil, fmt.Errorf("trial %d is still under way", last.number)
		}
	}
	t := &trial{
		number: number, ctx: ctx, awaited: int64(j.Clients),
		ready: make(chan struct{}), gate: make(chan struct{}), ended: make(chan struct{}),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	if w.perRequest {
		t.awaited = int64(w.endpoints)
	}
	w.trial.Store(t)
	var begun sync.WaitGroup
	begun.Add(1)
	run := load.Job{
		Step:   load.Step{Clients: j.Clients, Depth: j.Depth},
		Warmup: j.Warmup, Duration: j.Duration, Requests: j.Requests,
		Begin: func() {
			defer begun.Done()
			t.before = probe.SampleGenerator()
		},
		End: func() {
			begun.Wait()
			t.after, t.observed = probe.SampleGenerator(), true
			close(t.ended)
			// The load goes on until the windows of all agents are over.
			select {
			case <-t.stop:
			case <-ctx.Done():
			}
		},
	}
	go func() {
		defer close(t.done)
		t.m, t.err = w.driver.Run(ctx, run)
	}()
	return t, nil
}

// gated returns how the load dials a target: the connection that completes
// those of a trial is held until the start, and with it the load.
func (w *work) gated(t probe.Target) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		c, err := t.Dial(ctx)
		if err != nil {
			return nil, err
		}
		if err := w.trial.Load().open(ctx); err != nil {
			c.Close()
			return nil, err
		}
		return c, nil
	}
}

// open counts a connection, and holds the last of them.
func (t *trial) open(ctx context.Context) error {
	if t.opened.Add(1) != t.awaited {
		return nil
	}
	close(t.ready)
	from := time.Now()
	select {
	case <-t.gate:
		t.held = time.Since(from)
		return nil
	case <-t.stop:
		return errors.New("the trial was ended before its start")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// start opens the gate in a while after the order was read.
func (t *trial) start(read time.Time, in time.Duration) error {
	select {
	case <-t.ready:
	default:
		return errNoTrial
	}
	t.starting.Do(func() {
		t.read = read
		time.AfterFunc(time.Until(read.Add(in)), func() { close(t.gate) })
	})
	return nil
}

// finish lets the load stop; it may be called again.
func (t *trial) finish() {
	t.stopping.Do(func() { close(t.stop) })
}
