package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/poolsweep/poolsweep/internal/arrivals"
	"github.com/poolsweep/poolsweep/internal/modelserver"
)

// startOpen starts a model and returns it with a driver of n event loops.
func startOpen(t *testing.T, m modelserver.Model, n int) (*modelserver.Server, *EventLoops) {
	t.Helper()
	s, err := modelserver.Start(m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, newDriver(t, n, s.Addr)
}

// arrivalsIn returns how many batches of a job are due in its window.
func arrivalsIn(t *testing.T, job Job) (n int64) {
	t.Helper()
	p, err := arrivals.New(job.Arrivals, job.Rate/float64(job.Depth), job.Seed)
	if err != nil {
		t.Fatal(err)
	}
	for due := p.Next(); due < job.Warmup+job.Duration; due = p.Next() {
		if due >= job.Warmup {
			n++
		}
	}
	return n
}

// Every request that is due in the window is sent once, whatever the number of
// loops and connections, and has its latency and its slip.
func TestOpenLoopSendsWhatIsDue(t *testing.T) {
	for _, tt := range []struct {
		step  Step
		loops int
		kind  arrivals.Kind
	}{
		{Step{8, 1}, 1, arrivals.Poisson},
		{Step{1, 1}, 1, arrivals.Poisson},
		{Step{5, 1}, 2, arrivals.Poisson},
		{Step{3, 4}, 3, arrivals.Constant},
	} {
		s, d := startOpen(t, modelserver.Model{}, tt.loops)
		job := Job{
			Step: tt.step, Warmup: 20 * time.Millisecond, Duration: 150 * time.Millisecond,
			Rate: 2000, Arrivals: tt.kind, Seed: 7,
		}
		m := mustRun(t, d, job)
		clean(t, m)
		want := arrivalsIn(t, job) * int64(tt.step.Depth)
		o := m.Open
		if o.Due != want || m.Requests != want || m.Latency.Count() != want || o.Slip.Count() != want || m.Missing() != 0 {
			t.Errorf("%+v: %d due, %d answered, %d latencies, %d slips, %d missing; want %d and 0",
				tt, o.Due, m.Requests, m.Latency.Count(), o.Slip.Count(), m.Missing(), want)
		}
		if m.Sent != s.Served.Load() || m.Sent < want {
			t.Errorf("%+v: %d sent, %d served, %d due in the window", tt, m.Sent, s.Served.Load(), want)
		}
		if m.Loops != min(tt.loops, tt.step.Clients) || len(m.Intervals) > 0 {
			t.Errorf("%+v: %d loops, intervals %v", tt, m.Loops, m.Intervals)
		}
		// Mean latency = slip + wait + what the server took.
		if mean := m.Latency.Mean(); mean < o.Slip.Mean()+o.Wait/time.Duration(want) {
			t.Errorf("%+v: mean latency %v, slip %v, wait %v", tt, mean, o.Slip.Mean(), o.Wait/time.Duration(want))
		}
	}
}

// A server of one worker with S = 5 ms and twice as many requests as it can
// answer: it answers 1/S, and what waits too long is dropped and missing. That
// all is over a second after the window is what the test takes.
func TestOpenLoopOverloaded(t *testing.T) {
	const service = 5 * time.Millisecond
	_, d := startOpen(t, modelserver.Model{Workers: 1, Service: service}, 1)
	m := mustRun(t, d, Job{
		Step: Step{2, 1}, Duration: 600 * time.Millisecond, Rate: 4 / service.Seconds(), Arrivals: arrivals.Constant,
	})
	conserved(t, m)
	if x := float64(m.Open.Answered) / m.Elapsed.Seconds() * service.Seconds(); x < .5 || x > 1.05 {
		t.Errorf("%d answered in %v, which is %.2f of what the server can", m.Open.Answered, m.Elapsed, x)
	}
	if m.Open.Due != m.Latency.Count()+m.Missing() || m.Missing() == 0 || m.Open.Waited == 0 {
		t.Errorf("%d due, %d with a latency, %d missing, %d waited", m.Open.Due, m.Latency.Count(), m.Missing(), m.Open.Waited)
	}
}

// A server freezes for a tenth of the time. Arrivals in the freeze wait evenly
// between all of it and 0, so that the latency from when they were due exceeds
// F − x with the share x/10F: p95 = F/2 and p99 = 0.9·F. A closed loop sends
// next to nothing meanwhile, which hides the freeze.
func TestFreezeInRealTime(t *testing.T) {
	const freeze = 120 * time.Millisecond
	s, d := startOpen(t, modelserver.Model{Workers: 10, Service: 2 * time.Millisecond, FreezeFor: freeze, FreezeEvery: 10 * freeze}, 1)
	job := Job{Step: Step{10, 1}, Duration: 10 * freeze, Rate: 500, Arrivals: arrivals.Constant}
	closed := newDriver(t, 1, s.Addr)
	modelserver.Holds(t, func() error {
		job.Rate = 500
		m := mustRun(t, d, job)
		clean(t, m)
		job.Rate = 0
		c := mustRun(t, closed, job)
		t.Logf("open: p95 %v, p99 %v, slip p99 %v; closed: p99 %v", m.Latency.Quantile(.95), m.Latency.Quantile(.99), m.Open.Slip.Quantile(.99), c.Latency.Quantile(.99))
		// A busy machine makes them longer, nothing makes them shorter.
		for q, want := range map[float64]time.Duration{.95: freeze / 2, .99: freeze * 9 / 10} {
			if got := m.Latency.Quantile(q); got < want-freeze/10 || got > want+freeze/2 {
				return fmt.Errorf("open loop: p%v is %v, want %v", 100*q, got, want)
			}
		}
		if p99 := c.Latency.Quantile(.99); p99 > freeze/2 {
			return fmt.Errorf("closed loop: p99 %v, want a few ms", p99)
		}
		return nil
	})
}

// N connections to a server that takes S for each request and has a worker for
// each are M/D/N: which requests wait, and how long, follows from the arrivals
// by the recursion of Kiefer and Wolfowitz (1955). In the long run it is for
// N = 1 the mean wait of Pollaczek and Khinchine, ρS/2(1−ρ). S is as measured:
// the way to the model and back is part of it.
func TestQueuesInRealTime(t *testing.T) {
	const service, rho = 20 * time.Millisecond, .7
	for _, n := range []int{1, 4} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			_, d := startOpen(t, modelserver.Model{Workers: n, Service: service}, 1)
			job := Job{Step: Step{n, 1}, Duration: 1500 * time.Millisecond, Rate: rho * float64(n) / service.Seconds(), Arrivals: arrivals.Poisson, Seed: 5}
			modelserver.Holds(t, func() error {
				m := mustRun(t, d, job)
				clean(t, m)
				due := float64(m.Open.Due)
				share, wait := float64(m.Open.Waited)/due, m.Open.Wait.Seconds()/due
				held := m.Latency.Mean().Seconds() - wait - m.Open.Slip.Mean().Seconds()
				wantShare, wantWait := queued(t, job, job.Duration, held)
				t.Logf("%d requests held %.2f ms: %.3f waited, want %.3f; mean wait %.2f ms, want %.2f ms", m.Open.Due, 1e3*held, share, wantShare, 1e3*wait, 1e3*wantWait)
				// A busy machine holds some longer than others, which only adds to the wait.
				if math.Abs(share-wantShare) > .2 || wait < .75*wantWait || wait > 2.5*wantWait {
					return fmt.Errorf("%.3f waited, want %.3f; mean wait %.2f ms, want %.2f ms", share, wantShare, 1e3*wait, 1e3*wantWait)
				}
				return nil
			})
		})
	}
}

// queued returns the share of a job's requests that wait and their mean wait
// in seconds, over all, when each holds its connection for so many seconds.
func queued(t *testing.T, job Job, until time.Duration, held float64) (share, wait float64) {
	t.Helper()
	p, err := arrivals.New(job.Arrivals, job.Rate, job.Seed)
	if err != nil {
		t.Fatal(err)
	}
	free := make([]float64, job.Clients)
	count, waited := 0.0, 0.0
	for due := p.Next(); due < until; due = p.Next() {
		first := 0
		for i, at := range free {
			if at < free[first] {
				first = i
			}
		}
		late := max(0, free[first]-due.Seconds())
		free[first] = due.Seconds() + late + held
		count++
		wait += late
		if late > 0 {
			waited++
		}
	}
	return waited / count, wait / count
}

// What the measurement is compared with is right in the long run.
func TestQueuedIsPollaczekKhinchine(t *testing.T) {
	job := Job{Step: Step{1, 1}, Rate: 35, Arrivals: arrivals.Poisson, Seed: 1}
	share, wait := queued(t, job, 5*time.Hour, .02)
	if want := .7 * .02 / (2 * .3); math.Abs(share/.7-1) > .02 || math.Abs(wait/want-1) > .03 {
		t.Errorf("share %.4f and wait %.6f s, want .7 and %.6f s", share, wait, want)
	}
}

// On a cluster arrivals go to the masters in turn, each with its own queue.
func TestOpenLoopOnACluster(t *testing.T) {
	var addrs []string
	for range masters {
		s, err := modelserver.Start(modelserver.Model{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		addrs = append(addrs, s.Addr)
	}
	spec := specOf("get")
	spec.Keys.Space = 1000
	d := loops(t, 2, newWorkload(t, spec, thirds()...), addrs...)
	job := Job{Step: Step{2 * masters, 1}, Duration: 100 * time.Millisecond, Rate: 3000, Arrivals: arrivals.Poisson}
	m := mustRun(t, d, job)
	clean(t, m)
	want := arrivalsIn(t, job)
	if m.Open.Due != want || m.Requests != want {
		t.Errorf("%d due, %d answered, want %d", m.Open.Due, m.Requests, want)
	}
	for _, n := range m.Nodes {
		// Each loop sends in turn: its share is off by one at either end.
		if math.Abs(float64(n.Requests)-float64(want)/masters) > 4 {
			t.Errorf("%s has %d of %d requests, want a third", n.Name, n.Requests, want)
		}
	}
}

func TestOpenLoopEnds(t *testing.T) {
	job := Job{Step: Step{4, 1}, Duration: time.Minute, Rate: 1000, Arrivals: arrivals.Poisson}
	t.Run("with its context", func(t *testing.T) {
		_, d := startOpen(t, modelserver.Model{Workers: 1, Service: time.Millisecond}, 2)
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		job := job
		job.Begin = func() { cancel(cause) }
		if _, err := d.Run(ctx, job); !errors.Is(err, cause) {
			t.Errorf("got error %v, want the cause", err)
		}
		// The driver is as good as new, for either loop.
		if m := mustRun(t, d, Job{Step: Step{2, 1}, Requests: 10}); m.Requests != 10 || m.Open != nil {
			t.Errorf("after it: %+v", m)
		}
	})
	t.Run("with its server", func(t *testing.T) {
		s, d := startOpen(t, modelserver.Model{Workers: 1, Service: time.Millisecond}, 1)
		job := job
		job.Begin = s.Kill
		m, err := d.Run(t.Context(), job)
		if err == nil || !strings.Contains(err.Error(), "every connection was lost") {
			t.Fatalf("got error %v, want that every connection was lost", err)
		}
		conserved(t, m)
	})
	t.Run("before it begins", func(t *testing.T) {
		s, d := startOpen(t, modelserver.Model{}, 1)
		for want, change := range map[string]func(*Job){
			"not after a number of requests": func(j *Job) { j.Requests = 10 },
			"unknown arrivals":               func(j *Job) { j.Arrivals = "uniform" },
			"a rate of 1e+08":                func(j *Job) { j.Rate = 1e8 },
		} {
			job := job
			change(&job)
			if _, err := d.Run(t.Context(), job); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got error %v, want one with %q", err, want)
			}
		}
		c := conns(t, false, newWorkload(t, specOf("set")), endpointsAt(s.Addr)...)
		if _, err := c.Run(t.Context(), job); err == nil || !strings.Contains(err.Error(), "it takes event loops") {
			t.Errorf("got error %v, want that it takes event loops", err)
		}
	})
}

// Two seconds more of 5,000 requests each allocate nothing.
func TestOpenLoopAllocatesNothing(t *testing.T) {
	d := startCalibrator(t, newWorkload(t, specOf("set")), Transport{Loops: 1}).driver
	var sent int64
	run := func(duration time.Duration) func() {
		return func() {
			m := mustRun(t, d, Job{Step: Step{8, 1}, Duration: duration, Rate: 10_000, Arrivals: arrivals.Poisson})
			sent = m.Sent
		}
	}
	mallocs(run(50 * time.Millisecond))
	few := mallocs(run(50 * time.Millisecond))
	before := sent
	many := mallocs(run(550 * time.Millisecond))
	if per := (float64(many) - float64(few)) / float64(sent-before); per > .01 {
		t.Errorf("%d requests more make %d allocations instead of %d", sent-before, many, few)
	}
}

func TestQueueKeepsTheOrder(t *testing.T) {
	var q queue
	in, out := 0, 0
	for round := range 5000 { // in this way it grows to 5000 and moves
		for range 2 {
			q.push(time.Duration(in))
			in++
		}
		due, ok := q.pop()
		if !ok || due != time.Duration(out) {
			t.Fatalf("round %d: got %v, %v; want %d", round, due, ok, out)
		}
		out++
	}
	q.cut(9000)
	if q.len() != 9000-out {
		t.Errorf("%d are left, want %d", q.len(), 9000-out)
	}
	for q.len() > 0 {
		q.pop()
	}
	if _, ok := q.pop(); ok {
		t.Error("something came out of an empty queue")
	}
}

// Merging shards = one whole.
func TestOpenMerges(t *testing.T) {
	half := func(due int64) *Measurement {
		m := &Measurement{Step: Step{1, 1}, Latency: new(Latency), Open: &Open{Rate: 5, Due: due, Answered: due - 1, Waited: 1, Wait: 2, Slip: new(Latency)}}
		m.Latency.record(time.Millisecond, due-1)
		m.Open.Slip.record(time.Microsecond, due)
		return m
	}
	m := half(10).Clone()
	if err := m.Merge(half(20)); err != nil {
		t.Fatal(err)
	}
	o := m.Open
	if o.Due != 30 || o.Answered != 28 || o.Waited != 2 || o.Wait != 4 || o.Slip.Count() != 30 || o.Rate != 5 || m.Missing() != 2 {
		t.Errorf("merged: %+v, %d missing", o, m.Missing())
	}
	if math.Abs(o.Slip.Mean().Seconds()-1e-6) > 1e-9 {
		t.Errorf("mean slip %v, want 1µs", o.Slip.Mean())
	}
}
