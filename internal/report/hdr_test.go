package report

import (
	"bytes"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/golden"
)

// readLog reads a log to its end.
func readLog(t *testing.T, text string) []*hdrhistogram.Histogram {
	t.Helper()
	r := hdrhistogram.NewHistogramLogReader(strings.NewReader(text))
	var all []*hdrhistogram.Histogram
	for {
		h, err := r.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
		if h == nil {
			return all
		}
		all = append(all, h)
	}
}

// TestHlog: a line for each trial, by time, with the time of its first slice
// and as long as it measured.
func TestHlog(t *testing.T) {
	d := manyResults(t)
	text := write(t, "hlog", d)
	for _, line := range []string{
		`#\[Histogram log format version 1\.3\]`,
		`#\[BaseTime: \d+ \(seconds since epoch\)\]`,
		`#\[StartTime: \d+ \(seconds since epoch\), 2026-12-01T12:00:00Z\]`,
		`"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"`,
		// 400 ms after the log's start, two slices of a second each, at most
		// 5·R = 5 ms.
		`Tag=SET/clients=1/depth=1,0\.400000,2\.000000,5\.00\d*,HIST.*`,
	} {
		if !regexp.MustCompile("(?m)^" + line + "$").MatchString(text) {
			t.Errorf("no line %s", line)
		}
	}
	all := readLog(t, text)
	if want := len(d.trials()); len(all) != want {
		t.Fatalf("%d histograms, want %d", len(all), want)
	}
	var before int64
	for _, h := range all {
		if h.StartTimeMs() < before {
			t.Errorf("%s begins at %d, before its predecessor at %d", h.Tag(), h.StartTimeMs(), before)
		}
		before = h.StartTimeMs()
		// The reader cuts off what is below a millisecond.
		if length := h.EndTimeMs() - h.StartTimeMs(); length < 1999 || length > 2001 {
			t.Errorf("%s is %d ms long, want 2000", h.Tag(), length)
		}
	}
	first := time.UnixMilli(all[0].StartTimeMs())
	if off := first.Sub(d.Header.Started).Abs(); off > time.Millisecond {
		t.Errorf("the first begins at %v, want %v", first, d.Header.Started)
	}
}

// A hgrmRow is a line of a percentile distribution.
type hgrmRow struct {
	value, quantile float64
	count           int64
	inverse         float64 // +Inf in the last row
}

// readHgrm takes a distribution apart as HdrHistogram's plotFiles.html does:
// lines with four fields separated by spaces, but for comments.
func readHgrm(t *testing.T, text string) []hgrmRow {
	t.Helper()
	var rows []hgrmRow
	for line := range strings.Lines(text) {
		fields := regexp.MustCompile(` +`).Split(strings.TrimSpace(line), -1)
		if strings.HasPrefix(line, "#") || len(fields) != 4 {
			continue
		}
		var r hgrmRow
		var errs [4]error
		r.value, errs[0] = strconv.ParseFloat(fields[0], 64)
		r.quantile, errs[1] = strconv.ParseFloat(fields[1], 64)
		r.count, errs[2] = strconv.ParseInt(fields[2], 10, 64)
		r.inverse, errs[3] = strconv.ParseFloat(fields[3], 64)
		if errs != [4]error{} {
			t.Fatalf("line %q: %v", line, errs)
		}
		rows = append(rows, r)
	}
	return rows
}

// atQuantile returns the value of the first row that covers a quantile.
func atQuantile(rows []hgrmRow, q float64) float64 {
	for _, r := range rows {
		if r.quantile >= q {
			return r.value
		}
	}
	return math.NaN()
}

// TestHgrm: the distribution is that of the knee, with the goal peak that of
// the peak, in milliseconds.
func TestHgrm(t *testing.T) {
	tests := []struct {
		goal    analyze.Goal
		comment string
		p50     float64 // R = N/X, X = 8000/s
	}{
		{analyze.GoalKnee, "#[SET/clients=8/depth=1: the knee, trial 1, latency in milliseconds]\n", 1},
		{analyze.GoalPeak, "#[SET/clients=24/depth=1: the peak, trial 1, latency in milliseconds]\n", 3},
	}
	for _, test := range tests {
		d := oneResult(t)
		a := d.Analyses[0]
		a.Goal, a.Knee.Clients, a.Knee.Peak = test.goal, 8, 24
		text := write(t, "hgrm", d)
		if !strings.HasSuffix(text, test.comment) {
			t.Errorf("%s: no end %q:\n%s", test.goal, test.comment, text)
		}
		rows := readHgrm(t, text)
		for q, want := range map[float64]float64{.5: test.p50, .99: 2 * test.p50, .999: 5 * test.p50, 1: 5 * test.p50} {
			if got := atQuantile(rows, q); math.Abs(got/want-1) > .001 { // three digits
				t.Errorf("%s: %v at %v, want %v ms", test.goal, got, q, want)
			}
		}
		last := rows[len(rows)-1]
		if !math.IsInf(last.inverse, 1) || last.count != 16000 { // 8000/s in two slices of a second
			t.Errorf("%s: last row %+v, want 16000 in all", test.goal, last)
		}
	}
}

func TestHgrmGolden(t *testing.T) {
	got := write(t, "hgrm", oneResult(t))
	golden.Check(t, "one-result.hgrm", got)
}

// TestHDRErrors: what a document lacks is said in a line, and nothing is
// written.
func TestHDRErrors(t *testing.T) {
	noKnee := oneResult(t)
	noKnee.Analyses[0].Knee.Clients, noKnee.Analyses[0].Reason = 0, "still rising at 24 clients"
	lost := oneResult(t)
	lost.Result.Slices = lost.Result.Slices[:1]
	lost.Analyses[0].Knee.Clients = 8
	tests := []struct {
		name, format string
		d            *Document
		want         string
	}{
		{"another tool's", "hgrm", twoDepths(), "hgrm needs the latency histograms of a poolsweep result file"},
		{"another tool's", "hlog", twoDepths(), "hlog needs the latency histograms of a poolsweep result file"},
		{"several sweeps", "hgrm", resultFile(t, []string{"SET"}, 1, 16),
			"hgrm holds one distribution and there are 2 sweeps (SET at depth 1, SET at depth 16); choose one with analyze --test and --depth, or take hlog"},
		{"no knee", "hgrm", noKnee, "hgrm needs a knee, and none can be named (still rising at 24 clients); --goal peak writes the distribution at the peak"},
		{"not the file of the curve", "hgrm", lost, "hgrm: the result file has no trial of 8 clients"},
	}
	for _, test := range tests {
		f, err := Named(test.format)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := f(&b, test.d); err == nil || err.Error() != test.want {
			t.Errorf("%s: error %v, want %s", test.name, err, test.want)
		}
		if b.Len() > 0 {
			t.Errorf("%s: wrote %q", test.name, b.String())
		}
	}
}

// TestEmptyHistogram: a trial without a latency gives an empty histogram.
func TestEmptyHistogram(t *testing.T) {
	h, err := histogram(nil)
	if err == nil && h.TotalCount() != 0 {
		t.Errorf("%d values, want none", h.TotalCount())
	}
	if err != nil {
		t.Error(err)
	}
}
