package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/report"
	"github.com/poolsweep/poolsweep/sweep"
)

const (
	liveLines = 16 // above the bar: the curve and the CPU
	liveRows  = 24 // of a terminal, below which there is only the bar

	// liveEvery is how often the curve is judged anew. It takes some 10 ms,
	// so half a percent of a core.
	liveEvery = 2 * time.Second

	cpuBar = 20 // columns of a full core
)

// A live view is what stands above the bar of a sweep: the curve as it grows,
// with the knee as it looks so far, and what was busy in the last slice.
type live struct {
	test    string
	depth   int
	columns int
	sum     map[int]float64 // requests/s of the slices of a level
	count   map[int]int
	judged  time.Time

	mu    sync.Mutex // the bar is drawn on a goroutine of its own
	lines []string
}

func newLive(e sweep.Event, columns int) *live {
	return &live{test: e.Test, depth: e.Depth, columns: columns, sum: make(map[int]float64), count: make(map[int]int)}
}

// fillers returns what prints the lines, one each: from the bar upwards, as mpb
// has them.
func (l *live) fillers() []mpb.BarFiller {
	var all []mpb.BarFiller
	for i := liveLines - 1; i >= 0; i-- {
		all = append(all, mpb.BarFillerFunc(func(w io.Writer, _ decor.Statistics) error {
			l.mu.Lock()
			defer l.mu.Unlock()
			line := ""
			if i < len(l.lines) {
				line = l.lines[i]
			}
			_, err := fmt.Fprintln(w, line)
			return err
		}))
	}
	return all
}

// add takes a slice.
func (l *live) add(e sweep.Event) {
	l.sum[e.Clients] += e.QPS
	l.count[e.Clients]++
	if time.Since(l.judged) < liveEvery {
		return
	}
	l.judged = time.Now()
	lines := append(l.curve(), "", busy("server", e.ServerMain)+"   "+busy("generator", e.Generator))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = lines
}

// curve draws the means of the levels so far.
func (l *live) curve() []string {
	c := analyze.Curve{Test: l.test, Depth: l.depth}
	u := analyze.Unknown()
	for _, n := range slices.Sorted(maps.Keys(l.sum)) {
		c.Points = append(c.Points, analyze.Point{Clients: n, Trials: []analyze.Trial{{
			QPS: l.sum[n] / float64(l.count[n]), Mean: u, P50: u, P99: u, P999: u, LatencyMin: u, Load: analyze.UnknownLoad(),
		}}})
	}
	var text strings.Builder
	d := &report.Document{Analyses: []*analyze.Analysis{analyze.Analyze(c, analyze.Options{})}}
	if err := report.TerminalCharts(&text, d, l.columns); err != nil {
		return nil
	}
	lines := strings.Split(strings.Trim(text.String(), "\n"), "\n")
	return lines[:min(len(lines), liveLines-2)]
}

// busy draws how much of a core is in use.
func busy(name string, cores analyze.Quantity) string {
	if !cores.Known() {
		return name + " unknown"
	}
	n := min(max(int(float64(cores)*cpuBar+0.5), 0), cpuBar)
	return fmt.Sprintf("%s %3.0f %% %s%s", name, 100*float64(cores), strings.Repeat("█", n), strings.Repeat("░", cpuBar-n))
}
