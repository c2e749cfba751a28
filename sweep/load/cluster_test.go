package load

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/poolsweep/poolsweep/internal/redistest"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

const masters = 3

// thirds are the slots of a fresh cluster of three masters.
func thirds() (parts []workload.Part) {
	for i := range masters {
		parts = append(parts, workload.Part{Slots: []workload.SlotRange{{First: i * workload.Slots / masters, Last: (i+1)*workload.Slots/masters - 1}}})
	}
	return parts
}

// A fixture is a cluster with what reads it.
type fixture struct {
	*redistest.Cluster
	stats []stat
	keys  *redis.ClusterClient
	addrs []string
}

func startCluster(t *testing.T) fixture {
	f := fixture{Cluster: redistest.StartCluster(t, masters)}
	for _, s := range f.Masters {
		f.stats, f.addrs = append(f.stats, statOf(t, s)), append(f.addrs, s.Addr)
	}
	f.keys = redis.NewClusterClient(&redis.ClusterOptions{Addrs: f.addrs, Protocol: 2})
	t.Cleanup(func() { f.keys.Close() })
	return f
}

func (f fixture) reset() {
	for _, s := range f.stats {
		s.reset()
	}
}

func sum(stats []stat, count func(stat) int64) (n int64) {
	for _, s := range stats {
		n += count(s)
	}
	return n
}

// Every built-in test runs on a cluster without an error, and each node has
// executed just what was counted for it.
func TestClusterByNode(t *testing.T) {
	f := startCluster(t)
	specs, err := workload.Tests("all")
	if err != nil {
		t.Fatal(err)
	}
	specs = append(specs, mix(t, "get=1,set=1"))
	for _, spec := range specs {
		spec.Keys.Space = 100
		w := newWorkload(t, spec, thirds()...)
		prepare(t, w, f.keys, f.stats...)
		drivers := []Driver{loops(t, 2, w, f.addrs...)}
		if len(spec.Commands) > 1 {
			drivers = append(drivers, conns(t, false, w, endpointsAt(f.addrs...)...))
		}
		for _, d := range drivers {
			f.reset()
			m := mustRun(t, d, Job{Step: Step{10, 4}, Requests: 3000})
			clean(t, m)
			if len(m.Nodes) != masters || m.Nodes[0].Clients != 4 || m.Nodes[2].Clients != 3 || m.Redirects != 0 {
				t.Fatalf("%s: nodes %+v, %d redirects", spec.Name, m.Nodes, m.Redirects)
			}
			for i, s := range f.stats {
				calls := int64(0)
				for _, c := range spec.Commands {
					calls += s.calls(command(c))
				}
				if n := m.Nodes[i]; n.Requests != calls || n.Name != f.addrs[i] || calls == 0 {
					t.Errorf("%s: %s answered %d requests, node %d executed %d", spec.Name, n.Name, n.Requests, i, calls)
				}
			}
		}
	}
}

// A slot that moves to another node in mid-step loses no request: those that
// are redirected with ASK, while it moves, and with MOVED, when it has moved,
// are answered by the other node and count there, once.
func TestSlotMovesInMidStep(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ driver, commands string }{
		{"event loops", "set=1"},
		{"event loops", "set=3,incr=1"},
		{"goroutines", "set=3,incr=1"},
		{"per request", "set=3,incr=1"},
	} {
		t.Run(tt.driver+" "+tt.commands, func(t *testing.T) {
			f := startCluster(t)
			spec := mix(t, tt.commands)
			spec.Keys.Space = 64
			w := newWorkload(t, spec, thirds()...)
			slotMoves(t, f, everyDriver(t, w, f.addrs...)[tt.driver], workload.Slot(w.Key(0, "key", 17)))
		})
	}
}

// everyDriver returns a driver of each kind, by name.
func everyDriver(t *testing.T, w *workload.Workload, addrs ...string) map[string]Driver {
	return map[string]Driver{
		"event loops": loops(t, 2, w, addrs...),
		"goroutines":  conns(t, false, w, endpointsAt(addrs...)...),
		"per request": conns(t, true, w, endpointsAt(addrs...)...),
	}
}

func slotMoves(t *testing.T, f fixture, d Driver, slot int) {
	const from, to = 0, 1
	f.reset()
	done := make(chan bool)
	job := Job{Step: Step{20, 8}, Duration: 200 * time.Millisecond}
	job.Begin = func() {
		defer close(done)
		f.BeginMigration(t, slot, from, to)
		f.MoveKeys(t, slot, from, to)
		eventually(t, "a request is sent with ASKING", func() bool { return f.stats[to].calls("asking") > 0 })
		f.EndMigration(t, slot, from, to)
		eventually(t, "a request is redirected with MOVED", func() bool { return f.stats[from].errors("MOVED") > 0 })
	}
	job.End = func() { <-done } // the load goes on until then
	m := mustRun(t, d, job)
	clean(t, m)
	if want := sum(f.stats, func(s stat) int64 { return s.errors("MOVED") + s.errors("ASK") }); m.Redirects != want || want == 0 {
		t.Errorf("%d redirects followed, the nodes redirected %d", m.Redirects, want)
	}
	calls := sum(f.stats, func(s stat) int64 { return s.calls("set") + s.calls("incr") })
	if calls != m.Sent {
		t.Errorf("%d requests sent, the nodes executed %d", m.Sent, calls)
	}
	// Sources learn: after the move no more than those in flight go astray.
	if moved := f.stats[from].errors("MOVED"); moved > int64(job.InFlight()) {
		t.Errorf("%d requests were redirected with MOVED, want at most the %d in flight", moved, job.InFlight())
	}
}

// pair starts two model nodes that answer with what a function of the node and
// the command's name says.
func pair(t *testing.T, reply func(node int, addrs [2]string, command string) string) [2]string {
	var addrs [2]string
	var ready atomic.Bool
	for i := range addrs {
		s := startModel(t, 0, 0, func(command string) string {
			if !ready.Load() {
				return ""
			}
			return reply(i, addrs, command)
		})
		addrs[i] = s.Addr
	}
	ready.Store(true)
	return addrs
}

func halves() []workload.Part {
	return []workload.Part{
		{Slots: []workload.SlotRange{{First: 0, Last: 8191}}},
		{Slots: []workload.SlotRange{{First: 8192, Last: 16383}}},
	}
}

func port(addr string) string { return addr[strings.LastIndexByte(addr, ':'):] }

func TestRedirects(t *testing.T) {
	const n = 1000
	for _, tt := range []struct {
		name               string
		reply              func(node int, addrs [2]string, command string) string
		failed             int64 // of n requests, class MOVED or ASK
		redirects, allowed int64
		first, second      int64 // share of the nodes in n, in the order of the endpoints; −1: not known
	}{
		// Every request of the first node is answered by the second.
		{"moved", func(node int, addrs [2]string, _ string) string {
			if node == 0 {
				return "-MOVED 1 " + addrs[1] + "\r\n"
			}
			return ""
		}, 0, n / 2, 0, 0, n},
		// The host is left out: it is that of the node asked.
		{"no host", func(node int, addrs [2]string, _ string) string {
			if node == 0 {
				return "-MOVED 1 " + port(addrs[1]) + "\r\n"
			}
			return ""
		}, 0, n / 2, 0, 0, n},
		// The reply to ASKING, here an error, is nobody's.
		{"ask", func(node int, addrs [2]string, command string) string {
			switch {
			case command == "ASKING":
				return "-ERR unknown command\r\n"
			case node == 0:
				return "-ASK 1 " + addrs[1] + "\r\n"
			}
			return ""
		}, 0, n / 2, 0, 0, n},
		// The nodes do not agree: five redirects, and the request has failed.
		{"for ever", func(node int, addrs [2]string, _ string) string {
			return "-MOVED 1 " + addrs[1-node] + "\r\n"
		}, n, n * maxRedirects, 0, -1, -1},
		// A node that is not among the endpoints.
		{"elsewhere", func(node int, addrs [2]string, _ string) string {
			if node == 0 {
				return "-MOVED 1 127.0.0.1:1\r\n"
			}
			return ""
		}, n / 2, 0, 0, 0, n / 2},
		// These are errors like others.
		{"down", func(node int, addrs [2]string, _ string) string {
			if node == 0 {
				return "-CLUSTERDOWN Hash slot not served\r\n"
			}
			return ""
		}, n / 2, 0, 0, 0, n / 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addrs := pair(t, tt.reply)
			// One request a batch and client: each node has half of them.
			for _, job := range []Job{{Step: Step{n, 1}, Requests: n}, {Step: Step{n / 5, 5}, Requests: n}} {
				m := mustRun(t, loops(t, 1, newWorkload(t, specOf("set"), halves()...), addrs[:]...), job)
				conserved(t, m)
				if m.Failed != tt.failed || m.Redirects != tt.redirects || m.Lost > 0 || m.Latency.Count() != n {
					t.Errorf("%d failed, %d redirects, %d lost, %d latencies; want %d, %d, 0, %d",
						m.Failed, m.Redirects, m.Lost, m.Latency.Count(), tt.failed, tt.redirects, n)
				}
				for i, want := range []int64{tt.first, tt.second} {
					if got := m.Nodes[i].Requests; want >= 0 && got != want {
						t.Errorf("node %d answered %d, want %d", i, got, want)
					}
				}
			}
			// Goroutines share the quota as they come.
			for name, d := range everyDriver(t, newWorkload(t, specOf("set"), halves()...), addrs[:]...) {
				m := mustRun(t, d, Job{Step: Step{n / 5, 5}, Requests: n})
				conserved(t, m)
				answered := m.Nodes[0].Requests + m.Nodes[1].Requests
				if m.Lost > 0 || answered+m.Failed != n || m.Latency.Count() != n {
					t.Errorf("%s: %d lost, %d answered, %d failed, %d latencies; want %d of each", name, m.Lost, answered, m.Failed, m.Latency.Count(), n)
				}
				if (m.Failed > 0) != (tt.failed > 0) || (m.Redirects > 0) != (tt.redirects > 0) || m.Nodes[0].Requests > max(0, tt.first) {
					t.Errorf("%s: %d failed, %d redirects, the first node answered %d; want as with one event loop", name, m.Failed, m.Redirects, m.Nodes[0].Requests)
				}
			}
		})
	}
}

// A node that goes away with the requests of others on it does not hold them
// up: they are lost, and counted so.
func TestNodeGoesAwayWithGuests(t *testing.T) {
	w := newWorkload(t, specOf("set"), halves()...)
	second := startModel(t, 1, time.Millisecond)
	var toSecond atomic.Pointer[string]
	first := startModel(t, 0, 0, func(string) string {
		if s := toSecond.Load(); s != nil {
			return *s
		}
		return ""
	})
	text := fmt.Sprintf("-MOVED 1 %s\r\n", second.Addr)
	done := make(chan bool)
	job := Job{Step: Step{40, 4}, Duration: 50 * time.Millisecond, Begin: func() {
		defer close(done)
		toSecond.Store(&text)
		eventually(t, "guests are served", func() bool { return second.Served.Load() > 500 })
		second.Kill()
		toSecond.Store(nil)
		left := first.Served.Load()
		eventually(t, "the other node goes on", func() bool { return first.Served.Load() > left+500 })
	}}
	job.End = func() { <-done } // the load goes on until then
	m := mustRun(t, loops(t, 1, w, first.Addr, second.Addr), job)
	conserved(t, m)
	if m.LostConnections != 20 || m.Lost == 0 || m.Redirects == 0 {
		t.Errorf("%d connections and %d requests lost, %d redirects; want 20, some, some", m.LostConnections, m.Lost, m.Redirects)
	}
}

func TestTooFewClients(t *testing.T) {
	s := startModel(t, 0, 0)
	w := newWorkload(t, specOf("set"), thirds()...)
	addrs := []string{s.Addr, s.Addr, s.Addr}
	for _, d := range []Driver{loops(t, 2, w, addrs...), conns(t, false, w, endpointsAt(addrs...)...)} {
		_, err := d.Run(t.Context(), Job{Step: Step{2, 1}, Requests: 1})
		const want = "driving 2 clients: the cluster has 3 masters; each needs a connection"
		if err == nil || err.Error() != want {
			t.Errorf("got error %v, want %s", err, want)
		}
	}
	if _, err := NewEventLoops(1, w, endpointsAt(s.Addr)...); err == nil {
		t.Error("one endpoint for a workload of three parts: no error")
	}
}
