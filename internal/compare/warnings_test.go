package compare

import (
	"slices"
	"strings"
	"testing"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/sweep"
)

// codes returns the codes of all warnings of a pair, sorted.
func codes(p Pair) string {
	all := slices.Clone(p.Warnings)
	for _, s := range p.Sweeps {
		all = append(all, s.Warnings...)
	}
	var c []string
	for _, w := range all {
		c = append(c, w.Code)
	}
	slices.Sort(c)
	return strings.Join(c, " ")
}

func TestWarnings(t *testing.T) {
	// Five levels, flat from the second on, four trials that differ a little.
	plateau := curve()
	for i, x := range []float64{1000, 2000, 2010, 2005, 2000, 2003} {
		plateau.Points = append(plateau.Points, curve([]float64{x, x * 1.01, x * .99, x * 1.02}).Points...)
		plateau.Points[i].Clients = 1 << i
	}
	with := func(name string, c analyze.Curve, change func(*sweep.Header)) Run {
		r := run(name, c)
		r.Header = header()
		change(r.Header)
		return r
	}
	plain := func(*sweep.Header) {}
	cut := func(points, trials int) analyze.Curve {
		c := plateau
		c.Points = nil
		for _, p := range plateau.Points[:points] {
			p.Trials = p.Trials[:trials]
			c.Points = append(c.Points, p)
		}
		return c
	}
	elsewhere := curve([]float64{1000, 1010, 990, 1000})
	elsewhere.Points[0].Clients = 77
	get := plateau
	get.Test = "get"
	small := plateau
	small.Test = "set"
	tests := []struct {
		name     string
		old, new Run
		want     string
	}{
		{"alike", with("a", plateau, plain), with("b", plateau, plain), ""},
		{"small letters", with("a", plateau, plain), with("b", small, plain), ""},
		{"another setting", with("a", plateau, plain), with("b", plateau, func(h *sweep.Header) { h.Server.IOThreads = 4 }), WarnDiffers},
		{"other tools", run("a", plateau), run("b", plateau), WarnOtherTool},
		{"another tool", run("a", plateau), with("b", plateau, plain), WarnOtherTool},
		{"another test", with("a", plateau, plain), with("b", get, plain), WarnOneRunOnly + " " + WarnOneRunOnly},
		{"three trials", with("a", plateau, plain), with("b", cut(6, 3), plain), WarnFewTrials}, // 4 and 3: least p is 2/35
		{"two trials", with("a", cut(6, 2), plain), with("b", cut(6, 2), plain), WarnFewTrials},
		{"one trial", with("a", plateau, plain), with("b", cut(6, 1), plain), WarnNoiseUnknown},
		{"no knee", with("a", plateau, plain), with("b", cut(2, 4), plain), WarnNoAnswer},
		{"no step in common", with("a", plateau, plain), with("b", elsewhere, plain), WarnNoAnswer + " " + WarnNoCommonStep},
	}
	for _, test := range tests {
		pair := Runs([]Run{test.old, test.new}).Pairs[0]
		if got := codes(pair); got != test.want {
			t.Errorf("%s: warnings %q, want %q", test.name, got, test.want)
		}
	}
}
