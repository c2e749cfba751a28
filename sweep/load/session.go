package load

import (
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/poolsweep/poolsweep/internal/resp"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// A session is one connection's side of the load, without the transport: it
// says which bytes to send next and takes the bytes received. It sends a
// batch of requests, waits for all their replies and sends the next batch
// with the same clock reading that ended the last one, so that no time falls
// between two requests: what the generator itself makes a request wait is in
// the latency.
type session struct {
	shard *shard
	node  *node     // whose connection it is
	out   io.Writer // to it; only event loops need it here
	scan  resp.Scanner

	size  int           // requests in the batch
	open  int           // those of them without an answer
	due   int           // those of them whose reply comes over this connection
	start time.Duration // when the batch was written
	from  time.Duration // what latencies begin with: start, or when the batch was due
	kinds []uint8       // command of each; empty when there is but one
	batch []byte        // its bytes, where the shard keeps them

	counted bool // the batch was taken from the quota, or was due in the window
	ended   bool // the session has sent its last batch, or its connection is lost
	lost    bool // its connection is lost, or given up

	// Requests written to the connection and replies read from it, guests
	// included.
	written, read int64
	guests        []guest // on their way, in the order of their replies
}

// A node is one of the servers that the sessions of a shard are connected to.
type node struct {
	index    int // of its endpoint
	addr     string
	source   *workload.Source
	sessions []*session // those that can take guests
	turn     int        // which of them had the last one

	// In an open loop: sessions without a batch, and batches without a
	// session. One of them is empty.
	idle  []*session
	queue queue
}

// A run is what all shards of a job have in common.
type run struct {
	depth   int
	quota   atomic.Int64  // requests still to be sent in the window, when it has no end
	stopped atomic.Bool   // nothing more is to be sent
	over    chan struct{} // closed then
}

// stop stops the load. It must be called once.
func (r *run) stop() {
	r.stopped.Store(true)
	close(r.over)
}

// take takes up to n requests from the quota.
func (r *run) take(n int) int {
	left := r.quota.Add(-int64(n))
	return max(0, n+int(min(0, left)))
}

// A shard is what the sessions of one goroutine share: the window, the nodes
// with the sources of requests, and the counts. Only that goroutine touches
// it, so that nothing is locked; shards are merged when the job is over. Times
// are durations since the job's origin.
type shard struct {
	run        *run
	nodes      []*node
	cluster    bool          // nodes redirect: sessions keep their batches
	mixed      bool          // there are several commands
	begin, end time.Duration // the window; end is 0 when a quota ends it
	batch      []byte        // the bytes of the batch being sent
	passing    []byte        // the bytes of a guest being sent

	active int           // sessions that have not ended
	last   time.Duration // when the last counted reply came
	ready  []*session    // whose last answer came over another connection

	ledger
	m Measurement
}

// next returns the bytes to send at time now, valid until another session of
// the shard calls next, or nil when the session has sent its last.
func (s *session) next(now time.Duration) []byte {
	sh := s.shard
	n := sh.run.depth
	s.counted = false
	switch {
	case sh.run.stopped.Load():
		n = 0
	case now < sh.begin, sh.end > 0:
	default:
		n = sh.run.take(n)
		s.counted = true
	}
	if n == 0 {
		s.finish()
		return nil
	}
	return s.fill(now, now, n)
}

// fill makes a batch of n requests that is written at time now and timed from
// another.
func (s *session) fill(now, from time.Duration, n int) []byte {
	sh := s.shard
	batch := &sh.batch
	if sh.cluster {
		batch = &s.batch
	}
	*batch = s.node.source.Append((*batch)[:0], n)
	if sh.mixed {
		s.kinds = append(s.kinds[:0], s.node.source.Kinds()...)
	}
	s.size, s.open, s.due, s.start, s.from = n, n, n, now, from
	s.written += int64(n)
	sh.m.Sent += int64(n)
	if s.inWindow(now) {
		sh.m.BytesOut += int64(len(*batch))
	}
	return *batch
}

// receive takes bytes that arrived at time now and reports whether the batch
// is answered, so that next is to be called. An error is a
// *resp.SyntaxError: the connection is of no more use.
func (s *session) receive(now time.Duration, data []byte) (answered bool, err error) {
	sh := s.shard
	in := s.inWindow(now)
	if in {
		sh.m.BytesIn += int64(len(data))
	}
	before := s.open
	var o outcome
	for len(data) > 0 && err == nil {
		var n int
		var done bool
		n, done, err = s.scan.Scan(data)
		data = data[n:]
		if !done || s.scan.Kind() == '>' {
			continue // a push message answers no request
		}
		s.read++
		if len(s.guests) > 0 && s.guests[0].at == s.read {
			s.serve(now)
			continue
		}
		if s.due == 0 {
			err = &resp.SyntaxError{Text: "a reply that no request was sent for"}
			continue
		}
		index := s.size - s.due
		s.due--
		if sh.cluster && s.redirect(now, guest{home: s, index: index}) {
			continue // it will be answered elsewhere
		}
		s.open--
		o.add(&s.scan)
		if s.scan.IsError() {
			sh.countError(in, s.scan.ErrorText())
		}
		if len(s.kinds) > 0 {
			sh.count(now, s, s.node, s.kinds[index], o)
			o = outcome{}
		}
	}
	if o != (outcome{}) {
		sh.count(now, s, s.node, 0, o)
	}
	answered = before > 0 && s.open == 0
	if in && answered {
		sh.m.BatchTime += now - s.start
	}
	return answered, err
}

// inWindow reports whether what arrives at time now counts.
func (s *session) inWindow(now time.Duration) bool {
	if s.shard.end == 0 || s.shard.m.Open != nil {
		return s.counted
	}
	return now >= s.shard.begin && now < s.shard.end
}

// An outcome is what some requests were answered with.
type outcome struct {
	ok, failed, nulls int32 // nulls are some of ok
}

// add adds the reply just completed.
func (o *outcome) add(s *resp.Scanner) {
	switch {
	case s.IsError():
		o.failed++
	case s.Null():
		o.nulls++
		fallthrough
	default:
		o.ok++
	}
}

// count adds requests of one command of a session, all answered by the node at
// time now.
func (sh *shard) count(now time.Duration, s *session, n *node, kind uint8, o outcome) {
	ok := int64(o.ok)
	sh.m.Received += ok
	sh.m.Failed += int64(o.failed)
	if sh.m.Open != nil && sh.counts(now) {
		sh.m.Open.Answered += ok
	}
	if !s.inWindow(now) {
		return
	}
	sh.last = now
	sh.m.Requests += ok
	sh.m.Nulls += int64(o.nulls)
	sh.enter(entry{outcome: o, latency: now - s.from, node: uint16(n.index), kind: kind})
	if sh.m.Open != nil {
		return // replies may come after the window
	}
	i := int((now - sh.begin) / interval)
	for len(sh.m.Intervals) <= i {
		sh.m.Intervals = append(sh.m.Intervals, 0)
	}
	sh.m.Intervals[i] += ok
}

// finish ends the session; it may be called again.
func (s *session) finish() {
	if !s.ended {
		s.ended = true
		s.shard.active--
	}
}

// drop gives up what is in flight on the connection, which is gone: it is lost.
func (s *session) drop() {
	sh := s.shard
	for _, g := range s.guests {
		if h := g.home; h != nil && !h.lost {
			sh.m.Lost++
			h.open--
			if h != s && h.open == 0 {
				sh.ready = append(sh.ready, h)
			}
		}
	}
	s.guests = slices.Delete(s.guests, 0, len(s.guests))
	sh.m.Lost += int64(s.open)
	s.open, s.due = 0, 0
}

// lose ends the session because its connection is gone.
func (s *session) lose() {
	if s.lost {
		return
	}
	s.drop()
	s.lost = true
	if !s.ended {
		s.shard.m.LostConnections++
		s.finish()
	}
}
