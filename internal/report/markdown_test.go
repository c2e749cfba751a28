package report

import (
	"regexp"
	"strings"
	"testing"
)

// readMarkdown returns the tables of a text in GitHub's Markdown, as rows of
// cells without the line below the header.
func readMarkdown(t *testing.T, text string) [][][]string {
	t.Helper()
	var tables [][][]string
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(line, "|") {
			inside = false
			continue
		}
		if !inside {
			tables, inside = append(tables, nil), true
		}
		var cells []string
		for _, c := range regexp.MustCompile(`(?:[^|\\]|\\.)*\|`).FindAllString(line[1:], -1) {
			cells = append(cells, strings.TrimSpace(strings.TrimSuffix(c, "|")))
		}
		last := &tables[len(tables)-1]
		if len(*last) > 0 && len(cells) != len((*last)[0]) {
			t.Errorf("%d cells below %d: %s", len(cells), len((*last)[0]), line)
		}
		*last = append(*last, cells)
	}
	for i, rows := range tables {
		if len(rows) < 2 || strings.Trim(strings.Join(rows[1], ""), ":-") != "" {
			t.Fatalf("a table without a line below its header: %q", rows)
		}
		tables[i] = append(rows[:1:1], rows[2:]...)
	}
	return tables
}

// TestMarkdown: what a reader looks for is there, and a table stands on its
// own.
func TestMarkdown(t *testing.T) {
	tests := []struct {
		document string
		tables   int
		want     []string // regular expressions, of lines
	}{
		{"one-sweep", 1, []string{
			`^## poolsweep: redis 7\.0\.15`,
			`^- \*\*Server\*\*: redis://127\.0\.0\.1:6379, on this machine$`,
			`^> Note: the server does not tell everything`,
			`^### SET, pipeline depth 1$`,
			`^- \*\*Warning \(fork\)\*\*: 1 trial at 110 clients`,
			`^\| +60 \| +47281 \|.*\| knee +\|$`,
			`^\| +110 \| +48340 \|.*\| ceiling, \(fork, steal\) +\|$`,
			"^```$",
			`^\s+PoolSize: +15,`,
		}},
		{"two-depths", 3, []string{
			`^\| +110 \| +500000 \| 110\+, peak +\|$`,
			`^### GET, pipeline depths 1, 16$`,
			`^\| +16 \|.*\| best, \(still rising at 110 clients\) +\|$`,
		}},
	}
	for _, test := range tests {
		text := write(t, "markdown", documents[test.document]())
		for _, want := range test.want {
			if !regexp.MustCompile("(?m)" + want).MatchString(text) {
				t.Errorf("%s: no line %s in\n%s", test.document, want, text)
			}
		}
		if n := len(readMarkdown(t, text)); n != test.tables {
			t.Errorf("%s: %d tables, want %d", test.document, n, test.tables)
		}
		if regexp.MustCompile(`(?m)[^\n]\n\|[^\n]*\n\| *:?-`).MatchString(text) {
			t.Errorf("%s: no empty line before a table", test.document)
		}
	}
}

// TestEscaped: what stands in backslashes is Markdown's own punctuation.
func TestEscaped(t *testing.T) {
	for in, want := range map[string]string{
		"MSET (10 keys), 5 %": "MSET (10 keys), 5 %",
		"a_b*c|<d>[e]~`\\":    "a\\_b\\*c\\|\\<d>\\[e\\]\\~\\`\\\\",
		"two\nlines":          "two lines",
	} {
		if got := escaped(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
