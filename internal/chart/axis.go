package chart

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// ticks marks an axis at round numbers, about n of them.
type ticks struct {
	n      int
	log    bool
	format func(float64) string
}

// Ticks returns marks at multiples of a round step; on a logarithmic axis
// at the powers of ten and, where there are few, at 2 and 5 times them.
func (t ticks) Ticks(low, high float64) []plot.Tick {
	var marks []plot.Tick
	add := func(x float64) {
		// What lies at an end may be off by a rounding error.
		if slack := 1e-9 * (high - low); x >= low-slack && x <= high+slack {
			marks = append(marks, plot.Tick{Value: x, Label: t.format(x)})
		}
	}
	if !t.log {
		step := roundStep((high - low) / float64(t.n))
		for i := math.Ceil(low/step - 1e-9); i*step <= high*(1+1e-9); i++ {
			add(i*step + 0) // not −0
		}
		return marks
	}
	factors := []float64{1}
	if math.Log10(high/low) < 3.5 {
		factors = []float64{1, 2, 5}
	}
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for _, f := range factors {
			add(f * math.Pow(10, e))
		}
	}
	return marks
}

// roundStep returns the next 1, 2, 2.5 or 5 times a power of ten from x on.
func roundStep(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, f := range []float64{1, 2, 2.5, 5} {
		if f*power >= x*(1-1e-9) {
			return f * power
		}
	}
	return 10 * power
}

// scale gives an axis its range, its marks and, where log is set, its scale.
// low must be below high and, for log, above 0.
func scale(a *plot.Axis, low, high float64, t ticks) {
	a.Min, a.Max = low, high
	a.Tick.Marker = t
	if t.log {
		a.Scale = plot.LogScale{}
	}
}

// wide reports whether values that rise are too unequal for a linear axis: the
// middle one would lie in its first quarter.
func wide(values []float64) bool {
	return len(values) > 3 && values[len(values)/2] < values[len(values)-1]/4
}

// clientsLabel is the label of an axis of these numbers of clients.
func clientsLabel(clients []float64) string {
	if wide(clients) {
		return "clients (log scale)"
	}
	return "clients"
}

// clientAxis scales the x axis for these numbers of clients, which rise.
func clientAxis(a *plot.Axis, clients []float64) {
	first, last := clients[0], clients[len(clients)-1]
	count := func(x float64) string { return strconv.FormatFloat(math.Round(x), 'f', 0, 64) }
	switch {
	case wide(clients):
		scale(a, first, last, ticks{log: true, format: count})
	case first == last:
		scale(a, 0, 2*last, ticks{n: 2, format: count})
	default:
		scale(a, 0, last, ticks{n: 6, format: count})
	}
}

// short prints a throughput for an axis with three significant digits at most:
// 950, 1.5k, 120k, 2M.
func short(x float64) string {
	unit := ""
	for _, next := range []string{"k", "M", "G"} {
		if x < 1000 {
			break
		}
		x, unit = x/1000, next
	}
	return trimmed(x) + unit
}

// trimmed prints x with three significant digits at most, without zeros at the
// end of a fraction.
func trimmed(x float64) string {
	if x == 0 {
		return "0"
	}
	decimals := max(0, 2-int(math.Floor(math.Log10(math.Abs(x)))))
	text := strconv.FormatFloat(x, 'f', decimals, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// thousands prints a throughput in whole requests, with commas.
func thousands(x float64) string {
	digits := strconv.FormatFloat(math.Round(x), 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// milliseconds prints seconds in ms.
func milliseconds(seconds float64) string { return trimmed(seconds * 1000) }

// latencyAxis scales the y axis for latencies in seconds: linear from 0, or
// logarithmic where the longest is more than thirty times the shortest.
func latencyAxis(a *plot.Axis, shortest, longest float64) {
	if shortest > 0 && longest > 30*shortest {
		a.Label.Text += " (log scale)"
		scale(a, shortest/1.2, longest*1.2, ticks{log: true, format: milliseconds})
		return
	}
	scale(a, 0, longest*1.08, ticks{n: 5, format: milliseconds})
}

// nines marks an axis of 1/(1−q) where the percentiles gain a nine.
type nines struct{}

func (nines) Ticks(low, high float64) []plot.Tick {
	var marks []plot.Tick
	for x := 1.0; x <= high*(1+1e-9); x *= 10 {
		if x >= low {
			marks = append(marks, plot.Tick{Value: x, Label: asPercentile(x)})
		}
	}
	return marks
}
