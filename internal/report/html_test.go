package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/golden"
	"github.com/poolsweep/poolsweep/internal/verify"
	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep"
	"github.com/poolsweep/poolsweep/sweep/load"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// A scene is a result file that follows a formula.
type scene struct {
	tests   []string
	depths  []int
	clients []int
	sigma   float64 // of a slice, as a ratio

	// throughput returns the requests/s of so many clients at a depth.
	throughput func(clients, depth float64) float64

	// stop ends the run after so many slices; 0 does not.
	stop int
}

var byTens = []int{10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110}

// scenes are the pages that a reader may meet.
var scenes = map[string]scene{
	// Forty workers of 0.4 ms each: X = min(N, 40)/S.
	"plateau": {throughput: func(n, _ float64) float64 { return math.Min(n, 40) / 400e-6 }, sigma: .01},
	// The Universal Scalability Law with N* = √((1−.03)/.0008) = 34.8.
	"retrograde": {throughput: func(n, _ float64) float64 { return 8000 * n / (1 + .03*(n-1) + .0008*n*(n-1)) }, sigma: .01,
		clients: []int{1, 2, 5, 10, 20, 30, 40, 60, 80, 120}},
	"rising": {throughput: func(n, _ float64) float64 { return n / 2e-3 }, sigma: .01},
	"noisy":  {throughput: func(n, _ float64) float64 { return math.Min(n, 40) / 400e-6 }, sigma: .08},
	"depths": {tests: []string{"SET", "GET"}, depths: []int{1, 4, 16}, sigma: .01, clients: []int{1, 2, 5, 10, 20, 30, 40},
		throughput: func(n, depth float64) float64 { return math.Min(n, 16) * 5000 * math.Sqrt(depth) }},
	"interrupted": {tests: []string{"SET", "GET"}, throughput: func(n, _ float64) float64 { return math.Min(n, 40) / 400e-6 }, sigma: .01, stop: 40},
}

const (
	sceneTrials = 3
	sceneSlices = 2
)

// document measures the scene.
func (s scene) document(t testing.TB) *Document {
	t.Helper()
	if s.tests == nil {
		s.tests = []string{"SET"}
	}
	if s.depths == nil {
		s.depths = []int{1}
	}
	if s.clients == nil {
		s.clients = byTens
	}
	plan := sweep.DefaultPlan()
	plan.Depths, plan.Clients, plan.Trials, plan.Slices = s.depths, s.clients, sceneTrials, sceneSlices
	for _, name := range s.tests {
		spec := testSpec(t, name)
		plan.Workloads = append(plan.Workloads, spec)
	}
	res := &sweep.Result{Header: sweep.Header{
		Schema: sweep.Schema, Build: "v1.2.3", Started: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC), Target: "redis://127.0.0.1:6379",
		Server: probe.Identity{
			Kind: "redis", Version: "7.0.15", Mode: "standalone", Role: "master", Local: true,
			MaxClients: 10_000, ConnectedClients: 1, UsedMemoryBytes: 1_234_567, AppendOnly: "yes", AppendFsync: "everysec", IOThreads: 1,
		},
		Host: sweep.Host{OS: "linux", Arch: "amd64", Cores: 2, Go: "go1.26.0"},
		Plan: plan, Limit: "--max-clients 1000", Clients: 1000,
	}}
	s.measure(t, res)
	d := &Document{Header: &res.Header, Result: res, Curves: res.Curves(), Client: "go-redis"}
	for _, c := range d.Curves {
		d.Analyses = append(d.Analyses, analyze.Analyze(c, analyze.Options{}))
	}
	return d
}

var (
	sceneLock sync.Mutex
	sceneMade = make(map[string]*Document)
)

// sceneDocument returns the document of the scene of that name, which must not
// be changed: measuring takes a while.
func sceneDocument(t testing.TB, name string) *Document {
	t.Helper()
	sceneLock.Lock()
	defer sceneLock.Unlock()
	if sceneMade[name] == nil {
		sceneMade[name] = scenes[name].document(t)
	}
	return sceneMade[name]
}

// testSpec returns the spec of -t NAME with values of three bytes.
func testSpec(t testing.TB, name string) workload.Spec {
	t.Helper()
	specs, err := workload.Tests(name)
	if err != nil {
		t.Fatal(err)
	}
	specs[0].Values.Sizes = []workload.Size{{Min: 3, Max: 3}}
	return specs[0]
}

func (s scene) measure(t testing.TB, res *sweep.Result) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, test := range s.tests {
		for _, depth := range s.depths {
			for pass := range sceneTrials * sceneSlices {
				for _, n := range s.clients {
					if s.stop > 0 && len(res.Slices) == s.stop {
						return
					}
					x := s.throughput(float64(n), float64(depth)) * math.Exp(s.sigma*r.NormFloat64())
					slice := sceneSlice(t, n, depth, x)
					slice.Test, slice.Pass = test, pass+1
					res.Slices = append(res.Slices, slice)
				}
			}
		}
	}
}

// sceneSlice is a quarter of a second at x requests/s, with latencies that are
// distributed exponentially around what Little's law says, and a server that is
// full at 100,000 requests/s.
func sceneSlice(t testing.TB, clients, depth int, x float64) sweep.Slice {
	t.Helper()
	const elapsed = 250 * time.Millisecond
	requests := int64(x * elapsed.Seconds())
	mean := float64(clients*depth) / x * float64(time.Second)
	h := hdrhistogram.New(1, int64(time.Minute), 3)
	const grades = 200
	for i := range grades {
		q := (float64(i) + .5) / grades
		n := requests * int64(i+1) / grades
		n -= requests * int64(i) / grades
		if err := h.RecordValues(int64(mean*(.3-.7*math.Log(1-q)))+1, n); err != nil {
			t.Fatal(err)
		}
	}
	encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	l := new(load.Latency)
	if err := json.Unmarshal(fmt.Appendf(nil, `{"hdr":%q,"sum_ns":%d}`, encoded, int64(mean*float64(requests))), l); err != nil {
		t.Fatal(err)
	}
	busy := math.Min(1, x/100_000) * elapsed.Seconds()
	return sweep.Slice{
		Measurement: &load.Measurement{
			Step: load.Step{Clients: clients, Depth: depth}, Elapsed: elapsed, Requests: requests, Sent: requests, Received: requests,
			Latency: l, Loops: 1, BatchTime: time.Duration(float64(clients) * float64(elapsed)),
		},
		Window: &probe.Window{
			Elapsed:   elapsed,
			Generator: probe.GeneratorWindow{CPUSeconds: .6 * busy},
			Server:    &probe.ServerWindow{Elapsed: elapsed, MainCPUSeconds: &busy, CPUSeconds: &busy, Commands: requests},
		},
	}
}

func writeHTML(t testing.TB, d *Document) string {
	t.Helper()
	var b bytes.Buffer
	if err := htmlReport(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestHTMLGolden holds the page of another tool's numbers and that of a result
// file to their golden files, and the same document to the same bytes.
func TestHTMLGolden(t *testing.T) {
	for name, document := range map[string]func() *Document{
		"plateau":    func() *Document { return scenes["plateau"].document(t) }, // anew each time
		"two-depths": twoDepths,
	} {
		got := writeHTML(t, document())
		if again := writeHTML(t, document()); again != got {
			t.Errorf("%s, the second time:\n%s", name, cmp.Diff(got, again))
		}
		golden.Check(t, name+".html", got)
	}
}

// TestHTMLSelfContained: a page needs nothing from elsewhere and runs nothing.
func TestHTMLSelfContained(t *testing.T) {
	for name := range scenes {
		text := writeHTML(t, sceneDocument(t, name))
		text = strings.ReplaceAll(text, "http://www.w3.org/2000/svg", "") // a name, not a place
		for _, bad := range []string{`<script`, `src=`, `url\(`, `@import`, `https?://`, ` on[a-z]+=`, `<no value>`, `ZgotmplZ`, `NaN`} {
			if found := regexp.MustCompile(bad).FindString(text); found != "" {
				t.Errorf("%s: has %q", name, found)
			}
		}
	}
}

// TestHTMLShows: what a reader looks for is there, in the order in which it
// matters.
func TestHTMLShows(t *testing.T) {
	tests := []struct {
		scene string
		want  []string // in this order
		not   []string
	}{
		{"plateau", []string{
			"Pool size for redis 7.0.15", "A pool of 40 connections", "<dt>knee</dt><dd>40 clients, ",
			"<b>Knee:</b>", "PoolSize:", "throughput against clients", "latency against clients", "latency against throughput", "latency by percentile",
			`<tr class="knee">`, "appendfsync", "everysec", "To repeat it", "poolsweep run redis://127.0.0.1:6379 -t set",
		}, []string{"No answer", "interrupted", "ceiling</dt>"}},
		{"retrograde", []string{"<dt>ceiling</dt>", "<b>Ceiling:</b>"}, []string{"No answer"}},
		{"rising", []string{"No answer", "still rising at 110 clients"}, []string{"A pool of", "PoolSize"}},
		{"noisy", []string{"<code>noisy</code>", "What to do:", `<code class="flag">--trials</code> 5`}, nil},
		{"depths", []string{"SET, pipeline depth 1", "SET, pipeline depth 4", "GET, pipeline depth 16", "SET, pipeline depths 1, 4, 16",
			"GET: throughput against clients, by pipeline depth", "-t set,get", "-P 1,4,16"}, nil},
		{"interrupted", []string{"This is not all that was planned", "1 of 2 sweeps were measured", "SET at depth 1 has fewer than 3 trials at 11 levels"}, nil},
	}
	for _, test := range tests {
		text := writeHTML(t, sceneDocument(t, test.scene))
		rest := text
		for _, want := range test.want {
			i := strings.Index(rest, want)
			if i < 0 {
				t.Errorf("%s: no %q behind what comes before", test.scene, want)
				continue
			}
			rest = rest[i:]
		}
		for _, not := range test.not {
			if strings.Contains(text, not) {
				t.Errorf("%s: has %q", test.scene, not)
			}
		}
	}
}

// TestHTMLParts: what the commands of a mix and the nodes of a cluster did is
// there.
func TestHTMLParts(t *testing.T) {
	d := oneResult(t)
	for _, s := range d.Result.Slices {
		m := s.Measurement
		m.Commands = []load.Part{
			{Name: "GET", Requests: m.Requests * 3 / 4, Latency: m.Latency},
			{Name: "SET", Requests: m.Requests / 4, Latency: m.Latency},
		}
	}
	node := *d.Analyses[0]
	node.Node = "10.0.0.1:7000"
	d.Nodes = [][]*analyze.Analysis{{&node}}
	text := writeHTML(t, d)
	for _, want := range []string{"By command, at 8 clients", `<th scope="row">GET</th><td>75.0</td>`, `<th scope="row">SET</th><td>25.0</td>`,
		"By node, each with its own clients", `<th scope="row">10.0.0.1:7000</th>`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
}

// TestHTMLVerification: a rate is a table, and warnings stand with the verdict.
func TestHTMLVerification(t *testing.T) {
	r := &verify.Result{Pool: 10, Levels: []verify.Level{{Rate: 12_345, Share: .7, Rows: make([]verify.Row, 1)}}}
	s := verification(r)
	if len(s.Tables) != 1 || s.Tables[0].Caption != "At 12,345 requests/s, 70 % of what one client carries" {
		t.Errorf("tables %+v", s.Tables)
	}
	if v := r.Verdict(); len(s.Sentences) != len(v.Sentences)+len(v.Warnings) {
		t.Errorf("%d sentences of %d and %d", len(s.Sentences), len(v.Sentences), len(v.Warnings))
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, &page{Verification: s}); err != nil || !strings.Contains(b.String(), `<section id="verification">`) {
		t.Errorf("no section, error %v", err)
	}
}

// TestHTMLEscapes: what comes from a file or a server is text, never markup.
func TestHTMLEscapes(t *testing.T) {
	d := oneSweep()
	const evil = `<script>alert(1)</script>"'&`
	d.Header.Server.Version, d.Header.Target, d.Remarks = evil, evil, []string{evil}
	d.Analyses[0].Test, d.Curves[0].Test = evil, evil
	d.Analyses[0].Warnings[0].Text = evil
	text := writeHTML(t, d)
	if strings.Contains(text, "<script") {
		t.Error("the page has a script")
	}
	if n := strings.Count(text, "&lt;script&gt;"); n < 6 {
		t.Errorf("the text stands there %d times", n)
	}
}

// TestHTMLOfNothing: a document without a sweep is a page all the same.
func TestHTMLOfNothing(t *testing.T) {
	for name, d := range map[string]*Document{
		"empty":  {},
		"no row": {Curves: make([]analyze.Curve, 1), Analyses: []*analyze.Analysis{analyze.Analyze(analyze.Curve{Test: "get"}, analyze.Options{})}},
		"one step": {
			Curves:   []analyze.Curve{{Test: "get", Points: []analyze.Point{{Clients: 1, Trials: []analyze.Trial{trial(100)}}}}},
			Analyses: []*analyze.Analysis{analyze.Analyze(analyze.Curve{Test: "get", Points: []analyze.Point{{Clients: 1, Trials: []analyze.Trial{trial(100)}}}}, analyze.Options{})},
		},
	} {
		if text := writeHTML(t, d); !strings.Contains(text, "</html>") {
			t.Errorf("%s: no whole page", name)
		}
	}
}

// TestAdvice: each code that is documented has an advice, and no other.
func TestAdvice(t *testing.T) {
	text, err := os.ReadFile("../../docs/reading-a-report.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, m := range regexp.MustCompile("(?m)^### `([a-z-]+)`$").FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, m[1])
		if advice[m[1]] == "" {
			t.Errorf("no advice for %s", m[1])
		}
	}
	for code := range advice {
		if !slices.Contains(documented, code) {
			t.Errorf("advice for %s, which docs/reading-a-report.md does not explain", code)
		}
	}
}

func TestGrouped(t *testing.T) {
	for cell, want := range map[string]string{
		"": "", "999": "999", "1000": "1,000", "1234567": "1,234,567", "1234.5": "1,234.5", "12.5": "12.5", "-1000": "-1000", "NONE": "NONE", "10-20": "10-20",
	} {
		if got := grouped(cell); got != want {
			t.Errorf("%q: %q, want %q", cell, got, want)
		}
	}
}

// TestPlot: each chart of each sweep is in two files, whose names differ.
func TestPlot(t *testing.T) {
	d := sceneDocument(t, "depths")
	folder := filepath.Join(t.TempDir(), "new", "plots")
	names, err := Plot(folder, d)
	if err != nil {
		t.Fatal(err)
	}
	// Two tests at three depths with four charts each, and a surface a test.
	if want := 2 * (2*3*4 + 2); len(names) != want || len(slices.Compact(slices.Sorted(slices.Values(names)))) != want {
		t.Errorf("%d names, want %d different ones: %q", len(names), want, names)
	}
	for _, name := range names {
		if info, err := os.Stat(name); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if want := filepath.Join(folder, "set-depth-16-throughput.svg"); !slices.Contains(names, want) {
		t.Errorf("no %s among %q", want, names)
	}
}

func TestFileName(t *testing.T) {
	for test, want := range map[string]string{
		"SET": "set", "MSET (10 keys)": "mset-10-keys", "../../etc/passwd": "etc-passwd", "": "test", "ключ": "test",
		"HSET __key__ field " + strings.Repeat("x", 99): "hset-key-field-" + strings.Repeat("x", maxFileName-15),
	} {
		if got := fileName(test); got != want {
			t.Errorf("%q: %q, want %q", test, got, want)
		}
	}
}

// TestPlotErrors: a folder that cannot be made is an error.
func TestPlotErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Plot(file, twoDepths()); err == nil || !strings.HasPrefix(err.Error(), "plotting: ") {
		t.Errorf("error %v", err)
	}
	if err := htmlReport(&brokenWriter{10}, twoDepths()); !errors.Is(err, errFull) {
		t.Errorf("error %v", err)
	}
	if err := TerminalCharts(&brokenWriter{10}, twoDepths(), 80); !errors.Is(err, errFull) {
		t.Errorf("error %v", err)
	}
}

// FuzzHTML: whatever names a file has, the page holds none of them as markup.
func FuzzHTML(f *testing.F) {
	f.Add("SET", "redis://x", "note")
	f.Add("</svg><script>", "javascript:alert(1)", "\x00\xff")
	f.Fuzz(func(t *testing.T, test, target, remark string) {
		d := twoDepths()
		d.Remarks = []string{remark}
		d.Header = &sweep.Header{Target: target}
		for i := range d.Analyses {
			d.Analyses[i].Test, d.Curves[i].Test = test, test
		}
		if err := htmlReport(io.Discard, d); err != nil {
			t.Fatal(err)
		}
		if text := writeHTML(t, d); strings.Count(text, "<script") > 0 || strings.Count(text, "</html>") != 1 {
			t.Errorf("markup of %q, %q, %q", test, target, remark)
		}
	})
}
