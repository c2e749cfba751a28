package importer

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/poolsweep/poolsweep/analyze"
)

// A histogram is the list of latencies in redis-benchmark's text output.
//
// Up to 6.0 a line is printed where the latency, in whole milliseconds (or
// tenths, --precision), changes along the sorted requests: the requests
// between two lines took what the earlier line says, or up to a unit more.
// Since 6.2 there are two lists; the first, latency by percentile, is that of
// HdrHistogram and fine, the second adds nothing.
type histogram struct {
	steps   []histogramStep
	byShare bool // the list of 6.2
	ended   bool // the second list of 6.2 has begun
}

type histogramStep struct {
	percent float64
	value   float64 // milliseconds
	unit    float64 // milliseconds, resolution of value
}

// maxSteps bounds what is kept of a histogram. The longest known has one
// line a millisecond.
const maxSteps = 100_000

var histogramLine = regexp.MustCompile(`^([\d.]+)% <= (\d+(?:\.(\d{1,6}))?) milliseconds`)

// readLine takes a line of the histogram and reports whether it was one.
func (h *histogram) readLine(text string) bool {
	switch {
	case strings.HasPrefix(text, "Latency by percentile distribution"):
		h.byShare = true
		return true
	case strings.HasPrefix(text, "Cumulative distribution of latencies"):
		h.ended = true
		return true
	}
	m := histogramLine.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	percent, err1 := strconv.ParseFloat(m[1], 64)
	value, err2 := strconv.ParseFloat(m[2], 64)
	if err1 == nil && err2 == nil && !h.ended && len(h.steps) < maxSteps {
		unit := 1.0
		for range m[3] {
			unit /= 10
		}
		h.steps = append(h.steps, histogramStep{percent, value, unit})
	}
	return true
}

// fine returns a percentile above 0 of the list of 6.2, in seconds. The list
// has a line for each halving of the rest: the 99.9th percentile is that of
// its line for 99.902 %. Unknown when no line is as near.
func (h *histogram) fine(percentile float64) analyze.Quantity {
	if !h.byShare {
		return analyze.Unknown()
	}
	for _, s := range h.steps {
		if s.percent < percentile {
			continue
		}
		if s.percent-percentile > (100-percentile)/20 || s.value == 0 {
			break
		}
		return analyze.Quantity(s.value / perSecondMS)
	}
	return analyze.Unknown()
}

// coarse returns a percentile of the list of old versions, in seconds,
// rounded up to its unit. Unknown when the unit is more than a tenth of it:
// "<= 1 milliseconds" may be 0.1.
func (h *histogram) coarse(percentile float64) analyze.Quantity {
	if h.byShare {
		return analyze.Unknown()
	}
	var below histogramStep
	for _, s := range h.steps {
		if s.percent < percentile {
			below = s
		}
	}
	if below.unit == 0 || below.value < 10*below.unit {
		return analyze.Unknown()
	}
	return analyze.Quantity((below.value + below.unit) / perSecondMS)
}
