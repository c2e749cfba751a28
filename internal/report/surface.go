package report

import (
	"strconv"
	"strings"

	"github.com/poolsweep/poolsweep/analyze"
)

// surfaceColumns are those of the table of depths.
var surfaceColumns = []column[analyze.DepthKnee]{
	{"depth", func(d analyze.DepthKnee) string { return strconv.Itoa(d.Depth) }},
	{"knee", func(d analyze.DepthKnee) string { return positive(d.Clients) }},
	{"knee QPS", func(d analyze.DepthKnee) string { return throughput(d.QPS) }},
	{"in flight", func(d analyze.DepthKnee) string { return positive(d.InFlight) }},
	{"peak", func(d analyze.DepthKnee) string { return positive(d.Peak) }},
	{"peak QPS", func(d analyze.DepthKnee) string { return throughput(d.PeakQPS) }},
	{"confidence", func(d analyze.DepthKnee) string { return string(d.Confidence) }},
}

// positive prints n, nothing for a 0 that means none.
func positive(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// surface prints what several depths of one test say together.
func (p *printer) surface(s analyze.Surface) {
	depths := make([]string, len(s.Depths))
	for i, d := range s.Depths {
		depths[i] = strconv.Itoa(d.Depth)
	}
	p.printf("%s, pipeline depths %s\n", s.Test, strings.Join(depths, ", "))
	grid(p, surfaceColumns, s.Depths, func(d analyze.DepthKnee) string {
		var m []string
		if d.Depth == s.Best.Depth {
			m = append(m, "best")
		}
		if d.Mark != "" {
			m = append(m, "("+d.Mark+")")
		}
		if len(m) == 0 {
			return ""
		}
		return "< " + strings.Join(m, ", ")
	})
	p.sentences(s.Sentences())
}
