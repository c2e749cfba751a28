package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/panjf2000/gnet/v2"

	"github.com/poolsweep/poolsweep/sweep/workload"
)

// EventLoops is a Driver for TCP and unix sockets: each event loop is one
// goroutine that serves its share of the connections with epoll or kqueue. It
// must be closed after use.
//
// On a cluster it follows redirects. A node that moves a slot in mid-run
// costs the requests for it a detour, and later requests go to other slots.
type EventLoops struct {
	base
	loops []*loop
}

// NewEventLoops returns a driver with n event loops that sends w: part j of it
// to endpoint j, over a *net.TCPConn or a *net.UnixConn each. There must be as
// many endpoints as w has parts.
func NewEventLoops(n int, w *workload.Workload, endpoints ...Endpoint) (*EventLoops, error) {
	b, err := newBase(w, endpoints)
	if err != nil {
		return nil, err
	}
	d := &EventLoops{base: b}
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
	busy   bool          // within OnTraffic or proceed: a failed write may call OnClose there
	open   *openLoop     // nil in a closed loop
}

func (l *loop) now() time.Duration { return time.Since(l.origin) }

// OnTraffic takes what a connection has received and sends its next batch.
func (l *loop) OnTraffic(c gnet.Conn) gnet.Action {
	data, err := c.Next(-1)
	if err != nil {
		return gnet.Close
	}
	s, ok := c.Context().(*session)
	if !ok { // its bell
		l.ring()
		return gnet.None
	}
	if s.lost || s.ended && len(s.guests) == 0 { // given up, and the reply came after all
		return gnet.None
	}
	now := l.now()
	l.busy = true
	if l.open != nil {
		l.arrive(now) // what is due waits before the connection is free
	}
	answered, err := s.receive(now, data)
	action := gnet.None
	switch {
	case err != nil:
		l.shard.fail(protocolError, err.Error())
		s.lose()
		action = gnet.Close
	case answered:
		l.send(s, now)
	}
	l.busy = false
	l.proceed(now)
	return action
}

// OnClose is called for a connection that the server has closed, and for one
// that OnTraffic or a failed write has given up.
func (l *loop) OnClose(c gnet.Conn, err error) gnet.Action {
	s, ok := c.Context().(*session)
	if !ok { // the bell
		return gnet.None
	}
	if !s.lost && (!s.ended || len(s.guests) > 0) {
		l.shard.fail(connectionError, closedText(err))
	}
	s.lose()
	l.tell()
	l.proceed(l.now())
	return gnet.None
}

// send sends the next batch of a session, if it has one.
func (l *loop) send(s *session, now time.Duration) {
	if l.open != nil {
		l.release(s, now)
		return
	}
	if b := s.next(now); b != nil {
		l.write(s, b)
		return
	}
	l.tell()
}

func (l *loop) write(s *session, b []byte) {
	// A failed write closes the connection, and OnClose counts it.
	_, _ = s.out.Write(b)
}

// proceed sends the next batch of the sessions whose last answer has come
// over another connection.
func (l *loop) proceed(now time.Duration) {
	if l.busy {
		return
	}
	l.busy = true
	defer func() { l.busy = false }()
	sh := l.shard
	for len(sh.ready) > 0 {
		last := len(sh.ready) - 1
		s := sh.ready[last]
		sh.ready = sh.ready[:last]
		if s.open == 0 && !s.ended {
			l.send(s, now)
		}
	}
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

// sessions calls f for each session of the loop.
func (l *loop) sessions(f func(*session)) {
	for _, n := range l.shard.nodes {
		for _, s := range n.sessions {
			f(s)
		}
	}
}

// Run runs one job. See Driver.
func (d *EventLoops) Run(ctx context.Context, job Job) (*Measurement, error) {
	if err := d.check(job); err != nil {
		return nil, err
	}
	origin := time.Now()
	run := newRun(job)
	// A loop without a connection to each endpoint could not follow redirects.
	loops := d.loops[:min(len(d.loops), job.Clients/len(d.endpoints))]
	d.prepare(run, job, loops, origin)
	defer d.disconnect()
	err := d.connect(ctx, job.Clients, loops)
	if err != nil {
		return nil, err
	}
	connected := time.Since(origin)
	begin, end := span(job, connected)
	var at crew = loopCrew(loops)
	open := make([]*openLoop, len(loops)) // nil each in a closed loop
	if job.Rate > 0 {
		if open, err = openUp(job, loops, connected); err != nil {
			return nil, err
		}
		at = openCrew{loopCrew(loops), run, ctx.Done()}
	}
	for i, l := range loops {
		err := l.execute(func() {
			l.shard.begin, l.shard.end, l.open = begin, end, open[i]
			l.sessions(func(s *session) {
				if !s.lost {
					l.send(s, l.now())
				}
			})
		})
		if err != nil {
			return nil, fmt.Errorf("starting the load: %w", err)
		}
	}
	if job.Rate > 0 {
		ringing, silence := context.WithCancel(context.WithoutCancel(ctx))
		var ringer sync.WaitGroup
		ringer.Go(func() { ringBells(ringing, job, origin.Add(connected), open) })
		defer ringer.Wait()
		defer silence()
	}
	w := window{job: job, run: run, crew: at, origin: origin, begin: begin, end: end}
	if err := w.wait(ctx); err != nil {
		return nil, err
	}
	var shards []*shard
	var books []*book
	for _, l := range loops {
		shards, books = append(shards, l.shard), append(books, l.shard.book)
	}
	m := d.collect(job, shards, books)
	m.Start, m.Connect, m.Loops = origin.Add(begin), connected, len(loops)
	if m.LostConnections == job.Clients {
		return m, allLost(job, m)
	}
	return m, nil
}

// prepare gives each loop an empty shard.
func (d *EventLoops) prepare(run *run, job Job, loops []*loop, origin time.Time) {
	for _, l := range d.loops {
		l.conns = nil
	}
	for i, l := range loops {
		l.origin, l.told = origin, false
		l.idle = make(chan struct{})
		l.shard = d.newShard(run, job, d.newBook())
		for e := range d.endpoints {
			n := d.newNode(e)
			// Connection c goes to endpoint c mod M and to loop c/M mod L.
			l.shard.active += share(share(job.Clients, e, len(d.endpoints)), i, len(loops))
			l.shard.nodes = append(l.shard.nodes, n)
		}
	}
}

// connect opens the connections and spreads them over the loops.
func (d *EventLoops) connect(ctx context.Context, clients int, loops []*loop) error {
	var mu sync.Mutex
	return dialAll(ctx, clients, d.endpoints, func(i int, c net.Conn) error {
		l := loops[i/len(d.endpoints)%len(loops)]
		s := &session{shard: l.shard, node: l.shard.nodes[i%len(d.endpoints)]}
		gc, err := l.client.EnrollContext(c, s)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		s.out = gc
		s.node.sessions = append(s.node.sessions, s)
		l.conns = append(l.conns, gc)
		return nil
	})
}

// disconnect resets the connections that are still open: see reset.
func (d *EventLoops) disconnect() {
	for _, l := range d.loops {
		// The only error is that the loop has been stopped, which closes
		// the connections too.
		_ = l.execute(func() {
			for _, c := range l.conns {
				if s, ok := c.Context().(*session); ok { // else it is closed
					s.lose()
					_ = c.SetLinger(0)
					_ = c.EventLoop().Close(c)
				}
			}
			if l.open != nil {
				l.open.close()
				l.open = nil
			}
		})
	}
}

// loopCrew is the crew of event loops.
type loopCrew []*loop

func (c loopCrew) wait() {
	for _, l := range c {
		<-l.idle
	}
}

func (c loopCrew) replies() (n int64) {
	for _, l := range c {
		_ = l.execute(func() { n += l.shard.m.Received + l.shard.m.Failed })
	}
	return n
}

func (c loopCrew) abandon() {
	for _, l := range c {
		_ = l.execute(func() {
			l.sessions(func(s *session) {
				if !s.ended {
					l.shard.fail(timeoutError, noReply)
					s.lose()
				}
			})
			l.tell()
		})
	}
}
