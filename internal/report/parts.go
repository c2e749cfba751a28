package report

import (
	"fmt"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/sweep"
	"github.com/poolsweep/poolsweep/sweep/load"
)

// A commandRow is what one command of a mix did in a trial.
type commandRow struct {
	load.Part
	share, qps float64
}

var commandColumns = []column[commandRow]{
	{"command", func(r commandRow) string { return r.Name }},
	{"share %", func(r commandRow) string { return percent(analyze.Quantity(r.share), 1) }},
	{"QPS", func(r commandRow) string { return throughput(analyze.Quantity(r.qps)) }},
	{"p50 ms", func(r commandRow) string { return quantileOf(r.Latency, 0.5) }},
	{"p99 ms", func(r commandRow) string { return quantileOf(r.Latency, 0.99) }},
	{"p99.9 ms", func(r commandRow) string { return quantileOf(r.Latency, 0.999) }},
	{"null %", func(r commandRow) string { return shareOf(r.Nulls, r.Requests) }},
	{"errors %", func(r commandRow) string { return shareOf(r.Failed, r.Requests+r.Failed) }},
}

func quantileOf(l *load.Latency, q float64) string {
	if l.Count() == 0 {
		return ""
	}
	return milliseconds(analyze.Quantity(l.Quantile(q).Seconds()))
}

// shareOf prints n of all in percent, nothing for none.
func shareOf(n, all int64) string {
	if n == 0 || all == 0 {
		return ""
	}
	return percent(analyze.Quantity(float64(n)/float64(all)), 1)
}

// commands prints what each command of a mix did at the knee, or at the peak
// where no knee is named: of the trial that is the row of that step.
func (p *printer) commands(trials map[int][]sweep.Trial, a *analyze.Analysis) {
	m, clients := rowTrial(trials, a)
	if m == nil || len(m.Commands) == 0 {
		return
	}
	p.printf("\nBy command, at %d clients\n", clients)
	grid(p, commandColumns, commandRows(m), func(commandRow) string { return "" })
}

func commandRows(m *load.Measurement) []commandRow {
	var rows []commandRow
	for _, c := range m.Commands {
		rows = append(rows, commandRow{
			Part:  c,
			share: float64(c.Requests) / float64(max(1, m.Requests)),
			qps:   float64(c.Requests) / m.Elapsed.Seconds(),
		})
	}
	return rows
}

// rowTrial returns the trial that is printed as the row of the knee, or of the
// peak where no knee is named, and its clients; nil when there is none.
func rowTrial(trials map[int][]sweep.Trial, a *analyze.Analysis) (*load.Measurement, int) {
	clients := a.Knee.Clients
	if clients == 0 {
		clients = a.Knee.Peak
	}
	for _, s := range a.Steps {
		if at := trials[clients]; s.Clients == clients && s.MedianTrial < len(at) {
			return at[s.MedianTrial].Measurement, clients
		}
	}
	return nil, 0
}

var nodeColumns = []column[*analyze.Analysis]{
	{"node", func(a *analyze.Analysis) string { return a.Node }},
	{"knee", func(a *analyze.Analysis) string { return positive(a.Knee.Clients) }},
	{"range", func(a *analyze.Analysis) string {
		if a.Knee.Low == 0 {
			return ""
		}
		return fmt.Sprintf("%d-%d", a.Knee.Low, a.Knee.High)
	}},
	{"knee QPS", func(a *analyze.Analysis) string { return throughput(a.Knee.QPS) }},
	{"peak", func(a *analyze.Analysis) string { return positive(a.Knee.Peak) }},
	{"peak QPS", func(a *analyze.Analysis) string { return throughput(a.Knee.PeakQPS) }},
	{"p99 ms", func(a *analyze.Analysis) string { return milliseconds(atKnee(a).P99) }},
	{"server %", func(a *analyze.Analysis) string { return percent(atKnee(a).ServerMain, 0) }},
	{"confidence", func(a *analyze.Analysis) string { return string(a.Knee.Confidence) }},
}

// atKnee returns the row of the knee, or of the peak where none is named.
func atKnee(a *analyze.Analysis) analyze.Step {
	row := analyze.Step{P99: analyze.Unknown(), ServerMain: analyze.Unknown()}
	for _, s := range a.Steps {
		if s.Clients == a.Knee.Clients || a.Knee.Clients == 0 && s.Clients == a.Knee.Peak {
			row = s
		}
	}
	return row
}

// nodes prints the knee of each master of a cluster, in clients of its own.
func (p *printer) nodes(nodes []*analyze.Analysis) {
	if len(nodes) == 0 {
		return
	}
	p.printf("\nBy node, each with its own clients\n")
	grid(p, nodeColumns, nodes, nodeMark)
}

// nodeMark says why a node has no knee.
func nodeMark(a *analyze.Analysis) string {
	if a.Answer {
		return ""
	}
	return "(" + a.Reason + ")"
}
