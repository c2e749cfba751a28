package arrivals

import (
	"time"

	"golang.org/x/sys/unix"
)

// fineTimer lets the sleeps of this thread end when they should: the kernel
// may make them 50 µs longer otherwise, to wake less often. It returns what
// undoes it.
func fineTimer() (undo func()) {
	// Without it the sleeps are a little longer, which is seen as slip.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	return func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) }
}

// sleep sleeps in the kernel. A signal may end it early.
func sleep(d time.Duration) {
	ts := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil)
}
