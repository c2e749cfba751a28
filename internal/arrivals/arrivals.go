// Package arrivals is the open loop without a transport: when requests are
// due, how to wait for that moment, and the times that are taken from it. In
// an open loop requests come when they like and not when a reply has freed
// somebody, so that each is timed from when it was due: what it waits before
// it is sent is latency, too. A generator that times from the sending leaves
// just the requests out that a stall has hit ("coordinated omission").
package arrivals

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// A Kind is how the gaps between arrivals are distributed.
type Kind string

const (
	// Poisson has independent exponential gaps, as requests of many users
	// that know nothing of each other.
	Poisson Kind = "poisson"
	// Constant has equal gaps.
	Constant Kind = "constant"
)

// A Process is a sequence of arrivals. It must not be used by two goroutines
// at once.
type Process struct {
	kind Kind
	gap  float64 // mean, ns
	rng  *rand.Rand
	n    float64 // arrivals so far
	at   float64 // the last one, ns
}

// New returns arrivals at rate a second. The same seed gives the same ones; for
// Constant it has no meaning. It is an error when the kind is unknown or the
// rate is not in 0.001 to 10 million.
func New(kind Kind, rate float64, seed uint64) (*Process, error) {
	if kind != Poisson && kind != Constant {
		return nil, fmt.Errorf("unknown arrivals %q; want %s or %s", kind, Poisson, Constant)
	}
	if !(rate >= 1e-3 && rate <= maxRate) {
		return nil, fmt.Errorf("a rate of %v requests/s; want 0.001 to 10000000", rate)
	}
	return &Process{kind: kind, gap: 1e9 / rate, rng: rand.New(rand.NewPCG(seed, 0))}, nil
}

// Next returns when the next request is due, from the origin. It never falls,
// and for Poisson two may be due in the same nanosecond. It allocates nothing.
func (p *Process) Next() time.Duration {
	p.n++
	if p.kind == Constant {
		p.at = p.n * p.gap // not a sum: its rounding would drift
	} else {
		p.at += p.rng.ExpFloat64() * p.gap
	}
	return time.Duration(p.at)
}
