package load

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/poolsweep/poolsweep/internal/redistest"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// command returns the name under which the server counts a command.
func command(c workload.Command) string {
	name := strings.ToLower(c.Args[0])
	if name == "function" {
		name += "|" + strings.ToLower(c.Args[1])
	}
	return name
}

// Every built-in test runs without an error, and the server has executed just
// what was counted.
func TestBuiltInTests(t *testing.T) {
	server := redistest.Start(t)
	stats := statOf(t, server)
	specs, err := workload.Tests("all")
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range specs {
		spec.Keys.Space = 100
		w := newWorkload(t, spec)
		prepare(t, w, stats, stats)
		d := loops(t, 2, w, server.Addr)
		for _, depth := range []int{1, 16} {
			stats.reset()
			m := mustRun(t, d, Job{Step: Step{10, depth}, Requests: 2000})
			clean(t, m)
			if calls := stats.calls(command(spec.Commands[0])); m.Requests != 2000 || calls != 2000 {
				t.Errorf("%s at depth %d: %d requests, the server executed %d, want 2000 of both", spec.Name, depth, m.Requests, calls)
			}
		}
	}
}

// The server executed each command of a mix as often as was counted, over
// every transport.
func TestCommandsOfMix(t *testing.T) {
	server := redistest.Start(t)
	stats := statOf(t, server)
	spec := mix(t, "get=50,set=30,incr=15,ping_inline=5")
	spec.Keys.Space = 1000
	w := newWorkload(t, spec)
	prepare(t, w, stats, stats)
	for name, d := range map[string]Driver{
		"event loops": loops(t, 2, w, server.Addr),
		"goroutines":  conns(t, false, w, endpointsAt(server.Addr)...),
		"per request": conns(t, true, w, endpointsAt(server.Addr)...),
	} {
		stats.reset()
		m := mustRun(t, d, Job{Step: Step{6, 3}, Requests: 3000})
		clean(t, m)
		if len(m.Commands) != 4 || m.Nodes != nil {
			t.Fatalf("%s: %d commands and %d nodes, want 4 and none", name, len(m.Commands), len(m.Nodes))
		}
		for i, c := range spec.Commands {
			if calls := stats.calls(command(c)); m.Commands[i].Requests != calls || calls == 0 {
				t.Errorf("%s: %d times %s, the server executed %d", name, m.Commands[i].Requests, c.Name, calls)
			}
		}
	}
}

// Misses are counted with the command that missed.
func TestNullsByCommand(t *testing.T) {
	server := redistest.Start(t)
	w := newWorkload(t, mix(t, "get=50,ping_mbulk=50"))
	m := mustRun(t, loops(t, 1, w, server.Addr), Job{Step: Step{2, 8}, Requests: 1000})
	clean(t, m)
	if get := m.Commands[0]; get.Nulls != get.Requests || m.Commands[1].Nulls != 0 {
		t.Errorf("%d nulls of %d GET, %d of PING; want all and none", get.Nulls, get.Requests, m.Commands[1].Nulls)
	}
}

// tlsEndpoint returns an endpoint of a server that speaks TLS.
func tlsEndpoint(addr string) Endpoint { return Endpoint{addr, tlsDialer(dialer(addr))} }

func TestTLS(t *testing.T) {
	c := redistest.NewCertificates(t)
	server := redistest.StartTLS(t, c, c.Server, "--tls-auth-clients", "no")
	control := redis.NewClient(&redis.Options{Addr: server.Addr, TLSConfig: &tls.Config{InsecureSkipVerify: true}, Protocol: 2})
	defer control.Close()
	stats := stat{t, control}
	w := newWorkload(t, specOf("set"))
	for _, perRequest := range []bool{false, true} {
		d := conns(t, perRequest, w, tlsEndpoint(server.Addr))
		stats.reset()
		m := mustRun(t, d, Job{Step: Step{8, 4}, Requests: 1000})
		clean(t, m)
		if calls := stats.calls("set"); m.Requests != 1000 || calls != 1000 || m.Loops != 0 {
			t.Errorf("per request %v: %d requests, %d executed, %d loops; want 1000, 1000, 0", perRequest, m.Requests, calls, m.Loops)
		}
	}
	h, err := HoldIdle(t.Context(), 5, tlsEndpoint(server.Addr))
	if err != nil {
		t.Fatal(err)
	}
	holds(t, h, stats, 5)
}

// With a connection for each batch the server sees a connection for each, and
// the latency of a request is that of opening it, too.
func TestConnectionPerRequest(t *testing.T) {
	server := redistest.Start(t)
	stats := statOf(t, server)
	const delay = 2 * time.Millisecond
	slow := Endpoint{server.Addr, func(ctx context.Context) (net.Conn, error) {
		time.Sleep(delay) // a handshake that takes its time
		return dialer(server.Addr)(ctx)
	}}
	d := conns(t, true, newWorkload(t, specOf("set")), slow)
	stats.reset()
	m := mustRun(t, d, Job{Step: Step{4, 5}, Requests: 500})
	clean(t, m)
	if min := m.Latency.Min(); min < delay {
		t.Errorf("a latency of %v, want at least the %v of opening a connection", min, delay)
	}
	// One more shows at first whether it works.
	eventually(t, "the server has seen 101 connections", func() bool {
		return strings.Contains(stats.Info(t.Context(), "stats").Val(), "total_connections_received:101\r\n")
	})
	if u := m.Utilisation(); u < 0.9 || u > 1.1 {
		t.Errorf("utilisation %.2f, want 1: no time falls between two connections", u)
	}
}

// holds holds idle connections to be there, to be missed, and to go.
func holds(t *testing.T, h *Idle, s stat, n int) {
	t.Helper()
	clients := func() int {
		return strings.Count(s.Do(t.Context(), "CLIENT", "LIST").String(), "id=")
	}
	if got := clients(); got < n {
		t.Errorf("the server has %d clients, want at least %d", got, n)
	}
	killed := 0
	for line := range strings.Lines(s.Do(t.Context(), "CLIENT", "LIST").Val().(string)) {
		if strings.Contains(line, "cmd=NULL") && killed < 2 {
			id := strings.TrimPrefix(strings.Fields(line)[0], "id=")
			if err := s.Do(t.Context(), "CLIENT", "KILL", "ID", id).Err(); err != nil {
				t.Fatal(err)
			}
			killed++
		}
	}
	eventually(t, "two are missed", func() bool { return h.Lost() == 2 })
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "all are gone", func() bool { return clients() <= 1 })
	if h.Lost() != 2 {
		t.Errorf("%d lost after Close, want 2 as before", h.Lost())
	}
}

func TestHoldIdle(t *testing.T) {
	server := redistest.Start(t)
	h, err := HoldIdle(t.Context(), 100, endpointsAt(server.Addr)...)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, h, statOf(t, server), 100)
}

func TestHoldIdleNone(t *testing.T) {
	h, err := HoldIdle(t.Context(), 0)
	if err != nil || h.Lost() != 0 || h.Close() != nil {
		t.Errorf("none: %v, %d lost", err, h.Lost())
	}
	s := startModel(t, 0, 0)
	s.Close()
	if _, err := HoldIdle(t.Context(), 3, endpointsAt(s.Addr)...); err == nil || !strings.Contains(err.Error(), "holding 3 idle connections: opening connection") {
		t.Errorf("got error %v, want that one could not be opened", err)
	}
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !condition(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 30 s", what)
		}
		time.Sleep(time.Millisecond) // between two looks
	}
}
