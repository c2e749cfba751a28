package chart

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/poolsweep/poolsweep/analyze"
)

// A percentile is a line of latencies.
type percentile struct {
	name  string
	style draw.LineStyle
	shape draw.GlyphDrawer
	of    func(analyze.Step) analyze.Quantity // seconds
}

// percentiles returns those of which a step knows something.
func percentiles(a *analyze.Analysis) []percentile {
	all := []percentile{
		{"p50", draw.LineStyle{Color: inkP50, Width: 1.8}, draw.CircleGlyph{}, func(s analyze.Step) analyze.Quantity { return s.P50 }},
		{"p99", draw.LineStyle{Color: inkP99, Width: 1.8, Dashes: dashed}, diamond{}, func(s analyze.Step) analyze.Quantity { return s.P99 }},
		{"p99.9", draw.LineStyle{Color: inkP999, Width: 1.8, Dashes: dotted}, draw.PyramidGlyph{}, func(s analyze.Step) analyze.Quantity { return s.P999 }},
	}
	var known []percentile
	for _, p := range all {
		for _, s := range a.Steps {
			if p.of(s).Known() {
				known = append(known, p)
				break
			}
		}
	}
	return known
}

// line returns the percentile over what x makes of a step, as a line and as
// dots, with the shortest and the longest latency.
func (p percentile) line(a *analyze.Analysis, x func(analyze.Step) float64) (xy plotter.XYs, d dots, shortest, longest float64) {
	shortest = math.Inf(1)
	for _, s := range a.Steps {
		q := float64(p.of(s))
		if !p.of(s).Known() || !(q > 0) {
			continue
		}
		xy = append(xy, plotter.XY{X: x(s), Y: q})
		d = append(d, dot{
			x: x(s), y: q, style: draw.GlyphStyle{Color: p.style.Color, Radius: 2.6, Shape: p.shape},
			text: fmt.Sprintf("%s: %s %s ms at %s requests/s", count(s.Clients, "client"), p.name, milliseconds(q), thousands(s.QPS)),
		})
		shortest, longest = math.Min(shortest, q), math.Max(longest, q)
	}
	return xy, d, shortest, longest
}

// latency draws the percentiles against clients.
func latency(a *analyze.Analysis, lines []percentile) *Chart {
	n := clientsOf(a)
	p := newPlot(clientsLabel(n), "latency, ms")
	clientAxis(&p.X, n)
	below, legend := landmarks(a)
	p.Add(grid{})
	p.Add(below...)
	var values notes
	for i, s := range a.Steps {
		values = append(values, note{n[i], stepNote(s)})
	}
	p.Add(values)
	var own []entry
	shortest, longest := math.Inf(1), 0.0
	for _, l := range lines {
		xy, d, low, high := l.line(a, func(s analyze.Step) float64 { return float64(s.Clients) })
		if len(xy) == 0 {
			continue
		}
		p.Add(line(xy, l.style), d)
		own = append(own, entry{text: l.name, line: l.style, glyph: d[0].style})
		shortest, longest = math.Min(shortest, low), math.Max(longest, high)
	}
	latencyAxis(&p.Y, shortest, longest)
	return &Chart{
		Name: "latency", Title: title(a, "latency against clients"), Text: latencyText(a, lines),
		height: height, legend: append(own, legend...), panels: []panel{{p, 1}},
	}
}

func latencyText(a *analyze.Analysis, lines []percentile) string {
	var parts []string
	first, last := a.Steps[0], a.Steps[len(a.Steps)-1]
	for _, l := range lines {
		if l.of(first).Known() && l.of(last).Known() {
			parts = append(parts, fmt.Sprintf("%s goes from %s ms at %s to %s ms at %s", l.name,
				milliseconds(float64(l.of(first))), count(first.Clients, "client"),
				milliseconds(float64(l.of(last))), count(last.Clients, "client")))
		}
	}
	if len(parts) == 0 {
		return "The latencies are in the table."
	}
	return strings.Join(parts, "; ") + "."
}

// price draws the percentiles against the throughput that goes with them, in
// the order of clients: what the last requests per second cost. Throughputs are
// as measured, as the latencies are of the same trials.
func price(a *analyze.Analysis, lines []percentile) *Chart {
	p := newPlot("requests/s", "latency, ms")
	p.Add(grid{})
	var legend []entry
	shortest, longest := math.Inf(1), 0.0
	slowest, fastest := math.Inf(1), 0.0
	for _, s := range a.Steps {
		slowest, fastest = math.Min(slowest, s.QPS), math.Max(fastest, s.QPS)
	}
	if slowest > .5*fastest {
		slowest -= .1 * (fastest - slowest)
	} else {
		slowest = 0
	}
	if slowest == fastest {
		slowest = 0
	}
	scale(&p.X, slowest, fastest*1.03, ticks{n: 5, format: short})
	if len(lines) > 2 {
		lines = lines[:2] // a third line of turns could not be followed
	}
	for _, l := range lines {
		xy, d, low, high := l.line(a, func(s analyze.Step) float64 { return s.QPS })
		if len(xy) == 0 {
			continue
		}
		p.Add(line(xy, l.style), d)
		legend = append(legend, entry{text: l.name, line: l.style, glyph: d[0].style})
		shortest, longest = math.Min(shortest, low), math.Max(longest, high)
	}
	rings, marks := priceMarks(a, lines)
	p.Add(rings)
	latencyAxis(&p.Y, shortest, longest)
	return &Chart{
		Name: "price", Title: title(a, "latency against throughput"), Text: priceText(a),
		height: height, legend: append(legend, marks...), panels: []panel{{p, 1}},
	}
}

// priceMarks puts rings around the knee and the peak.
func priceMarks(a *analyze.Analysis, lines []percentile) (rings dots, legend []entry) {
	for _, m := range []struct {
		name    string
		clients int
		style   draw.GlyphStyle
	}{
		{"knee", a.Knee.Clients, glyph(inkKnee, 6, ring{1.6})},
		{"peak", a.Knee.Peak, glyph(inkPeak, 5, frame{1.6})},
	} {
		found := false
		for _, s := range a.Steps {
			for _, l := range lines {
				if q := l.of(s); s.Clients == m.clients && q > 0 {
					rings = append(rings, dot{x: s.QPS, y: float64(q), style: m.style})
					found = true
				}
			}
		}
		if found {
			legend = append(legend, entry{text: fmt.Sprintf("%s, %s", m.name, count(m.clients, "client")), glyph: m.style})
		}
	}
	return rings, legend
}

func priceText(a *analyze.Analysis) string {
	text := "Each dot is a number of clients, few at the lower left."
	for _, s := range a.Steps {
		if s.Clients == a.Knee.Clients && s.P99.Known() {
			text += fmt.Sprintf(" At the knee %s requests/s cost a p99 of %s ms.", thousands(s.QPS), milliseconds(float64(s.P99)))
		}
	}
	for _, s := range a.Steps {
		if s.Clients == a.Knee.Peak && a.Knee.Peak != a.Knee.Clients && s.P99.Known() {
			text += fmt.Sprintf(" At the peak %s requests/s cost a p99 of %s ms.", thousands(s.QPS), milliseconds(float64(s.P99)))
		}
	}
	return text
}

// A Distribution is the latencies of one step.
type Distribution struct {
	Name  string // "knee, 60 clients"
	Count int64  // of values

	// Quantile returns the latency that the share q of the values, from 0 to
	// 1, do not exceed.
	Quantile func(q float64) time.Duration
}

// Percentiles draws latency by percentile as HdrHistogram's plotter does: the
// x axis is 1/(1−q) on a logarithmic scale, so that each nine has the same
// room. Each line ends at the share that a single request makes. of says what
// was sent. It returns nil when no distribution has a value.
func Percentiles(of *analyze.Analysis, all []Distribution) *Chart {
	p := newPlot("percentile", "latency, ms")
	p.Add(grid{})
	styles := []draw.LineStyle{{Color: inkKnee, Width: 1.8}, {Color: inkPeak, Width: 1.8, Dashes: dashed}}
	shapes := []draw.GlyphDrawer{draw.CircleGlyph{}, diamond{}}
	shortest, longest, most := math.Inf(1), 0.0, 0.0
	var legend []entry
	var text []string
	for i, d := range all {
		if d.Count == 0 {
			continue
		}
		xy := d.points()
		style := styles[i%len(styles)]
		p.Add(line(xy, style))
		values, said := d.shown(glyph(style.Color.(*ink), 2.6, shapes[i%len(shapes)]))
		p.Add(values)
		text = append(text, d.Name+": "+strings.Join(said, ", "))
		legend = append(legend, entry{text: d.Name, line: style, glyph: draw.GlyphStyle{Color: style.Color, Radius: 2.6, Shape: shapes[i%len(shapes)]}})
		shortest, longest = math.Min(shortest, xy[0].Y), math.Max(longest, xy[len(xy)-1].Y)
		most = math.Max(most, xy[len(xy)-1].X)
	}
	if len(legend) == 0 {
		return nil
	}
	p.X.Min, p.X.Max = 1, math.Max(most, 10)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, nines{}
	latencyAxis(&p.Y, shortest, longest)
	return &Chart{
		Name: "percentiles", Title: title(of, "latency by percentile"), Text: strings.Join(text, ". ") + ".",
		height: height, legend: legend, panels: []panel{{p, 1}},
	}
}

// points returns the line of a distribution, twenty points a nine.
func (d Distribution) points() plotter.XYs {
	var xy plotter.XYs
	add := func(x float64) {
		xy = append(xy, plotter.XY{X: x, Y: d.Quantile(1 - 1/x).Seconds()})
	}
	last := math.Max(10, float64(d.Count))
	for i := 0; ; i++ {
		x := math.Pow(10, float64(i)/20)
		if x >= last {
			break
		}
		add(x)
	}
	add(last)
	return xy
}

// shown returns dots at the percentiles that people name and the values of the
// first of them in words. A percentile is left out when fewer than ten values
// lie beyond it.
func (d Distribution) shown(style draw.GlyphStyle) (all dots, words []string) {
	for _, x := range []float64{2, 10, 100, 1000, 10_000, 100_000} {
		if x > 2 && float64(d.Count) < 10*x {
			break
		}
		v := d.Quantile(1 - 1/x).Seconds()
		name := asPercentile(x) + " %"
		all = append(all, dot{x, v, style, fmt.Sprintf("%s: %s ms at %s", d.Name, milliseconds(v), name)})
		words = append(words, fmt.Sprintf("%s ms at %s", milliseconds(v), name))
	}
	return all, words
}

// asPercentile prints what 1/(1−q) = x is in percent: 10 is 90, 100 is 99.
func asPercentile(x float64) string {
	decimals := max(0, int(math.Round(math.Log10(x)))-2)
	return strconv.FormatFloat(100*(1-1/x), 'f', decimals, 64)
}
