package probe

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

// Stalls are the times for which this machine did not run a thread that was
// always ready to run: other processes, the hypervisor, interrupts. No server
// on such a machine can answer faster. The gap between two readings of the
// clock is a stall if it is far longer than a reading takes.
type Stalls struct {
	Elapsed  time.Duration `json:"elapsed_ns"` // the sum of all gaps
	Readings int64         `json:"readings"`   // of the clock, but for the first: as many gaps
	Worst    time.Duration `json:"worst_ns"`   // the longest gap

	// How many gaps were that long or longer.
	Over100us int64 `json:"over_100us"`
	Over1ms   int64 `json:"over_1ms"`
	Over10ms  int64 `json:"over_10ms"`

	// Lost is the sum of the gaps of 100 µs and longer.
	Lost time.Duration `json:"lost_ns"`
}

// Intrinsic reads the clock without a rest on a thread of its own, for a time
// or until ctx is over, as redis-cli --intrinsic-latency does. It takes a
// whole core. Go's scheduler looks in every 10 ms, which takes less than the
// 100 µs that make a stall.
func Intrinsic(ctx context.Context, over time.Duration) Stalls {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var done atomic.Bool // cheaper to look at than ctx
	stop := context.AfterFunc(ctx, func() { done.Store(true) })
	defer stop()
	begun := time.Now()
	return watchClock(over, func() time.Duration { return time.Since(begun) }, done.Load)
}

// watchClock takes the gaps between readings of the clock until it shows over
// or done says so. The clock never goes back.
func watchClock(over time.Duration, clock func() time.Duration, done func() bool) Stalls {
	var s Stalls
	first := clock()
	last := first
	for last-first < over && !done() {
		now := clock()
		s.add(now - last)
		last = now
	}
	s.Elapsed = last - first
	return s
}

// add counts a gap.
func (s *Stalls) add(gap time.Duration) {
	s.Readings++
	s.Worst = max(s.Worst, gap)
	if gap < 100*time.Microsecond {
		return
	}
	s.Lost += gap
	s.Over100us++
	if gap >= time.Millisecond {
		s.Over1ms++
	}
	if gap >= 10*time.Millisecond {
		s.Over10ms++
	}
}

// Mean returns the mean gap, which without stalls is what a reading of the
// clock takes; 0 without a gap.
func (s Stalls) Mean() time.Duration {
	if s.Readings == 0 {
		return 0
	}
	return s.Elapsed / time.Duration(s.Readings)
}
