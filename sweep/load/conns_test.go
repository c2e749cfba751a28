package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/poolsweep/poolsweep/internal/modelserver"
)

// both returns a driver of SET of each kind against an address.
func both(t *testing.T, addr string) map[string]Driver {
	w := newWorkload(t, specOf("set"))
	return map[string]Driver{
		"event loops": loops(t, 2, w, addr),
		"goroutines":  conns(t, false, w, endpointsAt(addr)...),
		"per request": conns(t, true, w, endpointsAt(addr)...),
	}
}

// Model: X = min(N, c)/S, and by Little's law the connections are busy all
// the time, that of opening new ones included.
func TestConnsThroughputInRealTime(t *testing.T) {
	const service = 20 * time.Millisecond
	for _, perRequest := range []bool{false, true} {
		s := startModel(t, 4, service)
		d := conns(t, perRequest, newWorkload(t, specOf("set")), endpointsAt(s.Addr)...)
		var m *Measurement
		modelserver.Holds(t, func() error {
			s.Served.Store(0)
			m = mustRun(t, d, Job{Step: Step{12, 1}, Warmup: 100 * time.Millisecond, Duration: time.Second})
			want := s.Throughput(12)
			if x, u := m.Throughput(), m.Utilisation(); math.Abs(x/want-1) > 0.1 || math.Abs(u-1) > 0.1 {
				return fmt.Errorf("per request %v: X = %.0f/s, want %.0f; X·R/N = %.3f, want 1", perRequest, x, want, u)
			}
			return nil
		})
		clean(t, m)
		if m.Sent != s.Served.Load() {
			t.Errorf("per request %v: sent %d, the server answered %d", perRequest, m.Sent, s.Served.Load())
		}
	}
}

func TestConnsRequestsExactly(t *testing.T) {
	for _, tt := range []struct {
		step     Step
		requests int64
	}{
		{Step{1, 1}, 1},
		{Step{7, 16}, 1001},
		{Step{50, 1}, 49}, // fewer than connections
	} {
		for _, perRequest := range []bool{false, true} {
			s := startModel(t, 0, 0)
			d := conns(t, perRequest, newWorkload(t, specOf("set")), endpointsAt(s.Addr)...)
			m := mustRun(t, d, Job{Step: tt.step, Requests: tt.requests})
			clean(t, m)
			if m.Requests != tt.requests || m.Sent != tt.requests || s.Served.Load() != tt.requests {
				t.Errorf("%+v: %d requests, %d sent, %d served, want %d of each", tt.step, m.Requests, m.Sent, s.Served.Load(), tt.requests)
			}
		}
	}
}

func TestConnsCancel(t *testing.T) {
	s := startModel(t, 2, time.Millisecond)
	cause := errors.New("enough")
	for name, d := range both(t, s.Addr) {
		for _, job := range []Job{
			{Step: Step{8, 4}, Duration: time.Minute},
			{Step: Step{8, 4}, Requests: 1e9},
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			job.Begin = func() { cancel(cause) }
			if _, err := d.Run(ctx, job); !errors.Is(err, cause) {
				t.Errorf("%s: got error %v, want the cause", name, err)
			}
		}
		if m := mustRun(t, d, Job{Step: Step{2, 1}, Requests: 10}); m.Requests != 10 {
			t.Errorf("%s: after a cancelled job: %d requests, want 10", name, m.Requests)
		}
	}
}

func TestConnsServerGoesAway(t *testing.T) {
	for _, perRequest := range []bool{false, true} {
		s := startModel(t, 1, time.Millisecond)
		d := conns(t, perRequest, newWorkload(t, specOf("set")), endpointsAt(s.Addr)...)
		m, err := d.Run(t.Context(), Job{Step: Step{8, 1}, Duration: time.Minute, Begin: s.Kill})
		if err == nil || !strings.Contains(err.Error(), "every connection was lost") {
			t.Fatalf("per request %v: got error %v, want that every connection was lost", perRequest, err)
		}
		conserved(t, m)
		if m.LostConnections != 8 || m.Lost == 0 {
			t.Errorf("per request %v: %d connections and %d requests lost, want 8 and some", perRequest, m.LostConnections, m.Lost)
		}
	}
}

func TestConnsNothingListens(t *testing.T) {
	s := startModel(t, 0, 0)
	s.Close()
	for name, d := range both(t, s.Addr) {
		_, err := d.Run(t.Context(), Job{Step: Step{10, 1}, Duration: time.Second})
		if err == nil || !strings.Contains(err.Error(), "connection refused") || !strings.HasPrefix(err.Error(), "opening connection") {
			t.Errorf("%s: got error %v, want that opening a connection was refused", name, err)
		}
	}
}

func TestConnsNotRedis(t *testing.T) {
	s := startModel(t, 0, 0, func(string) string { return "HTTP/1.1 400 Bad Request\r\n\r\n" })
	for name, d := range both(t, s.Addr) {
		_, err := d.Run(t.Context(), Job{Step: Step{3, 1}, Duration: time.Minute})
		if err == nil || !strings.Contains(err.Error(), "not a RESP line") {
			t.Errorf("%s: got error %v, want one that says so", name, err)
		}
	}
}

// A connection that cannot be opened is tried again, and its request is not
// lost.
func TestConnectionIsTriedAgain(t *testing.T) {
	s := startModel(t, 0, 0)
	var n atomic.Int64
	e := Endpoint{s.Addr, func(ctx context.Context) (net.Conn, error) {
		if n.Add(1)%3 == 2 { // the first one shows whether it works at all
			return nil, errors.New("maxclients is reached")
		}
		return dialer(s.Addr)(ctx)
	}}
	m := mustRun(t, conns(t, true, newWorkload(t, specOf("set")), e), Job{Step: Step{1, 1}, Requests: 20})
	conserved(t, m)
	want := ErrorClass{10, "maxclients is reached"} // every second one, beginning with the first
	if got := m.Errors[connectError]; got != want || m.Requests != 20 || m.Lost > 0 {
		t.Errorf("%d requests, %d lost, errors %v; want 20, 0, %v", m.Requests, m.Lost, m.Errors, want)
	}
}

// startSilent starts a server that reads and never answers.
func startSilent(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer c.Close()
				_, _ = io.Copy(io.Discard, c) // until the client hangs up
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		running.Wait()
	})
	return l.Addr().String()
}

// Requests that are not answered are given up after drainTimeout, over every
// transport, and said to be lost.
func TestDrainTimeout(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for the timeout")
	}
	for name, d := range both(t, startSilent(t)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := d.Run(t.Context(), Job{Step: Step{4, 1}, Duration: 10 * time.Millisecond})
			if err == nil || !strings.Contains(err.Error(), noReply) {
				t.Fatalf("got error %v, want %s", err, noReply)
			}
			conserved(t, m)
			if m.Lost != 4 || m.Errors[timeoutError].Count != 4 {
				t.Errorf("%d requests lost, %d timeouts, want 4 of both", m.Lost, m.Errors[timeoutError].Count)
			}
		})
	}
}
