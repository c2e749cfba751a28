// Package verify tries a pool: a real go-redis client with that many
// connections, under requests that do not wait for replies (an open loop),
// beside pools of half and of double the size. A sweep derives the pool from
// the server's throughput; here it is seen what an application would see:
// latency from when a request was due, what of it is waiting for a connection,
// and when the client itself is what is full.
package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/arrivals"
	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// A Config is what to try and on which server. Default fills in the usual
// values.
type Config struct {
	Server   *probe.Server
	Workload *workload.Workload // Run writes its keys and removes them

	Pool  int             // N, the size in question
	Sizes []int           // those to try; empty means N/2, N and 2N
	Rates []arrivals.Rate // at which to try each of them

	Arrivals arrivals.Kind
	Rounds   int           // over all sizes and rates; a row is the median one
	Duration time.Duration // of each trial, without its warm-up
	Warmup   time.Duration // arrivals before each trial that do not count
	Seed     uint64        // of arrivals, requests and order

	// PoolTimeout is how long a request waits for a connection before it
	// fails.
	PoolTimeout time.Duration

	// Forecast is what is to be expected of a pool of n connections at a
	// rate; nil when no sweep is known.
	Forecast func(n int, rate float64) analyze.Prediction

	// Knee is the throughput of the server at its knee in requests/s;
	// unknown when no sweep is known.
	Knee analyze.Quantity

	// Swept says that Pool comes from a sweep.
	Swept bool

	// Progress is told before each trial how many of how many are done. It
	// may be nil.
	Progress func(done, total int)
}

// Default returns the configuration that ends in about a minute: three rates,
// three sizes, three rounds of two seconds.
func Default() Config {
	return Config{
		Rates:       []arrivals.Rate{{Share: .5}, {Share: .7}, {Share: .8}},
		Arrivals:    arrivals.Poisson,
		Rounds:      3,
		Duration:    2 * time.Second,
		Warmup:      300 * time.Millisecond,
		Seed:        1,
		PoolTimeout: time.Second,
		Knee:        analyze.Unknown(),
	}
}

// Check reports the first thing that is wrong with the numbers of c.
func (c Config) Check() error {
	switch {
	case c.Pool < 1 || c.Pool > maxPool:
		return fmt.Errorf("a pool of %d connections; want 1 to %d", c.Pool, maxPool)
	case len(c.Rates) == 0:
		return errors.New("no rate to verify the pool at")
	case c.Rounds < 1:
		return fmt.Errorf("%d rounds; want 1 or more", c.Rounds)
	case c.Duration < 10*time.Millisecond:
		return fmt.Errorf("trials of %v; want 10ms or more", c.Duration)
	case c.Warmup < 0:
		return fmt.Errorf("a warm-up of %v; want 0 or more", c.Warmup)
	case c.PoolTimeout <= 0:
		return fmt.Errorf("a pool timeout of %v; want more than 0", c.PoolTimeout)
	}
	for _, n := range c.Sizes {
		if n < 1 || n > maxPool {
			return fmt.Errorf("a pool of %d connections; want 1 to %d", n, maxPool)
		}
	}
	_, err := arrivals.New(c.Arrivals, 1, 0)
	return err
}

// maxPool is far beyond what one process should have.
const maxPool = 10000

// sizes returns the pools to try, rising.
func (c Config) sizes() []int {
	s := slices.Clone(c.Sizes)
	if len(s) == 0 {
		s = []int{max(1, c.Pool/2), c.Pool, 2 * c.Pool}
	}
	slices.Sort(s)
	return slices.Compact(s)
}

// A Result is what was measured. Its JSON form is that of --format json.
type Result struct {
	Workload    string           `json:"workload"`
	Arrivals    arrivals.Kind    `json:"arrivals"`
	Rounds      int              `json:"rounds"`
	Duration    time.Duration    `json:"duration_ns"` // of a trial
	PoolTimeout time.Duration    `json:"pool_timeout_ns"`
	Pool        int              `json:"pool"`     // N, the size in question
	Swept       bool             `json:"swept"`    // N comes from a sweep
	Local       bool             `json:"local"`    // the server is on this machine
	Knee        analyze.Quantity `json:"knee_qps"` // of the sweep

	// Capacity is what the client carries with N connections in a closed
	// loop: N workers, each waiting for its reply.
	Capacity Closed `json:"capacity"`

	Levels []Level `json:"levels"` // by rate, rising
	Trials []Trial `json:"trials"` // all of them, as measured
}

// A Level is what was seen at one rate.
type Level struct {
	Rate  float64          `json:"rate_qps"`    // requests/s
	Share analyze.Quantity `json:"share_ratio"` // of the client's capacity
	Rows  []Row            `json:"rows"`        // by size, rising
}

// A Row is the median trial of a size at a rate, by p99, as it was measured.
// With an even number of rounds it is the lower of the middle two.
type Row struct {
	Trial

	// Spread is how far the p99 of the rounds lie apart, highest less lowest
	// over the row's; unknown with one round.
	Spread analyze.Quantity `json:"p99_spread_ratio"`

	// Predicted is what the sweep leads one to expect. Unknown without one.
	Predicted analyze.Prediction `json:"predicted"`
}

// Run tries every size at every rate, in rounds and in a new order in each,
// so that a machine that changes its speed does so to all alike. When it
// fails or ctx ends, it returns what was measured so far together with the
// error; the Result is nil when that is nothing. Our keys are removed whatever
// happens.
func Run(ctx context.Context, c Config) (res *Result, err error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if len(c.Server.Nodes) > 0 {
		return nil, errors.New("verifying: clusters are not supported yet; verify against a single server")
	}
	defer func() {
		if ctx.Err() != nil {
			err = fmt.Errorf("verifying: %w", context.Cause(ctx)) // and not what came of it
		}
		err = errors.Join(err, remove(ctx, c))
	}()
	if err := c.Workload.Preload(ctx, c.Server.Keys, nil); err != nil {
		return nil, err
	}
	r := &run{Config: c, sampler: probe.NewSampler(c.Server)}
	res = &Result{
		Workload: c.Workload.Spec().Name, Arrivals: c.Arrivals, Rounds: c.Rounds, Duration: c.Duration,
		PoolTimeout: c.PoolTimeout, Pool: c.Pool, Swept: c.Swept, Local: c.Server.Identity.Local, Knee: c.Knee,
	}
	if res.Capacity, err = r.capacity(ctx); err != nil {
		return nil, err
	}
	err = r.rounds(ctx, res)
	if len(res.Trials) == 0 {
		return nil, err
	}
	res.Levels = r.levels(res)
	return res, err
}

// removeTimeout bounds the removal of our keys at the end.
const removeTimeout = 30 * time.Second

// remove removes our keys, even when ctx is over.
func remove(ctx context.Context, c Config) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	return c.Workload.Remove(ctx, c.Server.Keys)
}

// A run is a Run under way.
type run struct {
	Config
	sampler *probe.Sampler
	pacer   arrivals.Pacer
	stream  uint64 // the last source of requests
}

// source returns requests that no other source of the run repeats.
func (r *run) source() *requests {
	r.stream++
	return &requests{source: r.Workload.Source(r.stream, 0)}
}

// A cell is a size at a rate.
type cell struct {
	size int
	rate float64
	seed uint64 // of the arrivals: all sizes at a rate meet the same ones
}

// rounds measures all cells so many times.
func (r *run) rounds(ctx context.Context, res *Result) error {
	var cells []cell
	for i, q := range arrivals.QPS(r.Rates, res.Capacity.QPS) {
		for _, n := range r.sizes() {
			cells = append(cells, cell{n, q, r.Seed + uint64(i)})
		}
	}
	order := rand.New(rand.NewPCG(r.Seed, 0))
	for round := 1; round <= r.Rounds; round++ {
		order.Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
		for _, x := range cells {
			if r.Progress != nil {
				r.Progress(len(res.Trials), r.Rounds*len(cells))
			}
			x.seed += uint64(round * len(r.Rates))
			t, err := r.open(ctx, x)
			if err != nil {
				return fmt.Errorf("verifying a pool of %d at %.0f requests/s: %w", x.size, x.rate, err)
			}
			t.Round = round
			res.Trials = append(res.Trials, *t)
		}
	}
	return nil
}

// levels makes the rows.
func (r *run) levels(res *Result) []Level {
	var levels []Level
	for _, q := range arrivals.QPS(r.Rates, res.Capacity.QPS) {
		l := Level{Rate: q, Share: analyze.Quantity(q / res.Capacity.QPS)}
		for _, n := range r.sizes() {
			var trials []Trial
			for _, t := range res.Trials {
				if t.Pool == n && t.Rate == q {
					trials = append(trials, t)
				}
			}
			if len(trials) == 0 {
				continue // of a run that was interrupted
			}
			row := median(trials)
			row.Predicted = unpredicted()
			if r.Forecast != nil {
				row.Predicted = r.Forecast(n, q)
			}
			l.Rows = append(l.Rows, row)
		}
		if len(l.Rows) > 0 {
			levels = append(levels, l)
		}
	}
	return levels
}

// median returns the row of the trials of a cell.
func median(trials []Trial) Row {
	slices.SortStableFunc(trials, func(a, b Trial) int {
		return cmp.Compare(atWorst(a.P99), atWorst(b.P99))
	})
	row := Row{Trial: trials[(len(trials)-1)/2], Spread: analyze.Unknown()}
	if first, last := trials[0].P99, trials[len(trials)-1].P99; len(trials) > 1 && first.Known() && last.Known() {
		row.Spread = (last - first) / row.P99
	}
	return row
}

// atWorst is q for comparing: a p99 that is unknown because requests were never
// sent is the worst.
func atWorst(q analyze.Quantity) analyze.Quantity {
	if !q.Known() {
		return analyze.Quantity(math.Inf(1))
	}
	return q
}

// unpredicted is a prediction of which all is unknown.
func unpredicted() analyze.Prediction {
	return analyze.Forecast(analyze.Curve{}, analyze.Knee{}, 1, 1)
}
