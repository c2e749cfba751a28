package report

import (
	"bytes"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// A column of a table of rows of type R. It is left out when no row has a
// value; a cell that is not known is empty.
type column[R any] struct {
	title string
	cell  func(R) string
}

// grid prints a line for each row, below the titles of the columns and aligned
// right; nothing without rows. What mark says of a row stands at the end of its
// line.
func grid[R any](p *printer, columns []column[R], rows []R, mark func(R) string) {
	if len(rows) == 0 || p.err != nil {
		return
	}
	var kept []column[R]
	var header []string
	for _, c := range columns {
		for _, r := range rows {
			if c.cell(r) != "" {
				kept = append(kept, c)
				header = append(header, c.title)
				break
			}
		}
	}
	var text bytes.Buffer
	t := newGrid(&text, len(kept))
	t.Header(append(header, ""))
	for _, r := range rows {
		var line []string
		for _, c := range kept {
			line = append(line, c.cell(r))
		}
		if p.err = t.Append(append(line, mark(r))); p.err != nil {
			return
		}
	}
	if p.err = t.Render(); p.err != nil {
		return
	}
	// The last column is padded like the others: cut that off.
	for line := range strings.Lines(text.String()) {
		p.printf("%s\n", strings.TrimRight(line, " \n"))
	}
}

// newGrid returns a table without lines: so many columns aligned right, and
// one aligned left for the marks.
func newGrid(text *bytes.Buffer, columns int) *tablewriter.Table {
	alignment := make([]tw.Align, columns+1)
	for i := range columns {
		alignment[i] = tw.AlignRight
	}
	alignment[columns] = tw.AlignLeft
	return tablewriter.NewTable(text,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.BorderNone,
			Symbols: tw.NewSymbols(tw.StyleASCII),
			Settings: tw.Settings{
				Separators: tw.Separators{BetweenColumns: tw.Off, BetweenRows: tw.Off},
				Lines:      tw.Lines{ShowHeaderLine: tw.Off},
			},
		})),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAlignmentConfig(tw.CellAlignment{PerColumn: alignment}),
		tablewriter.WithRowAlignmentConfig(tw.CellAlignment{PerColumn: alignment}),
	)
}
