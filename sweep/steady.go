package sweep

import (
	"time"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/sweep/load"
)

const (
	// longSlice is how long a slice is that is looked at for its steady state;
	// of a trial in one piece every slice is. Shorter ones are over before
	// the machine can change.
	longSlice = 2 * time.Second

	// grain is the length of the intervals of a Measurement.
	grain = 100 * time.Millisecond

	// longestTrial is the longest that a plan allows.
	longestTrial = time.Hour
)

// A part is what of a slice is in steady state.
type part struct {
	requests int64
	elapsed  time.Duration
	steady   bool // false: none of it is, for all that can be told
}

// qps returns the requests per second, 0 for a part of no length.
func (p part) qps() float64 {
	if p.elapsed <= 0 {
		return 0
	}
	return float64(p.requests) / p.elapsed.Seconds()
}

// steadyPart returns the part of a slice in steady state, by the method of
// analyze.Steady: its whole intervals but those of its start. When nothing is
// to be left out, or the slice is too short to tell, it is all of the slice, to
// the request. contiguous says that the slice is a trial in one piece.
func steadyPart(m *load.Measurement, contiguous bool) part {
	all := part{m.Requests, m.Elapsed, true}
	if !contiguous && m.Elapsed < longSlice || len(m.Intervals) == 0 {
		return all
	}
	// Intervals end with the last one that had a reply: those that are
	// missing had none.
	z := make([]float64, min(m.Elapsed, longestTrial)/grain)
	for i := range min(len(z), len(m.Intervals)) {
		z[i] = float64(m.Intervals[i])
	}
	drop, steady := analyze.Steady(z)
	kept := part{elapsed: time.Duration(len(z)-drop) * grain, steady: steady}
	for _, requests := range z[drop:] {
		kept.requests += int64(requests)
	}
	switch {
	case drop == 0:
		all.steady = steady
		return all
	case kept.requests <= 0: // it came to a stop: no throughput to go on with
		all.steady = false
		return all
	}
	return kept
}
