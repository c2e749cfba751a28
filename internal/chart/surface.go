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

// Surface draws the throughput of one test at several pipeline depths, a line a
// depth, with the knee of each. It returns nil for fewer than two sweeps with a
// step.
func Surface(test string, sweeps []*analyze.Analysis) *Chart {
	sweeps = slices.DeleteFunc(slices.Clone(sweeps), func(a *analyze.Analysis) bool { return len(a.Steps) == 0 })
	if len(sweeps) < 2 {
		return nil
	}
	p := newPlot("clients", "requests/s")
	p.Add(grid{})
	var clients []float64
	lowest, highest := math.Inf(1), 0.0
	var legend []entry
	var text []string
	var knees dots
	knee := glyph(inkKnee, 6, ring{1.6})
	for i, a := range sweeps {
		style := depthStyle(i)
		xy := make(plotter.XYs, len(a.Steps))
		d := make(dots, len(a.Steps))
		for j, s := range a.Steps {
			xy[j] = plotter.XY{X: float64(s.Clients), Y: s.Adjusted}
			d[j] = dot{xy[j].X, xy[j].Y, draw.GlyphStyle{Color: style.Color, Radius: 2.4, Shape: draw.CircleGlyph{}},
				fmt.Sprintf("depth %d, %s: %s requests/s, %d in flight", a.Depth, count(s.Clients, "client"), thousands(s.Adjusted), s.InFlight)}
			lowest, highest = math.Min(lowest, s.Adjusted), math.Max(highest, s.Adjusted)
			if s.Clients == a.Knee.Clients {
				knees = append(knees, dot{x: xy[j].X, y: xy[j].Y, style: knee})
			}
			clients = append(clients, xy[j].X)
		}
		p.Add(line(xy, style), d)
		legend = append(legend, entry{text: fmt.Sprintf("depth %d", a.Depth), line: style, glyph: d[0].style})
		text = append(text, depthText(a))
	}
	if len(knees) > 0 {
		legend = append(legend, entry{text: "knee", glyph: knee})
	}
	p.Add(knees)
	slices.Sort(clients)
	clients = slices.Compact(clients)
	p.X.Label.Text = clientsLabel(clients)
	clientAxis(&p.X, clients)
	throughputAxis(&p.Y, lowest, highest)
	return &Chart{
		Name: "surface", Title: test + ": throughput against clients, by pipeline depth", Text: strings.Join(text, " "),
		height: height, legend: legend, panels: []panel{{p, 1}},
	}
}

// depthStyle returns the line of the i-th depth. After six the inks come again,
// with other dashes.
func depthStyle(i int) draw.LineStyle {
	dashes := [][]vg.Length{nil, dashed, dotted}[i/len(inkDepths)%3]
	return draw.LineStyle{Color: inkDepths[i%len(inkDepths)], Width: 1.8, Dashes: dashes}
}

// throughputAxis is linear from 0, or logarithmic where one depth would be flat
// at the bottom.
func throughputAxis(a *plot.Axis, lowest, highest float64) {
	if lowest > 0 && highest > 30*lowest {
		a.Label.Text += " (log scale)"
		scale(a, lowest/1.2, highest*1.2, ticks{log: true, format: short})
		return
	}
	scale(a, 0, highest*1.06, ticks{n: 5, format: short})
}

func depthText(a *analyze.Analysis) string {
	text := fmt.Sprintf("Depth %d: highest %s requests/s at %s", a.Depth, thousands(float64(a.Knee.PeakQPS)), count(a.Knee.Peak, "client"))
	if a.Knee.Clients > 0 {
		return text + fmt.Sprintf(", knee at %s.", count(a.Knee.Clients, "client"))
	}
	return text + ", no knee."
}
