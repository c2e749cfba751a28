package report

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/sweep"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// textWidth is where sentences are wrapped: that of a terminal.
const textWidth = 80

// table writes what a person reads: for each sweep its steps and the verdict,
// then what the depths of one test say together.
func table(w io.Writer, d *Document) error {
	p := &printer{w: w}
	if d.Header != nil {
		p.header(d.Header)
	}
	for _, r := range d.remarks() {
		p.paragraph("Note: "+r, "")
	}
	for i, a := range d.Analyses {
		if i > 0 || d.Header != nil || len(d.remarks()) > 0 {
			p.printf("\n")
		}
		p.analysis(a)
		p.commands(d.measured(d.Curves[i]), a)
		if i < len(d.Nodes) {
			p.nodes(d.Nodes[i])
		}
		p.offered(d, d.rates(a))
		if d.Client != "" && a.Recommendation.Pool > 0 {
			p.settings(d.Client, a.Recommendation)
		}
	}
	for _, s := range analyze.Surfaces(d.Analyses) {
		p.printf("\n")
		p.surface(s)
	}
	return p.err
}

// settings writes what to put into the client library's configuration.
func (p *printer) settings(client string, r analyze.Recommendation) {
	text, err := analyze.Snippet(client, r)
	if err != nil {
		p.err = errors.Join(p.err, err)
		return
	}
	p.printf("\nSettings (%s):\n", client)
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			line = "    " + line
		}
		p.printf("%s", line)
	}
}

// A printer keeps the first error, so that the text reads like the output.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// paragraph prints text wrapped, each line after the first one indented.
func (p *printer) paragraph(text, indent string) {
	width := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case width+1+n > textWidth:
			p.printf("\n%s", indent)
			width = len(indent)
		default:
			p.printf(" ")
			width++
		}
		p.printf("%s", word)
		width += n
	}
	p.printf("\n")
}

func (p *printer) header(h *sweep.Header) {
	where := h.Target
	if h.Embedded != "" {
		where = "embedded, " + h.Embedded
	}
	p.printf("poolsweep %s  %s  %s\n", h.Build, h.Started.Format("2006-01-02 15:04:05 MST"), h.Server.Title())
	p.printf("server     %s%s\n", where, map[bool]string{true: ", on this machine", false: ""}[h.Server.Local])
	if s := persistence(h); s != "" {
		p.printf("settings   %s\n", s)
	}
	p.printf("load       %s\n", plan(h.Plan))
}

func persistence(h *sweep.Header) string {
	var s []string
	if a := h.Server.AppendOnly; a != "" {
		s = append(s, "appendonly "+a)
		if a == "yes" {
			s = append(s, "appendfsync "+h.Server.AppendFsync)
		}
	}
	if h.Server.IOThreads > 0 {
		s = append(s, fmt.Sprintf("io-threads %d", h.Server.IOThreads))
	}
	if h.Server.MaxClients > 0 {
		s = append(s, fmt.Sprintf("maxclients %d", h.Server.MaxClients))
	}
	return strings.Join(s, ", ")
}

func plan(p sweep.Plan) string {
	trial := fmt.Sprintf("of %v", p.Duration)
	if p.Requests > 0 {
		trial = fmt.Sprintf("of %d requests", p.Requests)
	}
	if p.Slices > 1 {
		trial += fmt.Sprintf(" in %d slices", p.Slices)
	}
	loops := fmt.Sprintf("event loops: %d", p.Threads)
	return fmt.Sprintf("%d trials a step, each %s, %s order; %s; %s",
		p.Trials, trial, p.Order, keysAndValues(p.Workloads), loops)
}

// keysAndValues says what the workloads have in common, of the first one.
func keysAndValues(all []workload.Spec) string {
	if len(all) == 0 {
		return "unknown values"
	}
	s := all[0]
	var sizes []string
	for _, z := range s.Values.Sizes {
		size := strconv.Itoa(z.Min)
		if z.Max > z.Min {
			size += fmt.Sprintf(" to %d", z.Max)
		}
		sizes = append(sizes, size)
	}
	text := strings.Join(sizes, ", ") + "-byte values"
	if c := s.Values.Content; c != "" && c != workload.Same {
		text = string(c) + " " + text
	}
	if s.Keys.Space <= 1 {
		return text + ", one key"
	}
	text += fmt.Sprintf(", %d keys", s.Keys.Space)
	if d := s.Keys.String(); d != string(workload.Uniform) {
		text += " " + d
	}
	return text
}

func (p *printer) analysis(a *analyze.Analysis) {
	p.printf("%s, pipeline depth %d\n", a.Test, a.Depth)
	grid(p, columns, a.Steps, func(s analyze.Step) string { return marks(a, s) })
	p.sentences(a.Sentences())
	for _, w := range a.Warnings {
		p.paragraph(fmt.Sprintf("Warning (%s): %s.", w.Code, w.Text), "    ")
	}
}

// sentences prints a paragraph each, indented from the second line on where the
// first begins with what it is about ("Knee: …").
func (p *printer) sentences(text []string) {
	for _, s := range text {
		indent := ""
		if strings.Contains(s, ": ") {
			indent = "    "
		}
		p.paragraph(s, indent)
	}
}

// columns are those of the table of steps.
var columns = []column[analyze.Step]{
	{"clients", func(s analyze.Step) string { return strconv.Itoa(s.Clients) }},
	{"QPS", func(s analyze.Step) string { return throughput(analyze.Quantity(s.QPS)) }},
	{"adjusted", func(s analyze.Step) string {
		if s.Adjusted == s.QPS {
			return "" // nothing was adjusted
		}
		return throughput(analyze.Quantity(s.Adjusted))
	}},
	{"spread %", func(s analyze.Step) string { return percent(s.Spread, 1) }},
	{"p50 ms", func(s analyze.Step) string { return milliseconds(s.P50) }},
	{"p99 ms", func(s analyze.Step) string { return milliseconds(s.P99) }},
	{"p99.9 ms", func(s analyze.Step) string { return milliseconds(s.P999) }},
	{"server %", func(s analyze.Step) string {
		if s.ServerMain.Known() {
			return percent(s.ServerMain, 0)
		}
		return percent(s.ServerCPU, 0)
	}},
	{"generator %", func(s analyze.Step) string { return percent(s.GeneratorCPU, 0) }},
	{"gain %", func(s analyze.Step) string { return percent(s.Gain, 0) }},
}

// throughput prints requests/s with enough decimals for four digits.
func throughput(qps analyze.Quantity) string {
	decimals := 3
	switch {
	case !qps.Known():
		return ""
	case qps >= 1000:
		decimals = 0
	case qps >= 10:
		decimals = 1
	}
	return strconv.FormatFloat(float64(qps), 'f', decimals, 64)
}

func percent(q analyze.Quantity, decimals int) string {
	if !q.Known() {
		return ""
	}
	text := strconv.FormatFloat(float64(q)*100, 'f', decimals, 64)
	if strings.Trim(text, "-0.") == "" {
		return strings.TrimPrefix(text, "-") // not -0
	}
	return text
}

func milliseconds(q analyze.Quantity) string {
	if !q.Known() {
		return ""
	}
	return strconv.FormatFloat(float64(q)*1000, 'f', 3, 64)
}

// marks says what a step is.
func marks(a *analyze.Analysis, s analyze.Step) string {
	var m []string
	k := a.Knee
	last := a.Steps[len(a.Steps)-1].Clients
	switch {
	case s.Clients == k.Clients:
		m = append(m, "knee")
	case !a.Answer && s.Clients == last && (k.Shape == analyze.ShapeRising || k.Shape == analyze.ShapeUnconfirmed):
		m = append(m, strconv.Itoa(last)+"+")
	}
	if s.Clients == k.Peak {
		m = append(m, "peak")
	}
	if s.Clients == k.Ceiling {
		m = append(m, "ceiling")
	}
	if len(s.Invalid) > 0 {
		m = append(m, "("+strings.Join(s.Invalid, ", ")+")")
	}
	if len(m) == 0 {
		return ""
	}
	return "< " + strings.Join(m, ", ")
}
