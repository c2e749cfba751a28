package report

import (
	"fmt"
	"strings"

	"github.com/poolsweep/poolsweep/analyze"
)

// rates returns what was concluded from the open loop after the sweep of a,
// nil when there was none.
func (d *Document) rates(a *analyze.Analysis) *analyze.RateAnalysis {
	for _, r := range d.Rates {
		if r.Test == a.Test && r.Depth == max(1, a.Depth) {
			return r
		}
	}
	return nil
}

// rateCaption stands over the table of rates.
func (d *Document) rateCaption(r *analyze.RateAnalysis) string {
	arrivals := ""
	if d.Header != nil {
		arrivals = fmt.Sprintf(", %s arrivals", d.Header.Plan.Rates.Arrivals)
	}
	return fmt.Sprintf("By offered rate, over %s%s; latency from when a request was due", connections(r.Clients), arrivals)
}

var rateColumns = []column[analyze.RateRow]{
	{"offered", func(r analyze.RateRow) string { return throughput(analyze.Quantity(r.Rate)) }},
	{"of X* %", func(r analyze.RateRow) string { return percent(r.Share, 0) }},
	{"answered", func(r analyze.RateRow) string { return throughput(analyze.Quantity(r.Achieved)) }},
	{"p50 ms", func(r analyze.RateRow) string { return milliseconds(r.P50) }},
	{"p99 ms", func(r analyze.RateRow) string { return milliseconds(r.P99) }},
	{"p99.9 ms", func(r analyze.RateRow) string { return milliseconds(r.P999) }},
	{"spread %", func(r analyze.RateRow) string { return percent(r.Spread, 0) }},
	{"waited %", func(r analyze.RateRow) string { return percent(r.Waited, 1) }},
	{"never %", func(r analyze.RateRow) string { return unlessZero(r.Missing) }},
	{"failed %", func(r analyze.RateRow) string { return unlessZero(r.Failed) }},
	{"late ms", func(r analyze.RateRow) string { return milliseconds(r.SlipP99) }},
	{"server %", func(r analyze.RateRow) string {
		if r.ServerMain.Known() {
			return percent(r.ServerMain, 0)
		}
		return percent(r.ServerCPU, 0)
	}},
	{"generator %", func(r analyze.RateRow) string { return percent(r.GeneratorCPU, 0) }},
}

// unlessZero prints a share in percent, nothing for none.
func unlessZero(q analyze.Quantity) string {
	if q == 0 {
		return ""
	}
	return percent(q, 1)
}

// rateMark says what a row is.
func rateMark(a *analyze.RateAnalysis, r analyze.RateRow) string {
	var m []string
	if analyze.Quantity(r.Rate) == a.Highest {
		m = append(m, "highest")
	}
	if r.Overloaded {
		m = append(m, "(overloaded)")
	}
	if r.Late {
		m = append(m, "(generator late)")
	}
	if len(r.Invalid) > 0 {
		m = append(m, "("+strings.Join(r.Invalid, ", ")+")")
	}
	if len(m) == 0 {
		return ""
	}
	return "< " + strings.Join(m, ", ")
}

// offered prints the open loop after a sweep; nothing for nil.
func (p *printer) offered(d *Document, r *analyze.RateAnalysis) {
	if r == nil {
		return
	}
	p.printf("\n")
	p.paragraph(d.rateCaption(r), "")
	grid(p, rateColumns, r.Rows, func(row analyze.RateRow) string { return rateMark(r, row) })
	p.sentences(r.Sentences)
	for _, w := range r.Warnings {
		p.paragraph(fmt.Sprintf("Warning (%s): %s.", w.Code, w.Text), "    ")
	}
}

// markdownOffered prints the same as Markdown.
func (p *printer) markdownOffered(d *Document, r *analyze.RateAnalysis) {
	if r == nil {
		return
	}
	p.printf("\n%s\n\n", escaped(d.rateCaption(r)))
	for _, s := range r.Sentences {
		p.item(s)
	}
	for _, w := range r.Warnings {
		p.item(fmt.Sprintf("Warning (%s): %s.", w.Code, w.Text))
	}
	markdownGrid(p, rateColumns, r.Rows, func(row analyze.RateRow) string { return rateMark(r, row) })
}
