package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"

	"github.com/poolsweep/poolsweep/analyze"
)

// agree fails unless got is want, as far as a change of units and twelve
// digits let it.
func agree(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*math.Abs(want) || math.IsNaN(got) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestAgreement reads every format back: each value is that of the document.
func TestAgreement(t *testing.T) {
	d := manyResults(t)
	if len(d.trials()) != 4*7*resultTrials {
		t.Fatalf("%d trials", len(d.trials()))
	}
	t.Run("csv", func(t *testing.T) { csvAgrees(t, d) })
	t.Run("json", func(t *testing.T) { jsonAgrees(t, d) })
	t.Run("benchfmt", func(t *testing.T) { benchfmtAgrees(t, d) })
	t.Run("hlog", func(t *testing.T) { hlogAgrees(t, d) })
	t.Run("hgrm", func(t *testing.T) { hgrmAgrees(t, oneResult(t)) })
	t.Run("openmetrics", func(t *testing.T) { openMetricsAgrees(t, d) })
	t.Run("markdown", func(t *testing.T) { markdownAgrees(t, d) })
}

func csvAgrees(t *testing.T, d *Document) {
	rows, err := csv.NewReader(strings.NewReader(write(t, "csv", d))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	trials := d.trials()
	if len(rows)-1 != len(trials) {
		t.Fatalf("%d rows, want %d", len(rows)-1, len(trials))
	}
	medians := 0
	for i, row := range rows[1:] {
		cell := make(map[string]string)
		for j, name := range rows[0] {
			cell[name] = row[j]
		}
		number := func(name string) float64 {
			x, err := strconv.ParseFloat(cell[name], 64)
			if err != nil {
				t.Fatal(err)
			}
			return x
		}
		want := trials[i]
		if cell["test"] != want.test || cell["depth"] != strconv.Itoa(want.depth) ||
			cell["clients"] != strconv.Itoa(want.clients) || cell["trial"] != strconv.Itoa(want.index+1) {
			t.Errorf("row %d is of %q", i+1, row)
		}
		agree(t, "qps", number("qps"), want.QPS)
		for name, q := range map[string]analyze.Quantity{
			"mean_ms": want.Mean, "min_ms": want.LatencyMin, "p50_ms": want.P50, "p99_ms": want.P99, "p999_ms": want.P999,
		} {
			agree(t, name, number(name), 1000*float64(q))
		}
		if cell["median"] == "yes" {
			medians++
			agree(t, "median", number("qps"), stepOf(t, d, want).QPS)
		}
	}
	if medians != 4*7 {
		t.Errorf("%d median trials, want one a step", medians)
	}
}

// stepOf returns the step that a trial is of.
func stepOf(t *testing.T, d *Document, r trialRow) analyze.Step {
	t.Helper()
	for _, a := range d.Analyses {
		for _, s := range a.Steps {
			if a.Test == r.test && a.Depth == r.depth && s.Clients == r.clients {
				return s
			}
		}
	}
	t.Fatalf("no step of %d clients", r.clients)
	return analyze.Step{}
}

func jsonAgrees(t *testing.T, d *Document) {
	var back jsonDocument
	if err := json.Unmarshal([]byte(write(t, "json", d)), &back); err != nil {
		t.Fatal(err)
	}
	for i, a := range d.Analyses {
		if b := back.Analyses[i]; b.Knee.Clients != a.Knee.Clients || b.Recommendation.Pool != a.Recommendation.Pool {
			t.Errorf("%s: knee %d, pool %d", b.Test, b.Knee.Clients, b.Recommendation.Pool)
		}
		for j, s := range a.Steps {
			agree(t, "qps", back.Analyses[i].Steps[j].QPS, s.QPS)
			agree(t, "p99_s", float64(back.Analyses[i].Steps[j].P99), float64(s.P99))
		}
	}
}

func benchfmtAgrees(t *testing.T, d *Document) {
	results, trials := readBench(t, write(t, "benchfmt", d)), d.trials()
	if len(results) != len(trials) {
		t.Fatalf("%d results, want %d", len(results), len(trials))
	}
	for i, r := range results {
		want := trials[i]
		if string(r.Name) != stepName(want.test, want.clients, want.depth) {
			t.Errorf("%s of %+v", r.Name, want)
		}
		// The trials of the result file: so many requests in two seconds.
		agree(t, "iterations", float64(r.Iters), 2*want.QPS)
		agree(t, "ns/op", benchValue(t, r, "sec/op"), 1/want.QPS)
		agree(t, "requests/s", benchValue(t, r, "requests/s"), want.QPS)
		agree(t, "p50", benchValue(t, r, "p50-sec/op"), float64(want.P50))
		agree(t, "p99", benchValue(t, r, "p99-sec/op"), float64(want.P99))
		agree(t, "p99.9", benchValue(t, r, "p99.9-sec/op"), float64(want.P999))
	}
}

func hlogAgrees(t *testing.T, d *Document) {
	byTag := make(map[string][]*hdrhistogram.Histogram) // in the order of the trials
	for _, h := range readLog(t, write(t, "hlog", d)) {
		byTag[h.Tag()] = append(byTag[h.Tag()], h)
	}
	for _, want := range d.trials() {
		h := byTag[stepName(want.test, want.clients, want.depth)][want.index]
		agree(t, "requests", float64(h.TotalCount()), float64(want.requests))
		for percentile, q := range map[float64]analyze.Quantity{50: want.P50, 99: want.P99, 99.9: want.P999} {
			agree(t, fmt.Sprintf("p%v", percentile), float64(h.ValueAtPercentile(percentile))/1e9, float64(q))
		}
	}
}

func hgrmAgrees(t *testing.T, d *Document) {
	if !d.Analyses[0].Answer {
		t.Fatalf("no knee: %s", d.Analyses[0].Reason)
	}
	rows := readHgrm(t, write(t, "hgrm", d))
	for _, want := range d.trials() {
		if !want.median || want.clients != d.Analyses[0].Knee.Clients {
			continue
		}
		agree(t, "count", float64(rows[len(rows)-1].count), float64(want.requests))
		for q, v := range map[float64]analyze.Quantity{.5: want.P50, .99: want.P99, .999: want.P999} {
			if got := atQuantile(rows, q); math.Abs(got-1000*float64(v)) > .0005 { // three decimals
				t.Errorf("%v at %v, want %v s", got, q, v)
			}
		}
	}
}

func openMetricsAgrees(t *testing.T, d *Document) {
	samples := openMetricsSamples(t, write(t, "openmetrics", d))
	value := func(family, labels string) float64 {
		v, ok := samples[family+"{"+labels+"}"]
		if !ok {
			t.Fatalf("no %s{%s} in %v", family, labels, samples)
		}
		return v
	}
	for _, a := range d.Analyses {
		labels := fmt.Sprintf("depth=%q, test=%q", strconv.Itoa(a.Depth), a.Test)
		agree(t, "knee", value("poolsweep_knee_clients", labels), float64(a.Knee.Clients))
		agree(t, "peak", value("poolsweep_peak_clients", labels), float64(a.Knee.Peak))
		agree(t, "pool", value("poolsweep_pool_connections", labels), float64(a.Recommendation.Pool))
		for _, s := range a.Steps {
			labels := fmt.Sprintf("clients=%q, %s", strconv.Itoa(s.Clients), labels)
			agree(t, "qps", value("poolsweep_throughput_requests_per_second", labels), s.QPS)
			agree(t, "p50", value("poolsweep_latency_p50_seconds", labels), float64(s.P50))
			agree(t, "p99", value("poolsweep_latency_p99_seconds", labels), float64(s.P99))
			agree(t, "p99.9", value("poolsweep_latency_p999_seconds", labels), float64(s.P999))
		}
	}
	agree(t, "started", samples["poolsweep_run_start_time_seconds"], float64(d.Header.Started.UnixMilli())/1000)
}

// markdownAgrees: the tables are those of the format for terminals, cell by
// cell.
func markdownAgrees(t *testing.T, d *Document) {
	tables := readMarkdown(t, write(t, "markdown", d))
	for i, a := range d.Analyses {
		rows := tables[i]
		if len(rows)-1 != len(a.Steps) {
			t.Fatalf("%d rows, want %d", len(rows)-1, len(a.Steps))
		}
		for j, s := range a.Steps {
			for k, title := range rows[0] {
				for _, c := range columns {
					if escaped(c.title) == title && c.cell(s) != rows[j+1][k] {
						t.Errorf("%s of %d clients: %q, want %q", title, s.Clients, rows[j+1][k], c.cell(s))
					}
				}
			}
		}
	}
}

// TestNoNullList: a list without entries is not null.
func TestNoNullList(t *testing.T) {
	want := map[string]any{"header": nil, "remarks": []any{}, "analyses": []any{}, "surfaces": []any{}, "rates": []any{}}
	var got map[string]any
	if err := json.Unmarshal([]byte(write(t, "json", new(Document))), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
