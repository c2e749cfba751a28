package analyze

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// model returns the curve of x at the given levels, trials times each.
func model(x func(n float64) float64, trials int, levels ...int) Curve {
	var c Curve
	for _, n := range levels {
		p := Point{Clients: n}
		for range trials {
			p.Trials = append(p.Trials, plainTrial(x(float64(n))))
		}
		c.Points = append(c.Points, p)
	}
	return c
}

// follow does what p says, as the controller would: new levels up to limit get
// as many trials as the others have, repeated ones three more. It reports
// whether anything was left to do.
func follow(c Curve, p Proposal, limit, trials int, measure func(n int) float64) (Curve, bool) {
	done := false
	add := func(n, count int) {
		i := slices.IndexFunc(c.Points, func(p Point) bool { return p.Clients == n })
		if i < 0 {
			c.Points = append(c.Points, Point{Clients: n})
			i = len(c.Points) - 1
		}
		for range count {
			c.Points[i].Trials = append(c.Points[i].Trials, plainTrial(measure(n)))
		}
		done = true
	}
	for _, n := range slices.Concat(p.Extend, p.Below, p.Between) {
		if n <= limit {
			add(n, trials)
		}
	}
	for _, n := range p.Repeat {
		add(n, 3)
	}
	return c, done
}

// TestNextEnds: c workers of fixed service time have their knee at c. From the
// default levels, following Next comes to an end within eight rounds, with one
// trial a step as with three, at a knee of c to 1.5c.
func TestNextEnds(t *testing.T) {
	for _, trials := range []int{1, 3} {
		for _, workers := range []int{1, 2, 3, 4, 7, 12, 32, 60, 100, 200} {
			x := func(n int) float64 { return hard(float64(workers))(float64(n)) }
			c := model(hard(float64(workers)), trials, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110)
			rounds := 0
			for more := true; more && rounds < 10; rounds++ {
				c, more = follow(c, Next(c, Options{}), math.MaxInt, trials, x)
			}
			k := Analyze(c, Options{}).Knee
			if rounds > 8 || k.Clients < workers || float64(k.Clients) > 1.5*float64(workers) {
				t.Errorf("%d workers, %d trials: %s, knee %d after %d rounds", workers, trials, k.Shape, k.Clients, rounds)
			}
		}
	}
}

// TestNextRising: a rising curve is extended until the caller stops, each time
// by half as much again.
func TestNextRising(t *testing.T) {
	c := model(rising(1), 1, 10, 20, 30)
	for range 50 {
		p := Next(c, Options{})
		if len(p.Extend) != 1 || len(p.Below)+len(p.Between)+len(p.Repeat) > 0 {
			t.Fatalf("%d levels: %+v, want one level above", len(c.Points), p)
		}
		var more bool
		c, more = follow(c, p, 400, 1, func(n int) float64 { return rising(1)(float64(n)) })
		if !more {
			break
		}
	}
	var levels []int
	for _, p := range c.Points {
		levels = append(levels, p.Clients)
	}
	if want := []int{10, 20, 30, 50, 80, 120, 180, 270}; !slices.Equal(levels, want) {
		t.Errorf("levels %v, want %v (1.5 × 270 is 405, and 410 is beyond the limit)", levels, want)
	}
}

// TestNextFirstPass: with one slice a step, each off by 8 %, a plateau must not
// send the sweep far beyond it, nor ask for repeats.
func TestNextFirstPass(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	far := 0
	const draws = 200
	for range draws {
		measure := func(n int) float64 { return hard(12)(float64(n)) * math.Exp(0.08*r.NormFloat64()) }
		var c Curve
		for _, n := range []int{10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110} {
			c, _ = follow(c, Proposal{Extend: []int{n}}, n, 1, measure)
		}
		for more, rounds := true, 0; more && rounds < 20; rounds++ {
			p := Next(c, Options{})
			if len(p.Repeat) > 0 {
				t.Fatalf("one trial a step, and %v to be repeated", p.Repeat)
			}
			c, more = follow(c, p, 10000, 1, measure)
		}
		if slices.ContainsFunc(c.Points, func(p Point) bool { return p.Clients > 440 }) {
			far++
		}
	}
	t.Logf("%d of %d went beyond four times the last level", far, draws)
	if far > draws/20 {
		t.Errorf("%d of %d sweeps of a plateau went beyond 440 clients", far, draws)
	}
}

func TestNext(t *testing.T) {
	noisy := func(clients int, qps ...float64) Point {
		p := Point{Clients: clients}
		for _, x := range qps {
			p.Trials = append(p.Trials, plainTrial(x))
		}
		return p
	}
	calm := func(clients int, qps float64) Point { return noisy(clients, .97*qps, qps, 1.03*qps) }
	tests := []struct {
		name string
		c    Curve
		want Proposal
	}{
		{"nothing measured", Curve{}, Proposal{}},
		// Nothing to compare with: 1.5 × 10, rounded up.
		{"one level", model(hard(5), 1, 10), Proposal{Extend: []int{20}}},
		// 20 seems to be the knee, with one level above, at twice that.
		{"unconfirmed", model(hard(20), 1, 10, 20, 40), Proposal{Extend: []int{80}}},
		{"flat from the first level", model(hard(5), 1, 10, 20, 30), Proposal{Below: []int{1, 2, 5}}},
		{"far below", model(hard(5), 1, 300, 600, 900), Proposal{Below: []int{1, 2, 5, 10, 20, 50, 100, 200}}},
		{"flat from 1", model(hard(1), 1, 1, 2, 4), Proposal{}},
		// √(20·40) = 28.3
		{"wide gap", model(hard(40), 1, 10, 20, 40, 80, 160), Proposal{Between: []int{28}}},
		// Nothing lies between 1 and 2.
		{"no integer between", model(hard(2), 1, 1, 2, 4, 8), Proposal{}},
		{"fall at one level", model(retro(10, .3), 1, 7, 10, 30), Proposal{Extend: []int{20, 40}}},
		{"isolated peak", Curve{Points: []Point{
			calm(5, 50), calm(10, 100), calm(13, 130), calm(15, 101), calm(20, 100), calm(30, 100)}},
			Proposal{Repeat: []int{10, 13, 15}}},
		// 20 is 5 % below the others, just where the tolerance ends.
		{"contested", Curve{Points: []Point{
			calm(10, 60), calm(14, 80), calm(20, 95), calm(30, 100), calm(40, 100), calm(60, 100.1)}},
			Proposal{Repeat: []int{20, 60}}},
	}
	for _, test := range tests {
		got := Next(test.c, Options{})
		if got.Empty() != (len(got.Why) == 0) {
			t.Errorf("%s: %+v has %d reasons", test.name, got, len(got.Why))
		}
		got.Why = nil
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
