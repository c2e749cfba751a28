package sweep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep/load"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// A Check is one thing that was looked at before the load.
type Check struct {
	Text string // what was found, a clause
	OK   bool

	// Override is the flag that lets the run go on all the same; "" for none.
	Override string
}

const (
	// A server that does more than this for others, or has more connections
	// of others, is one that somebody needs.
	busyCommands = 100 // a second
	busyClients  = 5

	// watched is how long the server is watched for the traffic of others.
	watched = 500 * time.Millisecond
)

// Checks looks at a server before any load: is it serving others, has it room
// for the keys, can it save?
func Checks(ctx context.Context, s *probe.Server, p Plan) ([]Check, error) {
	t, err := s.Traffic(ctx, watched)
	if err != nil {
		return nil, err
	}
	checks := []Check{
		{fmt.Sprintf("others send %.0f commands a second", t.CommandsPerSec), t.CommandsPerSec <= busyCommands, "--allow-traffic"},
		{fmt.Sprintf("others hold %d connections", t.OtherClients), t.OtherClients <= busyClients, "--allow-traffic"},
		{"the last save " + map[bool]string{true: "failed: the server may refuse writes", false: "did not fail"}[t.SaveFailed], !t.SaveFailed, ""},
	}
	for _, spec := range p.Workloads {
		spec.Prefix = workload.NewPrefix()
		w, err := workload.New(spec, parts(s)...)
		if err != nil {
			return nil, err
		}
		keys, bytes := w.FillKeys()
		if keys == 0 {
			continue
		}
		c := Check{Text: fmt.Sprintf("%s writes %d keys before it, about %s", spec.Name, keys, megabytes(bytes)), OK: true}
		if err := fits(s.Identity, w); err != nil {
			c = Check{Text: err.Error()}
		}
		checks = append(checks, c)
	}
	return checks, nil
}

// Cost is about what a plan asks of a server, as far as that is known before
// the first slice: without the levels that the analysis may add.
type Cost struct {
	Sweeps      int
	Slices      int
	Connections int           // opened in all
	AtOnce      int           // the most at a time
	Time        time.Duration // at least

	// Requests and the bytes that they take to the server. They are the most
	// that this generator can send in that time, measured against a null
	// responder, unless the plan counts them: Exact.
	Requests, Bytes int64
	Exact           bool
}

// Cost returns what the plan costs. It sends nothing to the server.
func (c Config) Cost(ctx context.Context) (Cost, error) {
	p := c.Plan
	limit := clientLimit(p, c.Server, c.Room)
	runs := max(1, len(p.Vary.Values))
	k := Cost{Sweeps: len(p.Workloads) * len(p.Depths) * runs, Exact: p.Requests > 0}
	levels := 0
	for _, n := range p.Clients {
		if n > limit.clients {
			break
		}
		levels++
		k.Connections += n * k.Sweeps * p.passes()
		k.AtOnce = n + p.Idle
	}
	k.Slices = levels * k.Sweeps * p.passes()
	slice := p.Warmup + p.Duration/time.Duration(p.Slices)
	k.Time = time.Duration(k.Slices) * slice
	each := levels * p.passes() * runs // slices of a workload at a depth
	for _, spec := range p.Workloads {
		spec.Prefix = workload.NewPrefix()
		w, err := workload.New(spec, parts(c.Server)...)
		if err != nil {
			return k, err
		}
		for _, depth := range p.Depths {
			most, err := c.most(ctx, w, depth)
			if err != nil {
				return k, err
			}
			n := most.Throughput() * slice.Seconds()
			if k.Exact {
				n = float64(p.Requests) / float64(p.Slices)
			}
			n *= float64(each)
			k.Requests += int64(n)
			k.Bytes += int64(n * float64(most.BytesOut) / float64(most.Requests))
		}
	}
	return k, nil
}

// most measures what the generator can send when the server costs nothing.
func (c Config) most(ctx context.Context, w *workload.Workload, depth int) (m *load.Measurement, err error) {
	ceiling, err := c.calibrator(w)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ceiling.Close()) }()
	return ceiling.Run(ctx, depth)
}

// Guards stop a sweep when the server has had enough. A guard of 0 is none.
type Guards struct {
	// MaxRate is the highest throughput that is driven, in requests/s.
	MaxRate float64 `json:"max_rate_qps,omitempty"`
	// MaxServerCPU is how full the server's main thread may be, as a share
	// of a core.
	MaxServerCPU float64 `json:"max_server_cores,omitempty"`
	// MaxP99 is the longest 99th percentile of a slice.
	MaxP99 time.Duration `json:"max_p99_ns,omitempty"`
}

// guardSlice is the longest slice of a sweep with a guard: so long may pass
// before it is asked.
const guardSlice = 250 * time.Millisecond

func (g Guards) any() bool { return g != Guards{} }

func (g Guards) check() error {
	switch {
	case g.MaxRate < 0:
		return fmt.Errorf("plan: --max-rate %v; want more than 0", g.MaxRate)
	case g.MaxServerCPU < 0 || g.MaxServerCPU > 1:
		return fmt.Errorf("plan: --max-server-cpu %v; want a share of a core from 0 to 100 %%", g.MaxServerCPU)
	case g.MaxP99 < 0:
		return fmt.Errorf("plan: --max-p99 %v; want more than 0", g.MaxP99)
	}
	return nil
}

// tripped names the guard that a slice has passed, "" for none.
func (g Guards) tripped(m *load.Measurement, w *probe.Window) string {
	if x := m.Throughput(); g.MaxRate > 0 && x > g.MaxRate {
		return fmt.Sprintf("--max-rate %.0f (%.0f requests/s)", g.MaxRate, x)
	}
	if p99 := m.Latency.Quantile(0.99); g.MaxP99 > 0 && p99 > g.MaxP99 {
		return fmt.Sprintf("--max-p99 %v (%v)", g.MaxP99, p99.Round(time.Microsecond))
	}
	if w == nil || g.MaxServerCPU == 0 {
		return ""
	}
	l := loadOf(Trial{Measurement: m, Window: w}, false)
	main := l.ServerMain
	if !main.Known() {
		main = l.ServerCPU
	}
	if float64(main) > g.MaxServerCPU {
		return fmt.Sprintf("--max-server-cpu %.0f%% (%.0f %%)", 100*g.MaxServerCPU, 100*float64(main))
	}
	return ""
}

// heed ends the sweep below the level of a slice that passed a guard.
func (s *sweeper) heed(x Slice) error {
	n := x.Measurement.Clients
	if x.Guard == "" || n > s.limit.clients {
		return nil
	}
	s.limit = limit{n - 1, x.Guard}
	before := len(s.levels)
	s.levels = slices.DeleteFunc(s.levels, func(level int) bool { return level >= n })
	s.total -= (before - len(s.levels)) * max(0, s.Plan.passes()-s.pass)
	s.note(fmt.Sprintf("%s stops the sweep below %d clients", x.Guard, n))
	if len(s.levels) == 0 {
		return fmt.Errorf("%s was passed with %d clients, the fewest", x.Guard, n)
	}
	return nil
}
