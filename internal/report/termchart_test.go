package report

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/golden"
)

// TestTerminalChartsGolden holds the charts of each scene to a golden file.
func TestTerminalChartsGolden(t *testing.T) {
	var b strings.Builder
	for _, name := range []string{"plateau", "retrograde", "rising", "depths"} {
		if err := TerminalCharts(&b, sceneDocument(t, name), 72); err != nil {
			t.Fatal(err)
		}
	}
	golden.Check(t, "charts.txt", b.String())
}

// TestTermChartFits: whatever the levels and the width, no line is longer than
// the terminal or ends in a space, and the knee is named.
func TestTermChartFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(termMinWidth, termMaxWidth).Draw(t, "columns")
		clients := rapid.SliceOfNDistinct(rapid.IntRange(1, 100_000), 2, 30, rapid.ID[int]).Draw(t, "clients")
		slices.Sort(clients)
		a := bare("get", 1)
		for _, n := range clients {
			a.Steps = append(a.Steps, step(n, 1, rapid.Float64Range(1e-3, 1e10).Draw(t, "qps")))
		}
		level := rapid.SampledFrom(clients)
		a.Knee.Clients, a.Knee.Peak = level.Draw(t, "knee"), level.Draw(t, "peak")
		a.Knee.Low, a.Knee.High = clients[0], level.Draw(t, "high")
		text := termChart(a, columns)
		for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			if n := utf8.RuneCountInString(line); i > 0 && n > columns || line != strings.TrimRight(line, " ") {
				t.Fatalf("%d columns of %d: %q in\n%s", n, columns, line, text)
			}
		}
		if !strings.Contains(text, "knee") {
			t.Fatalf("no knee in\n%s", text)
		}
	})
}

// TestTerminalChartsNothing: no room or a single step gives nothing.
func TestTerminalChartsNothing(t *testing.T) {
	one := &Document{Analyses: []*analyze.Analysis{bare("get", 1, step(1, 1, 10))}}
	for name, columns := range map[*Document]int{twoDepths(): termMinWidth - 1, one: 80} {
		var b strings.Builder
		if err := TerminalCharts(&b, name, columns); err != nil || b.Len() > 0 {
			t.Errorf("%q, error %v", b.String(), err)
		}
	}
}

// TestBraille: dots come out where they were set. See Unicode, chapter 21.1:
// dots 1 to 8 are bits 0x01 to 0x80.
func TestBraille(t *testing.T) {
	tests := []struct {
		name string
		draw func(*braille)
		want []string
	}{
		{"lower left is dot 7", func(b *braille) { b.set(0, 0) }, []string{"", "⡀"}},
		{"upper right is dot 4", func(b *braille) { b.set(3, 7) }, []string{" ⠈", ""}},
		{"outside", func(b *braille) { b.set(-1, 0); b.set(0, 8); b.set(4, 0) }, []string{"", ""}},
		{"all of a column", func(b *braille) { b.line(0, 0, 0, 7) }, []string{"⡇", "⡇"}},
		{"a row", func(b *braille) { b.line(3, 7, 0, 7) }, []string{"⠉⠉", ""}},
		{"one dot", func(b *braille) { b.line(1, 1, 1, 1) }, []string{"", "⠠"}},
	}
	for _, test := range tests {
		b := newBraille(2, 2)
		test.draw(b)
		if diff := cmp.Diff(test.want, b.rows()); diff != "" {
			t.Errorf("%s: -want +got:\n%s", test.name, diff)
		}
	}
}

func TestCompact(t *testing.T) {
	for qps, want := range map[float64]string{
		0.001: "1e-03", .5: "0.5", 9.5: "9.5", 10: "10", 999.6: "1000", 1500: "1.5k", 104_000: "104k", 999_600: "1000k", 2.1e6: "2.1M", 3e12: "3000G",
	} {
		if got := compact(qps); got != want {
			t.Errorf("%v: %s, want %s", qps, got, want)
		}
	}
}
