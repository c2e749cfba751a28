package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/poolsweep/poolsweep/internal/resp"
)

// PingInterval is the pause between a reply and the next PING that redis-cli
// --latency makes.
const PingInterval = 10 * time.Millisecond

// pingTimeout is how long a PING may go unanswered. It is long, as a stall is
// what is looked for.
const pingTimeout = 30 * time.Second

// RoundTrips are the times from sending PING to having its reply, one at a
// time over one connection: what the network and a server without load take.
// The times are 0 when Count is.
type RoundTrips struct {
	Elapsed time.Duration `json:"elapsed_ns"` // what it took altogether
	Count   int64         `json:"count"`
	Min     time.Duration `json:"min_ns,omitzero"`
	Mean    time.Duration `json:"mean_ns,omitzero"`
	P50     time.Duration `json:"p50_ns,omitzero"` // as P99 at most 0.1 % too high
	P99     time.Duration `json:"p99_ns,omitzero"`
	Max     time.Duration `json:"max_ns,omitzero"`
}

// RoundTrip measures idle round trips to the target for a time, with a PING
// every PingInterval. When it fails, or ctx is over, it returns what there is.
func RoundTrip(ctx context.Context, t Target, over time.Duration) (RoundTrips, error) {
	p, err := NewPinger(ctx, t)
	if err != nil {
		return RoundTrips{}, err
	}
	defer p.Close()
	return p.Measure(ctx, over, PingInterval)
}

// A Pinger measures round trips over one connection. It must be closed after
// use, and used by one goroutine at a time.
type Pinger struct {
	target Target
	conn   net.Conn
	begun  time.Time
	all    roundTrips
}

// NewPinger connects to the target: any server that answers PING, a replica
// and a single node of a cluster, too. Of a target with sentinels it is the
// master.
func NewPinger(ctx context.Context, t Target) (*Pinger, error) {
	t, err := t.ready(ctx)
	if err != nil {
		return nil, err
	}
	c, err := t.dial(ctx, "PING")
	if err != nil {
		return nil, err
	}
	return &Pinger{target: t, conn: c, begun: time.Now()}, nil
}

// Addr returns what is pinged.
func (p *Pinger) Addr() string { return p.target.Addr() }

// Close closes the connection.
func (p *Pinger) Close() error { return p.conn.Close() }

// Measure sends PING for a time, 0 for until ctx is over, and rests for pause
// after each reply. The end of ctx is no error: a PING without a reply counts
// then if it has waited longer than all others, with the time until then. On
// an error Measure returns what there is, too.
func (p *Pinger) Measure(ctx context.Context, over, pause time.Duration) (RoundTrips, error) {
	unbind := bind(ctx, p.conn)
	defer unbind()
	var some roundTrips
	begun := time.Now()
	err := p.ping(ctx, over, pause, func(d time.Duration) {
		some.record(d)
		p.all.record(d)
	})
	return some.summary(time.Since(begun)), err
}

// All summarises all calls of Measure.
func (p *Pinger) All() RoundTrips { return p.all.summary(time.Since(p.begun)) }

// ping is the loop of Measure.
func (p *Pinger) ping(ctx context.Context, over, pause time.Duration, record func(time.Duration)) error {
	command := resp.AppendCommand(nil, "PING")
	end := time.Now().Add(over)
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-rest.C:
		}
		sent := time.Now()
		if over > 0 && !sent.Before(end) {
			return nil
		}
		err := p.conn.SetDeadline(sent.Add(pingTimeout))
		if ctx.Err() != nil {
			return nil // the deadline may just have undone that of bind
		}
		sent = time.Now()
		if err == nil {
			_, err = p.conn.Write(command)
		}
		if err == nil {
			err = readReplies(p.conn, 1, 0)
		}
		took := time.Since(sent)
		switch {
		case err == nil:
			record(took)
		case ctx.Err() != nil:
			if took > p.all.max {
				record(took)
			}
			return nil
		default:
			return p.explain(err)
		}
		next := pause
		if over > 0 {
			next = min(pause, max(0, time.Until(end)))
		}
		rest.Reset(next)
	}
}

// explain turns an error into one line.
func (p *Pinger) explain(err error) error {
	what := "pinging " + p.target.Addr()
	var reply replyError
	var op *net.OpError
	switch {
	case errors.As(err, &reply):
		return fmt.Errorf("%s: %s", what, explainReply(p.target.hide(string(reply))))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%s: no reply within %v; is the server stalled?", what, pingTimeout)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("%s: the server closed the connection; has it been stopped?", what)
	case errors.As(err, &op): // its text repeats the address
		return fmt.Errorf("%s: %w", what, op.Err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// roundTrips collects times. The zero value is empty and ready to use.
type roundTrips struct {
	hist     *hdrhistogram.Histogram
	sum      time.Duration
	min, max time.Duration
}

func (r *roundTrips) record(d time.Duration) {
	if r.hist == nil {
		r.hist = hdrhistogram.New(1, int64(2*pingTimeout), 3)
		r.min = d
	}
	r.sum += d
	r.min, r.max = min(r.min, d), max(r.max, d)
	// The only error is a value out of range, which this cannot be.
	_ = r.hist.RecordValue(min(max(int64(d), 1), int64(2*pingTimeout)))
}

func (r *roundTrips) summary(elapsed time.Duration) RoundTrips {
	if r.hist == nil {
		return RoundTrips{Elapsed: elapsed}
	}
	n := r.hist.TotalCount()
	// The histogram returns the upper end of a bucket.
	quantile := func(percentile float64) time.Duration {
		return min(time.Duration(r.hist.ValueAtPercentile(percentile)), r.max)
	}
	return RoundTrips{
		Elapsed: elapsed, Count: n, Min: r.min, Mean: r.sum / time.Duration(n), P50: quantile(50), P99: quantile(99), Max: r.max,
	}
}
