package load_test

import (
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/poolsweep/poolsweep/internal/embedded"
	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep/load"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// BenchmarkPeer runs poolsweep and redis-benchmark in turn against one server,
// SET of 3 bytes, and reports for each the median of five rounds: requests/s,
// and µs of generator CPU a request; the ratios ours/theirs; and how full the
// server's main thread was under ours, which is what bounds the ratio of speeds.
func BenchmarkPeer(b *testing.B) {
	if _, err := exec.LookPath("redis-benchmark"); err != nil {
		b.Skip("redis-benchmark is not on PATH")
	}
	// As the command runs, and not as the tests beside a model server do.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU()))
	server, err := embedded.Start(b.Context(), "redis-server")
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	// redis-benchmark takes a password in its arguments only.
	target := server.Target
	control, err := probe.Connect(b.Context(), target)
	if err != nil {
		b.Fatal(err)
	}
	defer control.Close()
	if err := control.Client.ConfigSet(b.Context(), "requirepass", "").Err(); err != nil {
		b.Fatal(err)
	}
	target.Password = probe.Secret{}
	w, err := workload.New(workload.Spec{
		Name: "SET", Prefix: "p:",
		Commands: []workload.Command{{Name: "SET", Args: []string{"SET", "__key__", "__data__"}}},
		Values:   workload.Values{Sizes: []workload.Size{{Min: 3, Max: 3}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	d, err := load.NewEventLoops(1, w, load.Endpoint{Addr: target.Addr(), Dial: target.Dial})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	for _, depth := range []int{1, 16} {
		for _, clients := range []int{1, 10, 50, 100} {
			step := load.Step{Clients: clients, Depth: depth}
			b.Run(fmt.Sprintf("clients=%d/depth=%d", clients, depth), func(b *testing.B) {
				var ours, theirs sample
				var full []float64
				for range 5 {
					n := ours.take(b, func() (int64, float64, float64) {
						n, seconds, cpu, server := runOurs(b, d, probe.NewSampler(control), step)
						full = append(full, server)
						return n, seconds, cpu
					})
					theirs.take(b, func() (int64, float64, float64) { return runTheirs(b, target, step, n) })
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(median(ours.qps), "requests/s")
				b.ReportMetric(median(theirs.qps), "rb-requests/s")
				b.ReportMetric(median(ours.cpu), "µs/request")
				b.ReportMetric(median(theirs.cpu), "rb-µs/request")
				b.ReportMetric(median(full)*100, "server-%")
				b.ReportMetric(median(ours.qps)/median(theirs.qps), "speed-ratio")
				b.ReportMetric(median(ours.cpu)/median(theirs.cpu), "cpu-ratio")
			})
		}
	}
}

// A sample is several rounds of one generator.
type sample struct {
	qps, cpu []float64 // requests/s, µs a request
}

func (s *sample) take(b *testing.B, run func() (requests int64, seconds, cpu float64)) int64 {
	n, seconds, cpu := run()
	s.qps = append(s.qps, float64(n)/seconds)
	s.cpu = append(s.cpu, cpu/float64(n)*1e6)
	return n
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}

func cpuOf(who int) float64 {
	var u syscall.Rusage
	syscall.Getrusage(who, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// runOurs also returns the share of a core that the server's main thread used.
func runOurs(b *testing.B, d load.Driver, sm *probe.Sampler, step load.Step) (requests int64, seconds, cpu, server float64) {
	var begin, end *probe.Sample
	m, err := d.Run(b.Context(), load.Job{
		Step: step, Warmup: 50 * time.Millisecond, Duration: 500 * time.Millisecond,
		Begin: func() { begin = sm.Sample(b.Context()) },
		End:   func() { end = sm.Sample(b.Context()) },
	})
	if err != nil {
		b.Fatal(err)
	}
	w := sm.Between(begin, end)
	perSecond := w.Generator.CPUSeconds / w.Elapsed.Seconds()
	return m.Requests, m.Elapsed.Seconds(), perSecond * m.Elapsed.Seconds(), *w.Server.MainCPUSeconds / w.Server.Elapsed.Seconds()
}

var perSecond = regexp.MustCompile(`([0-9.]+) requests per second`)

// runTheirs has redis-benchmark send about as many requests as we did, so
// that both run for a similar time.
func runTheirs(b *testing.B, t probe.Target, step load.Step, n int64) (int64, float64, float64) {
	before := cpuOf(syscall.RUSAGE_CHILDREN)
	cmd := exec.Command("redis-benchmark", "-p", strconv.Itoa(t.Port), "-t", "set", "-q",
		"-c", strconv.Itoa(step.Clients), "-P", strconv.Itoa(step.Depth), "-n", strconv.FormatInt(n, 10))
	out, err := cmd.Output()
	if err != nil {
		b.Fatal(err)
	}
	all := perSecond.FindAllStringSubmatch(strings.ReplaceAll(string(out), "\r", "\n"), -1)
	if len(all) == 0 {
		b.Fatalf("redis-benchmark says %q", out)
	}
	qps, err := strconv.ParseFloat(all[len(all)-1][1], 64)
	if err != nil {
		b.Fatal(err)
	}
	return n, float64(n) / qps, cpuOf(syscall.RUSAGE_CHILDREN) - before
}
