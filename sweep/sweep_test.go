package sweep

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/embedded"
	"github.com/poolsweep/poolsweep/internal/modelserver"
	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep/load"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

func TestMain(m *testing.M) {
	embedded.Main()
	runtime.GOMAXPROCS(8) // see modelserver
	// The tests that are parallel mostly wait.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// A curveDriver answers as a server with a known throughput would, at once.
type curveDriver struct {
	qps  func(clients int) float64
	jobs []load.Job
	fail func(job load.Job) error // nil: never
}

func (d *curveDriver) Close() error { return nil }

func (d *curveDriver) Run(ctx context.Context, job load.Job) (*load.Measurement, error) {
	d.jobs = append(d.jobs, job)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if d.fail != nil {
		if err := d.fail(job); err != nil {
			return nil, err
		}
	}
	m := &load.Measurement{Step: job.Step, Start: time.Now(), Elapsed: job.Duration, Loops: 1, Latency: new(load.Latency)}
	if job.Requests > 0 {
		m.Elapsed = time.Duration(float64(job.Requests) / d.qps(job.Clients) * 1e9)
	}
	m.Requests = int64(math.Round(d.qps(job.Clients) * m.Elapsed.Seconds()))
	m.Sent, m.Received = m.Requests, m.Requests
	m.BatchTime = m.Elapsed * time.Duration(job.Clients)
	if job.Rate > 0 {
		due := int64(math.Round(job.Rate * m.Elapsed.Seconds()))
		m.Open = &load.Open{Rate: job.Rate, Arrivals: job.Arrivals, Due: due, Answered: min(due, m.Requests), Slip: new(load.Latency)}
	}
	return m, nil
}

func hard(knee int, perClient float64) func(int) float64 {
	return func(n int) float64 { return perClient * float64(min(n, knee)) }
}

// connect opens the control connection to a server without a password.
func connect(t *testing.T, addr string) *probe.Server {
	t.Helper()
	target, err := probe.ParseTarget(addr)
	if err != nil {
		t.Fatal(err)
	}
	return connectTo(t, target)
}

func connectTo(t *testing.T, target probe.Target) *probe.Server {
	t.Helper()
	s, err := probe.Connect(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// simulate runs a plan of one test against the driver.
func simulate(t *testing.T, d *curveDriver, change func(*Config)) (*Result, error) {
	t.Helper()
	server := connect(t, miniredis.RunT(t).Addr())
	c := Config{Plan: DefaultPlan(), Server: server, Unobserved: true}
	c.Plan.Workloads = specs("set", 0)
	c.NewDriver = func(*workload.Workload) (load.Driver, error) { return d, nil }
	if change != nil {
		change(&c)
	}
	return Run(t.Context(), c)
}

func levels(c analyze.Curve) []int {
	var l []int
	for _, p := range c.Points {
		l = append(l, p.Clients)
	}
	return l
}

// The knees are those of the model: X = min(N, c)·x.
func TestLevelsThatAreAdded(t *testing.T) {
	for _, tt := range []struct {
		name    string
		knee    int // of the model
		clients string
		found   int // what the levels allow to be found
		has     []int
		limit   string
	}{
		{"inside", 60, "10:110:10", 60, []int{60, 110}, ""},
		{"below the first level", 3, "10:110:10", 3, []int{1, 2, 3, 5}, ""},
		{"one connection is enough", 1, "10:110:10", 1, []int{1}, ""},
		{"above the last level", 150, "10:110:10", 170, []int{110, 170, 260}, ""},
		{"far above", 5000, "10:110:10", 0, []int{1000}, "--max-clients 1000"},
		{"auto", 60, "auto", 64, []int{1, 2, 4, 8, 16, 32, 64, 128}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := ParseLevels(tt.clients)
			if err != nil {
				t.Fatal(err)
			}
			res, err := simulate(t, &curveDriver{qps: hard(tt.knee, 1000)}, func(c *Config) {
				c.Plan.Clients, c.Plan.Auto = l.Values, l.Auto
			})
			if err != nil {
				t.Fatal(err)
			}
			c := res.Curves()[0]
			for _, n := range tt.has {
				if !slices.Contains(levels(c), n) {
					t.Errorf("levels %v lack %d", levels(c), n)
				}
			}
			a := analyze.Analyze(c, analyze.Options{})
			// Levels lie at most a factor of 1.5 apart, and 5 % of the
			// throughput may be given up.
			if k := a.Knee.Clients; tt.found == 0 && k != 0 || tt.found > 0 && (k < tt.knee*95/100 || k > tt.found) {
				t.Errorf("knee %d at levels %v, want %d to %d", k, levels(c), tt.knee*95/100, tt.found)
			}
			if c.Limit != tt.limit {
				t.Errorf("limit %q, want %q", c.Limit, tt.limit)
			}
			for _, p := range c.Points {
				if len(p.Trials) < 3 {
					t.Errorf("%d clients have %d trials, want 3", p.Clients, len(p.Trials))
				}
			}
		})
	}
}

func TestFixedKeepsTheLevels(t *testing.T) {
	d := &curveDriver{qps: hard(1, 100_000)}
	res, err := simulate(t, d, func(c *Config) {
		c.Plan.Fixed = true
		c.Plan.Clients = []int{10, 20}
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := levels(res.Curves()[0]); !slices.Equal(got, []int{10, 20}) || len(d.jobs) != 2*12 {
		t.Errorf("levels %v in %d slices, want 10 and 20 in 24", got, len(d.jobs))
	}
}

// The first pass goes up; the others are shuffled, unless ascending is asked
// for. Each pass visits each step once.
func TestOrder(t *testing.T) {
	for _, order := range []Order{Shuffled, Ascending} {
		d := &curveDriver{qps: hard(20, 1000)}
		_, err := simulate(t, d, func(c *Config) { c.Plan.Order, c.Plan.Fixed = order, true })
		if err != nil {
			t.Fatal(err)
		}
		shuffled := 0
		for pass := range slices.Chunk(d.jobs, 11) {
			var visited []int
			for _, j := range pass {
				visited = append(visited, j.Clients)
			}
			if !slices.IsSorted(visited) {
				shuffled++
			}
			slices.Sort(visited)
			if !slices.Equal(visited, DefaultPlan().Clients) {
				t.Errorf("%s: a pass visits %v", order, visited)
			}
		}
		if want := map[Order]int{Shuffled: 11, Ascending: 0}[order]; shuffled != want {
			t.Errorf("%s: %d of 12 passes are shuffled, want %d", order, shuffled, want)
		}
	}
}

// A trial of n requests is spread over its slices to the request.
func TestRequestsOfATrial(t *testing.T) {
	res, err := simulate(t, &curveDriver{qps: hard(2, 1000)}, func(c *Config) {
		c.Plan.Fixed, c.Plan.Requests, c.Plan.Clients = true, 10_003, []int{1, 2, 3}
	})
	if err != nil {
		t.Fatal(err)
	}
	for clients, trials := range res.Sweeps()[0].Trials(res.Header.Plan.Slices) {
		for _, trial := range trials {
			if trial.Measurement.Requests != 10_003 {
				t.Errorf("%d clients: a trial of %d requests, want 10,003", clients, trial.Measurement.Requests)
			}
		}
	}
}

// Slices with too few requests are made longer: 20 batches a client.
func TestSlicesAreLengthened(t *testing.T) {
	res, err := simulate(t, &curveDriver{qps: func(int) float64 { return 2000 }}, func(c *Config) {
		c.Plan.Fixed, c.Plan.Clients = true, []int{10, 100}
	})
	if err != nil {
		t.Fatal(err)
	}
	superseded := 0
	for _, s := range res.Slices {
		m := s.Measurement
		if s.Superseded {
			superseded++
		} else if m.Requests < 1000 || m.Requests < int64(20*m.Clients) {
			t.Errorf("a slice of %d requests with %d clients", m.Requests, m.Clients)
		}
	}
	if superseded != 2 {
		t.Errorf("%d slices were measured again, want the first of each step", superseded)
	}
}

func TestFailureKeepsWhatWasMeasured(t *testing.T) {
	gone := errors.New("gone")
	d := &curveDriver{qps: hard(60, 1000)}
	d.fail = func(load.Job) error {
		if len(d.jobs) > 15 {
			return gone
		}
		return nil
	}
	res, err := simulate(t, d, nil)
	if !errors.Is(err, gone) || !strings.Contains(err.Error(), "sweeping SET at pipeline depth 1") {
		t.Errorf("got error %v, want that of the driver", err)
	}
	if len(res.Slices) != 15 {
		t.Errorf("%d slices are kept, want 15", len(res.Slices))
	}
	if a := analyze.Analyze(res.Curves()[0], analyze.Options{}); len(a.Steps) != 11 {
		t.Errorf("%d steps are analysed, want 11", len(a.Steps))
	}
}

func TestOnlyErrorsStopTheRun(t *testing.T) {
	_, err := simulate(t, &curveDriver{qps: func(int) float64 { return 0 }}, nil)
	if err == nil || !strings.Contains(err.Error(), "no request succeeded") {
		t.Errorf("got error %v, want that no request succeeded", err)
	}
}

func TestProgressEndsAtTheTotal(t *testing.T) {
	var last Event
	_, err := simulate(t, &curveDriver{qps: hard(3, 1000)}, func(c *Config) {
		c.Progress = func(e Event) {
			if e.Done > e.Total {
				t.Errorf("%d of %d slices", e.Done, e.Total)
			}
			last = e
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if last.Done != last.Total || last.Done == 0 {
		t.Errorf("the last event: %+v", last)
	}
}

// modelReply answers the control connection of a run like a managed service
// that tells nothing.
func modelReply(command string) string {
	switch command {
	case "INFO", "CONFIG", "ROLE":
		return "-ERR unknown command\r\n"
	case "UNLINK":
		return ":1\r\n"
	}
	return ""
}

// sweepModel sweeps a model server at the given levels.
func sweepModel(t *testing.T, m modelserver.Model, clients []int) (*Result, *modelserver.Server) {
	t.Helper()
	m.Reply = modelReply
	s, err := modelserver.Start(m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	server := connect(t, s.Addr)
	p := DefaultPlan()
	p.Workloads, p.Clients, p.Fixed = specs("set", 0), clients, true
	// Replies come in bunches, one a service time: a window holds 60 or 80, so
	// that where it cuts them is little.
	p.Slices, p.Duration, p.MinRequests, p.Warmup = 1, 1200*time.Millisecond, 40, 100*time.Millisecond
	p.Budget = time.Second // three trials are enough: the model itself has no noise
	res, err := Run(t.Context(), Config{Plan: p, Server: server})
	if err != nil {
		t.Fatal(err)
	}
	return res, s
}

// A server of c workers with a fixed service time S has X = min(N, c)/S, knee
// c, and by Little's law N = X·R at every step.
func TestKneeInRealTime(t *testing.T) {
	// Long enough for what the machine adds to a reply, up to 1 ms, not to
	// matter at the knee.
	const service = 20 * time.Millisecond
	for _, tt := range []struct {
		workers int
		clients []int
	}{
		{4, []int{2, 4, 5, 8}},
		{12, []int{6, 12, 14, 24}},
		{32, []int{16, 32, 36, 64}},
	} {
		t.Run(fmt.Sprintf("c=%d", tt.workers), func(t *testing.T) {
			t.Parallel() // all three mostly wait
			modelserver.Holds(t, func() error {
				res, model := sweepModel(t, modelserver.Model{Workers: tt.workers, Service: service}, tt.clients)
				return errors.Join(capacityHolds(res, model), kneeIs(res, tt.workers))
			})
		})
	}
}

func capacityHolds(res *Result, model *modelserver.Server) error {
	var wrong []error
	for n, trials := range res.Sweeps()[0].Trials(1) {
		want := model.Throughput(n)
		slices.SortFunc(trials, func(a, b Trial) int {
			return cmp.Compare(a.Measurement.Throughput(), b.Measurement.Throughput())
		})
		m := trials[len(trials)/2].Measurement
		if x := m.Throughput(); math.Abs(x/want-1) > 0.05 {
			wrong = append(wrong, fmt.Errorf("N=%d: X = %.1f/s, want %.1f; answers %v late", n, x, want, model.Lateness()))
		}
		if u := m.Utilisation(); u < 0.95 || u > 1.05 {
			wrong = append(wrong, fmt.Errorf("N=%d: X·R/N = %.3f, want 1", n, u))
		}
	}
	return errors.Join(wrong...)
}

func kneeIs(res *Result, want int) error {
	k := analyze.Analyze(res.Curves()[0], analyze.Options{}).Knee
	if k.Apparent != want {
		return fmt.Errorf("knee %d (%s), want %d", k.Apparent, k.Shape, want)
	}
	// N_little = X*·R_min, here the knee itself.
	if l := float64(k.Little); math.Abs(l/float64(want)-1) > 0.1 {
		return fmt.Errorf("N_little %.1f, want %d", l, want)
	}
	return nil
}

// A delay D in front of a server with capacity X keeps X·D requests on the
// way: the knee moves from c to c + X·D. Here X = 4/15 ms = 267/s and D = 30 ms.
func TestDelayInRealTime(t *testing.T) {
	m := modelserver.Model{Workers: 4, Service: 15 * time.Millisecond, Delay: 30 * time.Millisecond}
	modelserver.Holds(t, func() error {
		res, _ := sweepModel(t, m, []int{6, 12, 16, 20})
		return kneeIs(res, 12)
	})
}

// realServer starts a redis-server of the test's own.
func realServer(t *testing.T) *probe.Server {
	t.Helper()
	e, err := embedded.Start(t.Context(), "redis-server")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return connectTo(t, e.Target)
}

// The server's own count of each command agrees with ours to the request, and
// no key is left.
func TestCountsAgreeWithServer(t *testing.T) {
	s := realServer(t)
	for _, spec := range specs("all", 100) {
		for _, depth := range []int{1, 16} {
			t.Run(fmt.Sprintf("%s/depth=%d", spec.Name, depth), func(t *testing.T) {
				countsAgree(t, s, spec, depth)
			})
		}
	}
}

func countsAgree(t *testing.T, s *probe.Server, spec workload.Spec, depth int) {
	if err := s.Client.ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	p := DefaultPlan()
	p.Workloads, p.Depths, p.Clients, p.Fixed = []workload.Spec{spec}, []int{depth}, []int{10, 50}, true
	p.Trials, p.Slices, p.Requests, p.Budget, p.Warmup = 1, 1, 2000, 0, 0
	res, err := Run(t.Context(), Config{Plan: p, Server: s, Unobserved: true})
	if err != nil {
		t.Fatal(err)
	}
	calls := make(map[string]int64)
	for _, x := range res.Slices {
		m := x.Measurement
		if m.Requests != 2000 || m.Failed+m.Lost > 0 || m.Sent != m.Received {
			t.Errorf("%d clients: %d requests, %d sent, %d received, %d failed, %d lost; %s",
				m.Clients, m.Requests, m.Sent, m.Received, m.Failed, m.Lost, m.FirstError())
		}
		calls[statName(spec.Commands[0].Args)] += m.Sent
	}
	for _, args := range spec.Setup {
		calls[statName(args)]++
	}
	w, err := workload.New(withPrefix(spec))
	if err != nil {
		t.Fatal(err)
	}
	if keys, _ := w.FillKeys(); keys > 0 {
		calls[statName(spec.Fill[0].Args)] += keys
	}
	stats, err := s.Client.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range calls {
		if want := fmt.Sprintf("cmdstat_%s:calls=%d,", name, n); !strings.Contains(stats, want) {
			t.Errorf("want %s in %s", want, stats)
		}
	}
	if n := s.Client.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// statName returns what INFO commandstats calls a command.
func statName(args []string) string {
	name := strings.ToLower(args[0])
	if name == "function" {
		name += "|" + strings.ToLower(args[1])
	}
	return name
}

func withPrefix(s workload.Spec) workload.Spec {
	s.Prefix = workload.NewPrefix()
	return s
}

// Thousands of connections in one step: no error, none left behind.
func TestManyConnections(t *testing.T) {
	s := realServer(t)
	p := DefaultPlan()
	p.Workloads, p.Clients, p.MaxClients, p.Fixed = specs("set", 0), []int{3000}, 3000, true
	p.Trials, p.Slices, p.Duration = 1, 1, 100*time.Millisecond
	res, err := Run(t.Context(), Config{Plan: p, Server: s})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range res.Slices {
		if m := x.Measurement; m.Lost+m.Failed+int64(m.LostConnections) > 0 {
			t.Errorf("%d requests failed, %d and %d connections were lost", m.Failed, m.Lost, m.LostConnections)
		}
	}
}

// specs returns built-in tests with 3-byte values.
func specs(tests string, keyspace int) []workload.Spec {
	all, err := workload.Tests(tests)
	if err != nil {
		panic(err)
	}
	for i := range all {
		all[i].Keys.Space = keyspace
		all[i].Values.Sizes = []workload.Size{{Min: 3, Max: 3}}
		all[i].Seed = 1
	}
	return all
}

// planned returns the default plan of SET and GET.
func planned() Plan {
	p := DefaultPlan()
	p.Workloads = specs("set,get", 0)
	return p
}
