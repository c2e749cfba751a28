package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/poolsweep/poolsweep/internal/embedded"
	"github.com/poolsweep/poolsweep/internal/modelserver"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

func TestMain(m *testing.M) {
	embedded.Main()
	runtime.GOMAXPROCS(8) // see modelserver
	goleak.VerifyTestMain(m,
		// gnet keeps one worker pool for the life of the process.
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"))
}

func startModel(t testing.TB, workers int, service time.Duration, reply ...func(string) string) *modelserver.Server {
	t.Helper()
	s, err := modelserver.Start(modelserver.Model{Workers: workers, Service: service, Reply: append(reply, nil)[0]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// newDriver returns a driver of SET against addr.
func newDriver(t testing.TB, loops int, addr string) *EventLoops {
	t.Helper()
	w, err := workload.New(workload.Spec{Test: "set", ValueBytes: 3, Prefix: "p:"})
	if err != nil {
		t.Fatal(err)
	}
	d, err := NewEventLoops(loops, w, func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	})
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

// conserved holds a measurement to Sent = Received + Failed + Lost.
func conserved(t *testing.T, m *Measurement) {
	t.Helper()
	if m.Sent != m.Received+m.Failed+m.Lost {
		t.Errorf("sent %d ≠ received %d + failed %d + lost %d", m.Sent, m.Received, m.Failed, m.Lost)
	}
}

// Model: X = min(N, c)/S, and by Little's law the connections are busy all
// the time.
func TestThroughputOfModel(t *testing.T) {
	const service = 20 * time.Millisecond
	for _, tt := range []struct{ workers, clients, loops int }{
		{4, 2, 1}, {4, 4, 1}, {4, 12, 1}, {4, 12, 2},
	} {
		s := startModel(t, tt.workers, service)
		d := newDriver(t, tt.loops, s.Addr)
		m, err := d.Run(t.Context(), Job{Step: Step{tt.clients, 1}, Warmup: 100 * time.Millisecond, Duration: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		conserved(t, m)
		want := float64(min(tt.workers, tt.clients)) / service.Seconds()
		if x := m.Throughput(); math.Abs(x/want-1) > 0.05 {
			t.Errorf("c=%d N=%d: X = %.0f/s, want %.0f", tt.workers, tt.clients, x, want)
		}
		if u := m.Utilisation(); math.Abs(u-1) > 0.05 {
			t.Errorf("c=%d N=%d: X·R/N = %.3f, want 1", tt.workers, tt.clients, u)
		}
		if m.Sent != s.Served.Load() {
			t.Errorf("sent %d, the server answered %d", m.Sent, s.Served.Load())
		}
		if n := m.Latency.Count(); n != m.Requests {
			t.Errorf("%d latencies of %d requests", n, m.Requests)
		}
		var sum int64
		for _, n := range m.Intervals {
			sum += n
		}
		if sum != m.Requests {
			t.Errorf("the intervals have %d requests, the window %d", sum, m.Requests)
		}
	}
}

// A quota is used up to the request, whatever the depth and the loops.
func TestRequestsExactly(t *testing.T) {
	for _, tt := range []struct {
		step     Step
		loops    int
		requests int64
	}{
		{Step{1, 1}, 1, 1},
		{Step{10, 1}, 1, 1000},
		{Step{7, 16}, 2, 1001},
		{Step{50, 1}, 2, 49}, // fewer than connections
	} {
		s := startModel(t, 0, 0)
		d := newDriver(t, tt.loops, s.Addr)
		m, err := d.Run(t.Context(), Job{Step: tt.step, Requests: tt.requests})
		if err != nil {
			t.Fatal(err)
		}
		conserved(t, m)
		if m.Requests != tt.requests || m.Sent != tt.requests || s.Served.Load() != tt.requests {
			t.Errorf("%+v: %d requests, %d sent, %d served, want %d of each", tt.step, m.Requests, m.Sent, s.Served.Load(), tt.requests)
		}
		if m.Elapsed <= 0 {
			t.Errorf("%+v: elapsed %v", tt.step, m.Elapsed)
		}
	}
}

func TestErrorsAreClassified(t *testing.T) {
	var n atomic.Int64
	s := startModel(t, 0, 0, func(string) string {
		if n.Add(1)%4 == 0 {
			return "-OOM command not allowed\r\n"
		}
		return "$-1\r\n"
	})
	d := newDriver(t, 1, s.Addr)
	m, err := d.Run(t.Context(), Job{Step: Step{4, 5}, Requests: 1000})
	if err != nil {
		t.Fatal(err)
	}
	conserved(t, m)
	if m.Requests != 750 || m.Nulls != 750 || m.Failed != 250 {
		t.Errorf("%d ok, %d null, %d failed; want 750, 750, 250", m.Requests, m.Nulls, m.Failed)
	}
	want := ErrorClass{250, "OOM command not allowed"}
	if got := m.Errors["OOM"]; got != want || m.ErrorCount() != 250 {
		t.Errorf("errors %v, want OOM: %v", m.Errors, want)
	}
}

func TestHooksStandAtTheWindow(t *testing.T) {
	s := startModel(t, 0, 0)
	d := newDriver(t, 1, s.Addr)
	var begin, end time.Time
	job := Job{Step: Step{2, 1}, Warmup: 50 * time.Millisecond, Duration: 200 * time.Millisecond}
	job.Begin = func() { begin = time.Now() }
	job.End = func() { end = time.Now() }
	m, err := d.Run(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	if begin.Before(m.Start) {
		t.Errorf("Begin was called %v before the window", m.Start.Sub(begin))
	}
	if end.Before(m.Start.Add(m.Elapsed)) {
		t.Error("End was called before the end of the window")
	}
}

func TestServerGoesAway(t *testing.T) {
	s := startModel(t, 1, time.Millisecond)
	d := newDriver(t, 1, s.Addr)
	job := Job{Step: Step{8, 1}, Duration: time.Minute, Begin: s.Kill}
	m, err := d.Run(t.Context(), job)
	if err == nil || !strings.Contains(err.Error(), "every connection was lost") {
		t.Fatalf("got error %v, want that every connection was lost", err)
	}
	conserved(t, m)
	if m.LostConnections != 8 || m.Lost == 0 {
		t.Errorf("%d connections and %d requests lost, want 8 and some", m.LostConnections, m.Lost)
	}
}

func TestCancel(t *testing.T) {
	s := startModel(t, 2, time.Millisecond)
	d := newDriver(t, 2, s.Addr)
	cause := errors.New("enough")
	for _, job := range []Job{
		{Step: Step{8, 4}, Duration: time.Minute},
		{Step: Step{8, 4}, Requests: 1e9},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		job.Begin = func() { cancel(cause) }
		if _, err := d.Run(ctx, job); !errors.Is(err, cause) {
			t.Errorf("got error %v, want the cause", err)
		}
	}
	// The driver is as good as new.
	if m, err := d.Run(t.Context(), Job{Step: Step{2, 1}, Requests: 10}); err != nil || m.Requests != 10 {
		t.Errorf("after a cancelled job: %v, %v", m, err)
	}
}

func TestNotRedis(t *testing.T) {
	s := startModel(t, 0, 0, func(string) string { return "HTTP/1.1 400 Bad Request\r\n\r\n" })
	d := newDriver(t, 1, s.Addr)
	_, err := d.Run(t.Context(), Job{Step: Step{3, 1}, Duration: time.Minute})
	if err == nil || !strings.Contains(err.Error(), "not a RESP line") {
		t.Errorf("got error %v, want one that says so", err)
	}
}

func TestNothingListens(t *testing.T) {
	s := startModel(t, 0, 0)
	s.Close()
	d := newDriver(t, 1, s.Addr)
	_, err := d.Run(t.Context(), Job{Step: Step{100, 1}, Duration: time.Second})
	if err == nil || !strings.Contains(err.Error(), "connection refused") || !strings.HasPrefix(err.Error(), "opening connection") {
		t.Errorf("got error %v, want that opening a connection was refused", err)
	}
}

// The hot path allocates nothing: what a job allocates does not grow with
// its requests.
func TestRequestsAllocateNothing(t *testing.T) {
	s := startModel(t, 0, 0)
	d := newDriver(t, 1, s.Addr)
	mallocs := func(requests int64) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := d.Run(t.Context(), Job{Step: Step{8, 4}, Requests: requests}); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	mallocs(1000)
	few, many := mallocs(1000), mallocs(101_000)
	// The model server shares the process; its timers and the runtime may
	// allocate a little.
	if perRequest := float64(many) - float64(few); perRequest/100_000 > 0.01 {
		t.Errorf("100,000 requests more: %d allocations instead of %d", many, few)
	}
}

func newCalibrator(t testing.TB, loops int, test string) *Calibrator {
	t.Helper()
	w, err := workload.New(workload.Spec{Test: test, ValueBytes: 3, Prefix: "p:"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewCalibrator(loops, w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Every request of every test is answered by the null responder, without an
// error, at any depth.
func TestCalibrator(t *testing.T) {
	for _, test := range workload.Names() {
		for _, depth := range []int{1, 16} {
			m, err := newCalibrator(t, 2, test).Run(t.Context(), depth)
			if err != nil {
				t.Fatal(err)
			}
			conserved(t, m)
			if m.Requests == 0 || m.Failed+m.Lost+int64(m.LostConnections) > 0 {
				t.Errorf("%s at depth %d: %+v", test, depth, m)
			}
		}
	}
}

// BenchmarkNull drives the null responder: the generator's own cost. It
// reports requests a second and allocations a request.
func BenchmarkNull(b *testing.B) {
	for _, step := range []Step{{1, 1}, {10, 1}, {50, 1}, {100, 1}, {50, 16}} {
		b.Run(fmt.Sprintf("clients=%d/depth=%d", step.Clients, step.Depth), func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU())) // as the command runs
			c := newCalibrator(b, 1, "set")
			b.ReportAllocs()
			m, err := c.driver.Run(b.Context(), Job{Step: step, Requests: int64(b.N)})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(m.Throughput(), "requests/s")
		})
	}
}
