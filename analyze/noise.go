package analyze

import (
	"cmp"
	"math"
	"slices"
)

// Noise says how far the trials of one step lie apart, and what was taken out
// of them before that was asked.
type Noise struct {
	// Sigma is σ, the standard deviation of one trial, as a ratio of its
	// step's throughput. It is pooled over all steps, because three trials
	// alone tell little (their range covers the true median with 75 %).
	// Unknown when no step has two trials.
	Sigma Quantity `json:"sigma_ratio"`

	// PassEffect is how far the speed of the machine moved during the sweep:
	// the fastest pass over the slowest, less 1. It has been taken out of
	// everything that is judged; it is still in what is printed. Unknown
	// when there are no passes to compare.
	PassEffect Quantity `json:"pass_effect_ratio"`

	// Passes is the number of passes whose effect was taken out.
	Passes int `json:"passes"`

	// Residuals is the number of values that Sigma rests on.
	Residuals int `json:"residuals"`
}

const (
	// minStandardError is the least ν that is believed, as a ratio: trials
	// that agree better than this agree by chance, or share an error that
	// repeating does not show.
	minStandardError = 0.005

	// minStepsPerPass is the number of steps that a pass must have visited
	// for its effect to be estimated. With one step the effect of the pass
	// could not be told from the noise of its slice, and would hide it.
	minStepsPerPass = 3

	// maxPolishRounds ends a median polish that goes back and forth between
	// two equally good answers; otherwise it settles within a few rounds.
	maxPolishRounds = 50
)

// residualMedians holds, for K trials of a normal distribution with σ = 1,
// the median of their distances from their own median, the zero of the middle
// one left out when K is odd. The index is K. Simulated with 600,000 draws
// each (K = 3: 9,000,000); TestResidualMedians draws again.
var residualMedians = [...]float64{2: 0.477, 0.689, 0.485, 0.684, 0.527, 0.682, 0.563, 0.681, 0.588, 0.679, 0.605}

// medianErrors holds the standard deviation of the median of K values of a
// normal distribution with σ = 1. The index is K. See David and Nagaraja,
// "Order Statistics", 2003, table of variances; for even K the median is the
// mean of the middle two.
var medianErrors = [...]float64{1: 1, 0.7071, 0.6698, 0.5461, 0.5356, 0.4634, 0.4587, 0.4101, 0.4076, 0.3719, 0.3704, 0.3434}

// residualMedian extends residualMedians beyond the table. Both branches tend
// to 0.6745, the median of |Z|; the residuals of an even K are smaller since
// the median leans on two of the trials.
func residualMedian(trials int) float64 {
	k := float64(trials)
	switch {
	case trials < len(residualMedians):
		return residualMedians[trials]
	case trials%2 == 0:
		return 0.6745 - 0.84/k
	default:
		return 0.6745 + 0.05/k
	}
}

// medianError extends medianErrors by the large-sample form √(π/2)/√K.
func medianError(trials int) float64 {
	if trials < len(medianErrors) {
		return medianErrors[trials]
	}
	return math.Sqrt(math.Pi/2) / math.Sqrt(float64(trials))
}

// A table is a curve made ready to be judged: its usable steps in order of
// clients, with the effect of the passes taken out.
type table struct {
	points  []Point     // only trials with a usable QPS
	indexes [][]int     // place of each of those trials in the Point as given
	trials  [][]float64 // requests/s of each trial, pass effect taken out
	n       []float64   // clients
	y       []float64   // median of trials, requests/s
	nu      []float64   // ν, standard error of y, as a ratio
	depth   int         // pipeline depth, at least 1
	noise   Noise
	dropped int // trials without a usable QPS
}

// newTable sorts the points of c and leaves out what cannot be judged: points
// with no clients, trials whose throughput is not a positive number.
func newTable(c Curve) *table {
	t := &table{depth: max(c.Depth, 1)}
	points := slices.Clone(c.Points)
	slices.SortStableFunc(points, func(a, b Point) int { return cmp.Compare(a.Clients, b.Clients) })
	for _, p := range points {
		kept := Point{Clients: p.Clients}
		var indexes []int
		for i, trial := range p.Trials {
			if p.Clients >= 1 && trial.QPS > 0 && !math.IsInf(trial.QPS, 0) {
				kept.Trials = append(kept.Trials, trial)
				indexes = append(indexes, i)
			}
		}
		t.dropped += len(p.Trials) - len(kept.Trials)
		if len(kept.Trials) > 0 {
			t.points = append(t.points, kept)
			t.indexes = append(t.indexes, indexes)
			t.n = append(t.n, float64(p.Clients))
		}
	}
	t.adjust()
	t.measureNoise()
	return t
}

// adjust fills trials and y. A trial is scaled by what taking the pass effect
// out does to the mean of its slices; a trial without slices stays as it is.
func (t *table) adjust() {
	effects := passEffects(t.points)
	t.noise.PassEffect = Unknown()
	if len(effects) > 0 {
		low, high := math.Inf(1), math.Inf(-1)
		for _, e := range effects {
			low, high = min(low, e), max(high, e)
		}
		t.noise.PassEffect = Quantity(math.Expm1(high - low))
		t.noise.Passes = len(effects)
	}
	for _, p := range t.points {
		adjusted := make([]float64, len(p.Trials))
		for i, trial := range p.Trials {
			adjusted[i] = trial.QPS
			var before, after float64
			for _, s := range trial.Slices {
				if usableSlice(s) {
					before += s.QPS
					after += s.QPS * math.Exp(-effects[s.Pass])
				}
			}
			if before > 0 {
				adjusted[i] *= after / before
			}
		}
		t.trials = append(t.trials, adjusted)
		t.y = append(t.y, medianQPS(adjusted))
	}
}

// measureNoise fills noise.Sigma and nu. The residuals of steps with different
// K are brought to one scale before they are pooled.
func (t *table) measureNoise() {
	var pooled []float64
	for i, trials := range t.trials {
		k := len(trials)
		if k < 2 {
			continue
		}
		r := make([]float64, k)
		for j, x := range trials {
			r[j] = math.Abs(math.Log(x / t.y[i]))
		}
		slices.Sort(r)
		if k%2 == 1 {
			r = r[1:] // the middle trial's own zero
		}
		for _, v := range r {
			pooled = append(pooled, v/residualMedian(k))
		}
	}
	t.noise.Residuals = len(pooled)
	t.noise.Sigma = Unknown()
	if len(pooled) > 0 {
		t.noise.Sigma = Quantity(median(pooled))
	}
	t.nu = make([]float64, len(t.y))
	for i := range t.nu {
		t.nu[i] = minStandardError
		if t.noise.Sigma.Known() {
			t.nu[i] = max(minStandardError, float64(t.noise.Sigma)*medianError(len(t.trials[i])))
		}
	}
}

func usableSlice(s Slice) bool { return s.QPS > 0 && !math.IsInf(s.QPS, 0) }

// passEffects returns for every pass how much faster than usual the machine
// was in it, as a difference of ln X. It fits ln X = level + pass by median
// polish (Tukey, "Exploratory Data Analysis", 1977): steps and passes are
// blocks, and a median is not moved by the few slices that something else
// disturbed. Cells may be missing or hold several slices, as they do when
// steps are added later.
//
// A pass that visited fewer than minStepsPerPass steps is left out, and there
// are no effects at all with fewer than two passes left: the result is empty.
// Two groups of passes that have no step in common are not brought to one
// level, since nothing is known of the difference between them.
func passEffects(points []Point) map[int]float64 {
	steps := make(map[int]map[int]bool) // by pass
	for i, p := range points {
		for _, trial := range p.Trials {
			for _, s := range trial.Slices {
				if steps[s.Pass] == nil {
					steps[s.Pass] = make(map[int]bool)
				}
				steps[s.Pass][i] = true
			}
		}
	}
	var passes []int
	for pass, visited := range steps {
		if len(visited) >= minStepsPerPass {
			passes = append(passes, pass)
		}
	}
	if len(passes) < 2 {
		return nil
	}
	slices.Sort(passes)
	row := make(map[int]int, len(passes))
	for i, pass := range passes {
		row[pass] = i
	}
	var cells []cell
	for i, p := range points {
		for _, trial := range p.Trials {
			for _, s := range trial.Slices {
				if r, ok := row[s.Pass]; ok && usableSlice(s) {
					cells = append(cells, cell{i, r, math.Log(s.QPS)})
				}
			}
		}
	}
	effects := polish(cells, len(points), len(passes))
	result := make(map[int]float64, len(passes))
	for i, pass := range passes {
		result[pass] = effects[i]
	}
	return result
}

// A cell is one slice in the two-way table of steps and passes.
type cell struct {
	step, pass int
	value      float64 // ln X
}

// polish returns the pass effects of a median polish, their median 0.
func polish(cells []cell, steps, passes int) []float64 {
	byStep := make([][]cell, steps)
	byPass := make([][]cell, passes)
	for _, c := range cells {
		byStep[c.step] = append(byStep[c.step], c)
		byPass[c.pass] = append(byPass[c.pass], c)
	}
	level := make([]float64, steps)
	effect := make([]float64, passes)
	var rest []float64
	for range maxPolishRounds {
		for i, group := range byStep {
			rest = rest[:0]
			for _, c := range group {
				rest = append(rest, c.value-effect[c.pass])
			}
			if len(rest) > 0 {
				level[i] = median(rest)
			}
		}
		moved := 0.0
		for i, group := range byPass {
			rest = rest[:0]
			for _, c := range group {
				rest = append(rest, c.value-level[c.step])
			}
			if len(rest) > 0 {
				e := median(rest)
				moved = max(moved, math.Abs(e-effect[i]))
				effect[i] = e
			}
		}
		if moved < 1e-9 {
			break
		}
	}
	middle := median(slices.Clone(effect))
	for i := range effect {
		effect[i] -= middle
	}
	return effect
}

// median returns the median of x, of an even number the mean of the middle
// two, and sorts x. x must not be empty.
func median(x []float64) float64 {
	slices.Sort(x)
	m := len(x) / 2
	if len(x)%2 == 1 {
		return x[m]
	}
	return (x[m-1] + x[m]) / 2
}

// medianQPS is the median of ln x, taken back: of an even number the
// geometric mean of the middle two, because noise multiplies a throughput.
func medianQPS(x []float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	m := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[m]
	}
	return math.Sqrt(sorted[m-1] * sorted[m])
}
