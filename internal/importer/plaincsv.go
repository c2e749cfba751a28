package importer

import (
	"encoding/csv"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/poolsweep/poolsweep/analyze"
)

// A plain CSV file has a row for each step, or for each trial of a step, and
// is separated by commas, semicolons or tabs. Lines that begin with # are
// comments. A header names the columns, in any order:
//
//	clients                     also connections, concurrency, threads
//	qps, or qps1, qps2, …       also rps, throughput, tps; numbered: trials
//	test, depth                 name of the test, pipeline depth
//	mean_ms, min_ms, p50_ms, p99_ms, p999_ms
//	                            latencies, also in _us and _s
//	server_cpu_percent          CPU of the server; 100 is one core
//
// Without a header the columns are clients and throughput; what further
// columns mean, trials or latencies, cannot be told. An empty cell is
// unknown.

// A csvColumn is what is known of a column from its name.
type csvColumn struct {
	kind    csvKind
	perUnit float64 // of a latency, its units in a second
}

type csvKind int

const (
	csvUnknown csvKind = iota
	csvUnused          // known, but no part of a Trial
	csvClients
	csvQPS
	csvTest
	csvDepth
	csvMean
	csvMin
	csvP50
	csvP99
	csvP999
	csvServerCPU
)

var csvNames = map[string]csvKind{
	"clients": csvClients, "connections": csvClients, "concurrency": csvClients, "threads": csvClients,
	"qps": csvQPS, "rps": csvQPS, "throughput": csvQPS, "tps": csvQPS, "ops_per_sec": csvQPS, "ops/s": csvQPS, "ops/sec": csvQPS,
	"test": csvTest, "depth": csvDepth, "pipeline": csvDepth,
	"mean": csvMean, "avg": csvMean, "min": csvMin, "p50": csvP50, "p99": csvP99, "p999": csvP999, "p99.9": csvP999,
	"p90": csvUnused, "p95": csvUnused, "max": csvUnused,
	"trial": csvUnused, "median": csvUnused, // follow from the order of the rows and from qps
	"server_cpu_percent": csvServerCPU,
}

var (
	csvNumberedQPS = regexp.MustCompile(`^qps_?\d+$`)
	csvLatency     = regexp.MustCompile(`^(mean|avg|min|max|p[\d.]+)(?:_latency)?_(ms|us|s)$`)
	csvUnits       = map[string]float64{"ms": perSecondMS, "us": perSecondUS, "s": 1}
)

// csvHeading returns what a column of this name holds.
func csvHeading(name string) csvColumn {
	name = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), " ", "_")
	if m := csvLatency.FindStringSubmatch(name); m != nil {
		return csvColumn{csvNames[m[1]], csvUnits[m[2]]}
	}
	if csvNumberedQPS.MatchString(name) {
		return csvColumn{kind: csvQPS}
	}
	kind := csvNames[name]
	if kind >= csvMean && kind <= csvP999 {
		// A latency without its unit.
		kind = csvUnknown
	}
	return csvColumn{kind: kind}
}

// csvHeader returns what the columns hold if fields are a header: they must
// name clients and a throughput.
func csvHeader(fields []string) (columns []csvColumn, ok bool) {
	for _, f := range fields {
		columns = append(columns, csvHeading(f))
	}
	has := func(kind csvKind) bool {
		return slices.ContainsFunc(columns, func(c csvColumn) bool { return c.kind == kind })
	}
	return columns, has(csvClients) && has(csvQPS)
}

// csvFields splits a line; nil when it is not one of two or more fields.
func csvFields(line string) []string {
	// The character that separates is the one behind the first field.
	i := strings.IndexAny(line, ",;\t")
	if i < 0 {
		return nil
	}
	r := csv.NewReader(strings.NewReader(line))
	r.Comma = rune(line[i])
	r.LazyQuotes = true
	r.TrimLeadingSpace = r.Comma != '\t'
	fields, err := r.Read()
	if err != nil {
		return nil
	}
	return fields
}

func detectPlainCSV(head string) bool {
	for line := range strings.Lines(head) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := csvFields(line)
		if len(fields) < 2 {
			return false
		}
		_, header := csvHeader(fields)
		_, clients := positive(fields[0])
		_, qps := positive(fields[1])
		return header || clients && qps
	}
	return false
}

func parsePlainCSV(in *input) {
	base := filepath.Base(in.name)
	r := csvReader{
		in: in, test: strings.TrimSuffix(base, filepath.Ext(base)),
		columns: []csvColumn{{kind: csvClients}, {kind: csvQPS}},
	}
	for in.scan() {
		if strings.HasPrefix(in.text, "#") {
			continue
		}
		fields := csvFields(in.text)
		if len(fields) < 2 {
			in.problem(in.line, "not a row of two or more columns: %.80s", in.text)
			continue
		}
		if columns, ok := csvHeader(fields); ok {
			r.columns, r.headed = columns, true
			r.checkHeader(fields)
			continue
		}
		r.readRow(fields)
	}
}

// A csvReader is the state between two rows of a plain CSV file.
type csvReader struct {
	in      *input
	test    string // name of the test where no column has it
	columns []csvColumn
	headed  bool // a header was seen
	warned  bool // of columns that are not used
}

// checkHeader reports columns that are not used.
func (r *csvReader) checkHeader(fields []string) {
	trials := 0
	for i, c := range r.columns {
		switch c.kind {
		case csvUnknown:
			r.in.problem(r.in.line, "column %q is not known and not used; latencies need their unit, as in p99_ms", fields[i])
		case csvQPS:
			trials++
		}
	}
	latencies := slices.ContainsFunc(r.columns, func(c csvColumn) bool { return c.kind >= csvMean && c.kind <= csvP999 })
	if trials > 1 && latencies {
		r.in.problem(r.in.line, "the latencies are not used: which of the %d trials they belong to is not stated", trials)
	}
}

// readRow reads the row of a step, with one trial or several.
func (r *csvReader) readRow(fields []string) {
	switch {
	case r.headed && len(fields) != len(r.columns):
		r.in.problem(r.in.line, "%d columns under a header of %d", len(fields), len(r.columns))
		return
	case len(fields) > len(r.columns) && !r.warned:
		r.in.problem(r.in.line, "without a header only the first two columns are used, as clients and throughput; "+
			"name them, as in clients,qps1,qps2 or clients,qps,p99_ms")
		r.warned = true
	}
	res := result{test: r.test, depth: 1}
	shared := newTrial(0)
	var throughputs []float64
	for i, c := range r.columns {
		s, ok := strings.TrimSpace(fields[i]), true
		switch c.kind {
		case csvClients:
			res.clients, ok = count(s)
		case csvDepth:
			res.depth, ok = count(s)
		case csvTest:
			if s != "" {
				res.test = s
			}
		case csvQPS:
			var qps float64
			if qps, ok = positive(s); ok {
				throughputs = append(throughputs, qps)
			} else if s == "" {
				ok = true // fewer trials than columns
			}
		default:
			setCSV(&shared, c, s)
		}
		if !ok {
			r.in.problem(r.in.line, "column %d: %q is not %s", i+1, s, csvWanted[c.kind])
			return
		}
	}
	if len(throughputs) == 0 {
		r.in.problem(r.in.line, "no throughput")
	}
	for _, qps := range throughputs {
		res.trial = shared
		if len(throughputs) > 1 {
			res.trial = newTrial(qps)
			res.trial.Load = shared.Load
		}
		res.trial.QPS = qps
		r.in.add(r.in.line, res)
	}
}

// csvWanted says what a column must hold for its row to be used.
var csvWanted = map[csvKind]string{
	csvClients: "a whole number of clients, 1 or more",
	csvDepth:   "a pipeline depth, 1 or more",
	csvQPS:     "a throughput above 0",
}

// setCSV sets the quantity of t that a column holds.
func setCSV(t *analyze.Trial, c csvColumn, s string) {
	switch c.kind {
	case csvMean:
		t.Mean = quantity(s, c.perUnit)
	case csvMin:
		t.LatencyMin = quantity(s, c.perUnit)
	case csvP50:
		t.P50 = quantity(s, c.perUnit)
	case csvP99:
		t.P99 = quantity(s, c.perUnit)
	case csvP999:
		t.P999 = quantity(s, c.perUnit)
	case csvServerCPU:
		t.Load.ServerCPU = quantity(s, 100)
	}
}
