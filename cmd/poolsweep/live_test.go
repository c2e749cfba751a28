package main

import (
	"strings"
	"testing"

	"github.com/vbauerster/mpb/v8/decor"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/sweep"
)

// The view has the curve of what was measured and the CPU of the last slice,
// top to bottom when the fillers are drawn from the bar upwards.
func TestLive(t *testing.T) {
	l := newLive(sweep.Event{Test: "GET", Depth: 1}, 80)
	for i, n := range []int{1, 2, 4, 8, 16, 32} {
		l.judged = l.judged.AddDate(-1, 0, 0) // it is due again
		l.add(sweep.Event{Clients: n, QPS: 1000 * float64(min(n, 8)), ServerMain: analyze.Quantity(.1 * float64(i+1)), Generator: analyze.Unknown()})
	}
	var lines []string
	for _, f := range l.fillers() {
		var line strings.Builder
		if err := f.Fill(&line, decor.Statistics{}); err != nil {
			t.Fatal(err)
		}
		if strings.Count(line.String(), "\n") != 1 {
			t.Errorf("%q is not one line", line.String())
		}
		lines = append([]string{strings.TrimRight(line.String(), "\n")}, lines...)
	}
	text := strings.Join(lines, "\n")
	if !strings.HasPrefix(text, "GET, pipeline depth 1: requests/s against clients\n") {
		t.Errorf("it begins with %q", lines[0])
	}
	if !strings.Contains(text, "knee") || !strings.Contains(text, "server  60 % ████████████░░░░░░░░   generator unknown") {
		t.Errorf("the view is\n%s", text)
	}
}
