package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/probe"
)

// Closed is what a client carries in a closed loop: as many workers as
// connections, each waiting for its reply. It is where the rates of the open
// loop come from, and no more; its latencies hide what happens to requests
// that do not wait.
type Closed struct {
	QPS float64          `json:"qps"` // requests/s
	P50 analyze.Quantity `json:"p50_s"`
	P99 analyze.Quantity `json:"p99_s"`
	Load
}

// The closed loop is run three times, as a machine that is held up once would
// set all rates wrong; the median counts.
const (
	closedRuns     = 3
	closedDuration = 700 * time.Millisecond
	closedWarmup   = 200 * time.Millisecond
)

// capacity finds what the client carries with the pool in question.
func (r *run) capacity(ctx context.Context) (Closed, error) {
	client, err := newClient(ctx, r.Server.Target.Dial, r.Pool, r.PoolTimeout)
	if err != nil {
		return Closed{}, fmt.Errorf("verifying: %w", err)
	}
	defer client.Close()
	var all []Closed
	for range closedRuns {
		c, err := r.closed(ctx, client, closedWarmup, closedDuration)
		if err != nil {
			return Closed{}, fmt.Errorf("finding what the client carries: %w", err)
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Closed) int { return cmp.Compare(a.QPS, b.QPS) })
	c := all[len(all)/2]
	if c.QPS == 0 {
		return c, errors.New("finding what the client carries: no reply came within the time; is the server stalled?")
	}
	return c, nil
}

// closed drives a client with a worker for each connection, and observes.
func (r *run) closed(ctx context.Context, client *redis.Client, warmup, duration time.Duration) (Closed, error) {
	o := &openLoop{client: client, origin: time.Now(), warmup: warmup, end: warmup + duration}
	observed := r.observe(ctx, o)
	s := r.closedLoop(ctx, o)
	load := <-observed
	switch {
	case ctx.Err() != nil:
		return Closed{}, context.Cause(ctx)
	case s.failed > 0:
		return Closed{}, fmt.Errorf("%d requests have failed, the first with: %w", s.failed, s.first)
	}
	return Closed{
		QPS: float64(s.answered) / duration.Seconds(),
		P50: quantile(&s.times, .5, 0), P99: quantile(&s.times, .99, 0),
		Load: load,
	}, nil
}

// closedLoop has each worker send a request as soon as the one before is
// answered.
func (r *run) closedLoop(ctx context.Context, o *openLoop) *counts {
	var workers sync.WaitGroup
	for i := range r.Pool {
		source := r.source()
		workers.Go(func() {
			for at := time.Since(o.origin); at < o.end && ctx.Err() == nil; at = time.Since(o.origin) {
				o.do(ctx, i, request{at, source.next()})
			}
		})
	}
	workers.Wait()
	return o.merged()
}

// Load is what was busy while requests were driven, in cores.
type Load struct {
	ClientCPU  analyze.Quantity `json:"client_cores"` // all of this process
	ServerMain analyze.Quantity `json:"server_main_cores"`
	ServerCPU  analyze.Quantity `json:"server_cores"` // all of its process
	HostCPU    analyze.Quantity `json:"host_cores"`   // all of this machine
	Cores      int              `json:"cores"`        // of this machine; 0: unknown
}

// observe samples the counters at both ends of the window of o.
func (r *run) observe(ctx context.Context, o *openLoop) <-chan Load {
	out := make(chan Load, 1)
	go func() {
		at := func(t time.Duration) *probe.Sample {
			select {
			case <-time.After(t - time.Since(o.origin)):
			case <-ctx.Done():
			}
			return r.sampler.Sample(ctx)
		}
		first := at(o.warmup)
		out <- loadOf(r.sampler.Between(first, at(o.end)))
	}()
	return out
}

// loadOf turns differences of counters into cores.
func loadOf(w *probe.Window) Load {
	u := analyze.Unknown()
	l := Load{ClientCPU: u, ServerMain: u, ServerCPU: u, HostCPU: u}
	cores := func(seconds float64, elapsed time.Duration) analyze.Quantity {
		if elapsed <= 0 {
			return u
		}
		return analyze.Quantity(seconds / elapsed.Seconds())
	}
	l.ClientCPU = cores(w.Generator.CPUSeconds, w.Elapsed)
	// INFO counts to the microsecond, the system in ticks of 10 ms.
	if s := w.Server; s != nil {
		if s.MainCPUSeconds != nil {
			l.ServerMain = cores(*s.MainCPUSeconds, s.Elapsed)
		}
		if s.CPUSeconds != nil {
			l.ServerCPU = cores(*s.CPUSeconds, s.Elapsed)
		}
	}
	if p := w.Process; p != nil {
		if !l.ServerMain.Known() {
			l.ServerMain = cores(p.MainCPUSeconds, w.Elapsed)
		}
		if !l.ServerCPU.Known() {
			l.ServerCPU = cores(p.CPUSeconds, w.Elapsed)
		}
	}
	if h := w.Host; h != nil {
		l.HostCPU, l.Cores = cores(h.BusySeconds, w.Elapsed), h.Cores
	}
	return l
}
