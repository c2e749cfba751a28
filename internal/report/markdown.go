package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/sweep"
)

// markdown writes what table does for a pull request or a wiki, in GitHub's
// Markdown. Of each sweep the verdict comes first.
func markdown(w io.Writer, d *Document) error {
	p := &printer{w: w}
	if d.Header != nil {
		p.markdownHeader(d.Header)
	}
	for _, r := range d.remarks() {
		p.printf("\n> %s\n", escaped("Note: "+r))
	}
	for i, a := range d.Analyses {
		if i > 0 || d.Header != nil || len(d.remarks()) > 0 {
			p.printf("\n")
		}
		p.markdownAnalysis(a)
		if i < len(d.Nodes) && len(d.Nodes[i]) > 0 {
			p.printf("\nBy node, each with its own clients\n")
			markdownGrid(p, nodeColumns, d.Nodes[i], nodeMark)
		}
		p.markdownOffered(d, d.rates(a))
		if d.Client != "" && a.Recommendation.Pool > 0 {
			p.markdownSettings(d.Client, a.Recommendation)
		}
	}
	for _, s := range analyze.Surfaces(d.Analyses) {
		p.printf("\n")
		p.markdownSurface(s)
	}
	return p.err
}

func (p *printer) markdownHeader(h *sweep.Header) {
	p.printf("## poolsweep: %s\n\n", escaped(h.Server.Title()))
	where := h.Target
	if h.Embedded != "" {
		where = "embedded, " + h.Embedded
	}
	if h.Server.Local {
		where += ", on this machine"
	}
	p.item("Run: " + h.Started.Format("2006-01-02 15:04:05 MST") + ", poolsweep " + h.Build)
	p.item("Server: " + where)
	if s := persistence(h); s != "" {
		p.item("Settings: " + s)
	}
	p.item("Load: " + plan(h.Plan))
}

func (p *printer) markdownAnalysis(a *analyze.Analysis) {
	p.printf("### %s, pipeline depth %d\n\n", escaped(a.Test), a.Depth)
	for _, s := range a.Sentences() {
		p.item(s)
	}
	for _, w := range a.Warnings {
		p.item(fmt.Sprintf("Warning (%s): %s.", w.Code, w.Text))
	}
	markdownGrid(p, columns, a.Steps, func(s analyze.Step) string { return marks(a, s) })
}

func (p *printer) markdownSurface(s analyze.Surface) {
	depths := make([]string, len(s.Depths))
	for i, d := range s.Depths {
		depths[i] = strconv.Itoa(d.Depth)
	}
	p.printf("### %s, pipeline depths %s\n\n", escaped(s.Test), strings.Join(depths, ", "))
	for _, text := range s.Sentences() {
		p.item(text)
	}
	markdownGrid(p, surfaceColumns, s.Depths, func(d analyze.DepthKnee) string {
		switch {
		case d.Depth == s.Best.Depth && d.Mark != "":
			return "best, (" + d.Mark + ")"
		case d.Depth == s.Best.Depth:
			return "best"
		case d.Mark != "":
			return "(" + d.Mark + ")"
		}
		return ""
	})
}

func (p *printer) markdownSettings(client string, r analyze.Recommendation) {
	text, err := analyze.Snippet(client, r)
	if err != nil {
		p.err = errors.Join(p.err, err)
		return
	}
	p.printf("\nSettings (%s):\n\n```\n%s\n```\n", escaped(client), strings.TrimRight(text, "\n"))
}

// item prints an entry of a list. What stands before the first colon is what
// it is about.
func (p *printer) item(text string) {
	if about, rest, ok := strings.Cut(text, ": "); ok {
		p.printf("- **%s**: %s\n", escaped(about), escaped(rest))
		return
	}
	p.printf("- %s\n", escaped(text))
}

// markdownGrid prints a table as grid does, with what mark says in its last
// column.
func markdownGrid[R any](p *printer, columns []column[R], rows []R, mark func(R) string) {
	if len(rows) == 0 || p.err != nil {
		return
	}
	kept := shown(columns, rows)
	var header []string
	alignment := make([]tw.Align, len(kept)+1)
	for i, c := range kept {
		header = append(header, escaped(c.title))
		alignment[i] = tw.AlignRight
	}
	alignment[len(kept)] = tw.AlignLeft
	var text bytes.Buffer
	t := tablewriter.NewTable(&text,
		tablewriter.WithRenderer(renderer.NewMarkdown()),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAlignmentConfig(tw.CellAlignment{PerColumn: alignment}),
		tablewriter.WithRowAlignmentConfig(tw.CellAlignment{PerColumn: alignment}),
	)
	t.Header(append(header, ""))
	for _, r := range rows {
		var line []string
		for _, c := range kept {
			line = append(line, escaped(c.cell(r)))
		}
		// Without the arrow that leads to it in a table for terminals.
		note := escaped(strings.TrimPrefix(mark(r), "< "))
		if p.err = t.Append(append(line, note)); p.err != nil {
			return
		}
	}
	if p.err = t.Render(); p.err == nil {
		p.printf("\n%s", text.String())
	}
}

// shown returns the columns that have a value in any row.
func shown[R any](columns []column[R], rows []R) []column[R] {
	var kept []column[R]
	for _, c := range columns {
		for _, r := range rows {
			if c.cell(r) != "" {
				kept = append(kept, c)
				break
			}
		}
	}
	return kept
}

// escaped returns text that Markdown would take for markup as it stands.
func escaped(text string) string { return markdownEscaper.Replace(text) }

var markdownEscaper = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", `*`, `\*`, `_`, `\_`, `<`, `\<`, `[`, `\[`, `]`, `\]`, `|`, `\|`, `~`, `\~`, "\n", " ",
)
