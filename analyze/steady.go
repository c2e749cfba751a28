package analyze

import "math"

const (
	// minIntervals is how many intervals there must be to tell a start from
	// noise: with fewer, white noise alone looks unsteady more often than one
	// time in six.
	minIntervals = 10

	steadyTrend = 0.03 // of the mean, from the first to the last interval kept
	trendErrors = 2    // standard errors; a trend below is noise
)

// Steady says how much of a measurement to leave out so that the rest is in
// steady state. intervals are the throughputs, in any unit, of equal parts of
// the measurement (of 100 ms in poolsweep), in order. drop is how many to
// leave out at the start, at most half. steady is false when even that is not
// enough, or when what is left still rises or falls by more than 3 % and that
// is no chance: then measure longer.
//
// It is MSER: the start is cut where that makes the mean of the rest most
// certain, d* = argmin Σ_{i>d}(Z_i − mean_d)²/(n−d)², d ≤ n/2. See White
// (1997), "An Effective Truncation Heuristic for Bias Reduction in Simulation
// Output".
//
// With fewer than ten intervals nothing can be told: 0 and true. A constant
// series drops nothing. Negative values, NaN and infinities do not occur in
// counts and are not looked for.
func Steady(intervals []float64) (drop int, steady bool) {
	n := len(intervals)
	if n < minIntervals {
		return 0, true
	}
	// From the end on, each value joins the mean and the sum of squares about
	// it (Welford 1962), which keeps equal values exact.
	var mean, squares float64
	least := math.Inf(1)
	for d := n - 1; d >= 0; d-- {
		kept := float64(n - d)
		delta := intervals[d] - mean
		mean += delta / kept
		squares += delta * (intervals[d] - mean)
		if v := squares / (kept * kept); d <= n/2 && v <= least {
			least, drop = v, d
		}
	}
	return drop, drop < n/2 && !hasTrend(intervals[drop:])
}

// hasTrend reports whether the straight line through z, by least squares,
// moves by more than steadyTrend of the mean and by more than trendErrors of
// its own standard errors. The standard error is that of independent values:
// on a machine that wanders, a wander over the whole measurement counts as a
// trend, since its mean is not the machine's.
func hasTrend(z []float64) bool {
	m := float64(len(z))
	middle := (m - 1) / 2
	var mean, xx, xz float64
	for _, v := range z {
		mean += v / m
	}
	for i, v := range z {
		x := float64(i) - middle
		xx += x * x
		xz += x * (v - mean)
	}
	slope := xz / xx
	var squares float64
	for i, v := range z {
		rest := v - mean - slope*(float64(i)-middle)
		squares += rest * rest
	}
	standardError := math.Sqrt(squares / (m - 2) / xx)
	change := math.Abs(slope)
	return change*(m-1) > steadyTrend*mean && change > trendErrors*standardError
}
