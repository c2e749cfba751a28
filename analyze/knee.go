package analyze

import "math"

// Shape is the form of a throughput curve.
type Shape string

const (
	// ShapeRising: the last level is the first that reaches the plateau, or
	// the throughput still grows there. The knee lies beyond the sweep.
	ShapeRising Shape = "rising"
	// ShapeRetrograde: throughput falls again after its peak. Too many
	// clients cost throughput.
	ShapeRetrograde Shape = "retrograde"
	// ShapeUnconfirmed: the throughput seems to be flat from some level on,
	// but too few levels lie above it to be sure.
	ShapeUnconfirmed Shape = "unconfirmed"
	// ShapePlateau: throughput is flat from the knee to the last level.
	ShapePlateau Shape = "plateau"
	// ShapeUnknown: nothing was measured.
	ShapeUnknown Shape = "unknown"
)

// A Knee is where a throughput curve stops to pay for more clients.
type Knee struct {
	Shape Shape `json:"shape"`

	// Clients is the knee: the fewest clients that give the throughput of
	// the plateau less the tolerance. 0 means that no knee can be named;
	// Analysis.Reason says why.
	Clients int `json:"clients"`

	// Apparent is the level that the rule found, whether or not it may be
	// named: on a rising curve the last level, on a curve of the generator
	// the generator's knee. 0 only if nothing was measured.
	Apparent int `json:"apparent_clients"`

	// QPS is the throughput at Apparent, in requests/s: the median of its
	// trials with the pass effect taken out.
	QPS Quantity `json:"qps"`

	// Peak is the level with the highest throughput, PeakQPS that
	// throughput, taken in the same way as QPS.
	Peak    int      `json:"peak_clients"`
	PeakQPS Quantity `json:"peak_qps"`

	// Plateau is X*, the throughput of the plateau in requests/s. It is a
	// little less than PeakQPS, since the best of several noisy levels is
	// more often one that was lucky.
	Plateau Quantity `json:"plateau_qps"`

	// Ceiling is, on a retrograde curve, the most clients that still give
	// the throughput of the plateau less the tolerance; beyond it throughput
	// falls. 0 when no fall was seen.
	Ceiling int `json:"ceiling_clients"`

	// TailGrowth is how much the throughput grows when the number of clients
	// doubles, over the upper half of the range, as a ratio. Unknown with
	// one level.
	TailGrowth Quantity `json:"tail_growth_ratio"`

	// Confirmed is true when enough levels lie above Apparent to say that
	// the throughput stays flat (or falls) from there on.
	Confirmed bool `json:"confirmed"`

	// AtFirst is true when Apparent is the first level of the sweep and more
	// than 1: the knee may lie below it.
	AtFirst bool `json:"at_first_level"`

	// Isolated is true when the peak stands out between its two neighbours
	// by more than the tolerance, as one lucky measurement would.
	Isolated bool `json:"isolated_peak"`

	// Spike is a level that stands out above a flat stretch on both its
	// sides. It was not taken for the peak. 0 when there is none.
	Spike int `json:"spike_clients"`

	// Probability is P(k), the share of redraws of the noise in which the
	// same knee is found. Unknown when no knee is named, when the noise is
	// unknown, and on a soft curve, where only Low and High are honest.
	Probability Quantity `json:"probability"`

	// Low and High are the levels between which the knee lies in 95 % of the
	// redraws. Both are 0 when no knee is named or the noise is unknown.
	Low  int `json:"low_clients"`
	High int `json:"high_clients"`

	// RisingProbability is the share of redraws that are still rising at the
	// last level. Unknown when the noise is.
	RisingProbability Quantity `json:"rising_probability"`

	Confidence Confidence `json:"confidence"`

	// Power is N_power, the level with the highest X²/N: the throughput
	// bought per request waiting. See Kleinrock (1979), "Power and
	// deterministic rules of thumb for probabilistic problems in computer
	// communications".
	Power int `json:"power_clients"`

	// Sharpness is Apparent over Power: 1 is a sharp bend. From softFrom on
	// the curve bends so slowly that Soft is true.
	Sharpness Quantity `json:"sharpness"`
	Soft      bool     `json:"soft"`

	// Little is N_little = X*·R_min/P, the clients that Little's law needs
	// for the plateau's throughput at the smallest mean response time of any
	// step. Unknown without latency.
	Little Quantity `json:"little_clients"`
}

const (
	// softFrom is the sharpness from which on a curve is soft. A hard
	// plateau has 1, X ∝ 1−exp(−N/a) has 2.4, and X ∝ N/(1+α(N−1)), where
	// every level is a little better than the one before, about 19.
	softFrom = 8

	// maxRun is the number of levels at the top up to which winnersCurse is
	// tabulated; more change little and may not be independent.
	maxRun = 12
)

// winnersCurse holds the expected highest of q draws of a standard normal
// distribution; the index is q−1. See Teichroew (1956), "Tables of expected
// values of order statistics", Ann. Math. Stat. 27.
var winnersCurse = [maxRun]float64{0, .564, .846, 1.029, 1.163, 1.267, 1.352, 1.424, 1.485, 1.539, 1.586, 1.629}

// A finding is what the rule says of one set of throughputs. Levels are given
// by index.
type finding struct {
	shape     Shape
	knee      int
	peak      int
	spike     int // a level that was not taken for the peak; −1: none
	ceiling   int
	plateau   float64 // X*
	growth    float64 // per doubling, a ratio; NaN with one level
	confirmed bool
	lone      bool // not confirmed, and only the last level lies beyond the ceiling
}

// find applies the rule of docs/method.md to m ≥ 1 levels: clients n rising,
// throughputs y, their standard errors nu as ratios, the tolerance delta.
//
// Where the method writes one ν for all levels, each level's own is used here,
// as levels with extra trials are known better: for thresholds the ν of the
// level that is compared, for X* the mean ν of the run at the top.
//
// One thing is stricter than in the method: a fall that is seen at the last
// level only, less than twice the knee, is unconfirmed rather than retrograde.
// If two of its three trials were disturbed, every rising curve would look so;
// in simulation that was the one way in which knees were invented.
//
// Another is added: a level that stands out above a flat stretch is no peak,
// see spike.
func find(n, y, nu []float64, delta float64) finding {
	f := finding{growth: tailGrowth(n, y), peak: highest(y, -1), spike: -1}
	if spike(n, y, nu, f.peak, delta) {
		f.spike = f.peak
		f.peak = highest(y, f.spike)
	}
	f.plateau = plateau(y, nu, f.peak, delta)

	f.knee = f.peak
	for i := f.peak - 1; i >= 0; i-- {
		if y[i] < (1-delta-max(delta, 2.5*nu[i]))*f.plateau {
			break // throughput falls too far between here and the peak
		}
		if y[i] >= (1-delta)*f.plateau {
			f.knee = i
		}
	}
	f.ceiling = f.peak
	for f.ceiling < len(y)-1 && y[f.ceiling+1] >= (1-delta)*f.plateau {
		f.ceiling++
	}
	f.classify(n, y, nu, delta)
	return f
}

// classify says what form the curve has for the knee of f.
func (f *finding) classify(n, y, nu []float64, delta float64) {
	last := len(y) - 1
	still := max(delta, 3*nu[last])
	above := last - f.knee
	f.confirmed = above >= 2 && n[last] >= 2*n[f.knee] ||
		above >= 1 && n[last] >= 4*n[f.knee] ||
		above >= 4 && f.growth <= still
	f.lone = !f.confirmed && f.ceiling == last-1
	switch {
	case f.knee == last, f.peak == last && f.growth > still:
		f.shape = ShapeRising
	case y[last] < (1-delta-2*nu[last])*f.plateau && !(f.lone && n[last] < 2*n[f.knee]):
		f.shape = ShapeRetrograde
	case !f.confirmed:
		f.shape = ShapeUnconfirmed
	default:
		f.shape = ShapePlateau
	}
}

// highest returns the level with the highest throughput but for one, of equal
// ones the smallest.
func highest(y []float64, but int) int {
	best := -1
	for i, v := range y {
		if i != but && (best < 0 || v > y[best]) {
			best = i
		}
	}
	return best
}

// spike reports whether level p, the highest, stands out from a flat stretch:
// two levels below it and one above, all within a factor of two in clients,
// agree within the noise, and p lies above them by more than it. A server does
// not do a tenth more with 80 clients than with 70 and with 90; what does is a
// machine that was fast for a moment. Trials more do not always mend it, and
// the knee would follow it.
func spike(n, y, nu []float64, p int, delta float64) bool {
	if p < 2 || p+1 >= len(y) || n[p+1] > 2*n[p-1] {
		return false
	}
	around := []int{p - 2, p - 1, p + 1}
	if p+2 < len(y) {
		around = append(around, p+2)
	}
	low, high, noise := math.Inf(1), 0.0, delta
	for _, i := range around {
		low, high, noise = min(low, y[i]), max(high, y[i]), max(noise, 3*nu[i])
	}
	return high <= (1+noise)*low && y[p] > (1+max(delta, 3*nu[p]))*high
}

// plateau returns X*: the highest throughput, corrected for being the highest
// of the run of levels around it that may be just as good.
func plateau(y, nu []float64, peak int, delta float64) float64 {
	asGood := func(i int) bool { return y[i] >= (1-max(delta, 3*nu[i]))*y[peak] }
	low, high := peak, peak
	for low > 0 && asGood(low-1) {
		low--
	}
	for high < len(y)-1 && asGood(high+1) {
		high++
	}
	sum := 0.0
	for _, v := range nu[low : high+1] {
		sum += v
	}
	q := high - low + 1
	return y[peak] * (1 - sum/float64(q)*winnersCurse[min(q, maxRun)-1])
}

// tailGrowth returns by how much throughput grows a doubling of clients, as a
// ratio: the least-squares slope of ln y on log2 n over the levels from half
// the last one on. NaN for a single level.
//
// When these are fewer than three, the level below joins them, unless they are
// a doubling apart: between 90 and 135 the slope would be so uncertain that
// every tenth plateau with levels in steps of 1.5 looked rising.
func tailGrowth(n, y []float64) float64 {
	last := len(n) - 1
	if last < 1 {
		return math.NaN()
	}
	from := last
	for from > 0 && n[from-1] >= n[last]/2 {
		from--
	}
	for from > 0 && last-from < 2 && n[from] > n[last]/2 {
		from--
	}
	count := float64(last - from + 1)
	var meanX, meanY float64
	for i := from; i <= last; i++ {
		meanX += math.Log2(n[i]) / count
		meanY += math.Log(y[i]) / count
	}
	var sxy, sxx float64
	for i := from; i <= last; i++ {
		dx := math.Log2(n[i]) - meanX
		sxy += dx * (math.Log(y[i]) - meanY)
		sxx += dx * dx
	}
	return math.Expm1(sxy / sxx)
}

// isolated reports whether the peak stands above both its neighbours by more
// than the tolerance. A peak at either end has no two neighbours and is not
// isolated: one at the last level is a matter of the tail's growth.
func isolated(y []float64, peak int, delta float64) bool {
	return peak > 0 && peak < len(y)-1 && y[peak] > (1+delta)*max(y[peak-1], y[peak+1])
}

// power returns the index of the level with the highest y²/n, of equal ones
// the smallest.
func power(n, y []float64) int {
	best := 0
	for i := range y {
		if y[i]*y[i]/n[i] > y[best]*y[best]/n[best] {
			best = i
		}
	}
	return best
}

// knee describes f as a Knee that is named if its shape allows it, and of
// which no confidence is known yet.
func (t *table) knee(f finding, delta float64) Knee {
	k := Knee{
		Shape:             f.shape,
		Apparent:          t.points[f.knee].Clients,
		QPS:               Quantity(t.y[f.knee]),
		Peak:              t.points[f.peak].Clients,
		PeakQPS:           Quantity(t.y[f.peak]),
		Plateau:           Quantity(f.plateau),
		TailGrowth:        Quantity(f.growth),
		Confirmed:         f.confirmed,
		Isolated:          isolated(t.y, f.peak, delta),
		Power:             t.points[power(t.n, t.y)].Clients,
		Probability:       Unknown(),
		RisingProbability: Unknown(),
		Confidence:        ConfidenceNone,
	}
	if f.shape == ShapePlateau || f.shape == ShapeRetrograde {
		k.Clients = k.Apparent
	}
	if f.spike >= 0 {
		k.Spike = t.points[f.spike].Clients
	}
	if f.shape == ShapeRetrograde {
		k.Ceiling = t.points[f.ceiling].Clients
	}
	k.AtFirst = f.knee == 0 && k.Apparent > 1
	k.Sharpness = Quantity(t.n[f.knee] / float64(k.Power))
	k.Soft = k.Sharpness >= softFrom
	k.Little = k.Plateau * t.shortestResponse() / Quantity(t.depth)
	return k
}

// shortestResponse returns the smallest mean response time of any step, in
// seconds; where no mean is known, the smallest median. It is looked for in
// all steps, as latency can fall when load rises and idle cores wake up.
func (t *table) shortestResponse() Quantity {
	shortest := Unknown()
	for i := range t.points {
		trial := t.representativeTrial(i)
		r := trial.Mean
		if !r.Known() {
			r = trial.P50
		}
		if r > 0 && !(r >= shortest) {
			shortest = r
		}
	}
	return shortest
}

// unknownKnee is the knee of a curve without points.
func unknownKnee() Knee {
	u := Unknown()
	return Knee{
		Shape: ShapeUnknown, QPS: u, PeakQPS: u, Plateau: u, TailGrowth: u,
		Probability: u, RisingProbability: u, Confidence: ConfidenceNone, Sharpness: u, Little: u,
	}
}
