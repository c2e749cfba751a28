package verify

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/poolsweep/poolsweep/internal/arrivals"
	"github.com/poolsweep/poolsweep/internal/embedded"
	"github.com/poolsweep/poolsweep/internal/modelserver"
	"github.com/poolsweep/poolsweep/internal/resp"
	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

func TestCheck(t *testing.T) {
	good := Default()
	good.Pool = 10
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Config){
		"a pool of 0":           func(c *Config) { c.Pool = 0 },
		"a pool of 20000":       func(c *Config) { c.Sizes = []int{20000} },
		"no rate":               func(c *Config) { c.Rates = nil },
		"0 rounds":              func(c *Config) { c.Rounds = 0 },
		"trials of 1ms":         func(c *Config) { c.Duration = time.Millisecond },
		"a warm-up of -1ns":     func(c *Config) { c.Warmup = -1 },
		"a pool timeout of 0s":  func(c *Config) { c.PoolTimeout = 0 },
		`unknown arrivals "at"`: func(c *Config) { c.Arrivals = "at" },
	} {
		c := good
		change(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, tt := range []struct {
		c    Config
		want []int
	}{
		{Config{Pool: 10}, []int{5, 10, 20}},
		{Config{Pool: 1}, []int{1, 2}},
		{Config{Pool: 10, Sizes: []int{20, 5, 5}}, []int{5, 20}},
	} {
		if got := tt.c.sizes(); !slices.Equal(got, tt.want) {
			t.Errorf("sizes of %d, %v: %v, want %v", tt.c.Pool, tt.c.Sizes, got, tt.want)
		}
	}
}

// arguments ∘ AppendCommand = identity, for any bytes.
func FuzzArguments(f *testing.F) {
	f.Add("GET", "key", "")
	f.Add("SET", "*1\r\n$1\r\n", "\r\n")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		var got []string
		for _, x := range arguments(resp.AppendCommand(nil, a, b, c)) {
			got = append(got, string(x.([]byte)))
		}
		if want := []string{a, b, c}; !slices.Equal(got, want) {
			t.Errorf("arguments %q, want %q", got, want)
		}
	})
}

func TestArgumentsOfALine(t *testing.T) {
	got := arguments([]byte("PING\r\n"))
	if len(got) != 1 || string(got[0].([]byte)) != "PING" {
		t.Errorf("arguments %q, want PING", got)
	}
}

// startRedis returns a real server, and a workload that reads keys.
func startRedis(t *testing.T) (*probe.Server, *workload.Workload) {
	t.Helper()
	e, err := embedded.Start(t.Context(), "redis-server")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	s, err := probe.Connect(t.Context(), e.Target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	specs, err := workload.Tests("get")
	if err != nil {
		t.Fatal(err)
	}
	specs[0].Prefix = workload.NewPrefix()
	specs[0].Keys.Space = 100
	specs[0].Values.Sizes = []workload.Size{{Min: 3, Max: 3}}
	w, err := workload.New(specs[0])
	if err != nil {
		t.Fatal(err)
	}
	return s, w
}

// Against a real server, at a rate that any machine carries.
func TestRun(t *testing.T) {
	s, w := startRedis(t)
	c := Default()
	c.Server, c.Workload = s, w
	c.Pool, c.Rates, c.Rounds = 4, []arrivals.Rate{{QPS: 500}}, 2
	c.Duration, c.Warmup = 200*time.Millisecond, 20*time.Millisecond
	var progress []int
	c.Progress = func(done, total int) { progress = append(progress, done, total) }
	res, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{0, 6, 1, 6, 2, 6, 3, 6, 4, 6, 5, 6}; !slices.Equal(progress, want) {
		t.Errorf("progress %v, want %v", progress, want)
	}
	if res.Workload != "GET" || res.Capacity.QPS <= 0 || !res.Capacity.ServerMain.Known() {
		t.Errorf("workload %q, capacity %+v", res.Workload, res.Capacity)
	}
	if len(res.Levels) != 1 || len(res.Levels[0].Rows) != 3 || len(res.Trials) != 6 {
		t.Fatalf("levels %+v, %d trials; want one of three rows, 6", res.Levels, len(res.Trials))
	}
	for _, x := range res.Trials {
		if x.Due != x.Sent+x.Dropped || x.Due == 0 || x.Failed > 0 || x.Opened > 0 {
			t.Errorf("%d due, %d sent, %d dropped, %d failed, %d opened", x.Due, x.Sent, x.Dropped, x.Failed, x.Opened)
		}
		// 100 requests are too few for a p99.
		if x.P99.Known() || !x.P50.Known() || !x.WaitShare.Known() {
			t.Errorf("p50 %v, p99 %v, waited %v; want known, unknown, known", x.P50, x.P99, x.WaitShare)
		}
		if sum := x.Slip + x.Wait + x.Held; sum/x.Mean < .999 || sum/x.Mean > 1.001 {
			t.Errorf("slip %v + wait %v + held %v is not the mean latency %v", x.Slip, x.Wait, x.Held, x.Mean)
		}
	}
	// All sizes met the same arrivals in a round.
	due := map[int]int64{}
	for _, x := range res.Trials {
		if n, ok := due[x.Round]; ok && n != x.Due {
			t.Errorf("round %d: %d requests were due, and %d", x.Round, n, x.Due)
		}
		due[x.Round] = x.Due
	}
	if n, err := s.Client.DBSize(t.Context()).Result(); n != 0 || err != nil {
		t.Errorf("%d keys are left, %v", n, err)
	}
}

// A run that is ended keeps what it has measured, and removes its keys.
func TestRunEnds(t *testing.T) {
	s, w := startRedis(t)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	c := Default()
	c.Server, c.Workload = s, w
	c.Pool, c.Rates, c.Duration = 2, []arrivals.Rate{{QPS: 500}}, 50*time.Millisecond
	c.Progress = func(done, _ int) {
		if done == 2 {
			cancel(why)
		}
	}
	res, err := Run(ctx, c)
	if !errors.Is(err, why) {
		t.Errorf("error %v, want %v", err, why)
	}
	if res == nil || len(res.Trials) != 2 {
		t.Errorf("result %+v, want two trials", res)
	}
	if n, err := s.Client.DBSize(t.Context()).Result(); n != 0 || err != nil {
		t.Errorf("%d keys are left, %v", n, err)
	}
}

// More than a server carries: what is due beyond the limit is dropped and
// counted, requests time out and that is counted, and the memory stays small.
func TestOverload(t *testing.T) {
	// One connection to a server that takes 10 ms: 100 requests/s.
	m := modelserver.Model{Workers: 1, Service: 10 * time.Millisecond}
	c := Default()
	c.Duration, c.Warmup, c.PoolTimeout = 3*time.Second, 0, time.Second
	x := cell{size: 1, rate: 20_000, seed: 1} // 10,000 too many within the timeout
	inMemory(t, m, c, 1, func(t *testing.T, r *run, client *redis.Client) {
		o := r.openLoop(client, x)
		if err := r.drive(t.Context(), o, x); err != nil {
			t.Fatal(err)
		}
		got := o.trial(client.PoolStats())
		if got.Due != got.Sent+got.Dropped || got.Dropped == 0 || got.Timeouts == 0 || got.Timeouts != got.Failed {
			t.Errorf("%d due, %d sent, %d dropped, %d failed, %d timeouts", got.Due, got.Sent, got.Dropped, got.Failed, got.Timeouts)
		}
		if o.started != o.limit {
			t.Errorf("%d workers, want the limit of %d", o.started, o.limit)
		}
		if got.Answered < 290 || got.Answered > 300 {
			t.Errorf("%d answered in 3 s of 10 ms each, want 300", got.Answered)
		}
		if r := (Row{Trial: *got}); !r.Overloaded() || got.P99.Known() {
			t.Errorf("overloaded %v, p99 %v; want true, unknown", r.Overloaded(), got.P99)
		}
	})
}
