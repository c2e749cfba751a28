package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/verify"
)

// A VerifyFormat writes what verifying a pool has found.
type VerifyFormat func(io.Writer, *verify.Result) error

// VerifyNamed returns the format of that name: table or json.
func VerifyNamed(name string) (VerifyFormat, error) {
	switch name {
	case "table":
		return verifyTable, nil
	case "json":
		return verifyJSON, nil
	}
	return nil, fmt.Errorf("unknown format %q; the formats of verify are json, table", name)
}

// verifyTable writes a table for each rate, a row a pool, and the verdict.
func verifyTable(w io.Writer, r *verify.Result) error {
	p := &printer{w: w}
	rounds := "one round"
	if r.Rounds > 1 {
		rounds = fmt.Sprintf("median of %d rounds", r.Rounds)
	}
	p.paragraph(fmt.Sprintf("%s through go-redis, %s arrivals, %s of %v; latency from when a request was due",
		r.Workload, r.Arrivals, rounds, r.Duration), "")
	p.paragraph(fmt.Sprintf("one client carries %s requests/s with %d connections in a closed loop (of a core: client %s, server %s)",
		throughput(analyze.Quantity(r.Capacity.QPS)), r.Pool, cores(r.Capacity.ClientCPU), cores(r.Capacity.ServerMain)), "")
	v := r.Verdict()
	for _, l := range r.Levels {
		p.printf("\nAt %s requests/s, %s %% of what this client carries\n", throughput(analyze.Quantity(l.Rate)), percent(l.Share, 0))
		grid(p, verifyColumns, l.Rows, func(row verify.Row) string { return verifyMark(r, v, l, row) })
	}
	p.printf("\n")
	p.sentences(v.Sentences)
	for _, text := range v.Warnings {
		p.paragraph("Warning: "+text+".", "    ")
	}
	return p.err
}

func verifyJSON(w io.Writer, r *verify.Result) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		*verify.Result
		Verdict verify.Verdict `json:"verdict"`
	}{r, r.Verdict()})
}

// cores prints a share of a core in percent.
func cores(q analyze.Quantity) string {
	if !q.Known() {
		return "unknown"
	}
	return percent(q, 0) + " %"
}

var verifyColumns = []column[verify.Row]{
	{"pool", func(r verify.Row) string { return strconv.Itoa(r.Pool) }},
	{"p50 ms", func(r verify.Row) string { return milliseconds(r.P50) }},
	{"p99 ms", func(r verify.Row) string { return milliseconds(r.P99) }},
	{"forecast", func(r verify.Row) string { return milliseconds(r.Predicted.Response99) }},
	{"p99.9 ms", func(r verify.Row) string { return milliseconds(r.P999) }},
	{"spread %", func(r verify.Row) string { return percent(r.Spread, 0) }},
	{"waited %", func(r verify.Row) string { return percent(r.WaitShare, 1) }},
	{"forecast", func(r verify.Row) string { return percent(r.Predicted.WaitProbability, 1) }},
	{"wait ms", func(r verify.Row) string { return milliseconds(r.Wait) }},
	{"timeouts", func(r verify.Row) string { return countOf(r.Timeouts) }},
	{"dropped", func(r verify.Row) string { return countOf(r.Dropped) }},
	{"answered %", func(r verify.Row) string { return percent(analyze.Quantity(r.Achieved()), 0) }},
	{"late ms", func(r verify.Row) string { return milliseconds(r.SlipP99) }},
	{"client %", func(r verify.Row) string { return percent(r.ClientCPU, 0) }},
	{"server %", func(r verify.Row) string {
		if r.ServerMain.Known() {
			return percent(r.ServerMain, 0)
		}
		return percent(r.ServerCPU, 0)
	}},
}

// verifyMark says what a row is.
func verifyMark(r *verify.Result, v verify.Verdict, l verify.Level, row verify.Row) string {
	text := ""
	add := func(s string) {
		if text != "" {
			text += ", "
		}
		text += s
	}
	if row.Pool == v.Pool && l.Rate == v.Rate {
		add("verified")
	}
	if row.Pool == r.Pool && r.Swept {
		add("sweep")
	}
	if row.Overloaded() {
		add("(overloaded)")
	}
	if row.Late() {
		add("(generator late)")
	}
	if text == "" {
		return ""
	}
	return "< " + text
}

// countOf prints how often something bad happened, nothing for never.
func countOf(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
