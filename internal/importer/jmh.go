package importer

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// JMH ends in a table of scores. What it calls the error is half of the 99.9 %
// confidence interval of the mean of Cnt iterations (Student's t), so mean
// and standard deviation of the iterations are known though they themselves
// are not: jmhTrials. The table does not state the threads; they are taken
// from the head of the log, or from a parameter column with such a name.

var (
	jmhHeader  = regexp.MustCompile(`(?m)^Benchmark\s.*\bMode\b.*\bScore\b`)
	jmhThreads = regexp.MustCompile(`^# Threads: (\d+) thread`)
	jmhModes   = []string{"thrpt", "avgt", "sample", "ss"}
	jmhClients = []string{"(clients)", "(connections)", "(threads)", "(concurrency)", "(poolSize)"}
)

// jmhUnits are the units of a throughput, in operations per second.
var jmhUnits = map[string]float64{
	"ops/ns": 1e9, "ops/us": 1e6, "ops/ms": 1e3, "ops/s": 1,
	"ops/min": 1.0 / 60, "ops/hr": 1.0 / 3600, "ops/day": 1.0 / 86400,
}

func detectJMH(head string) bool {
	return jmhHeader.MatchString(head) || strings.Contains(head, "# JMH version")
}

// A jmhReader is the state between two lines of a JMH log.
type jmhReader struct {
	in      *input
	threads int    // "# Threads:", 0 when missing or not the same all along
	seen    bool   // a "# Threads:" was seen
	before  string // the line before
	heading string // the comment over the table, which tells tables apart
	columns []string
	told    bool // a Problem says how errors are read
}

func parseJMH(in *input) {
	r := jmhReader{in: in}
	for in.scan() {
		r.readLine(in.text)
		r.before = in.text
	}
}

func (r *jmhReader) readLine(text string) {
	if m := jmhThreads.FindStringSubmatch(text); m != nil {
		n, _ := count(m[1])
		if r.seen && n != r.threads {
			n = 0
		}
		r.threads, r.seen = n, true
		return
	}
	if jmhHeader.MatchString(text) {
		r.columns = strings.Fields(text)
		r.heading = ""
		if h, ok := strings.CutPrefix(r.before, "#"); ok && !strings.HasPrefix(r.before, "# Run complete") {
			r.heading = strings.TrimSpace(h)
		}
		return
	}
	if r.columns == nil {
		return
	}
	fields := strings.Fields(text)
	mode := slices.IndexFunc(fields, func(f string) bool { return slices.Contains(jmhModes, f) })
	if mode < 1 || len(fields) < mode+3 {
		return
	}
	r.readRow(fields[:mode], fields[mode], fields[mode+1:])
}

// readRow reads a row: the benchmark with its parameters, the mode, and the
// numbers behind it: [Cnt] Score [± Error] Units.
func (r *jmhReader) readRow(names []string, mode string, numbers []string) {
	unit, ok := jmhUnits[numbers[len(numbers)-1]]
	switch {
	case mode != "thrpt":
		r.in.problem(r.in.line, "mode %s of %s is not a throughput; run it with -bm thrpt", mode, names[0])
		return
	case !ok:
		// Profilers add rows with units of their own.
		return
	}
	numbers = numbers[:len(numbers)-1]
	iterations, halfWidth := 1, math.NaN()
	if i := slices.Index(numbers, "±"); i >= 0 {
		if i+1 < len(numbers) {
			halfWidth, _ = strconv.ParseFloat(numbers[i+1], 64)
		}
		numbers = numbers[:i]
	}
	if len(numbers) == 2 {
		n, valid := count(numbers[0])
		if !valid || n > 1000 {
			r.in.problem(r.in.line, "%q is not a plausible count of iterations", numbers[0])
			return
		}
		iterations, numbers = n, numbers[1:]
	}
	if len(numbers) != 1 {
		r.in.problem(r.in.line, "not a row of a JMH score table: %.120s", r.in.text)
		return
	}
	score, ok := positive(numbers[0])
	if !ok {
		r.in.problem(r.in.line, "score %q of %s is not a number above 0", numbers[0], names[0])
		return
	}
	r.add(names, score*unit, halfWidth*unit, iterations)
}

// add hands over the trials of a row. mean and halfWidth are in operations
// per second.
func (r *jmhReader) add(names []string, mean, halfWidth float64, iterations int) {
	test, clients := strings.TrimSpace(r.heading+" "+names[0]), r.threads
	for i, name := range names[1:] {
		column := ""
		if i+1 < len(r.columns) {
			column = r.columns[i+1]
		}
		if n, ok := count(name); ok && slices.Contains(jmhClients, column) {
			clients = n
		} else {
			test += " " + name
		}
	}
	trials := jmhTrials(mean, halfWidth, iterations)
	switch {
	case clients == 0 && r.in.clients == 0:
		// They have no place in a curve; what is missing is told once a row.
		trials = []float64{mean}
	case len(trials) > 1 && !r.told:
		r.in.problem(r.in.line, "JMH prints the mean of %d iterations and its 99.9 %% error, not the iterations: "+
			"%d trials with that mean and standard deviation stand in place of them, here and in the other rows", iterations, iterations)
		r.told = true
	case len(trials) == 1 && iterations > 1:
		r.in.problem(r.in.line, "the spread of %d iterations of %s cannot be told from this error: they count as one trial", iterations, names[0])
	}
	for _, qps := range trials {
		r.in.add(r.in.line, result{test: test, clients: clients, trial: newTrial(qps)})
	}
}

// jmhTrials returns n throughputs with the given mean whose sample standard
// deviation is the one that JMH's error, halfWidth, was computed from:
//
//	halfWidth = t(0.9995, n−1) · s / √n
//
// They lie symmetrically, at mean ± d (and at mean itself, when n is odd).
// When there is no such error, or it is so large that mean − d is not above
// 0, the mean alone is returned.
func jmhTrials(mean, halfWidth float64, n int) []float64 {
	s := halfWidth * math.Sqrt(float64(n)) / studentT(0.999, n-1)
	// Even n: n·d² = (n−1)·s². Odd n: (n−1)·d² = (n−1)·s².
	d := s
	if n%2 == 0 {
		d = s * math.Sqrt(float64(n-1)/float64(n))
	}
	if n < 2 || !(d > 0) || !(mean-d > 0) {
		return []float64{mean}
	}
	trials := make([]float64, 0, n)
	for range n / 2 {
		trials = append(trials, mean-d)
	}
	if n%2 == 1 {
		trials = append(trials, mean)
	}
	for range n / 2 {
		trials = append(trials, mean+d)
	}
	return trials
}

// studentT returns t such that a variate of Student's distribution with df
// degrees of freedom lies within ±t with the given probability. NaN when df
// is below 1.
func studentT(probability float64, df int) float64 {
	if df < 1 {
		return math.NaN()
	}
	lo, hi := 0.0, 1.0
	for studentWithin(hi, df) < probability {
		hi *= 2
	}
	for range 60 {
		mid := (lo + hi) / 2
		if studentWithin(mid, df) < probability {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// studentWithin returns the probability that a variate of Student's
// distribution with df degrees of freedom lies within ±t.
//
// See Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and
// 26.7.4.
func studentWithin(t float64, df int) float64 {
	theta := math.Atan(t / math.Sqrt(float64(df)))
	sin, cos := math.Sincos(theta)
	// The series is 1 + 1/2 cos² + 1·3/(2·4) cos⁴ … for even df, and
	// cos + 2/3 cos³ + 2·4/(3·5) cos⁵ … for odd.
	term, sum := 1.0, 0.0
	if df%2 == 1 {
		term = cos
	}
	for i := 1 + df%2; i < df; i += 2 {
		sum += term
		term *= float64(i) / float64(i+1) * cos * cos
	}
	if df%2 == 0 {
		return sin * sum
	}
	return 2 / math.Pi * (theta + sin*sum)
}
