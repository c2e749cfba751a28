package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep/load"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// A Driver is a load.Driver whose jobs are run by all agents of a fleet. An
// error of Run that wraps load.ErrVoid is the fleet's and not the server's: the
// next Run goes on with the agents that are left.
type Driver struct {
	fleet *Fleet
	work  *workload.Workload
	setup setup
	epoch int64 // that the agents are set up for
}

// Driver returns what drives a workload on a server. The agents open a
// connection for each batch when perRequest is set.
func (f *Fleet) Driver(w *workload.Workload, s *probe.Server, perRequest bool) (*Driver, error) {
	spec := w.Spec()
	if spec.Replay != nil {
		return nil, errors.New("a recording cannot be sent by agents yet; leave --agents out")
	}
	d := &Driver{fleet: f, work: w, setup: setup{
		Workload: spec, PerRequest: perRequest, Agents: len(f.all), Target: targetOf(s.Target),
	}}
	for _, n := range s.Nodes {
		x := node{Host: n.Target.Host, Port: n.Target.Port}
		for _, r := range n.Slots {
			x.Slots = append(x.Slots, workload.SlotRange{First: r.First, Last: r.Last})
		}
		d.setup.Nodes = append(d.setup.Nodes, x)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.all {
		m.inserted, m.before = nil, nil // of another workload
	}
	return d, nil
}

func targetOf(t probe.Target) target {
	t = t.Normal()
	out := target{
		Network: t.Network, Host: t.Host, Port: t.Port, Socket: t.Socket,
		User: t.User, DB: t.DB, RESP3: t.RESP3, Tracking: t.Tracking,
		Password: password(t.Password.Reveal()),
	}
	if t.TLS != nil {
		out.TLS = &tlsMode{SNI: t.TLS.SNI, Insecure: t.TLS.Insecure}
	}
	return out
}

// setupFor returns what an agent is told: the password only when nobody can
// read it on the way.
func (d *Driver) setupFor(m *member) *setup {
	x := d.setup
	d.fleet.mu.Lock()
	x.Index, x.Inserted = m.index, m.inserted
	d.fleet.mu.Unlock()
	if !m.TLS || !encrypted(d.fleet.nc) {
		x.Target.Password = ""
	}
	return &x
}

// ready makes the agents that are left ready to work.
func (d *Driver) ready(ctx context.Context) ([]*member, error) {
	f := d.fleet
	if err := f.restore(ctx); err != nil {
		return nil, err
	}
	members := f.members()
	if len(members) == 0 {
		return nil, errNoAgent
	}
	f.mu.Lock()
	epoch := f.epoch
	f.mu.Unlock()
	if d.epoch == epoch {
		return members, nil
	}
	_, _, err := f.askAll(ctx, members, connectTimeout, func(i int) order {
		return order{Kind: setupOrder, Setup: d.setupFor(members[i])}
	})
	if err != nil {
		return nil, err
	}
	d.epoch = epoch
	return members, nil
}

// Run runs one job on the fleet. See load.Driver.
func (d *Driver) Run(ctx context.Context, job load.Job) (*load.Measurement, error) {
	if job.Rate > 0 {
		return nil, errors.New("driving an open loop: agents cannot yet; leave out --agents or --rate")
	}
	m, err := d.run(ctx, job)
	if err != nil {
		// Whoever still loads stops, and the next job begins anew.
		d.fleet.abandon(errors.New("the trial is void"))
	}
	d.cover()
	return m, err
}

// A crew is the agents that have a share in a step.
type crew struct {
	fleet   *Fleet
	members []*member
	clients []int // of each
	trial   int64
	job     load.Job
}

func (d *Driver) run(ctx context.Context, job load.Job) (*load.Measurement, error) {
	members, err := d.ready(ctx)
	if err != nil {
		return nil, err
	}
	c, err := d.crew(members, job)
	if err != nil {
		return nil, err
	}
	before := 0
	shares := make([]share, len(c.members))
	for i, n := range c.clients {
		shares[i] = share{Clients: n, Depth: job.Depth, Warmup: job.Warmup, Duration: job.Duration}
		if job.Requests > 0 {
			shares[i].Requests = quota(job.Requests, before, n, job.Clients)
		}
		before += n
	}
	_, _, err = d.fleet.askAll(ctx, c.members, connectTimeout, func(i int) order {
		return order{Kind: prepareOrder, Trial: c.trial, Share: &shares[i]}
	})
	if err != nil {
		return nil, err
	}
	begun, err := c.start(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.window(ctx, begun.at); err != nil {
		return nil, err
	}
	replies, _, err := d.fleet.askAll(ctx, c.members, drainTimeout, func(int) order {
		return order{Kind: collectOrder, Trial: c.trial}
	})
	if err != nil {
		return nil, err
	}
	return c.merge(replies, begun)
}

// crew splits the clients of a job. On a cluster each agent needs a connection
// to every master.
func (d *Driver) crew(members []*member, job load.Job) (*crew, error) {
	f := d.fleet
	var limits []int
	for _, m := range members {
		limits = append(limits, m.presence.Clients)
	}
	shares := split(job.Clients, max(1, len(d.setup.Nodes)), limits)
	if shares == nil {
		return nil, fmt.Errorf("driving %d clients: the %d agents have room for %d; raise their limit of open files (ulimit -n)", job.Clients, len(members), f.Clients())
	}
	f.mu.Lock()
	f.trials++
	c := &crew{fleet: f, trial: f.trials, job: job}
	f.mu.Unlock()
	for i, n := range shares {
		// A quota too small for all leaves some out, too.
		if n > 0 {
			c.members, c.clients = append(c.members, members[i]), append(c.clients, n)
		}
	}
	return c, nil
}

// A beginning is when the agents were told to begin.
type beginning struct {
	at   time.Time   // the common start, by our clock
	sent []time.Time // when each was told
	rtts []time.Duration
}

const (
	// leadFor is how long sending a start order to one agent may take, of
	// which there are several; minLead and maxLead bound the time until the
	// start.
	leadFor = 200 * time.Microsecond
	minLead = 10 * time.Millisecond
	maxLead = 500 * time.Millisecond
)

// start has the agents begin at the same moment: each is told how long to wait
// from when it reads the order, which is half a round trip after it is sent.
func (c *crew) start(ctx context.Context) (beginning, error) {
	var slowest time.Duration
	for _, m := range c.members {
		slowest = max(slowest, m.rtt)
	}
	lead := min(max(minLead, 2*slowest+time.Duration(len(c.members))*leadFor), maxLead)
	b := beginning{at: time.Now().Add(lead), sent: make([]time.Time, len(c.members))}
	var err error
	_, b.rtts, err = c.fleet.askAll(ctx, c.members, replyTimeout, func(i int) order {
		b.sent[i] = time.Now()
		return order{Kind: startOrder, Trial: c.trial, In: max(0, b.at.Sub(b.sent[i])-c.members[i].rtt/2)}
	})
	return b, err
}

// window calls the job's hooks at both ends of the window and returns when the
// windows of all agents are over.
func (c *crew) window(ctx context.Context, start time.Time) error {
	var hooks sync.WaitGroup
	defer hooks.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan error, 1)
	timeout := drainTimeout + c.job.Warmup + c.job.Duration
	if c.job.Requests > 0 {
		timeout = maxLength // an agent that gets no reply gives up by itself
	}
	hooks.Go(func() {
		_, _, err := c.fleet.askAll(ctx, c.members, timeout, func(int) order {
			return order{Kind: awaitOrder, Trial: c.trial}
		})
		over <- err
	})
	timed := c.job.Requests == 0
	ended, err := sleepUntil(ctx, start.Add(c.job.Warmup), over)
	if err != nil || ended && timed {
		return err
	}
	if c.job.Begin != nil {
		hooks.Go(c.job.Begin)
	}
	// A window of time is over by our clock while the agents still load; one
	// of requests when all agents say so.
	if timed {
		if ended, err = sleepUntil(ctx, start.Add(c.job.Warmup+c.job.Duration), over); err != nil {
			return err
		}
	} else if !ended {
		ended, err = true, <-over
		if err != nil {
			return err
		}
	}
	if c.job.End != nil {
		c.job.End()
	}
	if !ended {
		return <-over
	}
	return nil
}

// sleepUntil waits for a time, or for what comes from over before it.
func sleepUntil(ctx context.Context, t time.Time, over <-chan error) (ended bool, err error) {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return false, nil
	case err := <-over:
		return true, err
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// merge makes one measurement of those of the agents.
func (c *crew) merge(replies []reply, b beginning) (*load.Measurement, error) {
	var all []*load.Measurement
	var agents []load.Agent
	began := make([]time.Time, len(replies))
	for i, r := range replies {
		m := c.members[i]
		if r.Result == nil || r.Result.Measurement.Step != (load.Step{Clients: c.clients[i], Depth: c.job.Depth}) {
			return nil, fmt.Errorf("agent %s has no result of this step", m.label)
		}
		all = append(all, r.Result.Measurement)
		a := r.Result.Agent
		a.Name, a.SkewError = m.label, b.rtts[i]/2
		agents = append(agents, a)
		began[i] = b.sent[i].Add(b.rtts[i]/2 + r.Result.Begun)
		c.fleet.noteInserted(m, r.Result.Inserted)
	}
	sum, err := load.Beside(all...)
	if err != nil {
		return nil, err
	}
	first := slices.MinFunc(began, time.Time.Compare)
	for i := range agents {
		agents[i].Skew = began[i].Sub(first)
	}
	sum.Start, sum.Agents = first, agents // the agents' clocks are their own
	return sum, nil
}

func (f *Fleet) noteInserted(m *member, inserted []int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m.inserted, m.before = inserted, inserted
}

// Calibrate has all agents calibrate themselves at the same time, and returns
// what they reach together.
func (d *Driver) Calibrate(ctx context.Context, depth int) (*load.Measurement, error) {
	for attempt := 1; ; attempt++ {
		m, err := d.calibrate(ctx, depth)
		if err == nil {
			return m, nil
		}
		d.fleet.abandon(errors.New("the calibration is void"))
		if attempt == calibrations || !errors.Is(err, load.ErrVoid) {
			return nil, err
		}
	}
}

// calibrations is how often a calibration is tried when agents are lost.
const calibrations = 5

func (d *Driver) calibrate(ctx context.Context, depth int) (*load.Measurement, error) {
	members, err := d.ready(ctx)
	if err != nil {
		return nil, err
	}
	replies, _, err := d.fleet.askAll(ctx, members, drainTimeout, func(int) order {
		return order{Kind: calibrateOrder, Share: &share{Clients: 1, Depth: depth}}
	})
	if err != nil {
		return nil, err
	}
	var all []*load.Measurement
	for i, r := range replies {
		if r.Result == nil {
			return nil, fmt.Errorf("agent %s has no result of its calibration", members[i].label)
		}
		all = append(all, r.Result.Measurement)
	}
	return load.Beside(all...)
}

// lostPulses is how many more pulses an agent that is lost may have inserted
// keys for: until its lease has ended.
const lostPulses = int64(2 * leaseTime / beatEvery)

// cover has the removal of our keys include what the agents have inserted. How
// much an agent has that is lost is not known: as much as until its last pulse,
// and as fast as before it until its lease has ended.
func (d *Driver) cover() {
	f := d.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.all {
		counts := slices.Clone(m.inserted)
		if m.lost() != nil && len(m.before) == len(counts) {
			for i := range counts {
				counts[i] += lostPulses * (counts[i] - m.before[i])
			}
		}
		d.work.Cover(counts, d.setup.Agents)
	}
}

// Close leaves the agents as they are: the next setup makes them anew.
func (d *Driver) Close() error {
	d.cover()
	return nil
}
