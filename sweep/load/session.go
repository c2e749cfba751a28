package load

import (
	"bytes"
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
	shard   *shard
	scan    resp.Scanner
	open    int           // requests in flight
	start   time.Duration // when the batch was written
	counted bool          // the batch was taken from the shard's quota
	ended   bool          // the session has sent its last batch, or its connection is lost
}

// A shard is what the sessions of one event loop share: the window, the
// source of requests and the counts. Only that loop touches it, so that
// nothing is locked; shards are merged when the job is over. Times are
// durations since the job's origin.
type shard struct {
	depth      int
	source     *workload.Source
	begin, end time.Duration // the window; end is 0 when a quota ends it
	quota      int64         // requests still to be sent in the window, when end is 0
	stopped    bool          // nothing more is to be sent
	batch      []byte        // the bytes of the batch being sent

	active int           // sessions that have not ended
	last   time.Duration // when the last counted reply came

	m Measurement
}

// next returns the bytes to send at time now, valid until another session of
// the shard calls next, or nil when the session has sent its last.
func (s *session) next(now time.Duration) []byte {
	sh := s.shard
	n := sh.depth
	s.counted = false
	switch {
	case sh.stopped:
		n = 0
	case now < sh.begin, sh.end > 0:
	default:
		n = int(min(int64(n), sh.quota))
		sh.quota -= int64(n)
		s.counted = true
	}
	if n == 0 {
		s.finish()
		return nil
	}
	sh.batch = sh.source.Append(sh.batch[:0], n)
	s.open, s.start = n, now
	sh.m.Sent += int64(n)
	if s.counted || now >= sh.begin && now < sh.end {
		sh.m.BytesOut += int64(len(sh.batch))
	}
	return sh.batch
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
	var ok, failed int64
	for len(data) > 0 && err == nil {
		var n int
		var done bool
		n, done, err = s.scan.Scan(data)
		data = data[n:]
		switch {
		case !done || s.scan.Kind() == '>':
			continue // a push message answers no request
		case s.open == 0:
			err = &resp.SyntaxError{Text: "a reply that no request was sent for"}
			continue
		case s.scan.IsError():
			failed++
			sh.countError(in, s.scan.ErrorText())
		default:
			ok++
			if in && s.scan.Null() {
				sh.m.Nulls++
			}
		}
		s.open--
	}
	sh.m.Received += ok
	sh.m.Failed += failed
	if in && ok+failed > 0 {
		sh.count(now, s.start, ok, failed)
		if s.open == 0 {
			sh.m.BatchTime += now - s.start
		}
	}
	return s.open == 0 && ok+failed > 0, err
}

// inWindow reports whether what arrives at time now counts.
func (s *session) inWindow(now time.Duration) bool {
	if s.shard.end == 0 {
		return s.counted
	}
	return now >= s.shard.begin && now < s.shard.end
}

// count adds replies to the window's counts.
func (sh *shard) count(now, start time.Duration, ok, failed int64) {
	sh.last = now
	sh.m.Requests += ok
	sh.m.Latency.record(now-start, ok+failed)
	i := int((now - sh.begin) / interval)
	for len(sh.m.Intervals) <= i {
		sh.m.Intervals = append(sh.m.Intervals, 0)
	}
	sh.m.Intervals[i] += ok
}

// maxClasses bounds how many kinds of error are told apart.
const maxClasses = 16

// countError adds an error reply to its class, the first word of its text.
func (sh *shard) countError(in bool, text []byte) {
	if !in {
		return
	}
	class := text
	if i := bytes.IndexByte(text, ' '); i > 0 {
		class = text[:i]
	}
	e, known := sh.m.Errors[string(class)] // does not allocate
	if known {
		e.Count++
		sh.m.Errors[string(class)] = e
		return
	}
	name := string(class[:min(len(class), 40)])
	if len(sh.m.Errors) >= maxClasses {
		name = "other"
	}
	sh.m.addError(name, ErrorClass{1, string(text[:min(len(text), 200)])})
}

// finish ends the session; it may be called again.
func (s *session) finish() {
	if !s.ended {
		s.ended = true
		s.shard.active--
	}
}

// lose ends the session because its connection is gone: what was in flight
// is lost.
func (s *session) lose() {
	if s.ended {
		return
	}
	s.shard.m.Lost += int64(s.open)
	s.shard.m.LostConnections++
	s.open = 0
	s.finish()
}
