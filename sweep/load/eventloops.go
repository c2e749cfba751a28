package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/panjf2000/gnet/v2"

	"github.com/poolsweep/poolsweep/sweep/workload"
)

// EventLoops is a Driver for TCP and unix sockets: each event loop is one
// goroutine that serves its share of the connections with epoll or kqueue. It
// must be closed after use.
type EventLoops struct {
	work  *workload.Workload
	dial  func(context.Context) (net.Conn, error)
	loops []*loop
	jobs  uint64 // how many were run: each draws other keys
}

// dialers bounds how many connections are being opened at a time: enough to
// open 10,000 in a second, few enough for a listen queue of 128.
const dialers = 32

// NewEventLoops returns a driver with n event loops that sends w. dial opens
// a connection that is ready to be used (authenticated, its database
// selected): a *net.TCPConn or a *net.UnixConn.
func NewEventLoops(n int, w *workload.Workload, dial func(context.Context) (net.Conn, error)) (*EventLoops, error) {
	d := &EventLoops{work: w, dial: dial}
	for range n {
		l := new(loop)
		client, err := startClient(l, 1)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("starting event loop %d: %w", len(d.loops)+1, err), d.Close())
		}
		l.client = client
		d.loops = append(d.loops, l)
	}
	return d, nil
}

// startClient starts n event loops that call h.
func startClient(h gnet.EventHandler, n int) (*gnet.Client, error) {
	c, err := gnet.NewClient(h,
		gnet.WithNumEventLoop(n),
		gnet.WithTCPNoDelay(gnet.TCPNoDelay),
		gnet.WithLogger(silent{}))
	if err != nil {
		return nil, err
	}
	return c, c.Start()
}

// Close stops the event loops.
func (d *EventLoops) Close() error {
	var errs []error
	for _, l := range d.loops {
		errs = append(errs, l.client.Stop())
	}
	return errors.Join(errs...)
}

// A loop is one event loop with its connections. Its methods named On… are
// called by gnet on the loop's goroutine; so is what execute is given.
type loop struct {
	gnet.BuiltinEventEngine
	client *gnet.Client
	conns  []gnet.Conn // of the job being run
	shard  *shard
	origin time.Time
	idle   chan struct{} // closed when no session of the loop is active
	told   bool          // idle is closed
}

func (l *loop) now() time.Duration { return time.Since(l.origin) }

// OnTraffic takes what a connection has received and sends its next batch.
func (l *loop) OnTraffic(c gnet.Conn) gnet.Action {
	s := c.Context().(*session)
	data, err := c.Next(-1)
	if err != nil {
		return gnet.Close
	}
	if s.ended { // given up, and the reply came after all
		return gnet.None
	}
	now := l.now()
	answered, err := s.receive(now, data)
	if err != nil {
		l.shard.m.addError("protocol", ErrorClass{1, err.Error()})
		s.lose()
		return gnet.Close
	}
	if answered {
		l.send(c, s, now)
	}
	return gnet.None
}

// OnClose is called for a connection that the server has closed, and for one
// that OnTraffic or a failed write has given up.
func (l *loop) OnClose(c gnet.Conn, err error) gnet.Action {
	s := c.Context().(*session)
	if !s.ended {
		text := "closed by the server"
		if err != nil {
			text = err.Error()
		}
		l.shard.m.addError("connection", ErrorClass{1, text + "; is the server still running?"})
		s.lose()
	}
	l.tell()
	return gnet.None
}

func (l *loop) send(c gnet.Conn, s *session, now time.Duration) {
	if b := s.next(now); b != nil {
		// A failed write closes the connection, and OnClose counts it.
		_, _ = c.Write(b)
		return
	}
	l.tell()
}

// tell reports, once a job, that no session is active any more.
func (l *loop) tell() {
	if l.shard.active == 0 && !l.told {
		l.told = true
		close(l.idle)
	}
}

// execute runs f on the loop's goroutine and waits for it.
func (l *loop) execute(f func()) error {
	if len(l.conns) == 0 {
		return nil
	}
	done := make(chan struct{})
	err := l.conns[0].EventLoop().Execute(context.Background(), gnet.RunnableFunc(func(context.Context) error {
		defer close(done)
		f()
		return nil
	}))
	if err != nil {
		return err
	}
	<-done
	return nil
}

// Run runs one job. See Driver.
func (d *EventLoops) Run(ctx context.Context, job Job) (*Measurement, error) {
	origin := time.Now()
	d.prepare(job, origin)
	defer d.disconnect()
	if err := d.connect(ctx, job.Clients); err != nil {
		return nil, err
	}
	connected := time.Since(origin)
	loops := d.loops[:min(len(d.loops), job.Clients)]

	begin := connected + job.Warmup
	var end time.Duration
	if job.Requests == 0 {
		end = begin + job.Duration
	}
	for i, l := range loops {
		l.shard.begin, l.shard.end = begin, end
		l.shard.quota = share(job.Requests, i, len(loops))
		err := l.execute(func() {
			for _, c := range l.conns {
				if s := c.Context(); s != nil { // nil: lost already
					l.send(c, s.(*session), l.now())
				}
			}
		})
		if err != nil {
			return nil, fmt.Errorf("starting the load: %w", err)
		}
	}
	w := window{job: job, loops: loops, origin: origin, begin: begin, end: end}
	if err := w.wait(ctx); err != nil {
		return nil, err
	}
	m := d.collect(job, loops)
	m.Start, m.Connect = origin.Add(begin), connected
	if m.LostConnections == job.Clients {
		return m, fmt.Errorf("driving %d clients: every connection was lost: %s",
			job.Clients, m.FirstError())
	}
	return m, nil
}

// prepare gives each loop an empty shard.
func (d *EventLoops) prepare(job Job, origin time.Time) {
	for i, l := range d.loops {
		d.jobs++
		l.origin, l.conns, l.told = origin, nil, false
		l.idle = make(chan struct{})
		l.shard = &shard{
			depth:  job.Depth,
			source: d.work.Source(d.jobs),
			active: int(share(int64(job.Clients), i, len(d.loops))),
			m:      Measurement{Step: job.Step, Latency: new(Latency)},
		}
		// What the window needs is allocated before it.
		l.shard.m.Latency.hist = newHistogram()
		l.shard.m.Intervals = make([]int64, 0, job.Duration/interval+10)
	}
}

// share returns the i-th of n shares of total: as even as can be, the first
// ones one larger when it does not divide.
func share(total int64, i, n int) int64 {
	s := total / int64(n)
	if int64(i) < total%int64(n) {
		s++
	}
	return s
}

// connect opens the connections and spreads them over the loops.
func (d *EventLoops) connect(ctx context.Context, clients int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		wg   sync.WaitGroup
		next atomic.Int64
		mu   sync.Mutex
	)
	for range min(dialers, clients) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= clients || ctx.Err() != nil {
					return
				}
				l := d.loops[i%len(d.loops)]
				nc, err := d.dial(ctx)
				if err != nil {
					cancel(fmt.Errorf("opening connection %d of %d: %w", i+1, clients, err))
					return
				}
				gc, err := l.client.EnrollContext(nc, &session{shard: l.shard})
				if err != nil {
					cancel(fmt.Errorf("opening connection %d of %d: %w", i+1, clients, err))
					return
				}
				mu.Lock()
				l.conns = append(l.conns, gc)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// disconnect closes the connections that are still open. They are reset
// rather than shut down: nothing is in flight on them, and a sweep that
// leaves tens of thousands of sockets in TIME_WAIT runs out of ports.
func (d *EventLoops) disconnect() {
	for _, l := range d.loops {
		// The only error is that the loop has been stopped, which closes
		// the connections too.
		_ = l.execute(func() {
			for _, c := range l.conns {
				if s, ok := c.Context().(*session); ok {
					s.lose()
					_ = c.SetLinger(0)
					_ = c.EventLoop().Close(c)
				}
			}
		})
	}
}

// collect merges the shards into one measurement.
func (d *EventLoops) collect(job Job, loops []*loop) *Measurement {
	m := &Measurement{Step: job.Step, Latency: new(Latency)}
	var last time.Duration
	for _, l := range loops {
		sh := l.shard
		intervals := m.Intervals
		for i, n := range sh.m.Intervals {
			if i < len(intervals) {
				intervals[i] += n
			} else {
				intervals = append(intervals, n)
			}
		}
		// The loops' windows are one and the same: they are not added up.
		sh.m.Elapsed = 0
		last = max(last, sh.last)
		_ = m.Merge(&sh.m) // the steps are the same
		m.Intervals = intervals
		m.Elapsed = job.Duration
	}
	if job.Requests > 0 {
		m.Elapsed = max(0, last-loops[0].shard.begin)
	}
	m.Loops = len(loops)
	return m
}

// FirstError returns the text of the most frequent error, "" when there was none.
func (m *Measurement) FirstError() string {
	var most ErrorClass
	for _, e := range m.Errors {
		if e.Count > most.Count || e.Count == most.Count && e.First < most.First {
			most = e
		}
	}
	return most.First
}
