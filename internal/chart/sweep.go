package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/poolsweep/poolsweep/analyze"
)

// Sweep returns the charts of one sweep: throughput with the CPU below it and,
// where latencies are known, these against clients and against throughput. The
// curve must be the one that was analysed. There is none without a step.
func Sweep(c analyze.Curve, a *analyze.Analysis) []*Chart {
	if len(a.Steps) == 0 {
		return nil
	}
	charts := []*Chart{throughput(c, a)}
	if latencies := percentiles(a); len(latencies) > 0 {
		charts = append(charts, latency(a, latencies), price(a, latencies))
	}
	return charts
}

// Styles that several charts have in common.
var (
	dashed = []vg.Length{5, 3}
	dotted = []vg.Length{1.5, 2.5}

	kneeRule    = draw.LineStyle{Color: inkKnee, Width: 1.6}
	peakRule    = draw.LineStyle{Color: inkPeak, Width: 1.6, Dashes: dashed}
	ceilingRule = draw.LineStyle{Color: inkCeiling, Width: 1.6, Dashes: dotted}
)

// clientsOf returns the levels of an analysis.
func clientsOf(a *analyze.Analysis) []float64 {
	n := make([]float64, len(a.Steps))
	for i, s := range a.Steps {
		n[i] = float64(s.Clients)
	}
	return n
}

// landmarks returns what the analysis found at which clients, as what is drawn
// below the data and as entries of the legend.
func landmarks(a *analyze.Analysis) (below []plot.Plotter, legend []entry) {
	k := a.Knee
	if k.Low > 0 && k.Low < k.High {
		below = append(below, band{float64(k.Low), float64(k.High)})
		legend = append(legend, entry{text: fmt.Sprintf("range %d–%d", k.Low, k.High), patch: true})
	}
	marks := []struct {
		name    string
		clients int
		style   draw.LineStyle
	}{{"knee", k.Clients, kneeRule}, {"peak", k.Peak, peakRule}, {"ceiling", k.Ceiling, ceilingRule}}
	for i, m := range marks {
		name := m.name
		for _, other := range marks[i+1:] {
			if other.clients == m.clients {
				name += " and " + other.name // one line for both
			}
		}
		drawn := slices.ContainsFunc(legend, func(e entry) bool { return e.clients == m.clients })
		if m.clients == 0 || drawn {
			continue
		}
		below = append(below, rule{float64(m.clients), m.style})
		legend = append(legend, entry{text: fmt.Sprintf("%s %d", name, m.clients), line: m.style, clients: m.clients})
	}
	return below, legend
}

// throughput draws throughput against clients, every trial a dot, and below it
// the CPU of server and generator.
func throughput(c analyze.Curve, a *analyze.Analysis) *Chart {
	n := clientsOf(a)
	p := newPlot(clientsLabel(n), "requests/s")
	clientAxis(&p.X, n)
	below, legend := landmarks(a)
	p.Add(grid{})
	p.Add(below...)

	trials, highest := trialDots(c)
	median := make(plotter.XYs, len(a.Steps))
	medians := make(dots, len(a.Steps))
	values := make(notes, len(a.Steps))
	for i, s := range a.Steps {
		median[i] = plotter.XY{X: n[i], Y: s.Adjusted}
		medians[i] = dot{x: n[i], y: s.Adjusted, style: glyph(inkMedian, 3, draw.CircleGlyph{})}
		values[i] = note{n[i], stepNote(s)}
		highest = math.Max(highest, s.Adjusted)
	}
	style := draw.LineStyle{Color: inkMedian, Width: 1.8}
	p.Add(values)
	own := []entry{{text: medianName(a), line: style, glyph: medians[0].style}}
	if len(trials) > len(a.Steps) {
		own = append(own, entry{text: "each trial", glyph: trials[0].style})
	}
	if law := uslLine(a.USL, n); law != nil {
		p.Add(law)
		own = append(own, entry{text: "Universal Scalability Law", line: law.LineStyle})
	}
	p.Add(line(median, style), medians, trials)
	scale(&p.Y, 0, highest*1.06, ticks{n: 5, format: short})

	chart := &Chart{
		Name: "throughput", Title: title(a, "throughput against clients"), Text: throughputText(a),
		height: height, legend: append(own, legend...), panels: []panel{{p, 1}},
	}
	if cpu, entries := cpuPlot(a, n, below); cpu != nil {
		chart.height = height + 110
		chart.legend = append(chart.legend, entries...)
		chart.Title += ", and the CPU that it took"
		p.X.Label.Text = "" // it stands below the other panel
		chart.panels = []panel{{p, .69}, {cpu, .31}}
	}
	return chart
}

// title begins with what was sent.
func title(a *analyze.Analysis, what string) string {
	return fmt.Sprintf("%s, pipeline depth %d: %s", a.Test, max(1, a.Depth), what)
}

// medianName says of what the line is: of the trials as they were measured, or
// with the machine's changes of speed taken out.
func medianName(a *analyze.Analysis) string {
	for _, s := range a.Steps {
		if s.Adjusted != s.QPS {
			return "median, adjusted"
		}
	}
	return "median"
}

// trialDots returns a dot for each trial, and the highest throughput.
func trialDots(c analyze.Curve) (d dots, highest float64) {
	style := glyph(inkTrial, 2, ring{.8})
	for _, p := range c.Points {
		for i, t := range p.Trials {
			if !(t.QPS > 0) || math.IsInf(t.QPS, 0) || p.Clients < 1 {
				continue // left out of the analysis too
			}
			text := fmt.Sprintf("%s, trial %d: %s requests/s", count(p.Clients, "client"), i+1, thousands(t.QPS))
			d = append(d, dot{float64(p.Clients), t.QPS, style, text})
			highest = math.Max(highest, t.QPS)
		}
	}
	return d, highest
}

// uslLine is the fitted law between the first level and the last; nil when it
// was not fitted. It is not drawn beyond, where it says nothing.
func uslLine(u analyze.USL, n []float64) *plotter.Line {
	if !u.Fitted || len(n) < 2 {
		return nil
	}
	const points = 80
	alpha, beta, gamma := float64(u.Alpha), float64(u.Beta), float64(u.Gamma)
	xy := make(plotter.XYs, points+1)
	first, last := n[0], n[len(n)-1]
	for i := range xy {
		part := float64(i) / points
		x := first + (last-first)*part
		if wide(n) {
			x = first * math.Pow(last/first, part)
		}
		xy[i] = plotter.XY{X: x, Y: gamma * x / (1 + alpha*(x-1) + beta*x*(x-1))}
	}
	return line(xy, draw.LineStyle{Color: inkUSL, Width: 1.3, Dashes: []vg.Length{7, 2, 1.5, 2}})
}

// cpuPlot draws the CPU of server and generator in percent of a core; nil when
// neither is known.
func cpuPlot(a *analyze.Analysis, n []float64, below []plot.Plotter) (*plot.Plot, []entry) {
	p := newPlot(clientsLabel(n), "CPU %")
	clientAxis(&p.X, n)
	p.Add(grid{})
	p.Add(below...)
	var values notes
	for i, s := range a.Steps {
		values = append(values, note{n[i], stepNote(s)})
	}
	p.Add(values)
	highest := 100.0
	var legend []entry
	add := func(name string, style draw.LineStyle, shape draw.GlyphDrawer, of func(analyze.Step) analyze.Quantity) {
		var xy plotter.XYs
		var d dots
		for i, s := range a.Steps {
			if q := of(s); q.Known() {
				y := float64(q) * 100
				xy = append(xy, plotter.XY{X: n[i], Y: y})
				d = append(d, dot{x: n[i], y: y, style: draw.GlyphStyle{Color: style.Color, Radius: 2.4, Shape: shape}})
				highest = math.Max(highest, y)
			}
		}
		if len(xy) == 0 {
			return
		}
		p.Add(line(xy, style), d)
		legend = append(legend, entry{text: name, line: style, glyph: d[0].style})
	}
	add("server CPU", draw.LineStyle{Color: inkServer, Width: 1.6}, draw.CircleGlyph{}, serverCPU)
	add("generator CPU", draw.LineStyle{Color: inkGenerator, Width: 1.6, Dashes: dashed}, diamond{},
		func(s analyze.Step) analyze.Quantity { return s.GeneratorCPU })
	if len(legend) == 0 {
		return nil, nil
	}
	scale(&p.Y, 0, highest*1.05, ticks{n: 2, format: short})
	return p, legend
}

// serverCPU returns the CPU of the thread that runs commands, or of the whole
// process where the thread is not told, in cores.
func serverCPU(s analyze.Step) analyze.Quantity {
	if s.ServerMain.Known() {
		return s.ServerMain
	}
	return s.ServerCPU
}

// stepNote says what is known of a step, a line each.
func stepNote(s analyze.Step) string {
	lines := []string{
		count(s.Clients, "client"),
		fmt.Sprintf("%s requests/s (median of %s)", thousands(s.QPS), count(s.Trials, "trial")),
	}
	add := func(q analyze.Quantity, format string, print func(float64) string) {
		if q.Known() {
			lines = append(lines, fmt.Sprintf(format, print(float64(q))))
		}
	}
	percent := func(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }
	if s.Adjusted != s.QPS {
		lines = append(lines, thousands(s.Adjusted)+" requests/s adjusted")
	}
	add(s.Spread, "spread %s", percent)
	add(s.P50, "p50 %s ms", milliseconds)
	add(s.P99, "p99 %s ms", milliseconds)
	add(s.P999, "p99.9 %s ms", milliseconds)
	add(serverCPU(s), "server CPU %s of a core", percent)
	add(s.GeneratorCPU, "generator CPU %s of a core", percent)
	if len(s.Invalid) > 0 {
		lines = append(lines, "failed gates: "+strings.Join(s.Invalid, ", "))
	}
	return strings.Join(lines, "\n")
}

// count returns "1 client", "3 clients".
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%s %s", thousands(float64(n)), noun)
}

func throughputText(a *analyze.Analysis) string {
	first, last := a.Steps[0], a.Steps[len(a.Steps)-1]
	text := fmt.Sprintf("From %s requests/s with %s to %s with %s.",
		thousands(first.Adjusted), count(first.Clients, "client"), thousands(last.Adjusted), count(last.Clients, "client"))
	if a.Knee.Clients > 0 {
		text += fmt.Sprintf(" The knee is at %s with %s requests/s", count(a.Knee.Clients, "client"), thousands(float64(a.Knee.QPS)))
		if a.Knee.Low < a.Knee.High {
			text += fmt.Sprintf(", between %d and %d with 95 %%", a.Knee.Low, a.Knee.High)
		}
		text += "."
	} else {
		text += " No knee is named."
	}
	if a.Knee.Peak > 0 {
		text += fmt.Sprintf(" The peak is at %s with %s requests/s.", count(a.Knee.Peak, "client"), thousands(float64(a.Knee.PeakQPS)))
	}
	if a.Knee.Ceiling > 0 {
		text += fmt.Sprintf(" Beyond %s throughput falls.", count(a.Knee.Ceiling, "client"))
	}
	return text
}
