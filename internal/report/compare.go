package report

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/compare"
)

// A ComparisonFormat writes a comparison. The same comparison gives the same
// bytes.
type ComparisonFormat func(io.Writer, *compare.Comparison) error

var comparisonFormats = map[string]ComparisonFormat{
	"table":    comparisonTable,
	"json":     comparisonJSON,
	"csv":      comparisonCSV,
	"markdown": comparisonMarkdown,
}

// ComparisonFormats returns the names of the formats of a comparison, sorted.
func ComparisonFormats() []string { return slices.Sorted(maps.Keys(comparisonFormats)) }

// ComparisonNamed returns the format of a comparison of that name.
func ComparisonNamed(name string) (ComparisonFormat, error) {
	f, ok := comparisonFormats[name]
	if !ok {
		return nil, fmt.Errorf("unknown format %q; the formats of a comparison are %s", name, strings.Join(ComparisonFormats(), ", "))
	}
	return f, nil
}

// comparisonTable writes what a person reads: what else differs, then for each
// sweep its steps, the two verdicts, and what changed in a sentence.
func comparisonTable(w io.Writer, c *compare.Comparison) error {
	p := &printer{w: w}
	for i, pair := range c.Pairs {
		if i > 0 {
			p.printf("\n")
		}
		p.printf("old  %s\nnew  %s\n", origin(pair.Old), origin(pair.New))
		if len(pair.Differences) > 0 {
			p.printf("\nDifferent settings\n")
			grid(p, differenceColumns, pair.Differences, unmarked)
		}
		p.warnings(pair.Warnings)
		for _, s := range pair.Sweeps {
			p.printf("\n%s, pipeline depth %d\n", s.Test, s.Depth)
			grid(p, changeColumns, changeRows(s), changeRow.mark)
			p.printf("\n")
			grid(p, verdictColumns, verdictRows(s), unmarked)
			p.printf("\n")
			p.sentences(changeSentences(s))
			p.warnings(s.Warnings)
		}
	}
	return p.err
}

func (p *printer) warnings(all []analyze.Warning) {
	for _, w := range all {
		p.paragraph(fmt.Sprintf("Warning (%s): %s.", w.Code, w.Text), "    ")
	}
}

// comparisonMarkdown writes the same for a pull request or a wiki. Of each sweep
// what changed comes first.
func comparisonMarkdown(w io.Writer, c *compare.Comparison) error {
	p := &printer{w: w}
	for i, pair := range c.Pairs {
		if i > 0 {
			p.printf("\n")
		}
		p.printf("## poolsweep compare\n\n")
		p.item("Old: " + origin(pair.Old))
		p.item("New: " + origin(pair.New))
		p.warningItems(pair.Warnings)
		markdownGrid(p, differenceColumns, pair.Differences, unmarked)
		for _, s := range pair.Sweeps {
			p.printf("\n### %s, pipeline depth %d\n\n", escaped(s.Test), s.Depth)
			for _, text := range changeSentences(s) {
				p.item(text)
			}
			p.warningItems(s.Warnings)
			markdownGrid(p, changeColumns, changeRows(s), changeRow.mark)
			markdownGrid(p, verdictColumns, verdictRows(s), unmarked)
		}
	}
	return p.err
}

func (p *printer) warningItems(all []analyze.Warning) {
	for _, w := range all {
		p.item(fmt.Sprintf("Warning (%s): %s.", w.Code, w.Text))
	}
}

// origin says in a line which run it was.
func origin(o compare.Origin) string {
	text := o.Name
	if !o.Started.IsZero() {
		text += ", " + o.Started.Format("2006-01-02 15:04:05 MST")
	}
	if o.Server != "" {
		text += ", " + o.Server
	}
	return text
}

// unmarked marks no row.
func unmarked[R any](R) string { return "" }

var differenceColumns = []column[compare.Difference]{
	{"setting", func(d compare.Difference) string { return d.Name }},
	{"old", func(d compare.Difference) string { return cmp.Or(d.Old, "none") }},
	{"new", func(d compare.Difference) string { return cmp.Or(d.New, "none") }},
}

// A changeRow is one step, or all of them.
type changeRow struct {
	clients  string // a number, or "all"
	qps, p99 compare.Change
}

// changeRows returns a row a step and, with several common steps, one for all.
func changeRows(s compare.Sweep) []changeRow {
	var rows []changeRow
	for _, st := range s.Steps {
		rows = append(rows, changeRow{strconv.Itoa(st.Clients), st.QPS, st.P99})
	}
	if s.Common > 1 {
		rows = append(rows, changeRow{"all", s.QPS, s.P99})
	}
	return rows
}

// mark says what changed significantly.
func (r changeRow) mark() string {
	var m []string
	if r.qps.Significant {
		m = append(m, "QPS")
	}
	if r.p99.Significant {
		m = append(m, "p99")
	}
	if len(m) == 0 {
		return ""
	}
	return "< " + strings.Join(m, ", ")
}

var changeColumns = []column[changeRow]{
	{"clients", func(r changeRow) string { return r.clients }},
	{"old QPS", func(r changeRow) string { return throughput(r.qps.Old.Median) }},
	{"new QPS", func(r changeRow) string { return throughput(r.qps.New.Median) }},
	{"change %", func(r changeRow) string { return signedPercent(r.qps.Ratio) }},
	{"95 % interval", func(r changeRow) string { return interval(r.qps) }},
	{"p", func(r changeRow) string { return probability(r.qps.P) }},
	{"old p99 ms", func(r changeRow) string { return milliseconds(r.p99.Old.Median) }},
	{"new p99 ms", func(r changeRow) string { return milliseconds(r.p99.New.Median) }},
	{"change %", func(r changeRow) string { return signedPercent(r.p99.Ratio) }},
	{"95 % interval", func(r changeRow) string { return interval(r.p99) }},
	{"p", func(r changeRow) string { return probability(r.p99.P) }},
}

// signedPercent prints a ratio in percent with its sign.
func signedPercent(q analyze.Quantity) string {
	text := percent(q, 1)
	if text == "" || q < 0 || text == "0.0" {
		return text
	}
	return "+" + text
}

// interval prints the ends of the interval of a change.
func interval(c compare.Change) string {
	if !c.Low.Known() || !c.High.Known() {
		return ""
	}
	return signedPercent(c.Low) + " to " + signedPercent(c.High)
}

func probability(p analyze.Quantity) string {
	switch {
	case !p.Known():
		return ""
	case p < .001:
		return "<.001"
	}
	return strings.TrimPrefix(strconv.FormatFloat(float64(p), 'f', 3, 64), "0")
}

// A verdictRow is what one run concluded.
type verdictRow struct {
	side string
	compare.Verdict
}

func verdictRows(s compare.Sweep) []verdictRow { return []verdictRow{{"old", s.Old}, {"new", s.New}} }

// clientsOrNone prints a number of clients, 0 as none.
func clientsOrNone(n int) string {
	if n == 0 {
		return "none"
	}
	return strconv.Itoa(n)
}

var verdictColumns = []column[verdictRow]{
	{"", func(r verdictRow) string { return r.side }},
	{"knee", func(r verdictRow) string { return clientsOrNone(r.Knee) }},
	{"range", func(r verdictRow) string {
		if r.Low == 0 {
			return ""
		}
		return fmt.Sprintf("%d to %d", r.Low, r.High)
	}},
	{"confidence", func(r verdictRow) string { return string(r.Confidence) }},
	{"peak", func(r verdictRow) string { return clientsOrNone(r.Peak) }},
	{"peak QPS", func(r verdictRow) string { return throughput(r.PeakQPS) }},
	{"pool", func(r verdictRow) string { return clientsOrNone(r.Pool) }},
	{"stopped by", func(r verdictRow) string { return string(r.Cause) }},
}

// changeSentences says of a sweep what changed and what did not.
func changeSentences(s compare.Sweep) []string {
	if s.Common == 0 {
		return nil
	}
	return []string{
		changeSentence("QPS", s, s.QPS, func(st compare.Step) compare.Change { return st.QPS }),
		changeSentence("p99", s, s.P99, func(st compare.Step) compare.Change { return st.P99 }),
	}
}

func changeSentence(name string, s compare.Sweep, all compare.Change, of func(compare.Step) compare.Change) string {
	switch {
	case !all.Ratio.Known():
		return name + ": not known in both runs."
	case !all.Low.Known():
		return fmt.Sprintf("%s: %s %% over all steps; whether that is noise cannot be said.", name, signedPercent(all.Ratio))
	}
	var at []string
	for _, st := range s.Steps {
		if of(st).Significant {
			at = append(at, strconv.Itoa(st.Clients))
		}
	}
	text := name + ": no significant change"
	if all.Significant {
		text = name + ": a significant change"
	}
	text += fmt.Sprintf(" over all steps, %s %% (%s %%)", signedPercent(all.Ratio), interval(all))
	switch {
	case len(at) > 0:
		text += ", and of single steps at " + strings.Join(at, ", ") + " clients"
	case all.Significant:
		text += ", and of no single step"
	}
	return text + "."
}

func comparisonJSON(w io.Writer, c *compare.Comparison) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(c)
}

// comparisonCSV writes a row a step and, with "all" for clients, one for all
// steps that both runs have. A quantity that is not known is empty.
func comparisonCSV(w io.Writer, c *compare.Comparison) error {
	out := csv.NewWriter(w)
	header := []string{"old", "new", "test", "depth", "clients"}
	for _, q := range []string{"qps", "p99"} {
		unit := map[string]string{"qps": "qps", "p99": "p99_ms"}[q]
		header = append(header, "old_"+unit, "new_"+unit, q+"_change_percent", q+"_low_percent", q+"_high_percent",
			q+"_mann_whitney_p", q+"_significant")
	}
	if err := out.Write(header); err != nil {
		return err
	}
	for _, pair := range c.Pairs {
		for _, s := range pair.Sweeps {
			for _, r := range changeRows(s) {
				row := []string{pair.Old.Name, pair.New.Name, s.Test, strconv.Itoa(s.Depth), r.clients}
				row = append(row, changeCells(r.qps, 1)...)
				row = append(row, changeCells(r.p99, 1e3)...)
				if err := out.Write(row); err != nil {
					return err
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}

// changeCells returns the columns of one quantity, its values times unit.
func changeCells(c compare.Change, unit float64) []string {
	number := func(q analyze.Quantity, unit float64) string {
		if !q.Known() {
			return ""
		}
		return strconv.FormatFloat(float64(q)*unit, 'g', 12, 64)
	}
	const percent = 100
	return []string{
		number(c.Old.Median, unit), number(c.New.Median, unit),
		number(c.Ratio, percent), number(c.Low, percent), number(c.High, percent), number(c.P, 1),
		strconv.FormatBool(c.Significant),
	}
}
