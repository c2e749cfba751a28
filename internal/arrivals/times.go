package arrivals

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// A time is recorded from 1 ns to ten minutes with three significant
	// digits, so that a quantile is at most 0.1 % off. Longer ones count as
	// ten minutes.
	longest = 10 * time.Minute
	digits  = 3
)

// Times are what requests of an open loop took. The zero value is empty and
// ready to use. It must not be used by two goroutines at once: each has its
// own, and they are merged at the end.
type Times struct {
	count      int64
	latency    *hdrhistogram.Histogram // from due to done
	sent       *hdrhistogram.Histogram // from sent to done
	slip       *hdrhistogram.Histogram // from due to sent
	latencySum time.Duration
	slipSum    time.Duration
}

// Record adds a request that was due, was sent and was done then, all from one
// origin. It allocates only for the first one.
func (t *Times) Record(due, sent, done time.Duration) {
	t.ready()
	t.count++
	t.latencySum += done - due
	t.slipSum += sent - due
	record(t.latency, done-due)
	record(t.sent, done-sent)
	record(t.slip, sent-due)
}

func (t *Times) ready() {
	if t.latency == nil {
		t.latency, t.sent, t.slip = newHistogram(), newHistogram(), newHistogram()
	}
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(longest), digits)
}

func record(h *hdrhistogram.Histogram, d time.Duration) {
	// The only error is a value out of range, which this cannot be.
	_ = h.RecordValue(int64(min(max(d, 1), longest)))
}

// Merge adds the requests of o.
func (t *Times) Merge(o *Times) {
	if o.latency == nil {
		return
	}
	t.ready()
	t.count += o.count
	t.latencySum += o.latencySum
	t.slipSum += o.slipSum
	t.latency.Merge(o.latency)
	t.sent.Merge(o.sent)
	t.slip.Merge(o.slip)
}

// Count returns the number of requests.
func (t *Times) Count() int64 { return t.count }

// Latency returns the latency, from due to done, that the share q of the
// requests, from 0 to 1, do not exceed. missing is the number of requests that
// were due and never sent: they count as slower than any other. It returns
// false when one of these is asked for, or when there is no request at all.
func (t *Times) Latency(q float64, missing int64) (time.Duration, bool) {
	if t.count == 0 {
		return 0, false
	}
	share := q * float64(t.count+missing) / float64(t.count)
	if share > 1 || math.IsNaN(share) {
		return 0, false
	}
	return time.Duration(t.latency.ValueAtQuantile(share * 100)), true
}

// MeanLatency returns the exact mean of the latency of those sent; 0 when
// there is none.
func (t *Times) MeanLatency() time.Duration { return t.latencySum / time.Duration(max(1, t.count)) }

// FromSent returns what Latency would be for a generator that is never late,
// or that looks away: from sent to done, of the requests that were sent. 0 when
// there is none.
func (t *Times) FromSent(q float64) time.Duration {
	if t.count == 0 {
		return 0
	}
	return time.Duration(t.sent.ValueAtQuantile(q * 100))
}

// Slip returns how late the generator was, from due to sent, for the share q
// of the requests; 0 when there is none. It is in the latency, and is not the
// server's.
func (t *Times) Slip(q float64) time.Duration {
	if t.count == 0 {
		return 0
	}
	return time.Duration(t.slip.ValueAtQuantile(q * 100))
}

// MeanSlip returns the exact mean of the slip; 0 when there is none.
func (t *Times) MeanSlip() time.Duration { return t.slipSum / time.Duration(max(1, t.count)) }
