package analyze

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// A USL is the Universal Scalability Law fitted to a curve:
//
//	X(N) = γN / (1 + α(N−1) + βN(N−1))
//
// It is a second opinion on where throughput stops to rise and why, never the
// answer: N* depends on where a sweep stops (on a published curve of 32 levels
// it moves between 22 and 56), so nothing is read off the law beyond the last
// level.
//
// See Gunther, "Guerrilla Capacity Planning", 2007, chapters 4 to 6, and
// Schwartz, "Practical Scalability Analysis with the Universal Scalability
// Law", 2015.
type USL struct {
	// Fitted is true when the numbers below mean something. Otherwise all
	// quantities of the fit are unknown and Reason says why, in a clause.
	Fitted bool   `json:"fitted"`
	Reason string `json:"reason"`

	// Alpha is α, contention: the share of the work that is done one after
	// the other, from 0 to 1.
	Alpha      Quantity `json:"alpha"`
	AlphaRange Interval `json:"alpha_range"`

	// Beta is β, coherency: the cost of a pair of clients that must agree,
	// 0 or more. With 0 throughput levels off but never falls.
	Beta Quantity `json:"beta"`

	// BetaRange is unknown when Beta is 0: an interval around the end of the
	// range would claim too much, and BetaZero takes its place.
	BetaRange Interval `json:"beta_range"`

	// BetaZero is P(β=0), the share of the redraws in which β is 0.
	BetaZero Quantity `json:"beta_zero_probability"`

	// Gamma is γ, the throughput of one client alone, in requests/s.
	Gamma      Quantity `json:"gamma_qps"`
	GammaRange Interval `json:"gamma_range_qps"`

	// Peak is N* = √((1−α)/β), the clients with the highest throughput,
	// at least 1. Unknown when β is 0: throughput never falls. An unknown
	// end of its range means the same.
	Peak      Quantity `json:"peak_clients"`
	PeakRange Interval `json:"peak_range_clients"`

	// PeakQPS is Xmax = X(N*) in requests/s, unknown when Peak is.
	PeakQPS Quantity `json:"peak_qps"`

	// Beyond is true when throughput peaks outside the levels that were
	// measured, or never: then the law says no more than "not here".
	Beyond bool `json:"peak_beyond_levels"`

	// Misfit is how far the law is from the medians of the levels: the root
	// of the mean square of ln y − ln X(N), so that 0.05 is about 5 %.
	Misfit Quantity `json:"misfit_ratio"`

	// Efficiency is the highest X(N)/(N·X(1)) of the levels, at Efficient
	// clients, as measured; where 1 was not measured, the first level takes
	// its place. Superlinear is true when it is above 1.05 and that is more
	// than noise. The law knows no efficiency above 1: a client that speeds
	// up the others (a warmer cache, a core that stays awake) makes α too
	// small. Unknown without levels.
	Efficiency  Quantity `json:"efficiency_ratio"`
	Efficient   int      `json:"efficient_clients"`
	Superlinear bool     `json:"superlinear"`
}

// An Interval is a 95 % bootstrap interval. It is a little too narrow, as these
// are with few points: on 12 levels that follow the law with 1 to 6 % noise it
// held the true value in 85 to 95 % of 150 draws each, with three trials a step
// in 89 to 94 %. The zero value is [0, 0].
type Interval struct {
	Low  Quantity `json:"low"`
	High Quantity `json:"high"`
}

const (
	// uslLevels is the number of levels from which on three parameters may be
	// fitted: with three the law goes through every point, true or not.
	uslLevels = 4

	uslRedraws = 200

	// negligible is the β·N_m² below which β counts as 0: it would change
	// throughput at the last level by less than a millionth, which is what
	// the search leaves of a β that is 0.
	negligible = 1e-6

	// superlinearFrom is the efficiency from which on a start is superlinear.
	superlinearFrom = 1.05
)

// usl fits the law to all trials, with the pass effect taken out of them. With
// fewer than four levels it is not fitted. The intervals are those of a case
// bootstrap over the trials with a fixed seed: one curve always gives one fit.
func (t *table) usl() USL {
	u := unfittedUSL()
	if len(t.n) > 0 {
		u.efficiency(t)
	}
	if len(t.n) < uslLevels {
		u.Reason = fmt.Sprintf("%s measured, and three parameters need %d", count(len(t.n), "level"), uslLevels)
		return u
	}
	var n, x []float64
	for i, trials := range t.trials {
		// Sorted, so that the order of the trials draws no other intervals.
		for _, v := range slices.Sorted(slices.Values(trials)) {
			n = append(n, t.n[i])
			x = append(x, v)
		}
	}
	fit := fitUSL(n, x)
	u.Fitted = true
	u.Alpha, u.Beta, u.Gamma = Quantity(fit.alpha), Quantity(fit.beta), Quantity(fit.gamma)
	if peak := fit.peak(); !math.IsInf(peak, 0) {
		u.Peak, u.PeakQPS = Quantity(peak), Quantity(fit.at(peak))
	}
	u.Beyond = !(u.Peak >= Quantity(t.n[0]) && u.Peak <= Quantity(t.n[len(t.n)-1]))
	sum := 0.0
	for i, y := range t.y {
		d := math.Log(y / fit.at(t.n[i]))
		sum += d * d
	}
	u.Misfit = Quantity(math.Sqrt(sum / float64(len(t.y))))
	u.intervals(n, x)
	return u
}

// unfittedUSL is a USL of which nothing is known.
func unfittedUSL() USL {
	q := Unknown()
	i := Interval{q, q}
	return USL{
		Alpha: q, AlphaRange: i, Beta: q, BetaRange: i, BetaZero: q, Gamma: q, GammaRange: i,
		Peak: q, PeakRange: i, PeakQPS: q, Misfit: q, Efficiency: q,
	}
}

// efficiency looks for a superlinear start. A level that is not the first can
// only be told from a linear one when it is above by three standard errors.
func (u *USL) efficiency(t *table) {
	u.Efficiency, u.Efficient = 1, int(t.n[0])
	for i := 1; i < len(t.n); i++ {
		e := t.y[i] / t.y[0] * t.n[0] / t.n[i]
		if Quantity(e) > u.Efficiency {
			u.Efficiency, u.Efficient = Quantity(e), int(t.n[i])
		}
		if e > max(superlinearFrom, 1+3*math.Hypot(t.nu[i], t.nu[0])) {
			u.Superlinear = true
		}
	}
}

// intervals fills the ranges and BetaZero: the trials are drawn anew with
// replacement and the law is fitted again (Efron and Tibshirani, "An
// Introduction to the Bootstrap", 1993, §9.5: bootstrapping pairs). Pairs, and
// not residuals, because the law is not exactly true: what it misses must
// widen the intervals. Redraws with fewer than three levels, to which the law
// cannot be fitted, are drawn again.
func (u *USL) intervals(n, x []float64) {
	source := rand.New(rand.NewPCG(redrawSeed1, redrawSeed2))
	var alpha, beta, gamma, peak []float64
	zeros := 0
	drawnN, drawnX := make([]float64, len(n)), make([]float64, len(x))
	for len(alpha) < uslRedraws {
		for i := range drawnN {
			j := source.IntN(len(n))
			drawnN[i], drawnX[i] = n[j], x[j]
		}
		if !threeLevels(drawnN) {
			continue
		}
		fit := fitUSL(drawnN, drawnX)
		if fit.beta == 0 {
			zeros++
		}
		alpha = append(alpha, fit.alpha)
		beta = append(beta, fit.beta)
		gamma = append(gamma, fit.gamma)
		peak = append(peak, fit.peak())
	}
	u.BetaZero = Quantity(float64(zeros) / uslRedraws)
	u.AlphaRange, u.GammaRange = middle95(alpha), middle95(gamma)
	if u.Beta > 0 {
		u.BetaRange, u.PeakRange = middle95(beta), middle95(peak)
	}
}

// threeLevels reports whether n holds at least three different values.
func threeLevels(n []float64) bool {
	low, high := slices.Min(n), slices.Max(n)
	return slices.ContainsFunc(n, func(v float64) bool { return v != low && v != high })
}

// middle95 returns the percentile interval of redraws and sorts them. An end
// that is infinite is unknown.
func middle95(redraws []float64) Interval {
	slices.Sort(redraws)
	end := func(i int) Quantity {
		if math.IsInf(redraws[i], 0) {
			return Unknown()
		}
		return Quantity(redraws[i])
	}
	cut := len(redraws) / 40 // 2.5 % at either end
	return Interval{end(cut), end(len(redraws) - 1 - cut)}
}

// A uslFit is a set of parameters and how well they do.
type uslFit struct {
	alpha, beta, gamma float64
	sse                float64 // sum of squared errors of X
}

// at returns X(n).
func (f uslFit) at(n float64) float64 {
	return f.gamma * n / (1 + f.alpha*(n-1) + f.beta*n*(n-1))
}

// peak returns N*, +Inf when throughput never falls. See Gunther (2007),
// equation 4.33. Below 1 there are no clients.
func (f uslFit) peak() float64 {
	if f.beta == 0 {
		return math.Inf(1)
	}
	return max(1, math.Sqrt((1-f.alpha)/f.beta))
}

// fitUSL returns the least-squares fit with 0 ≤ α ≤ 1 and β ≥ 0. The squares
// are those of X itself, unweighted, as in the R package usl and in
// codahale/usl, whose published fits it reproduces; on ln X or with weights
// they come out different. n may be fractional, as averages of a live system
// are. At least three different n and x > 0 are needed.
//
// γ is linear and is solved for at every (α, β), which leaves two parameters
// (Golub and Pereyra, 1973, "The differentiation of pseudo-inverses and
// nonlinear least squares problems whose variables separate"). They are sought
// by Levenberg–Marquardt steps from the best point of a coarse grid; a
// parameter on its bound that the gradient pushes outward stays there.
func fitUSL(n, x []float64) uslFit {
	best := uslFit{sse: math.Inf(1)}
	largest := slices.Max(n)
	for _, alpha := range []float64{0, .02, .1, .4, .8} {
		for _, scaled := range []float64{0, .1, 1, 10} { // β·N_m²: about 1 for a peak inside
			if f := profile(n, x, alpha, scaled/(largest*largest)); f.sse < best.sse {
				best = f
			}
		}
	}
	damping := 1e-3
	for range 200 {
		alpha, beta := best.step(n, x, damping)
		if math.Abs(alpha-best.alpha) <= 1e-10*(best.alpha+1e-3) && math.Abs(beta-best.beta) <= 1e-10*(best.beta+1e-6) {
			break
		}
		if f := profile(n, x, alpha, beta); f.sse < best.sse {
			best = f
			damping = max(damping/3, 1e-12) // less caution would zigzag along a narrow valley
		} else {
			damping *= 10
		}
	}
	if best.beta*largest*largest < negligible {
		return profile(n, x, best.alpha, 0)
	}
	return best
}

// profile returns the best fit for given α and β.
func profile(n, x []float64, alpha, beta float64) uslFit {
	f := uslFit{alpha: alpha, beta: beta, gamma: 1}
	var gx, gg float64
	for i := range n {
		g := f.at(n[i])
		gx += g * x[i]
		gg += g * g
	}
	f.gamma = gx / gg
	for i := range n {
		e := x[i] - f.at(n[i])
		f.sse += e * e
	}
	return f
}

// step returns where a damped Gauss–Newton step from f leads, kept within the
// bounds. The derivatives of X by α and β are taken with γ following, in the
// short form of Kaufman (1975), "A variable projection method for solving
// separable nonlinear least squares problems": their part along ∂X/∂γ is
// taken out.
func (f uslFit) step(n, x []float64, damping float64) (alpha, beta float64) {
	var ag, bg, gg float64
	by := func(n float64) (a, b, g float64) {
		g = f.at(n) / f.gamma
		a = -f.gamma * g * g * (n - 1) / n
		return a, a * n, g
	}
	for _, v := range n {
		a, b, g := by(v)
		ag += a * g
		bg += b * g
		gg += g * g
	}
	var aa, ab, bb, ar, br float64
	for i, v := range n {
		a, b, g := by(v)
		a -= ag / gg * g
		b -= bg / gg * g
		r := x[i] - f.at(v)
		aa += a * a
		ab += a * b
		bb += b * b
		ar += a * r
		br += b * r
	}
	fixed := func(value, low, high, slope float64) bool {
		return value <= low && slope < 0 || value >= high && slope > 0
	}
	aa *= 1 + damping
	bb *= 1 + damping
	var da, db float64
	switch fixA, fixB := fixed(f.alpha, 0, 1, ar), fixed(f.beta, 0, math.Inf(1), br); {
	case fixA && fixB:
	case fixA:
		db = br / bb
	case fixB:
		da = ar / aa
	default:
		det := aa*bb - ab*ab
		da, db = (ar*bb-br*ab)/det, (br*aa-ar*ab)/det
	}
	return min(max(f.alpha+da, 0), 1), max(f.beta+db, 0)
}
