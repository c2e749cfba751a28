package importer

import (
	"regexp"
	"strings"

	"github.com/poolsweep/poolsweep/analyze"
)

// JMeter's summariser prints "summary +" for an interval, with the active
// threads, and "summary =" for all of the run so far. A run is one trial.

var jmeterLine = regexp.MustCompile(`\bsummary ([+=])\s+(\d+) in\s+[\d:.]+s? =\s+(\S+?)/s` +
	`(?: Avg:\s+(\d+) Min:\s+\d+ Max:\s+\d+ Err:\s+(\d+))?(?:.*Active: (\d+) Started: (\d+))?`)

func detectJMeter(head string) bool { return jmeterLine.MatchString(head) }

// A jmeterSummary is what the summariser printed of an interval or a run, or
// several intervals together.
type jmeterSummary struct {
	line    int // 0: nothing was printed
	samples float64
	seconds float64
	meanMS  float64
	errors  float64
	active  int // threads at the end; 0 when not stated
	started int
}

// plus returns the two together. Threads are those of s.
func (s jmeterSummary) plus(t jmeterSummary) jmeterSummary {
	if s.line == 0 {
		return t
	}
	s.meanMS = (s.meanMS*s.samples + t.meanMS*t.samples) / (s.samples + t.samples)
	s.samples += t.samples
	s.seconds += t.seconds
	s.errors += t.errors
	return s
}

// A jmeterRun is what the summariser printed of one run.
type jmeterRun struct {
	total     jmeterSummary // the last "="
	intervals []jmeterSummary
}

func parseJMeter(in *input) {
	var run jmeterRun
	var intervals []jmeterSummary // since the last "="
	for in.scan() {
		m := jmeterLine.FindStringSubmatch(in.text)
		if m == nil {
			if strings.Contains(in.text, "summary =") || strings.Contains(in.text, "summary +") {
				in.problem(in.line, "not a summary line of JMeter: %.120s", in.text)
			}
			continue
		}
		s, ok := parseJMeterLine(in, m)
		if !ok {
			continue
		}
		if m[1] == "+" {
			intervals = append(intervals, s)
			continue
		}
		if !run.continues(s, intervals) {
			run.add(in)
			run = jmeterRun{}
		}
		run.total = s
		run.intervals = append(run.intervals, intervals...)
		intervals = nil
	}
	// An interrupted run ends in intervals.
	run.intervals = append(run.intervals, intervals...)
	run.add(in)
}

// parseJMeterLine reads the parts that jmeterLine matched.
func parseJMeterLine(in *input, m []string) (s jmeterSummary, ok bool) {
	s.line = in.line
	s.samples, ok = positive(m[2])
	qps, ok2 := positive(m[3])
	if !ok || !ok2 {
		in.problem(in.line, "summary without a throughput above 0: %.120s", in.text)
		return s, false
	}
	// The time printed is a whole number of seconds, this is not.
	s.seconds = s.samples / qps
	s.meanMS, _ = positive(m[4])
	s.errors, _ = positive(m[5])
	s.active, _ = count(m[6])
	s.started, _ = count(m[7])
	return s, true
}

// continues reports whether s, a "=", counts on from the last one of the run
// with the intervals in between. When there are none, the lines may have been
// collected from several runs by grep as well as from one; then what was added
// must have come at about the rate of the run.
func (r *jmeterRun) continues(s jmeterSummary, intervals []jmeterSummary) bool {
	if r.total.line == 0 {
		return true
	}
	samples, seconds := s.samples-r.total.samples, s.seconds-r.total.seconds
	if len(intervals) > 0 {
		for _, i := range intervals {
			samples -= i.samples
		}
		return samples == 0
	}
	ratio := samples / seconds / (r.total.samples / r.total.seconds)
	return samples > 0 && seconds > 0 && ratio > 0.5 && ratio < 2
}

// add hands over the run, if there is one. Of the intervals those with the
// most active threads are used, without ramp-up and its end; the total only
// when no interval states threads.
func (r *jmeterRun) add(in *input) {
	clients, started := 0, 0
	for _, s := range r.intervals {
		clients, started = max(clients, s.active), max(started, s.started)
	}
	sum := r.total
	if clients > 0 || sum.line == 0 {
		sum = jmeterSummary{}
		for _, s := range r.intervals {
			if s.active == clients {
				sum = sum.plus(s)
			}
		}
	}
	if sum.line == 0 {
		return
	}
	if sum.errors > 0 {
		in.problem(sum.line, "%.0f of %.0f samples were errors; they count in the throughput", sum.errors, sum.samples)
	}
	if clients == 0 {
		// The run ended within its first interval.
		clients = started
	}
	t := newTrial(sum.samples / sum.seconds)
	// The mean is printed in whole milliseconds: below 10 it is wrong by 5 %
	// and more.
	if sum.meanMS >= 10 {
		t.Mean = analyze.Quantity(sum.meanMS / perSecondMS)
	}
	in.add(sum.line, result{test: "JMeter", clients: clients, trial: t})
}
