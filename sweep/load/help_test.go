package load

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/poolsweep/poolsweep/internal/redistest"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// specOf returns a built-in test.
func specOf(test string) workload.Spec {
	specs, err := workload.Tests(test)
	if err != nil {
		panic(err)
	}
	return specs[0]
}

// newWorkload returns the workload of a spec with 3-byte values.
func newWorkload(t testing.TB, s workload.Spec, parts ...workload.Part) *workload.Workload {
	t.Helper()
	s.Values.Sizes, s.Prefix = []workload.Size{{Min: 3, Max: 3}}, "p:"
	w, err := workload.New(s, parts...)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func mix(t testing.TB, list string) workload.Spec {
	t.Helper()
	s, err := workload.Mix(list)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// endpointsAt returns endpoints that need no handshake.
func endpointsAt(addrs ...string) (all []Endpoint) {
	for _, a := range addrs {
		all = append(all, Endpoint{a, dialer(a)})
	}
	return all
}

// loops returns a driver with event loops that is closed with the test.
func loops(t testing.TB, n int, w *workload.Workload, addrs ...string) *EventLoops {
	t.Helper()
	d, err := NewEventLoops(n, w, endpointsAt(addrs...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func conns(t testing.TB, perRequest bool, w *workload.Workload, endpoints ...Endpoint) *Conns {
	t.Helper()
	d, err := NewConns(w, perRequest, endpoints...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// mustRun runs a job that must succeed.
func mustRun(t testing.TB, d Driver, job Job) *Measurement {
	t.Helper()
	m, err := d.Run(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// conserved holds a measurement to the laws of counting.
func conserved(t testing.TB, m *Measurement) {
	t.Helper()
	if m.Sent != m.Received+m.Failed+m.Lost {
		t.Errorf("sent %d ≠ received %d + failed %d + lost %d", m.Sent, m.Received, m.Failed, m.Lost)
	}
	for name, parts := range map[string][]Part{"commands": m.Commands, "nodes": m.Nodes} {
		if parts == nil {
			continue
		}
		sum := Part{Latency: new(Latency)}
		for _, p := range parts {
			if p.Latency.Count() != p.Requests+p.Failed {
				t.Errorf("%s: %s has %d latencies of %d requests and %d errors", name, p.Name, p.Latency.Count(), p.Requests, p.Failed)
			}
			sum.Clients += p.Clients
			sum.Requests += p.Requests
			sum.Nulls += p.Nulls
			sum.Latency.Merge(p.Latency)
		}
		if sum.Requests != m.Requests || sum.Nulls != m.Nulls {
			t.Errorf("the %s have %d requests and %d nulls, all %d and %d", name, sum.Requests, sum.Nulls, m.Requests, m.Nulls)
		}
		if sum.Latency.Count() != m.Latency.Count() || sum.Latency.Mean() != m.Latency.Mean() {
			t.Errorf("the %s have %d latencies of mean %v, all %d of %v", name, sum.Latency.Count(), sum.Latency.Mean(), m.Latency.Count(), m.Latency.Mean())
		}
		if name == "nodes" && sum.Clients != m.Clients {
			t.Errorf("the nodes have %d clients, all %d", sum.Clients, m.Clients)
		}
	}
}

// clean holds a measurement to have no error, and to the laws.
func clean(t testing.TB, m *Measurement) {
	t.Helper()
	conserved(t, m)
	if m.Failed+m.Lost+int64(m.LostConnections)+m.ErrorCount() > 0 {
		t.Errorf("%d failed, %d lost, %d connections lost: %v", m.Failed, m.Lost, m.LostConnections, m.Errors)
	}
}

// A stat reads counters of a server's INFO.
type stat struct {
	t testing.TB
	*redis.Client
}

func statOf(t testing.TB, s *redistest.Server) stat { return stat{t, s.Client(t)} }

func (s stat) info(section, name, field string) (n int64) {
	s.t.Helper()
	text, err := s.Info(context.Background(), section).Result()
	if err != nil {
		s.t.Fatal(err)
	}
	m := regexp.MustCompile(regexp.QuoteMeta(name) + `:(?:.*,)?` + field + `=(\d+)`).FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, err = strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// calls returns how often the server has executed a command.
func (s stat) calls(command string) int64 { return s.info("commandstats", "cmdstat_"+command, "calls") }

// errors returns how often it has answered with an error of a class.
func (s stat) errors(class string) int64 { return s.info("errorstats", "errorstat_"+class, "count") }

func (s stat) reset() {
	s.t.Helper()
	if err := s.ConfigResetStat(context.Background()).Err(); err != nil {
		s.t.Fatal(err)
	}
}

// prepare sets up what a workload needs on the servers.
func prepare(t testing.TB, w *workload.Workload, keys redis.UniversalClient, nodes ...stat) {
	t.Helper()
	for _, n := range nodes {
		for _, command := range w.Spec().Setup {
			args := make([]any, len(command))
			for i, a := range command {
				args[i] = a
			}
			if err := n.Do(t.Context(), args...).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Preload(t.Context(), keys, nil); err != nil {
		t.Fatal(err)
	}
}

// mallocs returns how many allocations a run makes.
func mallocs(run func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run()
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

func stepName(s Step) string { return fmt.Sprintf("clients=%d/depth=%d", s.Clients, s.Depth) }
