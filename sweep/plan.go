package sweep

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/poolsweep/poolsweep/sweep/workload"
)

// Order is the order in which a pass visits the steps.
type Order string

const (
	// Shuffled visits them in a fresh seeded random order in each pass, so
	// that a drift of the machine does not look like a shape of the curve.
	// The first pass goes up all the same.
	Shuffled Order = "shuffled"
	// Ascending visits them from few clients to many, as is done by hand.
	Ascending Order = "ascending"
)

// A Plan is what to measure. DefaultPlan returns one to start from; Check
// tells what is wrong with one. Its JSON form is part of the result file.
type Plan struct {
	Workloads []workload.Spec `json:"workloads"` // what to send, each a sweep of its own
	Depths    []int           `json:"depths"`    // pipeline depths, each a sweep of its own
	Clients   []int           `json:"clients"`   // the levels to begin with, rising

	// Fixed keeps to Clients: no extension and no refinement.
	Fixed bool `json:"fixed"`

	// Auto climbs by doubling from Clients instead of by half, until the
	// throughput no longer rises.
	Auto bool `json:"auto"`

	// MaxClients bounds the extension.
	MaxClients int `json:"max_clients"`

	// A step is measured in Trials trials, a trial in Slices slices, each in
	// another pass over the steps. A slice is Warmup without and
	// Duration/Slices with measuring; it is made longer where that is too
	// short for the clients to make enough requests.
	Trials   int           `json:"trials"`
	Slices   int           `json:"slices"`
	Duration time.Duration `json:"duration_ns"`
	Warmup   time.Duration `json:"warmup_ns"`

	// MinRequests is how many requests a slice must have in all, and
	// twenty times its batch a client; a slice with fewer is made longer.
	MinRequests int64 `json:"min_requests"`

	// Requests counts a trial in requests instead of time; 0: by Duration.
	Requests int64 `json:"requests"`

	Order Order  `json:"order"`
	Seed  uint64 `json:"seed"`

	// Budget is how long one sweep may take: no round of refinement or
	// repetition is begun that would end later. What was planned is always
	// done.
	Budget time.Duration `json:"budget_ns"`

	// Tolerance is δ of package analyze: what is looked for decides what is
	// measured.
	Tolerance float64 `json:"tolerance_ratio"`

	// Idle is how many connections without load are held during the sweep.
	Idle int `json:"idle"`

	// PerRequest opens a connection for each batch and closes it afterwards,
	// as -k 0 of redis-benchmark.
	PerRequest bool `json:"connection_per_request"`

	// Vary sweeps each workload for each value of a setting of the server.
	Vary Vary `json:"vary,omitzero"`

	// Rates are offered after each sweep, in an open loop.
	Rates Rates `json:"rates,omitzero"`

	// Guards stop a sweep early.
	Guards Guards `json:"guards"`

	// Threads is the number of event loops.
	Threads int `json:"threads"`
}

// DefaultPlan returns the plan of a run without flags. Threads is left to the
// caller, who knows where the server is.
func DefaultPlan() Plan {
	levels, _ := ParseLevels("10:110:10")
	return Plan{
		Depths:      []int{1},
		Clients:     levels.Values,
		MaxClients:  1000,
		Trials:      3,
		Slices:      4,
		Duration:    time.Second,
		Warmup:      100 * time.Millisecond,
		MinRequests: 1000,
		Order:       Shuffled,
		Seed:        1,
		Budget:      2 * time.Minute,
		Tolerance:   0.05,
		Threads:     1,
	}
}

// Check reports the first thing that is wrong with the plan.
func (p Plan) Check() error {
	if len(p.Workloads) == 0 {
		return errors.New("plan: nothing to send; the tests are " + strings.Join(workload.Names(), ", "))
	}
	for _, s := range p.Workloads {
		s.Prefix = "check:"
		if _, err := workload.New(s); err != nil {
			return fmt.Errorf("plan: %w", err)
		}
	}
	if err := checkLevels("clients", p.Clients); err != nil {
		return err
	}
	if err := checkLevels("pipeline depths", p.Depths); err != nil {
		return err
	}
	sliced := p.Duration / time.Duration(max(1, p.Slices))
	switch {
	case p.Clients[len(p.Clients)-1] > p.MaxClients:
		return fmt.Errorf("plan: %d clients are more than --max-clients %d", p.Clients[len(p.Clients)-1], p.MaxClients)
	case p.Trials < 1 || p.Trials > 99:
		return fmt.Errorf("plan: %d trials a step; want 1 to 99", p.Trials)
	case p.Slices < 1 || p.Slices > 100:
		return fmt.Errorf("plan: %d slices a trial; want 1 to 100", p.Slices)
	case p.Requests < 0:
		return fmt.Errorf("plan: %d requests a trial; want 1 or more", p.Requests)
	case p.Requests > 0 && p.Requests < int64(p.Slices):
		return fmt.Errorf("plan: %d requests a trial cannot be split into %d slices", p.Requests, p.Slices)
	case p.Requests == 0 && sliced < 10*time.Millisecond:
		return fmt.Errorf("plan: a slice of %v; want a --duration of at least %d × 10ms", sliced, p.Slices)
	case p.Requests == 0 && p.Duration > time.Hour:
		return fmt.Errorf("plan: a trial of %v; want an hour at most", p.Duration)
	case p.MinRequests < 1:
		return fmt.Errorf("plan: at least %d requests a slice; want 1 or more", p.MinRequests)
	case p.Warmup < 0 || p.Warmup > time.Minute:
		return fmt.Errorf("plan: a warm-up of %v; want 0 to 1m", p.Warmup)
	case p.Order != Shuffled && p.Order != Ascending:
		return fmt.Errorf("plan: unknown order %q; want %s or %s", p.Order, Shuffled, Ascending)
	case p.Tolerance <= 0 || p.Tolerance >= 0.5:
		return fmt.Errorf("plan: a tolerance of %v; want more than 0 and less than 0.5", p.Tolerance)
	case p.Threads < 1 || p.Threads > 1024:
		return fmt.Errorf("plan: %d threads; want 1 or more", p.Threads)
	case p.Idle < 0 || p.Idle > maxLevel:
		return fmt.Errorf("plan: %d idle connections; want 0 to %d", p.Idle, maxLevel)
	case p.Budget < 0:
		return fmt.Errorf("plan: a budget of %v; want 0 or more", p.Budget)
	}
	if err := p.Rates.check(p); err != nil {
		return err
	}
	return p.Guards.check()
}

func checkLevels(what string, levels []int) error {
	switch {
	case len(levels) == 0:
		return fmt.Errorf("plan: no %s", what)
	case levels[0] < 1:
		return fmt.Errorf("plan: %s start at %d; want 1 or more", what, levels[0])
	case !slices.IsSorted(levels) || len(slices.Compact(slices.Clone(levels))) != len(levels):
		return fmt.Errorf("plan: %s must rise", what)
	}
	return nil
}

// passes returns how many passes measure a step once and for all.
func (p Plan) passes() int { return p.Trials * p.Slices }

// Levels is what -c and -P take.
type Levels struct {
	Values []int // rising, each once
	Auto   bool  // "auto": climb by doubling from Values
}

const (
	maxLevel  = 1_000_000 // no server has that many connections
	maxLevels = 1000
)

// ParseLevels reads "auto", or a list of numbers and ranges: "1,2,5",
// "10:110:10" (from, to and by how much), "1,2,10:50:10". A range includes its
// end when a step meets it.
func ParseLevels(s string) (Levels, error) {
	if s == "auto" {
		return Levels{Values: []int{1, 2, 4, 8}, Auto: true}, nil
	}
	var l Levels
	for part := range strings.SplitSeq(s, ",") {
		from, to, step, err := parseRange(part)
		if err != nil {
			return Levels{}, err
		}
		for n := from; n <= to; n += step {
			if l.Values = append(l.Values, n); len(l.Values) > maxLevels {
				return Levels{}, fmt.Errorf("%q has more than %d levels", s, maxLevels)
			}
		}
	}
	slices.Sort(l.Values)
	l.Values = slices.Compact(l.Values)
	return l, nil
}

func parseRange(s string) (from, to, step int, err error) {
	fields := strings.Split(s, ":")
	numbers := []int{0, 0, 1}
	if len(fields) > 3 {
		return 0, 0, 0, fmt.Errorf("%q is no range; want FROM:TO:STEP", s)
	}
	for i, f := range fields {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil || n < 1 || n > maxLevel {
			return 0, 0, 0, fmt.Errorf("%q is not a number from 1 to %d; want a list (1,2,5), a range (10:110:10) or auto", f, maxLevel)
		}
		numbers[i] = n
	}
	from, to, step = numbers[0], numbers[1], numbers[2]
	switch {
	case len(fields) == 1:
		to = from
	case to < from:
		return 0, 0, 0, fmt.Errorf("the range %q ends before it starts", s)
	}
	return from, to, step, nil
}
