package analyze

import (
	"fmt"
	"math"
	"slices"
)

// A Proposal is what would make the answer to a sweep better. It knows no
// bounds: how many clients are allowed and how much time is left is for the
// caller to say. Lists of levels are in rising order and hold no level twice.
type Proposal struct {
	// Extend holds levels that confirm the plateau, most of them above the
	// last one.
	Extend []int `json:"extend"`
	// Below holds levels under the first one, which is already on the plateau.
	Below []int `json:"below"`
	// Between holds a level between the knee and the one before it, when
	// these are so far apart that the knee may be much smaller.
	Between []int `json:"between"`
	// Repeat holds existing levels whose noise leaves the answer open. Each
	// should get three more trials.
	Repeat []int `json:"repeat"`
	// Why says the reason for each list that is not empty, a clause each, in
	// the order above.
	Why []string `json:"why"`
}

// Empty reports whether there is nothing to add.
func (p Proposal) Empty() bool {
	return len(p.Extend)+len(p.Below)+len(p.Between)+len(p.Repeat) == 0
}

const (
	extendBy = 1.5 // factor above the last level while the curve rises
	widestAt = 1.5 // N_k/N_{k−1} above which a level between is wanted

	isolatedTrials  = 6 // K that settles whether an isolated peak was luck
	contestedTrials = 9 // K up to which contested levels get more trials
)

// Next says what to measure next. It is meant to be asked after the first
// pass, when every step has one slice and nothing is known of the noise, and
// again after each round of measuring until it proposes nothing:
//
//   - a rising curve is extended by half, rounded up to a multiple of 10;
//   - an unconfirmed knee gets levels at two and four times its clients, and
//     so does one whose fall is seen at the last level only;
//   - a knee at the first level gets 1, 2, 5, 10, 20, 50, … below it;
//   - a confirmed knee more than 1.5 times the level before it gets their
//     geometric mean, as long as that is a new level;
//   - an isolated peak or spike and its neighbours get three more trials, once;
//   - levels whose place is contested, and the peak with them, get three more
//     until they have nine, unless confidence is HIGH already.
//
// A rising curve is extended without end; everything else ends by itself.
// Levels are found by the rule alone: Next does not ask who stopped the
// throughput.
func Next(c Curve, o Options) Proposal {
	t := newTable(c)
	if len(t.points) == 0 {
		return Proposal{}
	}
	delta := o.tolerance()
	f, r := t.find(delta)
	k := t.knee(f, delta)
	return t.next(f, k, t.contested(&k, f, r, t.gateWarnings(f)))
}

// next is Next for a curve on which f was found.
func (t *table) next(f finding, k Knee, contested []int) Proposal {
	var p Proposal
	knee, last := k.Apparent, t.points[len(t.points)-1].Clients
	switch {
	case f.shape == ShapeRising:
		p.Extend = []int{int(math.Ceil(float64(last)*extendBy/10)) * 10}
		p.because("throughput still rises at %s", count(last, "client"))
		return p
	case f.shape == ShapeUnconfirmed:
		p.Extend = t.missing(2*knee, 4*knee)
		p.because("too few levels above %s confirm the plateau", count(knee, "client"))
	case f.shape == ShapeRetrograde && f.lone:
		p.Extend = t.missing(2*knee, 4*knee)
		p.because("throughput falls at %d clients, which one level alone does not prove", last)
	}
	if f.knee == 0 {
		if p.Below = t.missing(roundLevelsBelow(knee)...); len(p.Below) > 0 {
			p.because("%d clients, the first level, already give the plateau's throughput", knee)
		}
	} else if before := t.points[f.knee-1].Clients; len(p.Extend) == 0 && float64(knee) > widestAt*float64(before) {
		middle := int(math.Round(math.Sqrt(float64(knee) * float64(before))))
		if p.Between = t.missing(middle); len(p.Between) > 0 {
			p.because("the knee may lie anywhere between %d and %d clients", before, knee)
		}
	}
	if t.noise.Sigma.Known() {
		p.repeat(t, f, k.Isolated, contested)
	}
	return p
}

// repeat fills p.Repeat.
func (p *Proposal) repeat(t *table, f finding, isolated bool, contested []int) {
	again := func(level, enough int) {
		if len(t.trials[level]) < enough {
			p.Repeat = append(p.Repeat, t.points[level].Clients)
		}
	}
	lone := f.peak
	if f.spike >= 0 {
		lone, isolated = f.spike, true
	}
	if isolated {
		for i := lone - 1; i <= lone+1; i++ {
			again(i, isolatedTrials)
		}
		if len(p.Repeat) > 0 {
			p.because("the throughput at %d clients stands out between its neighbours", t.points[lone].Clients)
		}
	}
	if len(contested) > 0 {
		before := len(p.Repeat)
		for _, i := range append(slices.Clone(contested), f.peak) {
			again(i, contestedTrials)
		}
		if len(p.Repeat) > before {
			p.because("noise leaves open whether %s reach the plateau", t.clientList(contested))
		}
	}
	slices.Sort(p.Repeat)
	p.Repeat = slices.Compact(p.Repeat)
}

func (p *Proposal) because(format string, args ...any) {
	p.Why = append(p.Why, fmt.Sprintf(format, args...))
}

// missing returns those of the levels that are not in t, in the order given.
func (t *table) missing(levels ...int) []int {
	var missing []int
	for _, n := range levels {
		if !slices.Contains(t.n, float64(n)) {
			missing = append(missing, n)
		}
	}
	return missing
}

// roundLevelsBelow returns 1, 2, 5, 10, 20, 50, … as far as they are below n.
func roundLevelsBelow(n int) []int {
	var levels []int
	for decade := 1; decade < n; decade *= 10 {
		for _, level := range []int{decade, 2 * decade, 5 * decade} {
			if level < n {
				levels = append(levels, level)
			}
		}
	}
	return levels
}
