package sweep

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep/load"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// measured returns a measurement with these requests in its intervals of
// 100 ms, the last of which may be shorter.
func measured(elapsed time.Duration, intervals ...int64) *load.Measurement {
	m := &load.Measurement{
		Step: load.Step{Clients: 1, Depth: 1}, Elapsed: elapsed, Intervals: intervals, Latency: new(load.Latency),
	}
	for _, n := range intervals {
		m.Requests += n
	}
	return m
}

// spread returns n intervals of that many requests, the first few of another
// number.
func spread(n int, requests int64, few int, other int64) []int64 {
	return append(slices.Repeat([]int64{other}, few), slices.Repeat([]int64{requests}, n-few)...)
}

// The wanted parts follow from how the intervals are made; analyze.Steady has
// tests of its own for where the cut is.
func TestSteadyPart(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		name       string
		m          *load.Measurement
		contiguous bool
		want       part
	}{
		{"steady", measured(2*s, spread(20, 500, 0, 0)...), false, part{10_000, 2 * s, true}},
		{"slow start", measured(2*s, spread(20, 500, 3, 100)...), false, part{17 * 500, 17 * s / 10, true}},
		{"short slice", measured(s, spread(10, 500, 3, 100)...), false, part{3800, s, true}},
		{"short trial in one piece", measured(s, spread(10, 500, 3, 100)...), true, part{7 * 500, 7 * s / 10, true}},
		{"too short to tell", measured(s/2, spread(5, 500, 2, 100)...), true, part{1700, s / 2, true}},
		{"changed half-way", measured(2*s, spread(20, 500, 10, 100)...), false, part{5000, s, false}},
		// The last interval is 50 ms long and not compared with the others;
		// where nothing is cut, its requests count as well.
		{"last interval shorter, steady", measured(2050*time.Millisecond, append(spread(20, 500, 0, 0), 250)...), false, part{10_250, 2050 * time.Millisecond, true}},
		{"last interval shorter, cut", measured(2050*time.Millisecond, append(spread(20, 500, 3, 100), 250)...), false, part{17 * 500, 17 * s / 10, true}},
		// No reply in the second half: the intervals are not there.
		{"stalled", measured(2*s, spread(10, 500, 0, 0)...), false, part{5000, 2 * s, false}},
		{"intervals unknown", measured(2 * s), false, part{0, 2 * s, true}},
	} {
		if got := steadyPart(tt.m, tt.contiguous); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// A rampDriver measures what a curveDriver says. Its first jobs of a step
// rise all the time, the others are steady from 200 ms on.
type rampDriver struct {
	curveDriver
	ramps int // of each step
	seen  map[int]int
}

func (d *rampDriver) Run(ctx context.Context, job load.Job) (*load.Measurement, error) {
	m, err := d.curveDriver.Run(ctx, job)
	if err != nil {
		return m, err
	}
	d.seen[job.Clients]++
	n := int(m.Elapsed / grain)
	each := m.Requests / int64(n)
	m.Intervals = spread(n, each, 2, each/2)
	if d.seen[job.Clients] <= d.ramps {
		for i := range m.Intervals {
			m.Intervals[i] = each * int64(n+2*i) / int64(2*n)
		}
	}
	m.Requests = 0
	for _, r := range m.Intervals {
		m.Requests += r
	}
	return m, nil
}

// A long slice that is not steady is measured again once, twice as long; when
// that does not help it is marked. The next one has its planned length again,
// and the throughput is that without the slow start.
func TestUnsteadySlicesAreExtended(t *testing.T) {
	const planned = 2 * time.Second
	for _, tt := range []struct {
		name    string
		ramps   int
		lengths []time.Duration // of the slices of one step, in order
		marked  int             // trials
	}{
		{"steady", 0, []time.Duration{planned, planned, planned}, 0},
		{"the longer one is", 1, []time.Duration{planned, 2 * planned, planned, planned}, 0},
		{"never in the first trial", 2, []time.Duration{planned, 2 * planned, planned, planned}, 1},
	} {
		d := &rampDriver{curveDriver{qps: hard(2, 1000)}, tt.ramps, make(map[int]int)}
		res, err := simulate(t, &d.curveDriver, func(c *Config) {
			c.NewDriver = func(*workload.Workload) (load.Driver, error) { return d, nil }
			c.Plan.Fixed, c.Plan.Slices, c.Plan.Duration, c.Plan.Clients = true, 1, planned, []int{2}
		})
		if err != nil {
			t.Fatal(err)
		}
		var lengths []time.Duration
		superseded := 0
		for _, x := range res.Slices {
			lengths = append(lengths, x.Measurement.Elapsed)
			if x.Superseded {
				superseded++
				if !slices.Equal(x.Invalid, []string{analyze.GateUnsteady}) {
					t.Errorf("%s: a slice is superseded for %v", tt.name, x.Invalid)
				}
			}
		}
		if !slices.Equal(lengths, tt.lengths) || superseded != len(tt.lengths)-3 {
			t.Errorf("%s: slices of %v, %d superseded; want %v", tt.name, lengths, superseded, tt.lengths)
		}
		marked := 0
		for _, trial := range res.Curves()[0].Points[0].Trials {
			if slices.Contains(trial.Invalid, analyze.GateUnsteady) {
				marked++
			} else if trial.QPS != 2000 {
				t.Errorf("%s: a trial of %v requests/s, want the model's 2000", tt.name, trial.QPS)
			}
		}
		if marked != tt.marked {
			t.Errorf("%s: %d trials are marked, want %d", tt.name, marked, tt.marked)
		}
	}
}

// A trial of n requests is not made longer: it is what was asked for.
func TestRequestsAreNotExtended(t *testing.T) {
	d := &rampDriver{curveDriver{qps: hard(2, 1000)}, 100, make(map[int]int)}
	res, err := simulate(t, &d.curveDriver, func(c *Config) {
		c.NewDriver = func(*workload.Workload) (load.Driver, error) { return d, nil }
		c.Plan.Fixed, c.Plan.Slices, c.Plan.Requests, c.Plan.Clients = true, 1, 4000, []int{2}
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Slices) != 3 {
		t.Errorf("%d slices, want 3", len(res.Slices))
	}
	for _, x := range res.Slices {
		if !slices.Equal(x.Invalid, []string{analyze.GateUnsteady}) {
			t.Errorf("a slice is marked %v", x.Invalid)
		}
	}
}

// What was observed in 2 s becomes rates, and counts stay counts.
func TestLoadOfLimits(t *testing.T) {
	speed, swap, limit := int64(1_000_000), int64(3<<20), 0.3
	m := measured(2*time.Second, 100)
	w := &probe.Window{
		Elapsed:  2 * time.Second,
		Process:  &probe.ProcessWindow{SwapBytes: &swap},
		Network:  &probe.NetworkWindow{BytesSent: 50_000, BytesReceived: 200_000, SpeedBitsPerSec: &speed},
		CPULimit: &probe.CPULimitWindow{LimitCores: &limit, Throttled: 14, ThrottledSeconds: 1.2},
	}
	l := loadOf(Trial{Measurement: m, Window: w}, false)
	// The busier direction: 200,000 B in 2 s are 0.8 of 1 Mbit/s.
	if l.Throttled != 14 || l.NetworkUse != 0.8 || l.SwapBytes != 3<<20 {
		t.Errorf("throttled %v, network %v, swap %v; want 14, 0.8 and 3 MiB", l.Throttled, l.NetworkUse, l.SwapBytes)
	}
	if got := analyze.Gates(facts(m, w)); !slices.Contains(got, analyze.GateThrottled) {
		t.Errorf("gates %v lack %s", got, analyze.GateThrottled)
	}
	w.Process.SwapBytes, w.Network.SpeedBitsPerSec, w.CPULimit = nil, nil, nil
	l = loadOf(Trial{Measurement: m, Window: w}, false)
	if l.Throttled.Known() || l.NetworkUse.Known() || l.SwapBytes.Known() {
		t.Errorf("throttled %v, network %v, swap %v; want them unknown", l.Throttled, l.NetworkUse, l.SwapBytes)
	}
	if got := analyze.Gates(facts(m, w)); slices.Contains(got, analyze.GateThrottled) {
		t.Errorf("gates %v without a limit", got)
	}
}

// Of three steps, in the order of their clients, the trial is marked whose
// reads found other shares of their keys.
func TestHitRatioMarks(t *testing.T) {
	slice := func(clients, pass int, hits, misses int64) Slice {
		m := measured(time.Second, 1000)
		m.Clients = clients
		return Slice{Pass: pass, Measurement: m, Window: &probe.Window{
			Elapsed: time.Second,
			Server:  &probe.ServerWindow{Hits: hits, Misses: misses, Commands: hits + misses + 5},
		}}
	}
	c := curve(Sweep{Test: "get", Depth: 1, Slices: []Slice{
		slice(30, 1, 1000, 0), slice(30, 2, 995, 5),
		slice(10, 1, 1000, 0), slice(10, 2, 980, 20),
		slice(20, 1, 1000, 0), slice(20, 2, 0, 0),
	}}, 1, false)
	for _, p := range c.Points {
		for i, trial := range p.Trials {
			want := p.Clients == 10 && i == 1 // 0.98 where the median is 1
			if got := slices.Contains(trial.Invalid, analyze.GateHitRatio); got != want {
				t.Errorf("%d clients, trial %d: marked %t, want %t", p.Clients, i, got, want)
			}
		}
	}
}
