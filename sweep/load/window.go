package load

import (
	"context"
	"sync"
	"time"
)

// drainTimeout bounds the wait for a reply: after the window, and between two
// replies where the window has no end of its own. It is longer than any stall
// that a server of use has.
const drainTimeout = 10 * time.Second

// noReply is the text of the error when that time is up.
var noReply = "no reply within " + drainTimeout.String()

// A crew drives the sessions of a job: event loops, or a goroutine a
// connection.
type crew interface {
	wait()          // until no session is active any more
	replies() int64 // how many have come so far, about
	abandon()       // gives up the sessions that still wait for replies
}

// A window watches over a job from its first request to its last reply: it
// calls the job's hooks and cuts short what would never end. begin and end
// are durations since origin; end is 0 when a quota ends the window.
type window struct {
	job        Job
	run        *run
	crew       crew
	origin     time.Time
	begin, end time.Duration
	hooks      sync.WaitGroup
}

// wait returns when no session is active any more. When ctx ends first, it
// ends the load and returns the cause.
func (w *window) wait(ctx context.Context) error {
	defer w.hooks.Wait()
	idle := make(chan struct{})
	go func() {
		w.crew.wait()
		close(idle)
	}()
	if w.until(ctx, idle, w.begin) {
		return w.cut(ctx, idle)
	}
	if w.job.Begin != nil {
		w.hooks.Go(w.job.Begin)
	}
	if w.end > 0 {
		w.until(ctx, idle, w.end)
	} else {
		w.quota(ctx, idle)
	}
	// The load goes on until End has returned: what it observes is a server
	// at work to the last.
	if w.job.End != nil {
		w.job.End()
	}
	return w.cut(ctx, idle)
}

// until waits for the time at and reports whether the load or ctx has ended
// before it.
func (w *window) until(ctx context.Context, idle <-chan struct{}, at time.Duration) bool {
	timer := time.NewTimer(time.Until(w.origin.Add(at)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-idle:
		return true
	case <-ctx.Done():
		return true
	}
}

// quota waits for the quota to be used up, as long as replies come.
func (w *window) quota(ctx context.Context, idle <-chan struct{}) {
	replies := int64(-1)
	for {
		before := replies
		replies = w.crew.replies()
		if replies == before || w.until(ctx, idle, time.Since(w.origin)+drainTimeout) {
			return
		}
	}
}

// cut ends the load, waits for the replies still due and gives up those that
// do not come.
func (w *window) cut(ctx context.Context, idle <-chan struct{}) error {
	w.run.stop()
	timer := time.NewTimer(drainTimeout)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
		w.crew.abandon()
		<-idle
	}
	return context.Cause(ctx)
}
