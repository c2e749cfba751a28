// Package report prints what was measured and concluded: one document, one
// file a format. It judges nothing and changes no number but to round it for
// print; what is said in words comes from package analyze.
package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/sweep"
)

// A Document is what a report is made of. The same document gives the same
// bytes.
type Document struct {
	// Header is that of the result file; nil when the curves come from
	// another tool.
	Header *sweep.Header

	// Result is the result file itself, which latency histograms and numbers
	// of requests are taken from; nil when the curves come from another tool.
	Result *sweep.Result

	// Curves and Analyses belong together, one for each sweep.
	Curves   []analyze.Curve
	Analyses []*analyze.Analysis

	// Nodes are, for each sweep of a cluster, the analyses of its nodes;
	// empty for a single server.
	Nodes [][]*analyze.Analysis

	// Rates are the analyses of the open loops after sweeps, in any order.
	Rates []*analyze.RateAnalysis

	// Client is the library whose settings stand under each recommendation,
	// "all" for each of them; empty for none. Only formats for people print
	// them.
	Client string

	// Remarks are sentences that concern all sweeps.
	Remarks []string
}

// remarks returns the remarks, and what an interrupted run lacks.
func (d *Document) remarks() []string {
	if d.Header == nil {
		return d.Remarks
	}
	if lacks := incomplete(d); lacks != "" {
		return append(slices.Clone(d.Remarks), lacks)
	}
	return d.Remarks
}

// A Format writes a document.
type Format func(io.Writer, *Document) error

var formats = map[string]Format{
	"benchfmt":    benchfmt,
	"csv":         csvReport,
	"hgrm":        hgrm,
	"html":        htmlReport,
	"hlog":        hlog,
	"json":        jsonReport,
	"markdown":    markdown,
	"openmetrics": openMetrics,
	"table":       table,
}

// alone are the formats of which a file holds one document only.
var alone = []string{"hgrm", "hlog", "html", "openmetrics"}

// Formats returns the names of the formats, sorted.
func Formats() []string { return slices.Sorted(maps.Keys(formats)) }

// Named returns the format of that name.
func Named(name string) (Format, error) {
	f, ok := formats[name]
	if !ok {
		return nil, fmt.Errorf("unknown format %q; the formats are %s", name, strings.Join(Formats(), ", "))
	}
	return f, nil
}

// Joinable reports whether documents in the format of that name may stand one
// behind the other, with an empty line between them.
func Joinable(name string) bool { return !slices.Contains(alone, name) }

// A trialRow is one trial and where it belongs.
type trialRow struct {
	analyze.Trial
	test    string
	depth   int // at least 1
	clients int
	index   int  // in Point.Trials
	median  bool // it stands for its step

	// requests is how many the trial made; 0 when that is not known.
	requests int64
}

// trials returns every trial, in the order of the curves.
func (d *Document) trials() []trialRow {
	var rows []trialRow
	for i, c := range d.Curves {
		measured := d.measured(c)
		for _, p := range c.Points {
			median := medianTrial(d.Analyses[i], p.Clients)
			for j, t := range p.Trials {
				r := trialRow{Trial: t, test: c.Test, depth: max(1, c.Depth), clients: p.Clients, index: j, median: j == median}
				if all := measured[p.Clients]; j < len(all) {
					r.requests = all[j].Measurement.Requests
				}
				rows = append(rows, r)
			}
		}
	}
	return rows
}

// medianTrial returns the index of the trial that stands for the step of that
// many clients, -1 when none of its trials could be used.
func medianTrial(a *analyze.Analysis, clients int) int {
	for _, s := range a.Steps {
		if s.Clients == clients {
			return s.MedianTrial
		}
	}
	return -1
}

// measured returns the trials of a curve as the result file has them, by
// clients and in the order of Point.Trials; nil when the curve comes from
// another tool.
func (d *Document) measured(c analyze.Curve) map[int][]sweep.Trial {
	if d.Result == nil {
		return nil
	}
	for _, s := range d.Result.Sweeps() {
		if s.Test == c.Test && s.Depth == max(1, c.Depth) {
			return s.Trials(d.Result.Header.Plan.Slices)
		}
	}
	return nil
}

// stepName names a step where neither spaces nor commas may stand, as Go names
// benchmarks: "SET/clients=10/depth=1".
func stepName(test string, clients, depth int) string {
	test = strings.Map(func(r rune) rune {
		if r <= ' ' || r == ',' || r == '/' || r == 0x7f {
			return '_'
		}
		return r
	}, test)
	return fmt.Sprintf("%s/clients=%d/depth=%d", test, clients, depth)
}
