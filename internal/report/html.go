package report

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/arrivals"
	"github.com/poolsweep/poolsweep/internal/chart"
	"github.com/poolsweep/poolsweep/sweep"
)

//go:embed page/page.html
var pageHTML string

//go:embed page/page.css
var pageCSS string

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// htmlReport writes one page that needs nothing else: no network, no script,
// no font. It follows the reader's theme, and is light on paper.
func htmlReport(w io.Writer, d *Document) error {
	p, err := newPage(d)
	if err != nil {
		return err
	}
	var b bytes.Buffer // so that an error leaves no half page
	if err := pageTemplate.Execute(&b, p); err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

// A page is what the template shows of a document.
type page struct {
	Title, Subtitle, Generator string

	Style      template.CSS
	Incomplete string // what is missing of an interrupted run
	Remarks    []string
	Sweeps     []pageSweep
	Surfaces   []pageSection

	Verification *pageSection // nil when the pool was not verified

	Client      string
	Environment []pageTable
	Repeat      *pageRepeat
}

// A pageSection is sentences, charts and tables about one thing.
type pageSection struct {
	ID        string // of the element, to be led to
	Name      string
	Sentences []pageSentence
	Charts    []pageChart
	Tables    []pageTable
}

// A pageSweep is all about one analysis.
type pageSweep struct {
	pageSection
	Answer   bool
	Headline string // the pool, or that there is none
	Detail   string
	Facts    []pageFact
	Settings string
	Warnings []pageWarning
}

type pageFact struct{ Name, Value string }

// A pageSentence is a sentence after what it is about, "" for nothing.
type pageSentence struct{ About, Text string }

type pageWarning struct {
	Anchor, Code, Text string
	Advice             template.HTML
}

type pageChart struct {
	Title, Text string
	Picture     template.HTML
}

type pageRepeat struct {
	Command string
	Missing []string // what the result file does not tell
}

func newPage(d *Document) (*page, error) {
	p := &page{
		Title:     "Pool size",
		Generator: "poolsweep",
		Style:     template.CSS(pageCSS + chart.Style()),
		Remarks:   d.Remarks,
		Client:    d.Client,
	}
	if h := d.Header; h != nil {
		p.Title = "Pool size for " + h.Server.Title()
		p.Subtitle = fmt.Sprintf("%s · %s · poolsweep %s", h.Started.UTC().Format("2006-01-02 15:04:05 UTC"), target(h), h.Build)
		p.Generator = "poolsweep " + h.Build
		p.Incomplete = incomplete(d)
		p.Environment = environment(h)
		command, missing := repeatCommand(h)
		p.Repeat = &pageRepeat{command, missing}
	}
	for i, a := range d.Analyses {
		s, err := newPageSweep(d, i, a)
		if err != nil {
			return nil, err
		}
		p.Sweeps = append(p.Sweeps, s)
	}
	for i, s := range analyze.Surfaces(d.Analyses) {
		p.Surfaces = append(p.Surfaces, newPageSurface(d, i, s))
	}
	return p, nil
}

// target says where the server was.
func target(h *sweep.Header) string {
	where := h.Target
	if h.Embedded != "" {
		where = "embedded " + h.Embedded
	}
	if h.Server.Local {
		where += ", on this machine"
	}
	return where
}

func newPageSweep(d *Document, i int, a *analyze.Analysis) (pageSweep, error) {
	s := pageSweep{
		pageSection: pageSection{
			ID:        fmt.Sprintf("sweep-%d", i+1),
			Name:      fmt.Sprintf("%s, pipeline depth %d", a.Test, max(1, a.Depth)),
			Sentences: sentences(a.Sentences()),
		},
		Answer: a.Answer,
	}
	s.Headline, s.Detail = headline(a)
	s.Facts = facts(a)
	if d.Client != "" && a.Recommendation.Pool > 0 {
		text, err := analyze.Snippet(d.Client, a.Recommendation)
		if err != nil {
			return s, err
		}
		s.Settings = strings.TrimRight(text, "\n")
	}
	for _, c := range sweepCharts(d, i) {
		s.Charts = append(s.Charts, newPageChart(c))
	}
	s.Tables = sweepTables(d, i)
	warnings := a.Warnings
	if r := d.rates(a); r != nil {
		s.Sentences = append(s.Sentences, sentences(r.Sentences)...)
		warnings = slices.Concat(warnings, r.Warnings)
	}
	for j, w := range warnings {
		s.Warnings = append(s.Warnings, pageWarning{fmt.Sprintf("%s-warning-%d", s.ID, j+1), w.Code, unbroken.Replace(w.Text), withFlags(advice[w.Code])})
	}
	return s, nil
}

func newPageChart(c *chart.Chart) pageChart {
	return pageChart{Title: c.Title, Text: unbroken.Replace(c.Text), Picture: template.HTML(c.SVG())}
}

func newPageSurface(d *Document, i int, s analyze.Surface) pageSection {
	depths := make([]string, len(s.Depths))
	for j, k := range s.Depths {
		depths[j] = strconv.Itoa(k.Depth)
	}
	section := pageSection{
		ID:        fmt.Sprintf("surface-%d", i+1),
		Name:      fmt.Sprintf("%s, pipeline depths %s", s.Test, strings.Join(depths, ", ")),
		Sentences: sentences(s.Sentences()),
		Tables: []pageTable{newPageTable("By pipeline depth", surfaceColumns, s.Depths, func(k analyze.DepthKnee) string {
			return strings.Join(surfaceMarks(s, k), ", ")
		})},
	}
	if c := surfaceChart(d, s); c != nil {
		section.Charts = []pageChart{newPageChart(c)}
	}
	return section
}

// surfaceMarks says what a depth is.
func surfaceMarks(s analyze.Surface, k analyze.DepthKnee) []string {
	var m []string
	if k.Depth == s.Best.Depth {
		m = append(m, "best")
	}
	if k.Mark != "" {
		m = append(m, k.Mark)
	}
	return m
}

// longestAbout is the longest that a sentence says of what it is about; a colon
// behind more than that stands in the sentence itself.
const longestAbout = 40

// sentences cuts off what each sentence is about ("Knee: …").
func sentences(text []string) []pageSentence {
	all := make([]pageSentence, len(text))
	for i, s := range text {
		about, rest, found := strings.Cut(s, ": ")
		if !found || len(about) > longestAbout {
			about, rest = "", s
		}
		all[i] = pageSentence{about, unbroken.Replace(rest)}
	}
	return all
}

// unbroken keeps a number and its unit on one line.
var unbroken = strings.NewReplacer(" %", "\u00a0%", " ms", "\u00a0ms")

// flagPattern finds a flag that begins a word.
var flagPattern = regexp.MustCompile(`(^|[ (])(--?[a-z][a-z0-9-]*)`)

// withFlags marks the flags in a text of ours, so that they stay on one line.
func withFlags(text string) template.HTML {
	return template.HTML(flagPattern.ReplaceAllString(template.HTMLEscapeString(text), `$1<code class="flag">$2</code>`))
}

// headline says the answer in a line, and what a reader must not miss beside
// it.
func headline(a *analyze.Analysis) (text, detail string) {
	r := a.Recommendation
	switch {
	case r.Pool == 0 && !a.Answer:
		return "No answer", "No knee can be named: " + a.Reason + "."
	case r.Pool == 0:
		return "No pool", upperFirst(r.Reason) + "."
	case r.Instances*r.Procs > 1:
		each := fmt.Sprintf("in each of %d instances", r.Instances)
		if r.Procs > 1 {
			each = fmt.Sprintf("in each of %d processes", r.Instances*r.Procs)
		}
		text = connections(r.PerProcess) + " " + each
		detail = connections(r.Pool) + " in all. "
	default:
		text = "A pool of " + connections(r.Pool)
	}
	if r.Shards > 1 {
		text += fmt.Sprintf(", on each of %d shards", r.Shards)
	}
	if r.Reason != "" {
		detail += upperFirst(strings.TrimSuffix(r.Reason, ".")) + "."
	}
	return text, detail
}

func connections(n int) string {
	if n == 1 {
		return "1 connection"
	}
	return grouped(strconv.Itoa(n)) + " connections"
}

// upperFirst begins a clause as a sentence.
func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// cause makes words of the code of a cause.
var cause = strings.NewReplacer("-", " ", "cpu", "CPU")

// facts are the numbers of the verdict.
func facts(a *analyze.Analysis) []pageFact {
	k := a.Knee
	at := func(clients int, qps analyze.Quantity) string {
		text := fmt.Sprintf("%s clients", grouped(strconv.Itoa(clients)))
		if x := throughput(qps); x != "" {
			text += fmt.Sprintf(", %s requests/s", grouped(x))
		}
		return text
	}
	var f []pageFact
	if k.Clients > 0 {
		f = append(f, pageFact{"knee", at(k.Clients, k.QPS)})
	}
	if k.Low > 0 && k.Low < k.High {
		f = append(f, pageFact{"range (95 %)", fmt.Sprintf("%d to %d clients", k.Low, k.High)})
	}
	if k.Peak > 0 {
		f = append(f, pageFact{"peak", at(k.Peak, k.PeakQPS)})
	}
	if k.Ceiling > 0 {
		f = append(f, pageFact{"ceiling", fmt.Sprintf("%d clients", k.Ceiling)})
	}
	return append(f,
		pageFact{"curve", string(k.Shape)},
		pageFact{"stopped by", cause.Replace(string(cmp.Or(a.Bottleneck.Cause, analyze.CauseUnknown)))},
		pageFact{"confidence", string(k.Confidence)},
	)
}

// incomplete says what of the plan a result file lacks, as one does whose run
// was interrupted; "" when it lacks nothing.
func incomplete(d *Document) string {
	plan := d.Header.Plan
	var missing []string
	if planned := len(plan.Workloads) * len(plan.Depths) * max(1, len(plan.Vary.Values)); measuredSweeps(d) < planned {
		missing = append(missing, fmt.Sprintf("%d of %d sweeps were measured", measuredSweeps(d), planned))
	}
	for i, a := range d.Analyses {
		name := fmt.Sprintf("%s at depth %d", a.Test, a.Depth)
		have := make(map[int]int)
		last := 0
		for _, s := range a.Steps {
			have[s.Clients] = s.Trials
			last = s.Clients
		}
		planned, levels, short := 0, 0, 0
		for _, n := range plan.Clients {
			if d.Header.Clients > 0 && n > d.Header.Clients || d.Curves[i].Limit != "" && n >= last {
				continue // a limit that the warnings name, or the level at which a guard ended the sweep
			}
			planned++
			if have[n] > 0 {
				levels++
			}
			if have[n] > 0 && have[n] < plan.Trials {
				short++
			}
		}
		if levels < planned {
			missing = append(missing, fmt.Sprintf("%s has %d of %d levels", name, levels, planned))
		}
		if rates := plan.Rates; len(rates.Offered) > 0 && plan.Guards == (sweep.Guards{}) {
			r := d.rates(a)
			switch {
			case r == nil:
				missing = append(missing, name+" has no offered rates")
			case rates.SLOP99 == 0:
				// A search ends when it has found, and has no number to reach.
				if all := len(arrivals.QPS(rates.Offered, float64(r.Capacity))); len(r.Rows) < all {
					missing = append(missing, fmt.Sprintf("%s has %d of %d offered rates", name, len(r.Rows), all))
				}
			}
		}
		if short > 0 {
			missing = append(missing, fmt.Sprintf("%s has fewer than %d trials at %d levels", name, plan.Trials, short))
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "This is not all that was planned, as of a run that was interrupted: " + strings.Join(missing, "; ") + "."
}

// measuredSweeps returns how many sweeps were measured, be they in the document
// or not.
func measuredSweeps(d *Document) int {
	if d.Result == nil {
		return len(d.Analyses)
	}
	return len(d.Result.Sweeps())
}
