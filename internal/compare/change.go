package compare

import (
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
	"golang.org/x/perf/benchmath"

	"github.com/poolsweep/poolsweep/analyze"
)

const (
	// level is that of all intervals.
	level = 0.95

	// minStandardError is the least standard error of one side that is
	// believed, as a ratio, as in package analyze: what agrees better than
	// this agrees by chance, or shares an error that repeating does not show.
	minStandardError = 0.005
)

// stepChanges returns the change of a quantity at each point. Its intervals
// cover all points together.
func stepChanges(points []point, of func(analyze.Trial) analyze.Quantity, margin float64) []Change {
	changes := make([]Change, len(points))
	var olds, news [][]float64
	common := 0
	for i, p := range points {
		old, new := values(p.old, of), values(p.new, of)
		changes[i] = newChange(old, new)
		olds, news = append(olds, old), append(news, new)
		if len(old) > 0 && len(new) > 0 {
			common++
		}
	}
	a, b := pool(olds), pool(news)
	for i := range changes {
		old, new := len(olds[i]), len(news[i])
		if old > 0 && new > 0 {
			changes[i].bound(a.ofMedian(old), b.ofMedian(new), (1-level)/float64(common), margin)
		}
	}
	return changes
}

// wholeChange returns the change of a quantity over all points that both runs
// have, from their rounds.
func wholeChange(points []point, of func(analyze.Trial) analyze.Quantity, margin float64) Change {
	var olds, news [][]float64
	for _, p := range points {
		old, new := values(p.old, of), values(p.new, of)
		if len(old) > 0 && len(new) > 0 {
			olds, news = append(olds, old), append(news, new)
		}
	}
	old, new := rounds(olds), rounds(news)
	c := newChange(old, new)
	// A geometric mean, not a median.
	c.Old.Median, c.New.Median = geometricMean(old), geometricMean(new)
	c.Old.Low, c.Old.High = analyze.Unknown(), analyze.Unknown()
	c.New.Low, c.New.High = analyze.Unknown(), analyze.Unknown()
	c.Ratio = c.New.Median/c.Old.Median - 1
	if len(old) > 0 && len(new) > 0 {
		c.bound(pool([][]float64{old}).ofMean(len(old)), pool([][]float64{new}).ofMean(len(new)), 1-level, margin)
	}
	return c
}

// rounds returns the geometric mean over the steps of their first trials, of
// their second ones and so on, as far as each step has them.
func rounds(steps [][]float64) []float64 {
	if len(steps) == 0 {
		return nil
	}
	n := len(slices.MinFunc(steps, func(a, b []float64) int { return len(a) - len(b) }))
	out := make([]float64, n)
	for k := range out {
		var round []float64
		for _, trials := range steps {
			round = append(round, trials[k])
		}
		out[k] = float64(geometricMean(round))
	}
	return out
}

// geometricMean returns that of x; unknown without x.
func geometricMean(x []float64) analyze.Quantity {
	if len(x) == 0 {
		return analyze.Unknown()
	}
	var sum float64
	for _, v := range x {
		sum += math.Log(v)
	}
	return analyze.Quantity(math.Exp(sum / float64(len(x))))
}

// values returns what is known of a quantity, in the order of the trials.
// What is not above 0 was not measured.
func values(trials []analyze.Trial, of func(analyze.Trial) analyze.Quantity) []float64 {
	var x []float64
	for _, t := range trials {
		if q := of(t); q.Known() && q > 0 {
			x = append(x, float64(q))
		}
	}
	return x
}

// newChange says all that follows from the trials of one step alone.
func newChange(old, new []float64) Change {
	unknown := analyze.Unknown()
	c := Change{Old: newSample(old), New: newSample(new), Ratio: unknown, Low: unknown, High: unknown, P: unknown}
	if len(old) == 0 || len(new) == 0 {
		return c
	}
	c.Ratio = c.New.Median/c.Old.Median - 1
	c.P = analyze.Quantity(mannWhitney(old, new))
	c.Reachable = leastP(len(old), len(new)) <= 1-level
	return c
}

// sample returns x for package benchmath, which sorts it.
func sample(x []float64) *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(x), &benchmath.DefaultThresholds)
}

func newSample(x []float64) Sample {
	if len(x) == 0 {
		return Sample{Median: analyze.Unknown(), Low: analyze.Unknown(), High: analyze.Unknown()}
	}
	s := benchmath.AssumeNothing.Summary(sample(x), level)
	out := Sample{Median: analyze.Quantity(s.Center), Low: analyze.Quantity(s.Lo), High: analyze.Quantity(s.Hi), Trials: len(x)}
	if math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0) {
		// Half an interval says less than none.
		out.Low, out.High = analyze.Unknown(), analyze.Unknown()
	}
	return out
}

// mannWhitney returns the p value of the two-sided U test. With equal values on
// both sides, of which p99 has many, go-moremath's exact test can exceed 1 and
// depends on which sample is named first: the larger answer is taken.
func mannWhitney(a, b []float64) float64 {
	there := benchmath.AssumeNothing.Compare(sample(a), sample(b)).P
	back := benchmath.AssumeNothing.Compare(sample(b), sample(a)).P
	return min(1, max(there, back))
}

// leastP returns the least p value that the Mann-Whitney U test has for so many
// values: of two samples that do not overlap, 2 / C(n+m, n).
func leastP(n, m int) float64 {
	ways := 1.0
	for i := 1; i <= n; i++ {
		ways *= float64(m+i) / float64(i)
	}
	return min(1, 2/ways)
}

// A spread is the noise of ln x of one trial.
type spread struct {
	variance float64
	df       int // degrees of freedom; 0: nothing is known of it
}

// pool returns the mean square of ln x within the groups.
func pool(groups [][]float64) spread {
	var s spread
	var squares float64
	for _, g := range groups {
		if len(g) < 2 {
			continue
		}
		mean := math.Log(float64(geometricMean(g)))
		for _, v := range g {
			d := math.Log(v) - mean
			squares += d * d
		}
		s.df += len(g) - 1
	}
	if s.df > 0 {
		s.variance = squares / float64(s.df)
	}
	return s
}

// ofMean returns the spread of the mean of k trials.
func (s spread) ofMean(k int) spread {
	return spread{max(s.variance/float64(k), minStandardError*minStandardError), s.df}
}

// ofMedian returns the spread of the median of k trials.
func (s spread) ofMedian(k int) spread {
	m := s.ofMean(k)
	if k > 2 {
		m.variance = max(s.variance/float64(k)*math.Pi/2, m.variance)
	}
	return m
}

// bound fills in the interval of the change, at the level 1−alpha and widened
// by margin on both sides, and whether it is significant. The spreads are those
// of ln of the two values that the ratio is made of. An infinite margin leaves
// it unknown.
//
// See Welch (1947), "The generalization of 'Student's' problem when several
// different population variances are involved".
func (c *Change) bound(old, new spread, alpha, margin float64) {
	if old.df == 0 || new.df == 0 || math.IsInf(margin, 1) {
		return
	}
	sum := old.variance + new.variance
	df := sum * sum / (old.variance*old.variance/float64(old.df) + new.variance*new.variance/float64(new.df))
	half := stats.InvCDF(stats.TDist{V: df})(1-alpha/2)*math.Sqrt(sum) + margin
	center := math.Log1p(float64(c.Ratio))
	c.Low, c.High = analyze.Quantity(math.Expm1(center-half)), analyze.Quantity(math.Expm1(center+half))
	c.Significant = (c.Low > 0 || c.High < 0) && (!c.Reachable || c.P <= 1-level)
}
