package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/golden"
	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

var unknown = analyze.Unknown()

// sameQuantity makes unknown equal to unknown.
var sameQuantity = cmp.Comparer(func(a, b analyze.Quantity) bool {
	return a == b || !a.Known() && !b.Known()
})

// step is a row of which no more is known than its throughput.
func step(clients, depth int, qps float64) analyze.Step {
	return analyze.Step{
		Clients: clients, InFlight: clients * depth, Trials: 1, QPS: qps, Adjusted: qps,
		Spread: unknown, Gain: unknown, Mean: unknown, P50: unknown, P99: unknown, P999: unknown,
		ServerMain: unknown, ServerCPU: unknown, GeneratorCPU: unknown, HostCPU: unknown, Invalid: []string{},
	}
}

// trial is one of which no more is known than its throughput.
func trial(qps float64) analyze.Trial {
	return analyze.Trial{
		QPS: qps, Mean: unknown, P50: unknown, P99: unknown, P999: unknown, LatencyMin: unknown, Load: analyze.UnknownLoad(),
	}
}

// bare is an analysis that concludes nothing from its steps.
func bare(test string, depth int, steps ...analyze.Step) *analyze.Analysis {
	interval := analyze.Interval{Low: unknown, High: unknown}
	return &analyze.Analysis{
		Test: test, Depth: depth, Tolerance: .05, Goal: analyze.GoalKnee, Steps: steps,
		Noise: analyze.Noise{Sigma: unknown, PassEffect: unknown},
		Knee: analyze.Knee{
			QPS: unknown, PeakQPS: unknown, Plateau: unknown, TailGrowth: unknown, Probability: unknown,
			RisingProbability: unknown, Confidence: analyze.ConfidenceNone, Sharpness: unknown, Little: unknown,
		},
		USL: analyze.USL{
			Reason: "too few levels", Alpha: unknown, AlphaRange: interval, Beta: unknown, BetaRange: interval, BetaZero: unknown,
			Gamma: unknown, GammaRange: interval, Peak: unknown, PeakRange: interval, PeakQPS: unknown, Misfit: unknown, Efficiency: unknown,
		},
		Bottleneck: analyze.Bottleneck{Cause: analyze.CauseUnknown, Evidence: []string{}},
		Warnings:   []analyze.Warning{},
		Next:       analyze.Proposal{Extend: []int{}, Below: []int{}, Between: []int{}, Repeat: []int{}, Why: []string{}},
		Recommendation: analyze.Recommendation{
			Goal: analyze.GoalKnee, Reason: "no knee is named", Instances: 1, Procs: 1, Shards: 1, Capacity: unknown,
			Load: analyze.Prediction{
				Rate: unknown, Utilisation: unknown, Busy: unknown, WaitProbability: unknown,
				Wait: unknown, Wait99: unknown, Response: unknown, Response99: unknown,
			},
			Confidence: analyze.ConfidenceNone,
		},
	}
}

// oneSweep is a run of one test, from 60 to 110 clients in the numbers of the
// founding example, with a fall at 160. All that can be known of its rows is.
func oneSweep() *Document {
	clients := []int{40, 60, 100, 110, 160}
	qps := []float64{40000, 47281.32, 49877.8, 48339.54, 42000}
	a := bare("SET", 1)
	c := analyze.Curve{Test: "SET", Depth: 1}
	for i, n := range clients {
		s := step(n, 1, qps[i])
		s.Trials, s.Spread = 3, .023
		s.Mean = analyze.Quantity(float64(n) / qps[i]) // Little's law
		s.P50, s.P99, s.P999 = s.Mean, 2*s.Mean, 3*s.Mean
		s.ServerMain, s.ServerCPU, s.GeneratorCPU, s.HostCPU = .8, .95, .304, 1.4
		if i > 0 {
			s.Gain = analyze.Quantity((qps[i]/qps[i-1] - 1) / (float64(n)/float64(clients[i-1]) - 1))
		}
		a.Steps = append(a.Steps, s)
		t := trial(qps[i])
		t.Mean, t.LatencyMin, t.P50, t.P99, t.P999 = s.Mean, s.Mean/2, s.P50, s.P99, s.P999
		t.Load.ServerCPU = s.ServerCPU
		c.Points = append(c.Points, analyze.Point{Clients: n, Trials: []analyze.Trial{t, trial(qps[i] + 500), trial(qps[i] - 250)}})
	}
	a.Steps[2].Adjusted = 49900
	a.Steps[3].Invalid = []string{analyze.GateFork, analyze.GateSteal}
	a.Answer, a.Noise.Sigma, a.Noise.Residuals = true, .018, 15
	a.Knee = analyze.Knee{
		Shape: analyze.ShapeRetrograde, Clients: 60, Apparent: 60, QPS: 47281.32, Peak: 100, PeakQPS: 49900, Plateau: 49500, Ceiling: 110,
		TailGrowth: -.16, Confirmed: true, Probability: .91, Low: 60, High: 100, RisingProbability: 0,
		Confidence: analyze.ConfidenceMedium, Power: 40, Sharpness: 1.5, Little: 45.2,
	}
	a.Bottleneck = analyze.Bottleneck{
		Cause:    analyze.CauseServerCPU,
		Evidence: []string{"at 60 clients the server's main thread used 80 % of a core"},
		Advice:   "more throughput needs shards or a faster core",
	}
	a.Recommendation = analyze.Recommendation{
		Goal: analyze.GoalKnee, Feasible: true, Reason: "the knee, the fewest that give the plateau's throughput",
		Pool: 60, Low: 60, High: 100, Need: 60, PerInstance: 15, PerProcess: 15, Instances: 4, Procs: 1, Shards: 1,
		Capacity: 47281.32, Load: a.Recommendation.Load, MinIdle: 8, WaitTimeout: .25, Confidence: analyze.ConfidenceMedium,
	}
	a.Warnings = []analyze.Warning{{Code: analyze.GateFork, Text: "1 trial at 110 clients: a snapshot or an AOF rewrite ran"}}
	return &Document{
		Header: &sweep.Header{
			Schema: "poolsweep/1", Build: "v0.0.0", Started: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC), Target: "redis://127.0.0.1:6379",
			Server: probe.Identity{
				Kind: "redis", Version: "7.0.15", Mode: "standalone", Role: "master", Local: true,
				AppendOnly: "yes", AppendFsync: "everysec", IOThreads: 1, MaxClients: 10000,
			},
			Plan: sweep.Plan{
				Workloads: []workload.Spec{{Name: "SET", Keys: workload.Keys{Space: 1}, Values: workload.Values{Sizes: []workload.Size{{Min: 3, Max: 3}}}}}, Depths: []int{1}, Clients: clients, MaxClients: 1000, Trials: 3, Slices: 4,
				Duration: time.Second, Warmup: 100 * time.Millisecond, MinRequests: 1000, Order: "shuffled", Seed: 1,
				Budget: 2 * time.Minute, Tolerance: .05, Threads: 1,
			},
		},
		Curves: []analyze.Curve{c}, Analyses: []*analyze.Analysis{a}, Client: "go-redis",
		Remarks: []string{"the server does not tell everything: CONFIG GET is not allowed to this user, so whether it writes snapshots is not known."},
	}
}

// twoDepths is another tool's result, of which nothing is known but throughput:
// at depth 1 a plateau from 20 clients on, at depth 16 a curve that still rises
// at 110 clients.
func twoDepths() *Document {
	d := new(Document)
	for _, s := range []struct {
		depth   int
		clients []int
		qps     []float64
	}{
		{1, []int{10, 20, 160}, []float64{10000, 20000, 20100}},
		{16, []int{1, 10, 110}, []float64{16000, 100000, 500000}},
	} {
		a := bare("GET", s.depth)
		c := analyze.Curve{Test: "GET", Depth: s.depth}
		for i, n := range s.clients {
			a.Steps = append(a.Steps, step(n, s.depth, s.qps[i]))
			c.Points = append(c.Points, analyze.Point{Clients: n, Trials: []analyze.Trial{trial(s.qps[i])}})
		}
		last := len(s.clients) - 1
		a.Knee.Peak, a.Knee.PeakQPS = s.clients[last], analyze.Quantity(s.qps[last])
		a.Knee.Plateau = a.Knee.PeakQPS
		a.Warnings = []analyze.Warning{{Code: analyze.WarnNoiseUnknown, Text: "one trial a step: the noise is unknown, so no confidence is stated"}}
		d.Curves, d.Analyses = append(d.Curves, c), append(d.Analyses, a)
	}
	flat, rising := d.Analyses[0], d.Analyses[1]
	flat.Answer, flat.Knee.Shape, flat.Knee.Clients, flat.Knee.Apparent, flat.Knee.QPS = true, analyze.ShapePlateau, 20, 20, 20000
	flat.Recommendation.Pool, flat.Recommendation.Feasible, flat.Recommendation.Reason = 20, true, "the knee"
	rising.Reason, rising.Knee.Shape, rising.Knee.Apparent = "still rising at 110 clients", analyze.ShapeRising, 110
	rising.Knee.QPS = rising.Knee.PeakQPS
	return d
}

// needResult are the formats that need the histograms of a result file.
var needResult = []string{"hgrm", "hlog"}

var documents = map[string]func() *Document{"one-sweep": oneSweep, "two-depths": twoDepths}

func write(t *testing.T, format string, d *Document) string {
	t.Helper()
	f, err := Named(format)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := f(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestGolden holds each format of each document to its golden file, and the
// same document to the same bytes.
func TestGolden(t *testing.T) {
	for name, document := range documents {
		for _, format := range Formats() {
			if slices.Contains(needResult, format) {
				continue
			}
			t.Run(name+"/"+format, func(t *testing.T) {
				d := document()
				got := write(t, format, d)
				if again := write(t, format, d); again != got {
					t.Errorf("the second time:\n%s", cmp.Diff(got, again))
				}
				golden.Check(t, name+"."+format, got)
			})
		}
	}
}

// TestTable: what a reader looks for is there, and what is not known is not.
func TestTable(t *testing.T) {
	tests := []struct {
		document  string
		want, not []string // regular expressions, of lines
	}{
		{"one-sweep", []string{
			`^ +clients +QPS +adjusted +spread % +p50 ms +p99 ms +p99.9 ms +server % +generator % +gain %$`,
			`^ +60 +47281 .* 80 +30 +\d+ +< knee$`, // the main thread's CPU, not the process'
			`^ +100 +49878 +49900 .*< peak$`,
			`^ +110 +48340 .*< ceiling, \(fork, steal\)$`,
			`^Settings \(go-redis\):$`,
			`^\s+PoolSize: +15,`,
		}, []string{`\+$`, `pipeline depths`}},
		{"two-depths", []string{
			`^ +clients +QPS$`,
			`^ +20 +20000 +< knee$`,
			`^ +160 +20100 +< peak$`,
			`^ +110 +500000 +< 110\+, peak$`,
			`^GET, pipeline depths 1, 16$`,
			`^ +depth +knee +knee QPS +in flight +peak +peak QPS +confidence$`,
			`^ +1 +20 +20000 +20 +160 +20100 +NONE$`,
			`^ +16 +110 +500000 +NONE +< best, \(still rising at 110 clients\)$`,
			`^Depth 16 buys: `,
		}, []string{`adjusted|p50|p99|server %|generator|gain %`, `Settings`, `ceiling`, `NaN`, `Note`}},
	}
	for _, test := range tests {
		text := write(t, "table", documents[test.document]())
		for _, want := range test.want {
			if !regexp.MustCompile("(?m)" + want).MatchString(text) {
				t.Errorf("%s: no line %s", test.document, want)
			}
		}
		for _, not := range test.not {
			if found := regexp.MustCompile("(?m)" + not).FindString(text); found != "" {
				t.Errorf("%s: has %q", test.document, found)
			}
		}
		for line := range strings.Lines(text) {
			if line != strings.TrimRight(line, " \n")+"\n" {
				t.Errorf("%s: line %q ends in spaces", test.document, line)
			}
		}
	}
}

// TestParagraph: wrapping keeps the words and their order; a line is longer
// than 80 columns only when it is one word; a word stands on the next line only
// if it has no room.
func TestParagraph(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a-zσ−]{1,90}|[a-z]{1,8}`), 1, 60).Draw(t, "words")
		indent := rapid.SampledFrom([]string{"", "    "}).Draw(t, "indent")
		var b strings.Builder
		p := &printer{w: &b}
		p.paragraph(strings.Join(words, " "), indent)
		if got := strings.Fields(b.String()); !slices.Equal(got, words) {
			t.Fatalf("words %q, want %q", got, words)
		}
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		for i, line := range lines {
			n := utf8.RuneCountInString(line)
			if n > textWidth && len(strings.Fields(line)) > 1 {
				t.Fatalf("%d columns: %q", n, line)
			}
			if i == 0 {
				continue
			}
			if !strings.HasPrefix(line, indent) {
				t.Fatalf("line %q is not indented", line)
			}
			before := utf8.RuneCountInString(lines[i-1])
			if first := utf8.RuneCountInString(strings.Fields(line)[0]); before+1+first <= textWidth {
				t.Fatalf("%q had room for the first word of %q", lines[i-1], line)
			}
		}
	})
}

// TestJSON: analyses survive JSON, an unknown quantity is null, and there are
// surfaces exactly where there are several depths.
func TestJSON(t *testing.T) {
	for name, surfaces := range map[string]int{"one-sweep": 0, "two-depths": 1} {
		d := documents[name]()
		text := write(t, "json", d)
		var back jsonDocument
		if err := json.Unmarshal([]byte(text), &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(d.Analyses, back.Analyses, sameQuantity); diff != "" {
			t.Errorf("%s, -before +after JSON:\n%s", name, diff)
		}
		if back.Surfaces == nil || len(back.Surfaces) != surfaces {
			t.Errorf("%s: %d surfaces (nil: %t), want %d", name, len(back.Surfaces), back.Surfaces == nil, surfaces)
		}
		if (back.Header == nil) != (d.Header == nil) {
			t.Errorf("%s: header %+v", name, back.Header)
		}
	}
	var raw struct {
		Header   json.RawMessage
		Analyses []struct {
			Steps []map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(write(t, "json", twoDepths())), &raw); err != nil {
		t.Fatal(err)
	}
	if p99 := raw.Analyses[0].Steps[0]["p99_s"]; string(p99) != "null" {
		t.Errorf("an unknown p99 is %s, want null", p99)
	}
}

// TestCSV: a row a trial, units as the columns say, and an unknown quantity
// empty.
func TestCSV(t *testing.T) {
	tests := []struct {
		document string
		rows     int
		first    []string
	}{
		// 5 steps of 3 trials; 40 clients at 40000/s: R = N/X = 1 ms.
		{"one-sweep", 15, []string{
			"SET", "1", "40", "1", "yes", "40000", "1", "0.5", "1", "2", "3", "95",
		}},
		{"two-depths", 6, []string{"GET", "1", "10", "1", "yes", "10000", "", "", "", "", "", ""}},
	}
	for _, test := range tests {
		rows, err := csv.NewReader(strings.NewReader(write(t, "csv", documents[test.document]()))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(rows[0], csvColumns) || len(rows)-1 != test.rows {
			t.Errorf("%s: %d rows below %q, want %d", test.document, len(rows)-1, rows[0], test.rows)
		}
		if !slices.Equal(rows[1], test.first) {
			t.Errorf("%s: first row %q, want %q", test.document, rows[1], test.first)
		}
	}
}

// brokenWriter takes so many bytes and then fails.
type brokenWriter struct{ left int }

var errFull = errors.New("no space left")

func (w *brokenWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

// TestWriteErrors: no format hides that its output could not be written.
func TestWriteErrors(t *testing.T) {
	for _, format := range Formats() {
		d := twoDepths()
		if slices.Contains(needResult, format) {
			d = oneResult(t)
		}
		size := len(write(t, format, d))
		for _, left := range []int{0, size / 2, size - 1} {
			f, _ := Named(format)
			if err := f(&brokenWriter{left}, d); !errors.Is(err, errFull) {
				t.Errorf("%s after %d of %d bytes: error %v", format, left, size, err)
			}
		}
	}
}

func TestNamed(t *testing.T) {
	for _, name := range []string{"benchfmt", "csv", "hgrm", "hlog", "json", "markdown", "openmetrics", "table"} {
		if _, err := Named(name); err != nil {
			t.Error(err)
		}
	}
	if _, err := Named("yaml"); err == nil || !strings.Contains(err.Error(), "the formats are benchfmt, csv, ") {
		t.Errorf("error %v", err)
	}
}

// TestJoinable: of some formats a file holds one document.
func TestJoinable(t *testing.T) {
	for format, want := range map[string]bool{"csv": true, "table": true, "benchfmt": true, "hgrm": false, "hlog": false, "openmetrics": false} {
		if Joinable(format) != want {
			t.Errorf("%s: %t", format, !want)
		}
	}
}

// TestPercent: rounding leaves no sign at a zero; unknown is empty.
func TestPercent(t *testing.T) {
	tests := []struct {
		q        analyze.Quantity
		decimals int
		want     string
	}{
		{.125, 1, "12.5"}, {-.25, 0, "-25"}, {-.0004, 0, "0"}, {-.0004, 1, "0.0"}, {0, 0, "0"}, {unknown, 0, ""},
	}
	for _, test := range tests {
		if got := percent(test.q, test.decimals); got != test.want {
			t.Errorf("%v with %d decimals: %q, want %q", test.q, test.decimals, got, test.want)
		}
	}
}
