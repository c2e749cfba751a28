package load

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/poolsweep/poolsweep/internal/resp"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// Conns is a Driver with a goroutine a connection, for connections of any kind
// (TLS), and for a new connection for each batch. It costs more CPU a request
// than EventLoops.
type Conns struct {
	base
	perRequest bool
}

// NewConns returns a driver that sends w: part j of it to endpoint j. There
// must be as many endpoints as w has parts. With perRequest it opens a
// connection for each batch of requests and closes it after the replies; the
// latency then begins before the connection is opened.
func NewConns(w *workload.Workload, perRequest bool, endpoints ...Endpoint) (*Conns, error) {
	b, err := newBase(w, endpoints)
	if err != nil {
		return nil, err
	}
	return &Conns{base: b, perRequest: perRequest}, nil
}

// Close has nothing to do: no connection outlives its job.
func (d *Conns) Close() error { return nil }

// Run runs one job. See Driver.
func (d *Conns) Run(ctx context.Context, job Job) (*Measurement, error) {
	if err := d.check(job); err != nil {
		return nil, err
	}
	if job.Rate > 0 {
		return nil, errors.New("driving an open loop: it takes event loops, which have no TLS and keep their connections")
	}
	origin := time.Now()
	dialing, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &connCrew{run: newRun(job), giveUp: cancel}
	shared := d.newBook()
	for i := range job.Clients {
		c.conns = append(c.conns, d.newConn(dialing, c.run, job, shared, i%len(d.endpoints), origin))
	}
	defer c.disconnect()
	if err := d.connect(ctx, c); err != nil {
		return nil, err
	}
	connected := time.Since(origin)
	begin, end := span(job, connected)
	var shards []*shard
	for _, x := range c.conns {
		x.shard.begin, x.shard.end = begin, end
		shards = append(shards, x.shard)
		c.running.Go(func() { x.drive(dialing, d.perRequest) })
	}
	w := window{job: job, run: c.run, crew: c, origin: origin, begin: begin, end: end}
	if err := w.wait(ctx); err != nil {
		return nil, err
	}
	m := d.collect(job, shards, []*book{shared})
	m.Start, m.Connect = origin.Add(begin), connected
	if c.allLost() {
		return m, allLost(job, m)
	}
	return m, nil
}

// connect opens the connections. Where each request opens its own, one to each
// endpoint shows whether that works.
func (d *Conns) connect(ctx context.Context, c *connCrew) error {
	if d.perRequest {
		// Not reset: a server that finds it so counts a rejected connection.
		return dialAll(ctx, len(d.endpoints), d.endpoints, func(_ int, nc net.Conn) error { return nc.Close() })
	}
	return dialAll(ctx, len(c.conns), d.endpoints, func(i int, nc net.Conn) error {
		c.conns[i].keep(nc)
		return nil
	})
}

// A clientConn is one client: a connection, or one after another, with the
// goroutine that drives it. It has a shard of its own.
type clientConn struct {
	*session
	dial     func(context.Context) (net.Conn, error)
	origin   time.Time
	in       []byte       // what is read
	answered atomic.Int64 // batches
	detours  []*detour    // to the other nodes of a cluster

	mu        sync.Mutex // taken to change nc, not to use it
	nc        net.Conn   // nil: none is open
	abandoned bool
}

const (
	// minRead and maxRead bound the buffer of a connection: it grows when
	// replies fill it.
	minRead = 4 << 10
	maxRead = 64 << 10
)

func (d *Conns) newConn(ctx context.Context, r *run, job Job, b *book, endpoint int, origin time.Time) *clientConn {
	sh := d.newShard(r, job, b)
	sh.held = make([]entry, 0, entriesHeld)
	sh.active = 1
	c := &clientConn{
		session: &session{shard: sh, node: d.newNode(endpoint)},
		dial:    d.endpoints[endpoint].Dial,
		origin:  origin,
		in:      make([]byte, minRead),
	}
	if sh.cluster {
		c.addDetours(ctx, d.endpoints)
	}
	return c
}

func (c *clientConn) now() time.Duration { return time.Since(c.origin) }

// drive sends batch after batch until there are no more.
func (c *clientConn) drive(ctx context.Context, perRequest bool) {
	defer c.shard.flush()
	now := c.now()
	for {
		b := c.next(now)
		if b == nil {
			return
		}
		var err error
		if perRequest {
			now, err = c.exchangeAnew(ctx, b)
		} else {
			now, err = c.exchange(b)
		}
		if err != nil {
			c.lose()
			return
		}
		c.answered.Add(1)
	}
}

// exchange writes a batch, reads its replies and returns when they were there.
// Its error has been counted.
func (c *clientConn) exchange(b []byte) (time.Duration, error) {
	if _, err := c.nc.Write(b); err != nil {
		return 0, c.broken(err)
	}
	now := c.start
	for c.open > 0 {
		if c.due == 0 && len(c.guests) == 0 {
			now = c.takeDetours()
			continue
		}
		n, err := c.nc.Read(c.in)
		now = c.now()
		if n > 0 {
			if _, err := c.receive(now, c.in[:n]); err != nil {
				c.shard.fail(protocolError, err.Error())
				return now, err
			}
		}
		if err != nil {
			return now, c.broken(err)
		}
		c.in = grown(c.in, n)
	}
	return now, nil
}

// grown returns the buffer for the next reading after one of n bytes.
func grown(in []byte, n int) []byte {
	if n == len(in) && n < maxRead {
		return make([]byte, 2*n)
	}
	return in
}

// broken counts the end of the connection.
func (c *clientConn) broken(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) { // only abandon sets a deadline
		c.shard.fail(timeoutError, noReply)
	} else {
		c.shard.fail(connectionError, closedText(err))
	}
	return err
}

const (
	// maxAttempts is how often in a row a client tries to open a connection
	// for one batch. The pause between two attempts doubles from minPause to
	// maxPause: all in all about half a second.
	maxAttempts = 10
	minPause    = time.Millisecond
	maxPause    = 100 * time.Millisecond
)

// exchangeAnew is exchange over a connection of its own.
func (c *clientConn) exchangeAnew(ctx context.Context, b []byte) (time.Duration, error) {
	if err := c.connect(ctx); err != nil {
		return 0, err
	}
	c.scan = resp.Scanner{} // a push message may have been cut off
	now, err := c.exchange(b)
	c.hangUp()
	return now, err
}

// connect opens the connection, in several attempts if need be. Its error has
// been counted.
func (c *clientConn) connect(ctx context.Context) error {
	pause := minPause
	for attempt := 1; ; attempt++ {
		nc, err := c.dial(ctx)
		if err == nil {
			c.keep(nc)
			return nil
		}
		if ctx.Err() != nil {
			c.shard.fail(timeoutError, noReply)
			return err
		}
		c.shard.fail(connectError, err.Error())
		if attempt == maxAttempts || c.shard.run.stopped.Load() {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		pause = min(2*pause, maxPause)
	}
}

// keep takes over a connection.
func (c *clientConn) keep(nc net.Conn) { c.hold(&c.nc, nc) }

// hold makes a connection of the client's what at points to.
func (c *clientConn) hold(at *net.Conn, nc net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.abandoned {
		_ = nc.SetDeadline(longPast)
	}
	*at = nc
}

// longPast is the deadline of what is abandoned.
var longPast = time.Unix(1, 0)

// hangUp closes the connections that are open.
func (c *clientConn) hangUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, at := range c.standing() {
		reset(*at)
		*at = nil
	}
}

// abandon ends the wait for a reply.
func (c *clientConn) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.abandoned = true
	for _, at := range c.standing() {
		_ = (*at).SetDeadline(longPast)
	}
}

// standing returns where the connections are that are open.
func (c *clientConn) standing() (all []*net.Conn) {
	if c.nc != nil {
		all = append(all, &c.nc)
	}
	for _, d := range c.detours {
		if d.nc != nil {
			all = append(all, &d.nc)
		}
	}
	return all
}

// connCrew is the crew of a job of Conns.
type connCrew struct {
	run     *run
	conns   []*clientConn
	running sync.WaitGroup
	giveUp  context.CancelFunc // ends what is being dialled
}

func (c *connCrew) wait() { c.running.Wait() }

func (c *connCrew) replies() (n int64) {
	for _, x := range c.conns {
		n += x.answered.Load()
	}
	return n
}

func (c *connCrew) abandon() {
	c.giveUp()
	for _, x := range c.conns {
		x.abandon()
	}
}

func (c *connCrew) disconnect() {
	for _, x := range c.conns {
		x.hangUp()
	}
}

// allLost reports whether no client could go on to the end.
func (c *connCrew) allLost() bool {
	return !slices.ContainsFunc(c.conns, func(x *clientConn) bool { return !x.lost })
}
