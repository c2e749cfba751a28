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

// A Member is one line of an overlay.
type Member struct {
	Name     string // for the legend: "depth 16", "old.jsonl"
	Analysis *analyze.Analysis
}

// Surface draws the throughput of one test at several pipeline depths, a line a
// depth, with the knee of each. It returns nil for fewer than two sweeps with a
// step.
func Surface(test string, sweeps []*analyze.Analysis) *Chart {
	var all []Member
	for _, a := range sweeps {
		all = append(all, Member{fmt.Sprintf("depth %d", a.Depth), a})
	}
	return overlay("surface", test+": throughput against clients, by pipeline depth", all)
}

// Overlay draws the throughput of one test in several runs, a line a run, with
// the knee of each. It returns nil for fewer than two sweeps with a step.
func Overlay(test string, runs []Member) *Chart {
	return overlay("overlay", test+": throughput against clients, by run", runs)
}

func overlay(name, title string, all []Member) *Chart {
	all = slices.DeleteFunc(slices.Clone(all), func(m Member) bool { return len(m.Analysis.Steps) == 0 })
	if len(all) < 2 {
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
	for i, m := range all {
		style := depthStyle(i)
		xy := make(plotter.XYs, len(m.Analysis.Steps))
		d := make(dots, len(m.Analysis.Steps))
		for j, s := range m.Analysis.Steps {
			xy[j] = plotter.XY{X: float64(s.Clients), Y: s.Adjusted}
			d[j] = dot{xy[j].X, xy[j].Y, draw.GlyphStyle{Color: style.Color, Radius: 2.4, Shape: draw.CircleGlyph{}},
				fmt.Sprintf("%s, %s: %s requests/s, %d in flight", m.Name, count(s.Clients, "client"), thousands(s.Adjusted), s.InFlight)}
			lowest, highest = math.Min(lowest, s.Adjusted), math.Max(highest, s.Adjusted)
			if s.Clients == m.Analysis.Knee.Clients {
				knees = append(knees, dot{x: xy[j].X, y: xy[j].Y, style: knee})
			}
			clients = append(clients, xy[j].X)
		}
		p.Add(line(xy, style), d)
		legend = append(legend, entry{text: m.Name, line: style, glyph: d[0].style})
		text = append(text, memberText(m))
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
		Name: name, Title: title, Text: strings.Join(text, " "),
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

func memberText(m Member) string {
	k := m.Analysis.Knee
	text := fmt.Sprintf("%s: highest %s requests/s at %s", strings.ToUpper(m.Name[:1])+m.Name[1:], thousands(float64(k.PeakQPS)), count(k.Peak, "client"))
	if k.Clients > 0 {
		return text + fmt.Sprintf(", knee at %s.", count(k.Clients, "client"))
	}
	return text + ", no knee."
}
