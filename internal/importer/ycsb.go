package importer

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/poolsweep/poolsweep/analyze"
)

// A YCSB client prints status lines while it runs and a summary at its end.
// Several clients often drive one server together, side by side; in one file
// their throughputs add up to one trial. Clients that ran one after another,
// as the times of their status lines show, are trials of their own. A client
// has a connection for each of its threads.

var (
	ycsbStatus = regexp.MustCompile(`^(?:(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[:.,](\d{3}) )?(\d+) sec: (\d+) operations;(?: (\S+) current ops/sec;)?(.*)`)
	ycsbGroup  = regexp.MustCompile(`\[([^\[\]:\s]+): Count=(\d+), Max=[^,]*, Min=([^,]*), Avg=([^,\]]*)([^\]]*)\]`)
	ycsbRow    = regexp.MustCompile(`^\[([^\]]+)\], ([^,]+), (\S+)$`)
)

// maxYCSBClients bounds the search for the client that printed a line.
const maxYCSBClients = 1000

func detectYCSB(head string) bool {
	return strings.Contains(head, " current ops/sec;") || strings.Contains(head, "[OVERALL], ")
}

// A ycsbClient is what one client printed.
type ycsbClient struct {
	line    int       // of its first status line, or its summary
	start   time.Time // zero when the lines are without time
	end     time.Time
	elapsed int     // seconds, in the last status line
	done    float64 // operations, in the last status line
	qps     float64 // its throughput so far, 0 when not known
	threads int     // 0 when not known
	ops     map[string]*ycsbOperation

	firstElapsed int
	firstDone    float64
}

// A ycsbOperation is what a client measured of one kind of operation.
type ycsbOperation struct {
	count  float64
	sumUS  float64 // of all latencies
	minUS  float64 // 0 is unknown
	p50    analyze.Quantity
	p99    analyze.Quantity
	p999   analyze.Quantity
	blocks int // measurements; percentiles hold only for a single one
}

// A ycsbReader is the state between two lines of YCSB.
type ycsbReader struct {
	in        *input
	threads   int // from the command line last seen
	status    []*ycsbClient
	summaries []*ycsbClient
}

func parseYCSB(in *input) {
	r := ycsbReader{in: in}
	for in.scan() {
		r.readLine(in.text)
	}
	r.finish()
}

func (r *ycsbReader) readLine(text string) {
	if m := ycsbStatus.FindStringSubmatch(text); m != nil {
		r.readStatus(m)
		return
	}
	if m := ycsbRow.FindStringSubmatch(text); m != nil {
		r.readSummary(m[1], m[2], m[3])
		return
	}
	if strings.HasPrefix(text, "Command line:") {
		if s, ok := flagValue(strings.Fields(text), "-threads"); ok {
			r.threads, _ = count(s)
		}
	}
}

// readStatus reads a status line. The operations of each kind are those since
// the line before.
func (r *ycsbReader) readStatus(m []string) {
	elapsed, err1 := strconv.Atoi(m[3])
	done, err2 := strconv.ParseFloat(m[4], 64)
	if err1 != nil || err2 != nil || elapsed < 0 || elapsed > 1e9 {
		r.in.problem(r.in.line, "status line with impossible numbers: %.80s", r.in.text)
		return
	}
	qps, ok := positive(m[5])
	if !ok {
		// The first status line has no throughput, one in a pause 0.
		if m[5] != "" && m[5] != "0" && m[5] != "0.0" {
			r.in.problem(r.in.line, "throughput %q is not a number above 0", m[5])
		}
		return
	}
	var now time.Time
	if m[1] != "" {
		// The zero time, unknown, when it cannot be read.
		now, _ = time.Parse("2006-01-02 15:04:05.000", m[1]+"."+m[2])
	}
	c := r.client(elapsed, done, qps, now)
	c.end = now
	if c.elapsed > c.firstElapsed && c.done > c.firstDone {
		c.qps = (c.done - c.firstDone) / float64(c.elapsed-c.firstElapsed)
	}
	for _, g := range ycsbGroup.FindAllStringSubmatch(m[6], -1) {
		n, ok := positive(g[2])
		mean, err := strconv.ParseFloat(g[4], 64)
		if !ok || err != nil || !(mean > 0) || math.IsInf(mean, 0) {
			continue
		}
		if g[1] == "CLEANUP" {
			// Each thread cleans up once, at its end.
			c.threads, _ = count(g[2])
			continue
		}
		op := c.op(g[1])
		op.add(n, mean)
		op.lower(g[3])
		for field := range strings.SplitSeq(g[5], ",") {
			percentile, value, _ := strings.Cut(strings.TrimSpace(field), "=")
			op.setPercentile(percentile, quantity(value, perSecondUS))
		}
	}
}

// client returns the client that printed a status line, with the line's
// numbers. It is one already known when the line counts on from its last one.
func (r *ycsbReader) client(elapsed int, done, qps float64, now time.Time) *ycsbClient {
	for _, c := range r.status {
		seconds := float64(elapsed - c.elapsed)
		expected := qps * seconds
		// Seconds are whole numbers and can be off by one.
		if seconds > 0 && done > c.done && done-c.done < 2*(expected+qps) && done-c.done > (expected-qps)/2 {
			c.elapsed, c.done = elapsed, done
			return c
		}
	}
	if len(r.status) == maxYCSBClients {
		r.in.problem(r.in.line, "more than %d clients, the rest was not read", maxYCSBClients)
		r.in.full = true
	}
	c := &ycsbClient{
		line: r.in.line, elapsed: elapsed, done: done, qps: qps, threads: r.threads,
		firstElapsed: elapsed, firstDone: done, ops: make(map[string]*ycsbOperation),
	}
	if !now.IsZero() {
		c.start = now.Add(-time.Duration(elapsed) * time.Second)
	}
	r.status = append(r.status, c)
	return c
}

// readSummary reads a row of a summary: "[READ], AverageLatency(us), 54.0".
func (r *ycsbReader) readSummary(what, name, value string) {
	v, ok := positive(value)
	if what == "OVERALL" {
		switch {
		case name == "RunTime(ms)":
			r.summaries = append(r.summaries, &ycsbClient{
				line: r.in.line, threads: r.threads, ops: make(map[string]*ycsbOperation),
			})
		case name == "Throughput(ops/sec)" && !ok:
			r.in.problem(r.in.line, "throughput %q is not a number above 0", value)
		case name == "Throughput(ops/sec)" && len(r.summaries) > 0:
			r.summaries[len(r.summaries)-1].qps = v
		}
		return
	}
	if len(r.summaries) == 0 || !ok {
		return
	}
	c := r.summaries[len(r.summaries)-1]
	switch {
	case strings.HasPrefix(name, "Return=") && name != "Return=OK" && name != "Return=0":
		r.in.problem(r.in.line, "%s operations of %s ended with %s; they count in the throughput", value, what, strings.TrimPrefix(name, "Return="))
	case what == "CLEANUP":
		if name == "Operations" {
			c.threads, _ = count(value)
		}
	case name == "Operations":
		c.op(what).count = v
		c.op(what).blocks = 1
	case name == "AverageLatency(us)":
		c.op(what).sumUS = v * c.op(what).count
	case name == "MinLatency(us)":
		c.op(what).lower(value)
	case strings.HasSuffix(name, "PercentileLatency(us)"):
		c.op(what).setPercentile(strings.TrimRight(strings.TrimSuffix(name, "PercentileLatency(us)"), "thsnrd"), quantity(value, perSecondUS))
	}
}

// op returns the client's measurements of one kind of operation.
func (c *ycsbClient) op(name string) *ycsbOperation {
	if c.ops[name] == nil {
		u := analyze.Unknown()
		c.ops[name] = &ycsbOperation{p50: u, p99: u, p999: u}
	}
	return c.ops[name]
}

// add takes n more operations with their mean in µs.
func (o *ycsbOperation) add(n, meanUS float64) {
	o.count += n
	o.sumUS += n * meanUS
	o.blocks++
}

// lower takes a minimum in µs.
func (o *ycsbOperation) lower(s string) {
	if v, ok := positive(s); ok && (o.minUS == 0 || v < o.minUS) {
		o.minUS = v
	}
}

// setPercentile sets the percentile that is named, if a Trial has it.
func (o *ycsbOperation) setPercentile(name string, q analyze.Quantity) {
	switch name {
	case "50":
		o.p50 = q
	case "99":
		o.p99 = q
	case "99.9":
		o.p999 = q
	}
}

// finish hands over the trials.
func (r *ycsbReader) finish() {
	clients := r.status
	// Summaries are of the whole run and better, when each client has one.
	if len(r.summaries) > 0 && len(r.summaries) >= len(clients) {
		if len(clients) == len(r.summaries) {
			for i, c := range clients {
				r.summaries[i].start, r.summaries[i].end = c.start, c.end
				if r.summaries[i].threads == 0 {
					r.summaries[i].threads = c.threads
				}
			}
		}
		clients = r.summaries
	}
	for _, side := range sideBySide(clients) {
		r.add(side)
	}
}

// sideBySide groups clients that ran at the same time: those that share at
// least half of the shorter one's time with the first of the group. Clients
// without times all count as side by side.
func sideBySide(clients []*ycsbClient) [][]*ycsbClient {
	var groups [][]*ycsbClient
	for _, c := range clients {
		i := slices.IndexFunc(groups, func(g []*ycsbClient) bool {
			first := g[0]
			if first.start.IsZero() || c.start.IsZero() {
				return true
			}
			shared := min(first.end.Sub(c.start), c.end.Sub(first.start), c.end.Sub(c.start), first.end.Sub(first.start))
			return 2*shared >= min(first.end.Sub(first.start), c.end.Sub(c.start))
		})
		if i < 0 {
			groups = append(groups, nil)
			i = len(groups) - 1
		}
		groups[i] = append(groups[i], c)
	}
	return groups
}

// add hands over the trial of clients that ran side by side.
func (r *ycsbReader) add(clients []*ycsbClient) {
	line := clients[0].line
	qps, threads, timed := 0.0, 0, true
	ops := make(map[string]*ycsbOperation)
	for _, c := range clients {
		if c.qps == 0 {
			r.in.problem(c.line, "a client without a throughput; those beside it are not used")
			return
		}
		qps += c.qps
		timed = timed && !c.start.IsZero()
		if threads >= 0 && c.threads > 0 {
			threads += c.threads
		} else {
			threads = -1
		}
		for name, op := range c.ops {
			if !ycsbCounts(name) {
				continue
			}
			if ops[name] == nil {
				ops[name] = &ycsbOperation{}
			}
			ops[name].merge(op)
		}
	}
	if len(clients) > 1 && !timed {
		r.in.problem(line, "%d clients are taken for running side by side, their throughputs added; "+
			"if they ran one after another, give each a file of its own", len(clients))
	}
	if r.in.clients > 0 || threads < 0 {
		// N=FILE is all clients together; what the user states comes before
		// what is inferred from the clean-up.
		threads = 0
	}
	test := strings.TrimSpace("YCSB " + strings.Join(slices.Sorted(maps.Keys(ops)), "+"))
	t := newTrial(qps)
	setYCSBLatencies(&t, ops)
	r.in.add(line, result{test: test, clients: threads, trial: t})
}

// ycsbCounts reports whether the name is that of an operation on the server
// that is counted once.
func ycsbCounts(name string) bool {
	return name != "CLEANUP" && name != "READ-MODIFY-WRITE" &&
		!strings.HasPrefix(name, "TOTAL_GC") && !strings.HasPrefix(name, "Intended-") && !strings.HasSuffix(name, "-FAILED")
}

// merge adds p, whose percentiles o takes over when it is the first.
func (o *ycsbOperation) merge(p *ycsbOperation) {
	if o.blocks == 0 {
		o.p50, o.p99, o.p999, o.minUS = p.p50, p.p99, p.p999, p.minUS
	}
	if p.minUS < o.minUS {
		o.minUS = p.minUS
	}
	o.count += p.count
	o.sumUS += p.sumUS
	o.blocks += p.blocks
}

// setYCSBLatencies sets the latencies of t over all operations. Means and
// minima can be merged, percentiles cannot: they are known only when there
// was one measurement of one kind of operation.
func setYCSBLatencies(t *analyze.Trial, ops map[string]*ycsbOperation) {
	// In a fixed order: the sum of floats depends on it.
	var all *ycsbOperation
	for _, name := range slices.Sorted(maps.Keys(ops)) {
		if all == nil {
			first := *ops[name]
			all = &first
		} else {
			all.merge(ops[name])
		}
	}
	if all == nil || !(all.count > 0) || !(all.sumUS > 0) || math.IsInf(all.sumUS, 0) {
		return
	}
	t.Mean = analyze.Quantity(all.sumUS / all.count / perSecondUS)
	if all.minUS > 0 {
		t.LatencyMin = analyze.Quantity(all.minUS / perSecondUS)
	}
	if all.blocks == 1 {
		t.P50, t.P99, t.P999 = all.p50, all.p99, all.p999
	}
}
