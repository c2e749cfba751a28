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
	setting *setting       // of the server, that is varied; nil: none
	value   string         // of the setting
	sampler *probe.Sampler // nil: nothing is observed
	ceiling calibration    // nil: the generator is not calibrated
	rng     *rand.Rand

	levels  []int                 // steps so far, rising
	have    map[visit]bool        // slices that count, of an earlier run, too
	rate    float64               // requests/s of the last slice, 0 before the first
	length  map[int]time.Duration // of a slice, where a step needs longer ones
	pass    int                   // number of the pass under way
	last    int                   // highest number of a pass
	repeats int                   // slices that were measured again
	done    int                   // slices measured
	total   int                   // slices planned
	spent   time.Duration         // measuring
	noted   map[string]bool

	// exact is true when what the server processes for us can be counted: not
	// with a handshake for each request, and not with scripts, whose own
	// commands are processed as well.
	exact bool

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

// A calibration measures at a depth what the generator reaches when the server
// costs nothing.
type calibration func(ctx context.Context, depth int) (*load.Measurement, error)

// A visit is a step in a pass.
type visit struct{ clients, pass int }

// runTogether runs sweeps that are to be compared, in turn pass by pass, so
// that the machine is the same to all; most often there is but one. Each
// measures the planned levels once, upwards, adding the levels that the
// analysis asks for; then all of them in the other passes; then what noise has
// left open. What an earlier run has measured is not measured again.
func runTogether(ctx context.Context, all []*sweeper) error {
	each := func(do func(s *sweeper) error) error {
		for _, s := range all {
			if err := s.setting.set(ctx, s.value); err != nil {
				return err
			}
			if err := do(s); err != nil {
				return err
			}
		}
		return nil
	}
	if err := each(func(s *sweeper) error { return s.firstPass(ctx) }); err != nil {
		return err
	}
	for pass := 2; pass <= all[0].Plan.passes(); pass++ {
		if err := each(func(s *sweeper) error { return s.passes(ctx, s.base(), pass, 1) }); err != nil {
			return err
		}
	}
	return each(func(s *sweeper) error { return s.refine(ctx) })
}

// firstPass measures each level once and adds those that the analysis asks for.
func (s *sweeper) firstPass(ctx context.Context) error {
	s.adopt()
	dropped := s.plan()
	base := s.base()
	s.total = max(len(base)*s.Plan.passes(), s.done)
	s.event(Event{})
	if dropped > 0 {
		s.note(fmt.Sprintf("%s keeps the sweep below %d clients", s.limit.name, dropped))
	}
	if err := s.visit(ctx, base, 1); err != nil {
		return err
	}
	return s.explore(ctx)
}

// base returns the levels that all first passes measure: without those that
// refine has added in an earlier run, whose passes are later ones.
func (s *sweeper) base() []int {
	return slices.DeleteFunc(slices.Clone(s.levels), func(n int) bool {
		return s.last > 1 && !s.have[visit{n, 1}] && !slices.Contains(s.Plan.Clients, n)
	})
}

// adopt takes over what the result holds of this sweep already.
func (s *sweeper) adopt() {
	s.have = make(map[visit]bool)
	for _, x := range s.res.Slices {
		m := x.Measurement
		if x.Test != s.test || m.Depth != s.depth || x.Superseded {
			continue
		}
		s.have[visit{m.Clients, x.Pass}] = true
		s.done++
		s.last = max(s.last, x.Pass)
		s.spent += m.Elapsed + s.Plan.Warmup
		if !slices.Contains(s.levels, m.Clients) {
			s.levels = append(s.levels, m.Clients)
		}
	}
}

// plan adds the planned levels to those there are and returns the first that
// the limit drops, 0 for none.
func (s *sweeper) plan() (dropped int) {
	for _, n := range s.Plan.Clients {
		switch {
		case n > s.limit.clients:
			if dropped == 0 {
				dropped = n
			}
		case !slices.Contains(s.levels, n):
			s.levels = append(s.levels, n)
		}
	}
	slices.Sort(s.levels)
	return dropped
}

// passes visits the steps n times, from a pass on.
func (s *sweeper) passes(ctx context.Context, levels []int, first, n int) error {
	for pass := first; pass < first+n; pass++ {
		order := slices.Clone(levels)
		if s.Plan.Order == Shuffled {
			s.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		if err := s.visit(ctx, order, pass); err != nil {
			return err
		}
	}
	return nil
}

// visit measures the steps that have no slice in a pass yet.
func (s *sweeper) visit(ctx context.Context, levels []int, pass int) error {
	s.pass, s.last = pass, max(s.last, pass)
	todo := slices.DeleteFunc(slices.Clone(levels), func(n int) bool { return s.have[visit{n, pass}] })
	if len(todo) == 0 {
		return nil
	}
	if err := s.calibrate(ctx); err != nil {
		return err
	}
	return s.measureAll(ctx, todo)
}

// calibrate measures what the generator reaches against a null responder. It
// is done in each pass, since the machine's speed changes between passes.
func (s *sweeper) calibrate(ctx context.Context) error {
	if s.ceiling == nil {
		return nil
	}
	m, err := s.ceiling(ctx, s.depth)
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
		// After the first pass levels are added by refine.
		if s.Plan.Fixed || s.last > 1 {
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
		if s.spent+s.spent/time.Duration(s.done)*time.Duration(len(round)*passes) > s.Plan.Budget {
			s.note(fmt.Sprintf("no further refinement within --budget %v", s.Plan.Budget))
			return nil
		}
		s.note(strings.Join(p.Why, "; "))
		s.total += len(round) * passes
		if err := s.passes(ctx, round, s.last+1, passes); err != nil {
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
		if n > s.limit.clients && slices.ContainsFunc(s.res.Slices, func(x Slice) bool { return x.Guard != "" }) {
			continue // it is no number of clients that limits
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
		if n > s.limit.clients {
			continue // a guard has lowered it
		}
		begun := time.Now()
		err := s.measure(ctx, n)
		s.spent += time.Since(begun)
		if err != nil {
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
		e.Left = s.spent / time.Duration(s.done) * time.Duration(s.total-s.done)
	}
	s.Progress(e)
}

// loading reports that keys are being written.
func (s *sweeper) loading(done, total int64) { s.event(Event{Loaded: done, Load: total}) }

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
