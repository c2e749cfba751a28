package report

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/arrivals"
	"github.com/poolsweep/poolsweep/internal/golden"
)

// withRates is oneSweep and an open loop after it: 25,000 requests/s keep a p99
// of 2 ms, 37,500 do not, and 50,000 overload the server.
func withRates() *Document {
	d := oneSweep()
	d.Header.Plan.Rates.Arrivals, d.Client = arrivals.Poisson, ""
	load := analyze.UnknownLoad()
	load.ServerMain, load.GeneratorCPU = .4, .9
	trial := func(rate, p99 float64) analyze.RateTrial {
		q := analyze.Quantity(p99)
		return analyze.RateTrial{
			Offered: rate + 10, Achieved: rate, Mean: q / 5, P50: q / 6, P99: q, P999: 2 * q, SlipMean: 1e-5, SlipP99: 1e-4,
			Waited: .05, WaitMean: q / 50, Load: load,
		}
	}
	over := trial(50_000, .8)
	over.Achieved, over.P99, over.P999, over.Missing, over.Failed = 44_000, analyze.Unknown(), analyze.Unknown(), .1, .002
	over.Invalid = []string{analyze.GateErrors}
	late := trial(37_500, .003)
	late.SlipP99 = .002
	d.Rates = []*analyze.RateAnalysis{analyze.AnalyzeRates(analyze.RateCurve{
		Test: "SET", Depth: 1, Clients: 60, Capacity: 50_000,
		Points: []analyze.RatePoint{
			{Rate: 25_000, Trials: []analyze.RateTrial{trial(25_000, .001), trial(25_000, .0011), trial(25_000, .0009)}},
			{Rate: 37_500, Trials: []analyze.RateTrial{late}},
			{Rate: 50_000, Trials: []analyze.RateTrial{over}},
		},
	}, .002)}
	return d
}

func TestRatesGolden(t *testing.T) {
	for _, format := range []string{"table", "markdown"} {
		text := write(t, format, withRates())
		// The rest is that of oneSweep.
		_, text, found := strings.Cut(text, "\nBy offered rate")
		if !found {
			t.Fatalf("%s has no rates", format)
		}
		golden.Check(t, "rates."+format, "By offered rate"+text)
	}
}

// The open loop belongs to the sweep of the same test and depth.
func TestRatesOfAnotherSweep(t *testing.T) {
	d := withRates()
	d.Rates[0].Depth = 16
	for _, format := range []string{"table", "markdown", "html"} {
		if text := write(t, format, d); strings.Contains(text, "By offered rate") {
			t.Errorf("%s shows them", format)
		}
	}
}

func TestRatesHTML(t *testing.T) {
	text := write(t, "html", withRates())
	for _, want := range []string{"By offered rate, over 60 connections", "<th scope=\"row\">37,500</th>", "Highest rate:", "generator-late", "highest"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// A run that ended before all rates were offered says so.
func TestRatesIncomplete(t *testing.T) {
	const all = ""
	for _, tt := range []struct {
		offered int
		change  func(*Document)
		want    string
	}{
		{3, func(*Document) {}, all},
		{5, func(*Document) {}, "SET at depth 1 has 3 of 5 offered rates"},
		{5, func(d *Document) { d.Rates = nil }, "SET at depth 1 has no offered rates"},
		{1, func(d *Document) { d.Header.Plan.Rates.SLOP99 = 1 }, all},
		{5, func(d *Document) { d.Header.Plan.Rates.SLOP99 = 1 }, all}, // the search ends when it has found
		{5, func(d *Document) { d.Header.Plan.Guards.MaxRate = 1 }, all},
	} {
		d := withRates()
		for i := range tt.offered {
			d.Header.Plan.Rates.Offered = append(d.Header.Plan.Rates.Offered, arrivals.Rate{Share: float64(i+1) / 10})
		}
		tt.change(d)
		if got := incomplete(d); tt.want == all && strings.Contains(got, "offered rates") || !strings.Contains(got, tt.want) {
			t.Errorf("%d offered: %q, want %q", tt.offered, got, tt.want)
		}
	}
}

// They survive JSON.
func TestRatesJSON(t *testing.T) {
	d := withRates()
	var back jsonDocument
	if err := json.Unmarshal([]byte(write(t, "json", d)), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d.Rates, back.Rates, sameQuantity); diff != "" {
		t.Errorf("-before +after JSON:\n%s", diff)
	}
}
