package sweep

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep/load"
)

// A sweeper is one sweep under way.
type sweeper struct {
	Config
	res     *Result
	limit   limit
	test    string
	depth   int
	driver  load.Driver
	sampler *probe.Sampler   // nil: nothing is observed
	ceiling *load.Calibrator // nil: the generator is not calibrated
	rng     *rand.Rand

	levels  []int                 // steps so far, rising
	rate    float64               // requests/s of the last slice, 0 before the first
	length  map[int]time.Duration // of a slice, where a step needs longer ones
	pass    int                   // number of the pass under way
	repeats int                   // slices that were measured again
	done    int                   // slices measured
	total   int                   // slices planned
	begun   time.Time
	noted   map[string]bool

	// commands is how many the server had processed after the last slice;
	// 0 when that is unknown.
	commands int64
}

const (
	// exploreRounds bounds the rounds of explore: with one slice a step the
	// analysis could change its mind for ever.
	exploreRounds = 12

	// extraTrials is what a contested step gets in a round of refine.
	extraTrials = 3

	// companions is how many steps a pass must have for its effect to be
	// told from the noise of its slices.
	companions = 3
)

// run measures the planned levels once, upwards, adding the levels that the
// analysis asks for; then all of them in the other passes; then what noise
// has left open.
func (s *sweeper) run(ctx context.Context) error {
	var dropped []int
	for _, n := range s.Plan.Clients {
		if n > s.limit.clients {
			dropped = append(dropped, n)
			continue
		}
		s.levels = append(s.levels, n)
	}
	s.total = len(s.levels) * s.Plan.passes()
	s.event(Event{})
	if len(dropped) > 0 {
		s.note(fmt.Sprintf("%s keeps the sweep below %d clients", s.limit.name, dropped[0]))
	}
	s.pass = 1
	if err := s.calibrate(ctx); err != nil {
		return err
	}
	if err := s.measureAll(ctx, s.levels); err != nil {
		return err
	}
	if err := s.explore(ctx); err != nil {
		return err
	}
	if err := s.passes(ctx, s.levels, s.Plan.passes()-1); err != nil {
		return err
	}
	return s.refine(ctx)
}

// passes visits the steps n times.
func (s *sweeper) passes(ctx context.Context, levels []int, n int) error {
	for range n {
		s.pass++
		order := slices.Clone(levels)
		if s.Plan.Order == Shuffled {
			s.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		if err := s.calibrate(ctx); err != nil {
			return err
		}
		if err := s.measureAll(ctx, order); err != nil {
			return err
		}
	}
	return nil
}

// calibrate measures what the generator reaches against a null responder. It
// is done in each pass, since the machine's speed changes between passes.
func (s *sweeper) calibrate(ctx context.Context) error {
	if s.ceiling == nil {
		return nil
	}
	m, err := s.ceiling.Run(ctx, s.depth)
	if err != nil {
		return err
	}
	c := Calibration{Test: s.test, Depth: s.depth, Pass: s.pass, Loops: m.Loops, QPS: m.Throughput()}
	s.res.Calibrations = append(s.res.Calibrations, c)
	return s.Journal.calibration(c)
}

// explore extends and refines the levels within the first pass, when a level
// costs one slice.
func (s *sweeper) explore(ctx context.Context) error {
	for range exploreRounds {
		if s.Plan.Fixed {
			return nil
		}
		add := s.wanted(analyze.Next(s.curve(), s.options()))
		if len(add) == 0 {
			return nil
		}
		s.total += len(add) * s.Plan.passes()
		if err := s.measureAll(ctx, add); err != nil {
			return err
		}
	}
	return nil
}

// refine measures levels that are still missing, and gives contested levels
// more trials, until there is nothing left to gain or the budget is spent.
// What it measures goes together with neighbours and the peak, so that the
// new passes can be compared with the earlier ones.
func (s *sweeper) refine(ctx context.Context) error {
	for !s.Plan.Fixed {
		a := analyze.Analyze(s.curve(), s.options())
		p := a.Next
		if p.Empty() {
			return nil
		}
		round, passes := s.wanted(p), s.Plan.passes()
		if len(round) == 0 {
			round, passes = p.Repeat, extraTrials*s.Plan.Slices
		}
		if len(round) == 0 {
			return nil
		}
		round = s.company(round, a.Knee.Peak)
		spent := time.Since(s.begun)
		if spent+spent/time.Duration(s.done)*time.Duration(len(round)*passes) > s.Plan.Budget {
			s.note(fmt.Sprintf("no further refinement within --budget %v", s.Plan.Budget))
			return nil
		}
		s.note(strings.Join(p.Why, "; "))
		s.total += len(round) * passes
		if err := s.passes(ctx, round, passes); err != nil {
			return err
		}
	}
	return nil
}

func (s *sweeper) options() analyze.Options { return analyze.Options{Tolerance: s.Plan.Tolerance} }

// curve returns what has been measured so far.
func (s *sweeper) curve() analyze.Curve {
	all := s.res.Sweeps()
	i := slices.IndexFunc(all, func(w Sweep) bool { return w.Test == s.test && w.Depth == s.depth })
	return curve(all[i], s.Plan.Slices, s.Server.Identity.Local)
}

// wanted makes the proposed levels, as far as the limits allow, part of the
// sweep and returns them.
func (s *sweeper) wanted(p analyze.Proposal) []int {
	highest := s.levels[len(s.levels)-1]
	var add []int
	for _, n := range slices.Concat(p.Extend, p.Below, p.Between) {
		if s.Plan.Auto && n > highest {
			n = 2 * highest
		}
		if n > s.limit.clients {
			s.note(fmt.Sprintf("%s keeps the sweep at %d clients", s.limit.name, s.limit.clients))
			n = s.limit.clients
		}
		if !slices.Contains(s.levels, n) && !slices.Contains(add, n) {
			add = append(add, n)
		}
	}
	slices.Sort(add)
	s.levels = append(s.levels, add...)
	slices.Sort(s.levels)
	return add
}

// company returns the levels with their neighbours and the peak.
func (s *sweeper) company(levels []int, peak int) []int {
	all := slices.Clone(levels)
	for _, n := range levels {
		i := slices.Index(s.levels, n)
		all = append(all, s.levels[max(0, i-1)], s.levels[min(len(s.levels)-1, i+1)])
	}
	all = append(all, peak)
	slices.Sort(all)
	all = slices.Compact(all)
	for _, n := range s.levels {
		if len(all) >= companions {
			break
		}
		if !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all
}

func (s *sweeper) measureAll(ctx context.Context, levels []int) error {
	for _, n := range levels {
		if err := s.measure(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// event reports progress.
func (s *sweeper) event(e Event) {
	if s.Progress == nil {
		return
	}
	e.Test, e.Depth, e.Done, e.Total = s.test, s.depth, s.done, s.total
	if s.done > 0 {
		e.Left = time.Since(s.begun) / time.Duration(s.done) * time.Duration(s.total-s.done)
	}
	s.Progress(e)
}

// note reports something once.
func (s *sweeper) note(text string) {
	if s.noted == nil {
		s.noted = make(map[string]bool)
	}
	if text != "" && !s.noted[text] {
		s.noted[text] = true
		s.event(Event{Note: text})
	}
}
