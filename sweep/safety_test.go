package sweep

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/poolsweep/poolsweep/internal/redistest"
)

// A guard ends the sweep below the level that passes it. Model: 1000
// requests/s a client up to 60 clients, so that 35,000 are passed at 40.
func TestGuardEndsSweep(t *testing.T) {
	d := &curveDriver{qps: hard(60, 1000)}
	res, err := simulate(t, d, func(c *Config) { c.Plan.Guards.MaxRate = 35_000 })
	if err != nil {
		t.Fatal(err)
	}
	for i, j := range d.jobs {
		if j.Clients > 40 {
			t.Errorf("slice %d has %d clients", i+1, j.Clients)
		}
		if j.Duration > guardSlice {
			t.Errorf("slice %d takes %v", i+1, j.Duration)
		}
	}
	c := res.Curves()[0]
	if got := levels(c); len(got) != 4 || got[3] != 40 {
		t.Errorf("levels %v; want 10 to 40", got)
	}
	if n := len(c.Points[3].Trials[0].Slices); n != 1 {
		t.Errorf("the level that passed the guard has %d slices, want 1", n)
	}
	if !strings.HasPrefix(c.Limit, "--max-rate 35000") {
		t.Errorf("the limit is %q", c.Limit)
	}
}

// The guard at the first level leaves nothing to sweep.
func TestGuardAtFirstLevel(t *testing.T) {
	_, err := simulate(t, &curveDriver{qps: hard(60, 1000)}, func(c *Config) { c.Plan.Guards.MaxRate = 1 })
	if err == nil || !strings.Contains(err.Error(), "was passed with 10 clients, the fewest") {
		t.Errorf("got error %v", err)
	}
}

// Whatever a run had measured when it ended, the rest of the plan is what the
// next one measures, and the knee is that of the model.
func TestResume(t *testing.T) {
	whole := &curveDriver{qps: hard(60, 1000)}
	want, err := simulate(t, whole, nil)
	if err != nil {
		t.Fatal(err)
	}
	for cut := 1; cut < len(want.Slices); cut += 7 {
		earlier := &Result{Header: want.Header, Slices: append([]Slice(nil), want.Slices[:cut]...)}
		rest := &curveDriver{qps: hard(60, 1000)}
		got, err := simulate(t, rest, func(c *Config) { c.Resume = earlier })
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if n := len(rest.jobs); n != len(want.Slices)-cut {
			t.Errorf("cut at %d: %d slices are measured, want %d", cut, n, len(want.Slices)-cut)
		}
		if len(got.Curves()) != 1 || len(got.Curves()[0].Points) != len(want.Curves()[0].Points) {
			t.Errorf("cut at %d: levels %v, want %v", cut, levels(got.Curves()[0]), levels(want.Curves()[0]))
		}
		for i, p := range got.Curves()[0].Points {
			if len(p.Trials) != len(want.Curves()[0].Points[i].Trials) {
				t.Errorf("cut at %d: %d clients have %d trials", cut, p.Clients, len(p.Trials))
			}
		}
	}
}

// Others' connections and commands are seen, ours are not.
func TestChecks(t *testing.T) {
	server := redistest.Start(t)
	s := connect(t, server.Addr)
	p := planned()
	p.Workloads[1].Keys.Space = 1000
	refused := func() (texts []string) {
		t.Helper()
		checks, err := Checks(t.Context(), s, p)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range checks {
			if !c.OK {
				texts = append(texts, c.Text)
			}
		}
		return texts
	}
	if got := refused(); len(got) > 0 {
		t.Errorf("an idle server is refused: %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	busy := make(chan struct{})
	go func() {
		defer close(busy)
		client := server.Client(t)
		for ctx.Err() == nil {
			client.Ping(ctx)
			time.Sleep(100 * time.Microsecond) // the rate of the other, not a wait
		}
	}()
	if got := refused(); len(got) != 1 || !strings.Contains(got[0], "commands a second") {
		t.Errorf("a server with traffic is refused for %v", got)
	}
	cancel()
	<-busy
	for range busyClients + 1 {
		c, err := s.Target.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if got := refused(); len(got) != 1 || !strings.Contains(got[0], "connections") {
		t.Errorf("a server with %d clients is refused for %v", busyClients+1, got)
	}
	// The keys of GET would not fit.
	if err := s.Client.ConfigSet(t.Context(), "maxmemory", "2mb").Err(); err != nil {
		t.Fatal(err)
	}
	again := connect(t, server.Addr)
	p.Workloads[1].Keys.Space = 100_000
	checks, err := Checks(t.Context(), again, p)
	if err != nil {
		t.Fatal(err)
	}
	if last := checks[len(checks)-1]; last.OK || !strings.Contains(last.Text, "maxmemory") {
		t.Errorf("100,000 keys in 2 MB: %+v", last)
	}
}
