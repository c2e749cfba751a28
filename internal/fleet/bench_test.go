//go:build unix

package fleet

import (
	"bufio"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/poolsweep/poolsweep/internal/modelserver"
	"github.com/poolsweep/poolsweep/sweep/load"
)

// BenchmarkController is what a step costs the controller, its NATS server
// included: CPU and memory of this process. The agents are all in one other
// process, the server in a third, all on this machine, which they share: the
// skew is that of agents that wait for a core.
func BenchmarkController(b *testing.B) {
	for _, bb := range []struct{ agents, connections int }{{10, 50}, {100, 50}, {200, 50}, {1000, 8}} {
		b.Run(fmt.Sprintf("agents=%d/connections=%d", bb.agents, bb.connections), func(b *testing.B) {
			benchmarkController(b, bb.agents, bb.connections)
		})
	}
}

func benchmarkController(b *testing.B, agents, connections int) {
	server := start(b, []string{"FLEET_TEST=model"})
	addr, err := bufio.NewReader(server.stdout).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	l := broker(b).Link()
	start(b, []string{"FLEET_TEST=agents", "FLEET_TEST_URL=" + l.URL, fmt.Sprintf("FLEET_TEST_COUNT=%d", agents)})
	from := time.Now()
	f, err := Gather(b.Context(), Config{Link: l, Agents: agents, Wait: 4 * patience})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	b.ReportMetric(time.Since(from).Seconds(), "s-to-gather")
	d := driver(b, f, newWorkload(b, set(b)), at(b, strings.TrimSpace(addr)))

	var ended time.Time
	job := load.Job{
		Step:   load.Step{Clients: agents * connections, Depth: 1},
		Warmup: 1500 * time.Millisecond, Duration: time.Second,
		End: func() { ended = time.Now() },
	}
	if _, err := d.Run(b.Context(), job); err != nil { // with the setup
		b.Fatal(err)
	}
	var skews []time.Duration
	var collect, whole time.Duration
	cpu, trials := ownCPU(b), 0
	for b.Loop() {
		from := time.Now()
		m, err := d.Run(b.Context(), job)
		if err != nil {
			b.Fatal(err)
		}
		collect += time.Since(ended)
		whole += time.Since(from) - job.Warmup - job.Duration
		trials++
		for _, a := range m.Agents {
			skews = append(skews, a.Skew)
		}
	}
	n := float64(trials)
	slices.Sort(skews)
	b.ReportMetric((ownCPU(b)-cpu).Seconds()*1e3/n, "cpu-ms/trial")
	b.ReportMetric(collect.Seconds()*1e3/n, "collect-ms/trial")
	b.ReportMetric(whole.Seconds()*1e3/n, "overhead-ms/trial")
	for _, q := range []int{50, 99, 100} {
		b.ReportMetric(skews[max(0, len(skews)*q/100-1)].Seconds()*1e3, fmt.Sprintf("skew-p%d-ms", q))
	}
	b.ReportMetric(maxRSS(b), "max-MB")
}

func usage(b *testing.B) syscall.Rusage {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u
}

func ownCPU(b *testing.B) time.Duration {
	u := usage(b)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// maxRSS is in MB, as Linux counts it.
func maxRSS(b *testing.B) float64 { return float64(usage(b).Maxrss) / 1000 }

// BenchmarkMerge is what merging the results of agents takes: read from JSON,
// and put together.
func BenchmarkMerge(b *testing.B) {
	_, target := model(b, modelserver.Model{Workers: 50, Service: 5 * time.Millisecond})
	f := gather(b, broker(b).Link(), "a")
	m, err := driver(b, f, newWorkload(b, set(b)), target).Run(b.Context(), step(50, 1))
	if err != nil {
		b.Fatal(err)
	}
	m.Agents = nil
	text, err := encode(reply{Version: Protocol, Result: &result{Measurement: m}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(len(text)), "result-bytes")
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			if _, err := decode[reply](text); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprintf("merge=%d", n), func(b *testing.B) {
			all := make([]*load.Measurement, n)
			for i := range all {
				all[i] = m
			}
			for b.Loop() {
				if _, err := load.Beside(all...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
