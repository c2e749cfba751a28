package load

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// drainTimeout bounds the wait for a reply: after the window, and between two
// replies where the window has no end of its own. It is longer than any stall
// that a server of use has.
const drainTimeout = 10 * time.Second

// A window watches over a job from its first request to its last reply: it
// calls the job's hooks and cuts short what would never end. begin and end
// are durations since origin; end is 0 when a quota ends the window.
type window struct {
	job        Job
	loops      []*loop
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
		for _, l := range w.loops {
			<-l.idle
		}
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
		replies = 0
		for _, l := range w.loops {
			_ = l.execute(func() { replies += l.shard.m.Received + l.shard.m.Failed })
		}
		if replies == before || w.until(ctx, idle, time.Since(w.origin)+drainTimeout) {
			return
		}
	}
}

// cut ends the load, waits for the replies still due and gives up those that
// do not come.
func (w *window) cut(ctx context.Context, idle <-chan struct{}) error {
	for _, l := range w.loops {
		_ = l.execute(func() { l.shard.stopped = true })
	}
	timer := time.NewTimer(drainTimeout)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
		w.abandon()
		<-idle
	}
	return context.Cause(ctx)
}

// abandon gives up the sessions that still wait for replies.
func (w *window) abandon() {
	for _, l := range w.loops {
		_ = l.execute(func() {
			for _, c := range l.conns {
				if s, ok := c.Context().(*session); ok && !s.ended {
					l.shard.m.addError("timeout", ErrorClass{1, fmt.Sprintf("no reply within %v", drainTimeout)})
					s.lose()
				}
			}
			l.tell()
		})
	}
}
