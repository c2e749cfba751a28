package verify

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/arrivals"
)

// A Trial is one pool under arrivals at one rate, for a moment. Facts only.
type Trial struct {
	Pool  int     `json:"pool"`     // connections
	Rate  float64 `json:"rate_qps"` // of arrivals, intended
	Round int     `json:"round"`    // from 1

	// What became of the requests that were due in the window:
	// Due = Sent + Dropped, and Failed of those sent had an error for a
	// reply, or none.
	Due     int64 `json:"due"`
	Sent    int64 `json:"sent"`
	Failed  int64 `json:"failed"`
	Dropped int64 `json:"dropped"` // too many were outstanding already

	// Timeouts is how many of Failed had no connection within the pool
	// timeout.
	Timeouts   int64  `json:"timeouts"`
	FirstError string `json:"first_error,omitempty"`

	// Answered is the number of replies that came within the window, to
	// whatever request. Well below Due, the pool is overloaded.
	Answered int64 `json:"answered"`

	// Latency in seconds, from when a request was due to its reply. Requests
	// that failed are in it; those dropped count as slower than all. P99 is
	// unknown with less than 1,000 requests, P999 with less than 10,000.
	Mean analyze.Quantity `json:"mean_s"`
	P50  analyze.Quantity `json:"p50_s"`
	P95  analyze.Quantity `json:"p95_s"`
	P99  analyze.Quantity `json:"p99_s"`
	P999 analyze.Quantity `json:"p999_s"`

	// P99Sent is what P99 would be from when requests were sent. What P99 is
	// above it is the generator's.
	P99Sent analyze.Quantity `json:"p99_from_sent_s"`

	// Slip is how late requests were sent, in seconds. It is the fault of
	// the generator and is in the latency.
	Slip    analyze.Quantity `json:"slip_mean_s"`
	SlipP99 analyze.Quantity `json:"slip_p99_s"`

	// WaitShare is the share of the requests that waited for a connection,
	// Wait for how long, the mean over all requests in seconds, and Held how
	// long one was then held, the mean in seconds: Mean = Slip + Wait + Held,
	// as far as none has failed.
	WaitShare analyze.Quantity `json:"wait_ratio"`
	Wait      analyze.Quantity `json:"wait_s"`
	Held      analyze.Quantity `json:"held_s"`

	// Opened is how many connections were opened in the window; all were
	// open before it.
	Opened int64 `json:"opened"`

	Load
}

// Achieved returns the replies over the requests that were due; 1 means that
// the pool keeps up.
func (t Trial) Achieved() float64 { return float64(t.Answered) / float64(max(1, t.Due)) }

// A request is one arrival.
type request struct {
	due  time.Duration // from the origin
	args []any
}

// An openLoop sends requests through a client when they are due. A request is
// given to a worker, a goroutine that waits for the reply; a worker more is
// started when none is free. There are at most limit of them: what is due when
// all wait is dropped and counted, since a generator that piles up requests
// without bound ends with its memory.
type openLoop struct {
	client      *redis.Client
	origin      time.Time
	warmup, end time.Duration // the window, from the origin
	limit       int

	work    chan request
	workers sync.WaitGroup
	started int // workers

	due, dropped int64            // in the window
	before       *redis.PoolStats // when the window begins; nil until then

	shards [shards]shard
}

// shards is among how many the workers' times are divided, so that two seldom
// meet at a lock.
const shards = 8

type shard struct {
	mu sync.Mutex
	counts
}

// counts are what workers record.
type counts struct {
	times            arrivals.Times
	answered, failed int64
	timeouts         int64
	first            error
}

// stall is how long a server may stall without a request being dropped, and
// maxWorkers what bounds it: a worker takes about 10 kB.
const (
	stall      = time.Second
	minWorkers = 1000
	maxWorkers = 10000
)

// open runs a trial.
func (r *run) open(ctx context.Context, x cell) (*Trial, error) {
	client, err := newClient(ctx, r.Server.Target.Dial, x.size, r.PoolTimeout)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	o := r.openLoop(client, x)
	observed := r.observe(ctx, o)
	err = r.drive(ctx, o, x)
	load := <-observed
	if err != nil {
		return nil, err
	}
	t := o.trial(client.PoolStats())
	t.Pool, t.Rate, t.Load = x.size, x.rate, load
	return t, nil
}

func (r *run) openLoop(client *redis.Client, x cell) *openLoop {
	return &openLoop{
		client: client, origin: time.Now(), warmup: r.Warmup, end: r.Warmup + r.Duration,
		limit: min(max(int(x.rate*stall.Seconds()), minWorkers+x.size), maxWorkers),
		work:  make(chan request),
	}
}

// drive sends what is due in the time of o, and waits for the replies.
func (r *run) drive(ctx context.Context, o *openLoop, x cell) error {
	process, err := arrivals.New(r.Arrivals, x.rate, x.seed)
	if err != nil {
		return err
	}
	source := r.source()
	err = r.pacer.Pace(ctx, o.origin, process, o.end, func(due time.Duration) {
		o.send(ctx, request{due, source.next()})
	})
	close(o.work)
	o.workers.Wait() // a request waits no longer than its timeouts
	return err
}

// send gives a request that is due to a worker.
func (o *openLoop) send(ctx context.Context, r request) {
	counts := r.due >= o.warmup
	if counts {
		if o.due == 0 {
			o.before = o.client.PoolStats()
		}
		o.due++
	}
	select {
	case o.work <- r:
		return
	default: // none is free
	}
	if o.started == o.limit {
		if counts {
			o.dropped++
		}
		return
	}
	id := o.started
	o.started++
	o.workers.Go(func() {
		for ok := true; ok; r, ok = <-o.work {
			o.do(ctx, id, r)
		}
	})
}

// do sends a request, waits for its reply and records it.
func (o *openLoop) do(ctx context.Context, worker int, r request) {
	sent := time.Since(o.origin)
	err := o.client.Do(ctx, r.args...).Err()
	done := time.Since(o.origin)
	if errors.Is(err, redis.Nil) {
		err = nil // a key that is not there
	}
	s := &o.shards[worker%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && done >= o.warmup && done < o.end {
		s.answered++
	}
	if r.due < o.warmup {
		return
	}
	s.times.Record(r.due, sent, done)
	if err != nil {
		s.fail(err)
	}
}

func (c *counts) fail(err error) {
	c.failed++
	if errors.Is(err, redis.ErrPoolTimeout) {
		c.timeouts++
	}
	// A timeout is counted; of the others the text matters.
	if c.first == nil || errors.Is(c.first, redis.ErrPoolTimeout) {
		c.first = err
	}
}

// merged returns what all workers have recorded; they must have ended.
func (o *openLoop) merged() *counts {
	sum := new(counts)
	for i := range o.shards {
		s := &o.shards[i]
		sum.times.Merge(&s.times)
		sum.answered += s.answered
		sum.failed += s.failed
		sum.timeouts += s.timeouts
		if sum.first == nil || errors.Is(sum.first, redis.ErrPoolTimeout) && s.first != nil {
			sum.first = s.first
		}
	}
	return sum
}

// trial makes the Trial of what was recorded. The counters of the pool are
// those between the first request of the window and the last reply.
func (o *openLoop) trial(after *redis.PoolStats) *Trial {
	c := o.merged()
	u := analyze.Unknown()
	t := &Trial{
		Due: o.due, Sent: c.times.Count(), Failed: c.failed, Dropped: o.dropped, Timeouts: c.timeouts, Answered: c.answered,
		P50: quantile(&c.times, .5, o.dropped), P95: quantile(&c.times, .95, o.dropped),
		P99: quantile(&c.times, .99, o.dropped), P999: quantile(&c.times, .999, o.dropped),
		Mean: u, P99Sent: u, Slip: u, SlipP99: u, WaitShare: u, Wait: u, Held: u,
	}
	if c.first != nil {
		t.FirstError = c.first.Error()
	}
	if t.Sent == 0 {
		return t
	}
	t.Mean = analyze.Quantity(c.times.MeanLatency().Seconds())
	t.Slip = analyze.Quantity(c.times.MeanSlip().Seconds())
	if t.P99.Known() {
		t.P99Sent = analyze.Quantity(c.times.FromSent(.99).Seconds())
	}
	t.SlipP99 = analyze.Quantity(c.times.Slip(.99).Seconds())

	t.Opened = int64(after.Misses - o.before.Misses)
	// Of those that timed out go-redis keeps the number, not the time.
	waited := int64(after.WaitCount-o.before.WaitCount) + c.timeouts
	asked := int64(after.Hits-o.before.Hits) + t.Opened + c.timeouts
	if asked > 0 {
		t.WaitShare = analyze.Quantity(float64(waited) / float64(asked))
	}
	if c.timeouts == 0 && asked > 0 {
		t.Wait = analyze.Quantity(float64(after.WaitDurationNs-o.before.WaitDurationNs) / 1e9 / float64(asked))
		t.Held = t.Mean - t.Slip - t.Wait
	}
	return t
}

// quantile returns a quantile of the latency in seconds. It is unknown when
// fewer than ten requests lie beyond it.
func quantile(t *arrivals.Times, q float64, dropped int64) analyze.Quantity {
	const beyond = 10
	d, ok := t.Latency(q, dropped)
	if !ok || float64(t.Count()+dropped)*(1-q) < beyond*(1-1e-9) {
		return analyze.Unknown()
	}
	return analyze.Quantity(d.Seconds())
}
