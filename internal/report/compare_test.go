package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/compare"
	"github.com/poolsweep/poolsweep/internal/golden"
	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep"
)

// comparedRun is a plateau from 20 clients on, f times as fast as 20,000
// requests/s; each step has four trials that lie 3 % apart. Latency follows
// from Little's law.
func comparedRun(name, appendOnly string, f float64, clients ...int) compare.Run {
	r := compare.Run{Name: name, Header: &sweep.Header{
		Started: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC),
		Server:  probe.Identity{Kind: "redis", Version: "7.0.15", AppendOnly: appendOnly, AppendFsync: "always"},
	}}
	c := analyze.Curve{Test: "SET", Depth: 1}
	for _, n := range clients {
		p := analyze.Point{Clients: n}
		for _, off := range []float64{.985, 1, 1.005, 1.015} {
			t := trial(1000 * f * off * float64(min(n, 20)))
			t.Mean = analyze.Quantity(float64(n) / t.QPS)
			t.P99 = 2 * t.Mean
			p.Trials = append(p.Trials, t)
		}
		c.Points = append(c.Points, p)
	}
	r.Curves = []analyze.Curve{c}
	r.Analyses = []*analyze.Analysis{analyze.Analyze(c, analyze.Options{})}
	return r
}

// anotherTool is a run of which only one throughput a step is known.
func anotherTool(name string) compare.Run {
	c := analyze.Curve{Test: "SET", Depth: 1}
	for _, n := range []int{5, 10, 20} {
		c.Points = append(c.Points, analyze.Point{Clients: n, Trials: []analyze.Trial{trial(900 * float64(n))}})
	}
	return compare.Run{Name: name, Curves: []analyze.Curve{c}, Analyses: []*analyze.Analysis{analyze.Analyze(c, analyze.Options{})}}
}

var comparisons = map[string]func() *compare.Comparison{
	"compare-changed": func() *compare.Comparison {
		return compare.Runs([]compare.Run{
			comparedRun("old.jsonl", "no", 1, 5, 10, 20, 30, 40, 80),
			comparedRun("new.jsonl", "yes", .8, 5, 10, 20, 40, 60, 80),
		})
	},
	"compare-same": func() *compare.Comparison {
		return compare.Runs([]compare.Run{
			comparedRun("old.jsonl", "no", 1, 5, 10, 20, 40, 80),
			comparedRun("again.jsonl", "no", 1.002, 5, 10, 20, 40, 80),
			anotherTool("tool|x.csv"),
		})
	},
}

func writeComparison(t *testing.T, format string, c *compare.Comparison) string {
	t.Helper()
	f, err := ComparisonNamed(format)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := f(&b, c); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestComparisonGolden holds each format to its golden file, and the same
// comparison to the same bytes.
func TestComparisonGolden(t *testing.T) {
	for name, comparison := range comparisons {
		for _, format := range ComparisonFormats() {
			t.Run(name+"/"+format, func(t *testing.T) {
				got := writeComparison(t, format, comparison())
				if again := writeComparison(t, format, comparison()); again != got {
					t.Errorf("the second time:\n%s", cmp.Diff(got, again))
				}
				golden.Check(t, name+"."+format, got)
			})
		}
	}
}

// TestComparisonTable: what a reader looks for is there.
func TestComparisonTable(t *testing.T) {
	tests := []struct {
		comparison string
		want, not  []string // regular expressions, of lines
	}{
		{"compare-changed", []string{
			`^old  old.jsonl, 2026-12-01 12:00:00 UTC, redis 7.0.15$`,
			`^ +appendonly +no +yes$`,
			`^Warning \(differs\): the runs differ in appendonly: `,
			// The median of four is between the middle two: 1.0025 of it.
			`^ +20 +20050 +16040 +-20.0 +-\d+.\d to -\d+.\d +\.029 .*< QPS, p99$`,
			`^ +30 +20050 +2.*\d$`, // not in the new run: no change and no mark
			`^ +60 +16040 +\d`,
			`^ +all .*-20.0 .*< QPS, p99$`,
			`^ +knee +range +confidence +peak +peak QPS +pool +stopped by$`,
			`^QPS: a significant change over all steps, -20.0 %`,
		}, []string{`NaN`, `Inf`}},
		{"compare-same", []string{
			`^QPS: no significant change over all steps, \+0.2 %`,
			`^QPS: -10\.\d % over all steps; whether that is noise cannot be said\.$`,
			`^p99: not known in both runs\.$`,
			`^Warning \(other-tool\): tool\|x.csv comes from another load generator`,
			`^Warning \(noise-unknown\)`,
		}, []string{`Different settings`, `< QPS`, `NaN`}},
	}
	for _, test := range tests {
		text := writeComparison(t, "table", comparisons[test.comparison]())
		for _, want := range test.want {
			if !regexp.MustCompile("(?m)" + want).MatchString(text) {
				t.Errorf("%s: no line %s in\n%s", test.comparison, want, text)
			}
		}
		for _, not := range test.not {
			if found := regexp.MustCompile("(?m)" + not).FindString(text); found != "" {
				t.Errorf("%s: has %q", test.comparison, found)
			}
		}
	}
}

// TestComparisonFormatsAgree: JSON gives back what it was made of, and CSV has
// the same numbers.
func TestComparisonFormatsAgree(t *testing.T) {
	for name, comparison := range comparisons {
		c := comparison()
		var back compare.Comparison
		if err := json.Unmarshal([]byte(writeComparison(t, "json", c)), &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c, &back, sameQuantity); diff != "" {
			t.Errorf("%s, -before +after JSON:\n%s", name, diff)
		}
		rows, err := csv.NewReader(strings.NewReader(writeComparison(t, "csv", c))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		next := 1
		for _, pair := range c.Pairs {
			for _, s := range pair.Sweeps {
				for _, r := range changeRows(s) {
					want := append([]string{pair.Old.Name, pair.New.Name, s.Test, "1", r.clients}, changeCells(r.qps, 1)...)
					if diff := cmp.Diff(want, rows[next][:len(want)]); diff != "" {
						t.Errorf("%s, row %d, -want +got:\n%s", name, next, diff)
					}
					next++
				}
			}
		}
		if next != len(rows) {
			t.Errorf("%s: %d rows, want %d", name, len(rows), next)
		}
	}
}

// TestComparisonWriteErrors: no format hides that its output could not be
// written.
func TestComparisonWriteErrors(t *testing.T) {
	for _, format := range ComparisonFormats() {
		c := comparisons["compare-same"]()
		size := len(writeComparison(t, format, c))
		for _, left := range []int{0, size / 2, size - 1} {
			f, _ := ComparisonNamed(format)
			if err := f(&brokenWriter{left}, c); !errors.Is(err, errFull) {
				t.Errorf("%s after %d of %d bytes: error %v", format, left, size, err)
			}
		}
	}
}

func TestComparisonNamed(t *testing.T) {
	if _, err := ComparisonNamed("hgrm"); err == nil || !strings.Contains(err.Error(), "csv, json, markdown, table") {
		t.Errorf("error %v", err)
	}
}

// TestProbability: as benchstat prints it, without the zero before the point.
func TestProbability(t *testing.T) {
	for p, want := range map[analyze.Quantity]string{.0079: ".008", .0002: "<.001", 1: "1.000", .1: ".100"} {
		if got := probability(p); got != want {
			t.Errorf("%v: %q, want %q", p, got, want)
		}
	}
	if got := probability(unknown); got != "" {
		t.Errorf("unknown: %q", got)
	}
}
