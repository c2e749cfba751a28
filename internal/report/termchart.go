package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/poolsweep/poolsweep/analyze"
)

const (
	termHeight   = 10 // lines of the curve
	termMinWidth = 30 // columns, below which no chart is drawn
	termMaxWidth = 100
	termMargin   = 8 // columns of the y axis
)

// TerminalCharts writes the throughput of each sweep against clients for a
// terminal of that many columns, with the knee, its range and the peak. It
// writes nothing for a sweep of fewer than two steps, nor where there is no
// room.
func TerminalCharts(w io.Writer, d *Document, columns int) error {
	for _, a := range d.Analyses {
		if len(a.Steps) < 2 || columns < termMinWidth {
			continue
		}
		if _, err := fmt.Fprintf(w, "\n%s", termChart(a, min(columns, termMaxWidth))); err != nil {
			return err
		}
	}
	return nil
}

// termChart draws one sweep; every line has columns columns at most.
func termChart(a *analyze.Analysis, columns int) string {
	t := newTermScale(a, columns-termMargin)
	b := newBraille(t.columns, termHeight)
	for _, mark := range []int{a.Knee.Peak, a.Knee.Clients} {
		if mark > 0 {
			b.dashed(t.dot(float64(mark)))
		}
	}
	for i := 1; i < len(a.Steps); i++ {
		from, to := a.Steps[i-1], a.Steps[i]
		b.line(t.dot(float64(from.Clients)), t.height(from.Adjusted), t.dot(float64(to.Clients)), t.height(to.Adjusted))
	}
	var s strings.Builder
	fmt.Fprintf(&s, "%s, pipeline depth %d: requests/s against clients\n", a.Test, max(1, a.Depth))
	for i, row := range b.rows() {
		label, tick := "", "│"
		if i == 0 || i == termHeight/2 {
			// The middle of the upper edge is that of half the throughput.
			label, tick = compact(t.highest*(1-float64(i)/termHeight)), "┤"
		}
		fmt.Fprintf(&s, "%*s %s%s\n", termMargin-2, label, tick, row)
	}
	fmt.Fprintf(&s, "%*s ┼%s\n", termMargin-2, "0", t.axis(a.Knee))
	for _, line := range []string{t.labels(a), t.names(a.Knee)} {
		if line = strings.TrimRight(line, " "); line != "" {
			fmt.Fprintf(&s, "%*s%s\n", termMargin, "", line)
		}
	}
	return s.String()
}

// A termScale maps clients and throughput to the dots of a terminal: two a
// column and four a line.
type termScale struct {
	columns     int
	first, last float64 // clients at the ends
	log         bool
	highest     float64 // requests/s at the top
}

func newTermScale(a *analyze.Analysis, columns int) termScale {
	n := len(a.Steps)
	t := termScale{columns: columns, last: float64(a.Steps[n-1].Clients)}
	// Levels that double would all lie at the left edge.
	if n > 3 && float64(a.Steps[n/2].Clients) < t.last/4 {
		t.log, t.first = true, float64(a.Steps[0].Clients)
	}
	for _, s := range a.Steps {
		t.highest = math.Max(t.highest, s.Adjusted)
	}
	return t
}

// dot returns the dot of a number of clients, from 0 at the left.
func (t termScale) dot(clients float64) int {
	part := (clients - t.first) / (t.last - t.first)
	if t.log {
		part = math.Log(clients/t.first) / math.Log(t.last/t.first)
	}
	return int(math.Round(part * float64(2*t.columns-1)))
}

func (t termScale) column(clients int) int { return t.dot(float64(clients)) / 2 }

// height returns the dot of a throughput, from 0 at the bottom.
func (t termScale) height(qps float64) int {
	return int(math.Round(qps / t.highest * (4*termHeight - 1)))
}

// axis is the x axis, thick where the range of the knee is.
func (t termScale) axis(k analyze.Knee) string {
	line := []rune(strings.Repeat("─", t.columns))
	if k.Low > 0 && k.Low < k.High {
		for i := t.column(k.Low); i <= t.column(k.High); i++ {
			line[i] = '━'
		}
	}
	return string(line)
}

// labels are numbers of clients below the axis, as many as there is room for;
// those of the ends always.
func (t termScale) labels(a *analyze.Analysis) string {
	line := newLabels(t.columns)
	steps := a.Steps
	line.put(t.column(steps[len(steps)-1].Clients), strconv.Itoa(steps[len(steps)-1].Clients))
	for _, s := range steps {
		line.put(t.column(s.Clients), strconv.Itoa(s.Clients))
	}
	return line.String()
}

// names says below their lines what is marked.
func (t termScale) names(k analyze.Knee) string {
	line := newLabels(t.columns)
	name := func(text string, clients int) {
		if clients > 0 {
			line.put(t.column(clients), text)
		}
	}
	if k.Peak == k.Clients {
		name("knee, peak", k.Clients)
	}
	name("knee", k.Clients)
	name("peak", k.Peak)
	return line.String()
}

// labels is a line of texts that must not touch.
type labels []rune

func newLabels(columns int) labels { return labels(strings.Repeat(" ", columns)) }

func (l labels) String() string { return string(l) }

// put writes text with its middle at a column, moved where it would go over an
// end. It writes nothing where another text is or would touch it.
func (l labels) put(column int, text string) {
	n := len(text)
	at := max(0, min(column-n/2, len(l)-n))
	for i := max(0, at-1); i < min(len(l), at+n+1); i++ {
		if l[i] != ' ' {
			return
		}
	}
	for i, r := range text {
		if at+i < len(l) {
			l[at+i] = r
		}
	}
}

// compact prints a throughput in at most six columns: 9.5, 950, 1.5k, 104k, 2.1M.
func compact(qps float64) string {
	if qps < .01 {
		return strconv.FormatFloat(qps, 'e', 0, 64)
	}
	unit := ""
	for _, next := range []string{"k", "M", "G"} {
		if qps < 1000 {
			break
		}
		qps, unit = qps/1000, next
	}
	decimals := 0
	switch {
	case qps < 10:
		decimals = 2
	case qps < 100:
		decimals = 1
	}
	text := strconv.FormatFloat(qps, 'f', decimals, 64)
	if decimals > 0 {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text + unit
}

// A braille is a picture of dots, two by four in each character.
type braille struct {
	columns, lines int
	cells          []rune // bits of U+2800
}

func newBraille(columns, lines int) *braille {
	return &braille{columns, lines, make([]rune, columns*lines)}
}

// brailleBits are the bits of the dots of a character, by line and column. See
// Unicode, chapter 21.1, "Braille".
var brailleBits = [4][2]rune{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

// set sets a dot, counted from the lower left. Others are left out.
func (b *braille) set(x, y int) {
	y = 4*b.lines - 1 - y
	if x < 0 || y < 0 || x >= 2*b.columns || y >= 4*b.lines {
		return
	}
	b.cells[y/4*b.columns+x/2] |= brailleBits[y%4][x%2]
}

// line draws a line between two dots.
func (b *braille) line(x0, y0, x1, y1 int) {
	steps := max(abs(x1-x0), abs(y1-y0), 1)
	for i := range steps + 1 {
		part := float64(i) / float64(steps)
		b.set(x0+int(math.Round(part*float64(x1-x0))), y0+int(math.Round(part*float64(y1-y0))))
	}
}

func abs(n int) int { return max(n, -n) }

// dashed draws an upright line of every second dot.
func (b *braille) dashed(x int) {
	for y := 0; y < 4*b.lines; y += 2 {
		b.set(x, y)
	}
}

// rows returns the lines from the top, without spaces at their ends.
func (b *braille) rows() []string {
	rows := make([]string, b.lines)
	for i := range rows {
		row := make([]rune, b.columns)
		for j, bits := range b.cells[i*b.columns : (i+1)*b.columns] {
			row[j] = ' '
			if bits != 0 {
				row[j] = 0x2800 + bits
			}
		}
		rows[i] = strings.TrimRight(string(row), " ")
	}
	return rows
}
