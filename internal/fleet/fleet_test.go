package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/poolsweep/poolsweep/internal/modelserver"
	"github.com/poolsweep/poolsweep/internal/redistest"
	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep/load"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

func TestMain(m *testing.M) {
	beProcess()
	runtime.GOMAXPROCS(8) // see modelserver
	code := m.Run()
	if code == 0 {
		const gnetPool = "github.com/panjf2000/ants/v2.(*poolCommon)." // it has no end
		if err := goleak.Find(
			goleak.IgnoreAnyFunction("github.com/poolsweep/poolsweep/internal/redistest.init.func1.1"),
			goleak.IgnoreTopFunction(gnetPool+"purgeStaleWorkers"), goleak.IgnoreTopFunction(gnetPool+"ticktock"),
		); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// patience bounds every wait for a condition.
const patience = 30 * time.Second

func broker(t testing.TB) *Broker {
	t.Helper()
	b, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// join starts an agent in this process that ends with the test, or when the
// function that is returned is called.
func join(t testing.TB, l Link, a Agent) (leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	if a.Threads == 0 {
		a.Threads = 1
	}
	go func() {
		defer close(done)
		if err := a.Run(ctx, l); err != nil {
			t.Errorf("agent %s: %v", a.Name, err)
		}
	}()
	leave = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(leave)
	return leave
}

// gather starts agents of these names and returns the fleet of them.
func gather(t testing.TB, l Link, names ...string) *Fleet {
	t.Helper()
	for _, n := range names {
		join(t, l, Agent{Name: n})
	}
	return gatherJoined(t, l, len(names))
}

func gatherJoined(t testing.TB, l Link, n int) *Fleet {
	t.Helper()
	f, err := Gather(t.Context(), Config{Link: l, Agents: n, Wait: patience, Say: func(s string) { t.Log(s) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// model starts a model server and returns it as something to be driven.
func model(t testing.TB, m modelserver.Model) (*modelserver.Server, *probe.Server) {
	t.Helper()
	s, err := modelserver.Start(m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, at(t, s.Addr)
}

// at is a server that is driven and not looked at.
func at(t testing.TB, addr string) *probe.Server {
	t.Helper()
	target, err := probe.ParseTarget(addr)
	if err != nil {
		t.Fatal(err)
	}
	return &probe.Server{Target: target}
}

func newWorkload(t testing.TB, spec workload.Spec) *workload.Workload {
	t.Helper()
	if spec.Prefix == "" {
		spec.Prefix = "poolsweep:test:"
	}
	w, err := workload.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func set(t testing.TB) workload.Spec {
	t.Helper()
	specs, err := workload.Tests("set")
	if err != nil {
		t.Fatal(err)
	}
	specs[0].Values.Sizes = []workload.Size{{Min: 3, Max: 3}}
	return specs[0]
}

func driver(t testing.TB, f *Fleet, w *workload.Workload, s *probe.Server) *Driver {
	t.Helper()
	d, err := f.Driver(w, s, false)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func step(clients, depth int) load.Job {
	return load.Job{Step: load.Step{Clients: clients, Depth: depth}, Warmup: 100 * time.Millisecond, Duration: 300 * time.Millisecond}
}

func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// 10 clients over 3 agents are 4, 3 and 3; the throughput is that of the
// model; the sums are those of the agents; the server's own count is ours.
func TestStep(t *testing.T) {
	const service = 5 * time.Millisecond
	s, target := model(t, modelserver.Model{Workers: 5, Service: service})
	b := broker(t)
	f := gather(t, b.Link(), "a", "b", "c")
	d := driver(t, f, newWorkload(t, set(t)), target)
	var hooks []string
	job := step(10, 1)
	job.Begin, job.End = func() { hooks = append(hooks, "begin") }, func() { hooks = append(hooks, "end") }
	m, err := d.Run(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	var clients []int
	var sum int64
	for _, a := range m.Agents {
		clients = append(clients, a.Clients)
		sum += a.Requests
		t.Logf("%+v", a)
	}
	if !slices.Equal(clients, []int{4, 3, 3}) || sum != m.Requests {
		t.Errorf("clients %v with %d requests, want 4, 3, 3 with %d", clients, sum, m.Requests)
	}
	if !slices.Equal(hooks, []string{"begin", "end"}) {
		t.Errorf("hooks %v", hooks)
	}
	// X = min(N, c)/S.
	if want := 5 / service.Seconds(); m.Throughput() < 0.8*want || m.Throughput() > 1.1*want {
		t.Errorf("%.0f requests/s, want %.0f", m.Throughput(), want)
	}
	if m.Latency.Count() != m.Requests || m.Clients != 10 {
		t.Errorf("%d latencies of %d requests of %d clients", m.Latency.Count(), m.Requests, m.Clients)
	}
	if m.Sent != m.Received+m.Failed+m.Lost || m.Lost != 0 {
		t.Errorf("sent %d, received %d, failed %d, lost %d", m.Sent, m.Received, m.Failed, m.Lost)
	}
	// Each connection has said CLIENT SETNAME before.
	if got, want := s.Served.Load(), m.Sent+10; got != want {
		t.Errorf("the server has answered %d requests, want %d", got, want)
	}
}

// A quota is sent to the request, however it divides.
func TestQuota(t *testing.T) {
	s, target := model(t, modelserver.Model{})
	f := gather(t, broker(t).Link(), "a", "b", "c")
	d := driver(t, f, newWorkload(t, set(t)), target)
	job := step(7, 1)
	job.Duration, job.Warmup, job.Requests = 0, 0, 10_001
	m, err := d.Run(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	if m.Requests != 10_001 || s.Served.Load() != 10_001+7 {
		t.Errorf("%d requests, the server answered %d", m.Requests, s.Served.Load())
	}
}

// An agent that ends in a trial voids it; the next goes on with the others.
func TestAgentLost(t *testing.T) {
	s, target := model(t, modelserver.Model{Workers: 4, Service: time.Millisecond})
	l := broker(t).Link()
	leave := join(t, l, Agent{Name: "b"})
	join(t, l, Agent{Name: "a"})
	f := gatherJoined(t, l, 2)
	d := driver(t, f, newWorkload(t, set(t)), target)
	job := step(9, 1)
	job.Duration = 2 * time.Second
	job.Begin = func() { leave() }
	_, err := d.Run(t.Context(), job)
	if !errors.Is(err, load.ErrVoid) {
		t.Fatalf("%v, want a void trial", err)
	}
	t.Log(err)
	// The other one has stopped.
	quiet(t, s)
	m, err := d.Run(t.Context(), step(9, 1))
	for errors.Is(err, load.ErrVoid) {
		m, err = d.Run(t.Context(), step(9, 1))
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Agents) != 1 || m.Agents[0].Name != "a" || m.Agents[0].Clients != 9 {
		t.Errorf("%+v", m.Agents)
	}
}

// quiet waits until a model server gets no request any more, for two seconds
// at most.
func quiet(t testing.TB, s *modelserver.Server) {
	t.Helper()
	since, last := time.Now(), s.Served.Load()
	for still := 0; still < 10; {
		time.Sleep(20 * time.Millisecond)
		n := s.Served.Load()
		if still++; n != last {
			still, last = 0, n
		}
		if time.Since(since) > 4*time.Second {
			t.Fatal("the load has not stopped within 4 s")
		}
	}
}

// When the controller is gone, agents stop within two seconds and take the next.
func TestControllerLost(t *testing.T) {
	s, target := model(t, modelserver.Model{Workers: 4, Service: time.Millisecond})
	b := broker(t)
	f := gather(t, b.Link(), "a", "b")
	d := driver(t, f, newWorkload(t, set(t)), target)
	job := step(8, 1)
	job.Duration = 30 * time.Second
	var lost time.Time
	job.Begin = func() { // as when its process is killed
		f.stop()
		f.nc.Close()
		lost = time.Now()
	}
	if _, err := d.Run(t.Context(), job); !errors.Is(err, load.ErrVoid) {
		t.Fatalf("%v, want a void trial", err)
	}
	last := s.Served.Load()
	var stopped time.Time
	eventually(t, "the load stops", func() bool {
		n := s.Served.Load()
		if n != last {
			last, stopped = n, time.Now()
		}
		return time.Since(lost) > 3*time.Second
	})
	t.Logf("the last request came %v after the controller was gone", stopped.Sub(lost))
	if stopped.Sub(lost) > 2*time.Second {
		t.Errorf("the load went on for %v", stopped.Sub(lost))
	}
	g := gatherJoined(t, b.Link(), 2)
	if _, err := driver(t, g, newWorkload(t, set(t)), target).Run(t.Context(), step(4, 1)); err != nil {
		t.Error(err)
	}
}

// NATS restarts during a trial: it is void, and the next one has all agents.
func TestNATSRestarts(t *testing.T) {
	_, target := model(t, modelserver.Model{Workers: 4, Service: time.Millisecond})
	b := broker(t)
	f := gather(t, b.Link(), "a", "b")
	d := driver(t, f, newWorkload(t, set(t)), target)
	job := step(8, 1)
	job.Duration = time.Second
	addr := strings.TrimPrefix(b.Link().URL, "nats://")
	job.Begin = func() {
		b.Close()
		again, err := Listen(addr)
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(again.Close)
	}
	if _, err := d.Run(t.Context(), job); !errors.Is(err, load.ErrVoid) {
		t.Fatalf("%v, want a void trial", err)
	}
	m, err := d.Run(t.Context(), step(8, 1))
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Agents) != 2 {
		t.Errorf("%d agents are left, want 2", len(m.Agents))
	}
}

// Agents of one name are told apart.
func TestDuplicateNames(t *testing.T) {
	f := gather(t, broker(t).Link(), "web", "web", "web")
	var names []string
	for _, m := range f.members() {
		names = append(names, m.label)
	}
	slices.Sort(names)
	if want := []string{"web", "web (2)", "web (3)"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

// What the server refuses is an error of the agent's name, and no fault of the
// fleet.
func TestServerRefuses(t *testing.T) {
	f := gather(t, broker(t).Link(), "a", "b")
	s, err := modelserver.Start(modelserver.Model{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	_, err = driver(t, f, newWorkload(t, set(t)), at(t, s.Addr)).Run(t.Context(), step(4, 1))
	if err == nil || errors.Is(err, load.ErrVoid) || !strings.Contains(err.Error(), "agent ") || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%v", err)
	}
}

// Keys that agents insert do not collide, and all are removed.
func TestInsertedKeys(t *testing.T) {
	spec, err := workload.YCSB("d")
	if err != nil {
		t.Fatal(err)
	}
	spec.Keys.Space = 100
	server := redistest.Start(t)
	db := server.Client(t)
	w := newWorkload(t, spec)
	if err := w.Preload(t.Context(), db, nil); err != nil {
		t.Fatal(err)
	}
	f := gather(t, broker(t).Link(), "a", "b", "c")
	d := driver(t, f, w, at(t, server.Addr))
	var inserts int64
	for range 2 {
		m, err := d.Run(t.Context(), step(6, 1))
		if err != nil {
			t.Fatal(err)
		}
		inserts += m.Sent // of reads and inserts
	}
	keys := db.DBSize(t.Context()).Val()
	var inserted int64
	for _, m := range f.members() {
		inserted += m.inserted[0]
	}
	if keys != 100+inserted || inserted == 0 {
		t.Errorf("%d keys, want 100 and %d that were inserted", keys, inserted)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := w.Remove(t.Context(), db); err != nil {
		t.Error(err)
	}
	if n := db.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}
