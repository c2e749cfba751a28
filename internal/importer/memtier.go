package importer

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/poolsweep/poolsweep/analyze"
)

// memtier_benchmark measures a mix of commands and prints a row for each and
// one for all, "Totals". The connections are shared by the mix, so the curve
// is that of the totals; the commands of the mix are in the test's name.

// A memtierRun is what one table of results states.
type memtierRun struct {
	title    string // "ALL STATS", "RUN #1 RESULTS", …
	line     int
	commands []memtierCommand
	total    analyze.Trial // QPS is 0 before the row was seen
}

// A memtierCommand is a row of a table.
type memtierCommand struct {
	name string // as memtier prints it: "Sets"
	qps  float64
}

// test returns the name of the mix: "memtier SET+GET 1:10".
func (run *memtierRun) test() string {
	// Text and JSON list commands in different orders. SET comes before GET,
	// as in --ratio.
	first := []string{"Gets", "Sets"}
	slices.SortFunc(run.commands, func(a, b memtierCommand) int {
		return cmp.Or(slices.Index(first, b.name)-slices.Index(first, a.name), cmp.Compare(a.name, b.name))
	})
	var names []string
	for _, c := range run.commands {
		names = append(names, strings.TrimSuffix(strings.ToUpper(c.name), "S"))
	}
	name := strings.TrimSpace("memtier " + strings.Join(names, "+"))
	if len(run.commands) == 2 {
		if a, b, ok := smallRatio(run.commands[0].qps, run.commands[1].qps); ok {
			name += fmt.Sprintf(" %d:%d", a, b)
		}
	}
	return name
}

// add takes a row of the table.
func (run *memtierRun) add(name string, t analyze.Trial) {
	switch {
	case name == "Totals":
		run.total = t
	case t.QPS > 0:
		run.commands = append(run.commands, memtierCommand{name, t.QPS})
	}
}

// smallRatio returns whole numbers up to 20 whose ratio is x / y to within
// 1 %, the smallest first. Text output does not state the --ratio, but two
// mixes must not become trials of one test.
func smallRatio(x, y float64) (a, b int, ok bool) {
	for b = 1; b <= 20; b++ {
		r := math.Round(x / y * float64(b))
		if r >= 1 && r <= 20 && math.Abs(r/float64(b)/(x/y)-1) < 0.01 {
			return int(r), b, true
		}
	}
	return 0, 0, false
}

// addMemtier hands over the runs of one call of memtier. With --run-count and
// --print-all-runs each run has a table, and is a trial. Without the latter
// only the best, the worst and the average are printed: the average is used,
// as picked runs are no trials.
func addMemtier(in *input, runs []memtierRun, clients, depth int) {
	single := slices.ContainsFunc(runs, func(run memtierRun) bool { return strings.HasPrefix(run.title, "RUN #") })
	slices.SortStableFunc(runs, func(a, b memtierRun) int { return cmp.Compare(a.line, b.line) })
	for _, run := range runs {
		average := strings.HasPrefix(run.title, "AGGREGATED AVERAGE")
		switch {
		case strings.HasPrefix(run.title, "BEST RUN"), strings.HasPrefix(run.title, "WORST RUN"):
			continue
		case average && single:
			continue
		case average:
			in.problem(run.line, "only the average of several runs is in the file; --print-all-runs would give a trial for each")
		}
		in.add(run.line, result{test: run.test(), depth: depth, clients: clients, trial: run.total})
	}
}

var (
	memtierCount   = regexp.MustCompile(`^(\S+)\s+(Threads|Connections per thread)$`)
	memtierTitle   = regexp.MustCompile(`^(ALL STATS|RUN #\d+ RESULTS|BEST RUN RESULTS|WORST RUN RESULTS|AGGREGATED AVERAGE RESULTS.*)$`)
	memtierColumns = regexp.MustCompile(`\s{2,}`)
)

func detectMemtier(head string) bool {
	return strings.Contains(head, "Connections per thread") ||
		strings.Contains(head, "Ops/sec") && strings.Contains(head, "KB/sec")
}

// A memtierReader is the state between two lines of memtier's text output.
type memtierReader struct {
	in      *input
	depth   int // from the command last seen; the output does not state it
	threads int
	each    int // connections per thread
	runs    []memtierRun
	columns []string // heading of the table that is read; nil outside
	title   string
}

func parseMemtier(in *input) {
	r := memtierReader{in: in}
	for in.scan() {
		r.readLine(in.text)
	}
	r.end()
}

func (r *memtierReader) readLine(text string) {
	if args, ok := command(text, "memtier_benchmark"); ok {
		r.end()
		r.depth = 1
		if s, ok := flagValue(args, "--pipeline"); ok {
			r.depth, _ = count(s)
		}
		return
	}
	if m := memtierCount.FindStringSubmatch(text); m != nil {
		r.readCount(m[1], m[2])
		return
	}
	if memtierTitle.MatchString(text) {
		r.title, r.columns = text, nil
		return
	}
	fields := strings.Fields(text)
	switch {
	case fields[0] == "Type" && len(fields) > 1 && fields[1] == "Ops/sec":
		r.columns = memtierColumns.Split(text, -1)
		r.runs = append(r.runs, memtierRun{title: cmp.Or(r.title, "ALL STATS"), line: r.in.line})
	case r.columns != nil && len(fields) == len(r.columns):
		r.readRow(fields)
	}
}

// readCount reads a line of the head of the output, which begins with the
// threads.
func (r *memtierReader) readCount(number, what string) {
	n, ok := count(number)
	if !ok {
		r.in.problem(r.in.line, "%q is not a number of %s", number, strings.ToLower(what))
	}
	if what == "Threads" {
		r.end()
		r.threads = n
	} else {
		r.each = n
	}
}

// readRow reads a row of the table, fields as many as columns.
func (r *memtierReader) readRow(fields []string) {
	run := &r.runs[len(r.runs)-1]
	qps, ok := positive(fields[1])
	if !ok && fields[0] == "Totals" {
		r.in.problem(r.in.line, "throughput %q is not a number above 0", fields[1])
	}
	t := newTrial(qps)
	for i, c := range r.columns {
		q := quantity(fields[i], perSecondMS)
		switch c {
		case "Latency", "Avg. Latency":
			t.Mean = q
		case "p50 Latency":
			t.P50 = q
		case "p99 Latency":
			t.P99 = q
		case "p99.9 Latency":
			t.P999 = q
		}
	}
	run.line = r.in.line
	run.add(fields[0], t)
	if fields[0] == "Totals" {
		r.columns = nil
	}
}

// end hands over what was read of one call of memtier.
func (r *memtierReader) end() {
	whole := r.runs[:0]
	for _, run := range r.runs {
		if run.total.QPS > 0 {
			whole = append(whole, run)
		}
	}
	addMemtier(r.in, whole, r.threads*r.each, r.depth)
	*r = memtierReader{in: r.in, depth: r.depth}
}
