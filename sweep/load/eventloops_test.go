package load

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"runtime"
	"slices"
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
	// The tests that are parallel mostly wait.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m,
		// gnet keeps one worker pool for the life of the process.
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"),
		// redistest keeps the thread that its servers are tied to.
		goleak.IgnoreAnyFunction("github.com/poolsweep/poolsweep/internal/redistest.init.func1.1"))
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
func newDriver(t testing.TB, n int, addr string) *EventLoops {
	t.Helper()
	return loops(t, n, newWorkload(t, specOf("set")), addr)
}

// Model: X = min(N, c)/S, and by Little's law the connections are busy all
// the time.
func TestThroughputInRealTime(t *testing.T) {
	const service = 20 * time.Millisecond
	for _, tt := range []struct{ workers, clients, loops int }{
		{4, 2, 1}, {4, 4, 1}, {4, 12, 1}, {4, 12, 2},
	} {
		s := startModel(t, tt.workers, service)
		d := newDriver(t, tt.loops, s.Addr)
		var m *Measurement
		modelserver.Holds(t, func() error {
			s.Served.Store(0)
			m = mustRun(t, d, Job{Step: Step{tt.clients, 1}, Warmup: 100 * time.Millisecond, Duration: time.Second})
			want := s.Throughput(tt.clients)
			if x, u := m.Throughput(), m.Utilisation(); math.Abs(x/want-1) > 0.05 || math.Abs(u-1) > 0.05 {
				return fmt.Errorf("c=%d N=%d: X = %.0f/s, want %.0f; X·R/N = %.3f, want 1", tt.workers, tt.clients, x, want, u)
			}
			return nil
		})
		conserved(t, m)
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
// its requests, whatever is sent and however it is counted.
func TestRequestsAllocateNothing(t *testing.T) {
	specs, err := workload.Tests("all")
	if err != nil {
		t.Fatal(err)
	}
	zipfian := mix(t, "get=3,set=1")
	zipfian.Keys = workload.Keys{Space: 100_000, Dist: workload.Zipfian}
	specs = append(specs, zipfian)
	for _, spec := range specs {
		allocateNothing(t, spec.Name, newWorkload(t, spec))
	}
	allocateNothing(t, "on a cluster", newWorkload(t, zipfian, thirds()...))
}

func allocateNothing(t *testing.T, name string, w *workload.Workload) {
	t.Helper()
	for _, tr := range []Transport{{Loops: 1}, {}} {
		c := startCalibrator(t, w, tr)
		run := func(requests int64) func() {
			return func() { mustRun(t, c.driver, Job{Step: Step{8, 4}, Requests: requests}) }
		}
		const more = 20_000
		mallocs(run(1000))
		few, many := mallocs(run(1000)), mallocs(run(1000+more))
		// The responder shares the process; its timers and the runtime may
		// allocate a little.
		if perRequest := (float64(many) - float64(few)) / more; perRequest > 0.01 {
			t.Errorf("%s, %+v: %d requests more make %d allocations instead of %d", name, tr, more, many, few)
		}
	}
}

func startCalibrator(t testing.TB, w *workload.Workload, tr Transport) *Calibrator {
	t.Helper()
	c, err := NewCalibrator(w, tr)
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
// error, at any depth, over any transport, whether its size is known or not.
func TestCalibrator(t *testing.T) {
	t.Parallel()
	specs, err := workload.Tests("all")
	if err != nil {
		t.Fatal(err)
	}
	specs = append(specs, mix(t, "get=1,set=1,ping_inline=1"))
	for _, spec := range specs {
		calibrates(t, spec.Name, newWorkload(t, spec), Transport{Loops: 2}, Transport{})
	}
	w := newWorkload(t, mix(t, "get=1,mset=1"))
	calibrates(t, "a mix", w, Transport{TLS: true}, Transport{PerRequest: true}, Transport{TLS: true, PerRequest: true})
	parts := newWorkload(t, mix(t, "get=1,mset=1"), thirds()...)
	calibrates(t, "a cluster", parts, Transport{Loops: 2}, Transport{}, Transport{TLS: true})
}

func calibrates(t *testing.T, name string, w *workload.Workload, transports ...Transport) {
	t.Helper()
	for _, tr := range transports {
		c := startCalibrator(t, w, tr)
		for _, depth := range []int{1, 16} {
			m := mustRun(t, c.driver, Job{Step: Step{c.clients, depth}, Requests: 2000})
			clean(t, m)
			if m.Requests != 2000 {
				t.Errorf("%s, %+v, depth %d: %d requests, want 2000", name, tr, depth, m.Requests)
			}
		}
		if m, err := c.Run(t.Context(), 1); err != nil || m.Loops != tr.Loops {
			t.Errorf("%s, %+v: %v, %+v", name, tr, err, m)
		}
	}
}

// BenchmarkNull drives the null responder: the generator's own cost. It
// reports requests a second and allocations a request.
func BenchmarkNull(b *testing.B) {
	for _, step := range []Step{{1, 1}, {10, 1}, {50, 1}, {100, 1}, {50, 16}} {
		b.Run(stepName(step), func(b *testing.B) {
			benchmarkNull(b, newWorkload(b, specOf("set")), Transport{Loops: 1}, step)
		})
	}
}

// BenchmarkTransports is BenchmarkNull by transport.
func BenchmarkTransports(b *testing.B) {
	for _, tr := range []Transport{{Loops: 1}, {}, {TLS: true}, {PerRequest: true}} {
		b.Run(fmt.Sprintf("loops=%d/tls=%v/per-request=%v", tr.Loops, tr.TLS, tr.PerRequest), func(b *testing.B) {
			benchmarkNull(b, newWorkload(b, specOf("set")), tr, Step{50, 1})
		})
	}
}

func benchmarkNull(b *testing.B, w *workload.Workload, tr Transport, step Step) float64 {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU())) // as the command runs
	c := startCalibrator(b, w, tr)
	b.ReportAllocs()
	m := mustRun(b, c.driver, Job{Step: step, Requests: int64(b.N)})
	b.ReportMetric(m.Throughput(), "requests/s")
	return m.Throughput()
}

// BenchmarkKeys compares, in alternating rounds of one run, zipfian keys with
// uniform ones and a mix with one command: what drawing and counting cost.
func BenchmarkKeys(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU()))
	uniform := specOf("get")
	uniform.Keys.Space = 1_000_000
	zipfian := uniform
	zipfian.Keys.Dist = workload.Zipfian
	mixed := mix(b, "get=1,set=1")
	mixed.Keys.Space = 1_000_000
	var qps [3][]float64
	var drivers []Driver
	for _, spec := range []workload.Spec{uniform, zipfian, mixed} {
		drivers = append(drivers, startCalibrator(b, newWorkload(b, spec), Transport{Loops: 1}).driver)
	}
	for b.Loop() {
		for i, d := range drivers {
			m := mustRun(b, d, Job{Step: Step{50, 16}, Duration: 200 * time.Millisecond})
			qps[i] = append(qps[i], m.Throughput())
		}
	}
	median := func(x []float64) float64 { return slices.Sorted(slices.Values(x))[len(x)/2] }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(qps[0]), "uniform-requests/s")
	b.ReportMetric(median(qps[1])/median(qps[0]), "zipfian-ratio")
	b.ReportMetric(median(qps[2])/median(qps[0]), "mix-ratio")
}
