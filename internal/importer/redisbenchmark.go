package importer

import (
	"encoding/csv"
	"regexp"
	"slices"
	"strings"

	"github.com/poolsweep/poolsweep/analyze"
)

// redis-benchmark and valkey-benchmark print the same, in three ways: a block
// for each test, one line for each test (-q), or CSV. A transcript of a shell
// session holds any of them behind the commands typed, and perhaps the CPU
// that the author read off another window. All of it is read by one machine,
// line by line; lines of other programs are passed over.
//
// No version prints the pipeline depth, and -q and --csv do not print the
// clients: both are taken from the command where there is one.

var (
	benchmarkTitle   = regexp.MustCompile(`^====== (.+) ======$`)
	benchmarkCSVRow  = regexp.MustCompile(`(?m)^"(test","rps"|[^"\n]*[^"\d.\n][^"\n]*","[\d.]+")`)
	benchmarkResult  = regexp.MustCompile(`^(?:(.+): +)?(\S+) requests per second(?:, p50=(\S+) msec)?`)
	benchmarkRunning = regexp.MustCompile(`\w: rps=`)
	benchmarkClients = regexp.MustCompile(`^(\S+) parallel clients$`)
	benchmarkCPU     = regexp.MustCompile(`^#\s*server CPU:\s*(\S+?)\s*%`)
	benchmarkError   = regexp.MustCompile(`^(Error|ERR |-ERR|Could not connect|All clients disconnected)`)
)

func detectRedisBenchmark(head string) bool {
	return strings.Contains(head, " requests per second") ||
		strings.Contains(head, " parallel clients") ||
		benchmarkRunning.MatchString(head) ||
		benchmarkCSVRow.MatchString(head)
}

// A benchmarkReader is the state between two lines of redis-benchmark.
type benchmarkReader struct {
	in *input

	// From the command last seen; 0 when there was none.
	clients, depth int

	// The server CPU that was written down for what comes next. It belongs
	// to one command: cpuNew says that no result has used it yet, so that it
	// is still good behind the next command.
	cpu    analyze.Quantity
	cpuNew bool

	block      *benchmarkBlock
	csvColumns []string // of the CSV header last seen
}

// A benchmarkBlock is one test in the text output.
type benchmarkBlock struct {
	test    string
	line    int
	clients int // "N parallel clients"; 0 before
	trial   analyze.Trial
	pending bool // trial waits for the latencies behind it
	done    bool // has had a throughput

	histogram histogram
	columns   []string // heading of the latency summary
}

func parseRedisBenchmark(in *input) {
	r := benchmarkReader{in: in, cpu: analyze.Unknown()}
	for in.scan() {
		r.readLine(in.text)
	}
	r.endBlock()
}

func (r *benchmarkReader) readLine(text string) {
	if args, ok := command(text, "redis-benchmark", "valkey-benchmark"); ok {
		r.endBlock()
		r.startCommand(args)
		return
	}
	if m := benchmarkCPU.FindStringSubmatch(text); m != nil {
		r.endBlock()
		r.cpu, r.cpuNew = quantity(m[1], 100), true
		return
	}
	if m := benchmarkTitle.FindStringSubmatch(text); m != nil {
		r.endBlock()
		r.block = &benchmarkBlock{test: m[1], line: r.in.line}
		return
	}
	if m := benchmarkResult.FindStringSubmatch(text); m != nil {
		r.readResult(m[1], m[2], m[3])
		return
	}
	switch {
	case benchmarkRunning.MatchString(text):
		// Progress.
	case strings.HasPrefix(text, `"`):
		r.readCSV(text)
	case benchmarkError.MatchString(text):
		r.in.problem(r.in.line, "redis-benchmark reports: %.200s", text)
	case r.block != nil:
		r.readBlock(r.block, text)
	}
}

// startCommand takes clients and depth from a command. Both have defaults, so
// a command without them states them, too.
func (r *benchmarkReader) startCommand(args []string) {
	r.clients, r.depth = 50, 1
	if s, ok := flagValue(args, "-c"); ok {
		// A count that is no number (a shell variable) is unknown, not 50.
		r.clients, _ = count(s)
	}
	if s, ok := flagValue(args, "-P"); ok {
		if r.depth, ok = count(s); !ok {
			r.in.problem(r.in.line, "pipeline depth %q is not a number; 1 is assumed", s)
		}
	}
	if !r.cpuNew {
		r.cpu = analyze.Unknown()
	}
	r.csvColumns = nil
}

// readResult reads a throughput: the summary of a block, the last line of a
// block of old versions (name is empty), or a line of -q.
func (r *benchmarkReader) readResult(name, qps, p50 string) {
	b := r.block
	if b == nil && (name == "" || name == "throughput summary") {
		r.in.problem(r.in.line, "a throughput without the name of its test")
		return
	}
	v, ok := positive(qps)
	if !ok {
		r.in.problem(r.in.line, "throughput %q is not a number above 0", qps)
		if b != nil {
			b.done = true
		}
		return
	}
	t := newTrial(v)
	switch {
	case b != nil && name == "throughput summary":
		t.P999 = b.histogram.fine(99.9)
		b.trial, b.pending, b.done = t, true, true
	case b != nil && name == "":
		t.P50, t.P99, t.P999 = b.histogram.coarse(50), b.histogram.coarse(99), b.histogram.coarse(99.9)
		b.histogram, b.done = histogram{}, true
		r.add(r.in.line, b.test, b.clients, t)
	default:
		r.endBlock()
		t.P50 = quantity(p50, perSecondMS)
		r.add(r.in.line, name, 0, t)
	}
}

// readBlock reads a line inside a block that is not its throughput.
func (r *benchmarkReader) readBlock(b *benchmarkBlock, text string) {
	if m := benchmarkClients.FindStringSubmatch(text); m != nil {
		n, ok := count(m[1])
		if !ok {
			r.in.problem(r.in.line, "%q is not a number of clients", m[1])
		}
		b.clients = n
		return
	}
	if b.histogram.readLine(text) {
		return
	}
	fields := strings.Fields(text)
	switch {
	case !b.pending:
	case slices.Contains(fields, "avg") && slices.Contains(fields, "p99"):
		b.columns = fields
	case len(b.columns) > 0 && len(b.columns) == len(fields):
		for i, c := range b.columns {
			setLatency(&b.trial, c, quantity(fields[i], perSecondMS))
		}
		r.endBlock()
	}
}

// setLatency sets the latency that redis-benchmark calls name; others than
// those of a Trial are passed over.
func setLatency(t *analyze.Trial, name string, q analyze.Quantity) {
	switch name {
	case "avg":
		t.Mean = q
	case "min":
		t.LatencyMin = q
	case "p50":
		t.P50 = q
	case "p99":
		t.P99 = q
	}
}

// endBlock hands over the trial that waits for its latencies, and reports a
// block without a throughput.
func (r *benchmarkReader) endBlock() {
	b := r.block
	r.block = nil
	switch {
	case b == nil:
	case b.pending:
		r.add(b.line, b.test, b.clients, b.trial)
	case !b.done:
		r.in.problem(b.line, "%s has no throughput; was the run interrupted?", b.test)
	}
}

// readCSV reads the header or a row of --csv. Versions before 6.2 print no
// header and two columns, test and throughput.
func (r *benchmarkReader) readCSV(text string) {
	fields, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil || len(fields) < 2 {
		r.in.problem(r.in.line, "not a row of redis-benchmark --csv: %.80s", text)
		return
	}
	if fields[0] == "test" && fields[1] == "rps" {
		r.csvColumns = fields
		return
	}
	qps, ok := positive(fields[1])
	if !ok || fields[0] == "" {
		r.in.problem(r.in.line, "throughput %q of %q is not a number above 0", fields[1], fields[0])
		return
	}
	if r.csvColumns != nil && len(fields) != len(r.csvColumns) {
		r.in.problem(r.in.line, "%d columns under a header of %d", len(fields), len(r.csvColumns))
		return
	}
	t := newTrial(qps)
	for i, c := range r.csvColumns {
		if name, ok := strings.CutSuffix(c, "_latency_ms"); ok {
			setLatency(&t, name, quantity(fields[i], perSecondMS))
		}
	}
	r.endBlock()
	r.add(r.in.line, fields[0], 0, t)
}

// add hands over a result; clients is 0 where the output does not state it.
func (r *benchmarkReader) add(line int, test string, clients int, t analyze.Trial) {
	if clients == 0 {
		clients = r.clients
	}
	t.Load.ServerCPU = r.cpu
	r.cpuNew = false
	r.in.add(line, result{test: test, depth: r.depth, clients: clients, trial: t})
}
