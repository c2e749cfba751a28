package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/panjf2000/gnet/v2"

	"github.com/poolsweep/poolsweep/internal/arrivals"
)

// patience is how long, after the window of an open loop, requests that were
// due in it may still wait for a connection. Those of a server that keeps up
// need far less; behind one that does not, the queue has no end.
const patience = time.Second

// An openLoop is the open loop of one event loop: the requests that are due
// there, whether or not a connection is free. Of the arrivals of a job, loop i
// of n takes the ones numbered i, i+n, i+2n and so on, so that all loops
// together have just the arrivals that one would have. Only the loop's
// goroutine touches it, but for the bell.
type openLoop struct {
	process *arrivals.Process // of all loops
	others  int               // arrivals of the other loops between two of ours
	started time.Duration     // origin of process
	next    time.Duration     // when the next of ours is due
	turn    int               // node that it goes to
	room    int               // the most that wait for one node
	last    bool              // nothing more is sent that is due after the window
	bell    *bell
}

// newOpenLoop returns the open loop of the i-th of n event loops, without a
// bell.
func newOpenLoop(job Job, i, n int, started time.Duration) (*openLoop, error) {
	p, err := arrivals.New(job.Arrivals, job.Rate/float64(job.Depth), job.Seed)
	if err != nil {
		return nil, err
	}
	o := &openLoop{process: p, others: n - 1, started: started}
	// As much as is due while drainTimeout is waited for a reply.
	o.room = int(job.Rate*drainTimeout.Seconds())/n + 1
	for range i {
		p.Next()
	}
	o.next = started + p.Next()
	return o, nil
}

// take returns when the arrival is due that was next, and goes on to the one
// after it.
func (o *openLoop) take() time.Duration {
	due := o.next
	for range o.others {
		o.process.Next()
	}
	o.next = o.started + o.process.Next()
	return due
}

// A queue holds when the batches were due that wait for a connection, in their
// order. The zero value is empty.
type queue struct {
	due  []time.Duration
	head int // of those that wait
}

func (q *queue) len() int { return len(q.due) - q.head }

func (q *queue) push(due time.Duration) {
	if q.head > 1024 && q.head > len(q.due)/2 {
		q.due = q.due[:copy(q.due, q.due[q.head:])]
		q.head = 0
	}
	q.due = append(q.due, due)
}

func (q *queue) pop() (due time.Duration, ok bool) {
	if q.len() == 0 {
		return 0, false
	}
	due = q.due[q.head]
	q.head++
	return due, true
}

// cut removes those at the end that were due at end or later.
func (q *queue) cut(end time.Duration) {
	for q.len() > 0 && q.due[len(q.due)-1] >= end {
		q.due = q.due[:len(q.due)-1]
	}
}

// takeIdle returns a session of the node that waits for something to send, nil
// for none: the one that has waited least, as pools of clients do.
func (n *node) takeIdle() *session {
	for len(n.idle) > 0 {
		last := len(n.idle) - 1
		s := n.idle[last]
		n.idle = n.idle[:last]
		if !s.lost {
			return s
		}
	}
	return nil
}

// arrive sends what has become due until now, or lets it wait for a
// connection. The caller has set busy.
func (l *loop) arrive(now time.Duration) {
	o, sh := l.open, l.shard
	for o.next <= now && (!o.last || o.next < sh.end) {
		due := o.take()
		n := sh.nodes[o.turn]
		o.turn = (o.turn + 1) % len(sh.nodes)
		if sh.counts(due) {
			sh.m.Open.Due += int64(sh.run.depth)
		}
		if s := n.takeIdle(); s != nil {
			l.write(s, s.arrival(now, due, false))
		} else if n.queue.len() < o.room {
			n.queue.push(due)
		}
	}
}

// release gives a session that has nothing in flight the batch that has waited
// longest for a connection.
func (l *loop) release(s *session, now time.Duration) {
	if due, ok := s.node.queue.pop(); ok {
		l.write(s, s.arrival(now, due, true))
		return
	}
	if l.open.last {
		s.finish()
		l.tell()
		return
	}
	s.node.idle = append(s.node.idle, s)
}

// ring is called when the bell has rung.
func (l *loop) ring() {
	l.open.bell.rung.Store(false)
	now := l.now()
	l.busy = true
	l.arrive(now)
	l.busy = false
	l.proceed(now)
}

// lastCall ends the arrivals: only what was due in the window is still sent.
func (l *loop) lastCall() {
	l.open.last = true
	now := l.now()
	l.busy = true
	l.arrive(now)
	for _, n := range l.shard.nodes {
		n.queue.cut(l.shard.end)
		for s := n.takeIdle(); s != nil; s = n.takeIdle() {
			s.finish()
		}
	}
	l.busy = false
	l.tell()
	l.proceed(now)
}

// never is when the next request is due of a loop that has no more.
const never = math.MaxInt64

// dismiss drops what still waits for a connection, and what comes.
func (l *loop) dismiss() {
	l.open.next = never
	for _, n := range l.shard.nodes {
		n.queue = queue{}
	}
}

// arrival returns the bytes to send at time now of a batch that was due then,
// valid as those of next. waited says that no connection was free before.
func (s *session) arrival(now, due time.Duration, waited bool) []byte {
	sh := s.shard
	n := sh.run.depth
	s.counted = sh.counts(due)
	if s.counted {
		o := sh.m.Open
		slip := now - due
		if waited {
			o.Waited += int64(n)
			o.Wait += slip * time.Duration(n)
			slip = 0 // the server's connections were late, not we
		}
		o.Slip.record(slip, int64(n))
	}
	return s.fill(now, due, n)
}

// counts reports whether a request counts that is due then.
func (sh *shard) counts(due time.Duration) bool { return due >= sh.begin && due < sh.end }

// A bell wakes an event loop from outside without allocating, which gnet's own
// ways do: it is a connection to ourselves that the loop serves like others.
type bell struct {
	rung atomic.Bool // and not heard yet
	rope net.Conn    // pulled outside of the loop
	cup  gnet.Conn   // heard on the loop
}

var stroke = []byte{0}

// pull rings the bell, unless it rings already.
func (b *bell) pull() {
	if !b.rung.Swap(true) {
		_, _ = b.rope.Write(stroke) // fails only when the loop has been stopped
	}
}

// hang gives an event loop a bell.
func (l *loop) hang() (*bell, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	var ends [2]net.Conn
	var errs [2]error
	for i, fd := range fds {
		syscall.CloseOnExec(fd)
		f := os.NewFile(uintptr(fd), "bell")
		ends[i], errs[i] = net.FileConn(f) // a duplicate
		_ = f.Close()
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	b := &bell{rope: ends[0]}
	if b.cup, err = l.client.EnrollContext(ends[1], b); err != nil {
		return nil, errors.Join(err, b.rope.Close())
	}
	return b, nil
}

// openCrew is the crew of event loops with an open loop each.
type openCrew struct {
	loopCrew
	run  *run
	gone <-chan struct{} // the job's context has ended
}

// wait waits, as that of a closed loop; but here nothing ends by itself.
func (c openCrew) wait() {
	idle := make(chan struct{})
	go func() {
		c.loopCrew.wait()
		close(idle)
	}()
	select {
	case <-c.run.over:
	case <-idle: // no connection is left
		c.each((*loop).dismiss)
		return
	}
	c.each((*loop).lastCall)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.gone:
	case <-idle:
		return
	}
	c.each((*loop).dismiss)
	<-idle
}

func (c loopCrew) each(do func(*loop)) {
	for _, l := range c {
		_ = l.execute(func() { do(l) })
	}
}

// openUp returns an open loop for each event loop of a job that begins to load
// at started. Their bells are taken down by disconnect.
func openUp(job Job, loops []*loop, started time.Duration) ([]*openLoop, error) {
	var all []*openLoop
	for i, l := range loops {
		o, err := newOpenLoop(job, i, len(loops), started)
		if err == nil {
			o.bell, err = l.hang()
		}
		if err != nil {
			for _, o := range all {
				_ = o.bell.rope.Close()
			}
			return nil, fmt.Errorf("driving an open loop: %w", err)
		}
		all = append(all, o)
	}
	return all, nil
}

// close takes the bell down, on the loop.
func (o *openLoop) close() {
	_ = o.bell.rope.Close()
	_ = o.bell.cup.EventLoop().Close(o.bell.cup)
}

// ringBells rings the bell of each event loop when one of its arrivals is due,
// until ctx ends. The loops find out for themselves which these are.
func ringBells(ctx context.Context, job Job, start time.Time, all []*openLoop) {
	p, err := arrivals.New(job.Arrivals, job.Rate/float64(job.Depth), job.Seed)
	if err != nil {
		return // as it was for the loops, and then there are none
	}
	turn := 0
	_ = arrivals.Pacer{}.Pace(ctx, start, p, never, func(time.Duration) {
		all[turn].bell.pull()
		turn = (turn + 1) % len(all)
	})
}
