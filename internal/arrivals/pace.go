package arrivals

import (
	"context"
	"runtime"
	"time"
)

// maxNap bounds a sleep, and with it how late the end of a context is seen.
const maxNap = 50 * time.Millisecond

// A Pacer waits for arrivals. The zero value is ready to use.
type Pacer struct {
	// Sleep sleeps for a time; nil means in the kernel, as exactly as that
	// can be done.
	Sleep func(time.Duration)
}

// Pace calls send at each arrival of p that is due before end, counted from
// origin, and returns when end is reached or ctx has ended, in which case it
// returns the cause.
//
// Arrivals are never early. Those that have become due while Pace slept or
// send ran are sent at once, one behind the other: the rate is kept, and what
// they are late is to be found by timing them from when they were due. Pace
// sleeps on a thread of its own with the finest timer that there is, and does
// not spin: on a machine of two cores a spinning generator takes the core that
// the server needs. Such a sleep ends 5 to 20 µs late on a quiet 2-core VM;
// Go's timers end 500 µs late there.
func (x Pacer) Pace(ctx context.Context, origin time.Time, p *Process, end time.Duration, send func(due time.Duration)) error {
	nap := x.Sleep
	if nap == nil {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer fineTimer()()
		nap = sleep
	}
	for {
		due := p.Next()
		for {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			left := min(due, end) - time.Since(origin)
			if left <= 0 {
				break
			}
			nap(min(left, maxNap))
		}
		if due >= end {
			return nil
		}
		send(due)
	}
}
