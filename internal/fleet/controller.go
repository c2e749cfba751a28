package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/poolsweep/poolsweep/sweep/load"
)

// A Config is what a controller needs.
type Config struct {
	Link   Link
	Agents int           // how many to wait for, at least 1
	Wait   time.Duration // for how long

	// Say is told what happens, a line a call; nil for nobody. It may be
	// called from several goroutines.
	Say func(string)
}

// A Fleet is the controller's side: the agents that work for it. It must be
// closed after use.
type Fleet struct {
	say  func(string)
	nc   *nats.Conn
	id   string
	all  []*member // in the order in which they have joined
	stop context.CancelFunc
	done sync.WaitGroup

	mu     sync.Mutex
	epoch  int64
	broken bool                    // what was being done is void: a new epoch must begin
	trials int64                   // begun
	cut    context.CancelCauseFunc // ends what waits for agents in this epoch
	cutCtx context.Context
}

// A member is an agent that works, or has worked, for the controller.
type member struct {
	presence
	label string // its name, made different from those of others
	index int

	rtt      time.Duration // the shortest round trip of the epoch
	ctx      context.Context
	lose     context.CancelCauseFunc
	said     bool // that it is lost
	pulsed   time.Time
	inserted []int64 // keys that it has inserted
	before   []int64 // the same a pulse earlier
}

// lost returns why the agent is lost, nil when it is not.
func (m *member) lost() error { return context.Cause(m.ctx) }

// Gather connects to NATS and waits until as many agents work for this process
// as are wanted.
func Gather(ctx context.Context, c Config) (*Fleet, error) {
	f := &Fleet{say: c.Say, id: nuid.Next(), epoch: 1}
	if f.say == nil {
		f.say = func(string) {}
	}
	f.cutCtx, f.cut = context.WithCancelCause(context.Background())
	var err error
	f.nc, err = c.Link.connect("controller", nats.DisconnectErrHandler(func(*nats.Conn, error) {
		f.cutOff(errNATS)
	}), nats.ClosedHandler(func(*nats.Conn) { f.cutOff(errNATS) }))
	if err != nil {
		return nil, err
	}
	if _, err := f.nc.Subscribe(pulseSubject+f.id, f.pulse); err != nil {
		f.nc.Close()
		return nil, err
	}
	beating, stop := context.WithCancel(context.Background())
	f.stop = stop
	f.done.Go(func() { f.beat(beating) })
	if err := f.gather(ctx, c); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

var errNoAgent = errors.New("no agent of the fleet is left; start them again and go on with --resume")

var errNATS = errors.New("the connection to NATS was lost")

// rollEvery is the pause between two roll calls while agents are waited for.
const rollEvery = 300 * time.Millisecond

// gather claims agents until there are enough.
func (f *Fleet) gather(ctx context.Context, c Config) error {
	ctx, cancel := context.WithTimeoutCause(ctx, max(c.Wait, rollEvery), errWait)
	defer cancel()
	said := make(map[string]bool)
	for len(f.all) < c.Agents {
		here, err := f.roll(ctx)
		if err != nil {
			return f.missing(err, c, said)
		}
		for _, p := range here {
			switch {
			case slices.ContainsFunc(f.all, func(m *member) bool { return m.ID == p.ID }), len(f.all) == c.Agents:
			case p.Version != Protocol:
				f.once(said, fmt.Sprintf("agent %s is refused: %v", p.Name, &versionError{version: p.Version}))
			case p.Busy != "" && p.Busy != f.id:
				f.once(said, fmt.Sprintf("agent %s works for another controller", p.Name))
			default:
				m := f.newMember(p)
				if err := f.claim(ctx, m); err != nil {
					f.once(said, fmt.Sprintf("agent %s: %v", p.Name, err))
					continue
				}
				f.mu.Lock()
				f.all = append(f.all, m)
				f.mu.Unlock()
				f.say(fmt.Sprintf("agent %s has joined (%d of %d): %d cores, %d clients at most", m.label, len(f.all), c.Agents, p.Cores, p.Clients))
			}
		}
	}
	for i, m := range f.all {
		m.index = i
	}
	return nil
}

var errWait = errors.New("time is up")

func (f *Fleet) once(said map[string]bool, text string) {
	if !said[text] {
		said[text] = true
		f.say(text)
	}
}

// missing says which agents there are when they are not enough.
func (f *Fleet) missing(err error, c Config, said map[string]bool) error {
	if !errors.Is(err, errWait) {
		return err
	}
	var names []string
	for _, m := range f.all {
		names = append(names, m.label)
	}
	for text := range said {
		names = append(names, text)
	}
	slices.Sort(names)
	who := ""
	if len(names) > 0 {
		who = " (" + strings.Join(names, "; ") + ")"
	}
	return fmt.Errorf("waiting for %d agents: %d have joined within %v%s; start the others with: poolsweep agent --join %s",
		c.Agents, len(f.all), c.Wait, who, c.Link.URL)
}

// roll asks all agents who they are and waits a moment for the answers. One of
// another version has nothing but its name and version.
func (f *Fleet) roll(ctx context.Context) ([]presence, error) {
	inbox := f.nc.NewInbox()
	sub, err := f.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer sub.Unsubscribe()
	b, err := encode(call{Version: Protocol, Controller: f.id})
	if err != nil {
		return nil, err
	}
	if err := f.nc.PublishRequest(rollSubject, inbox, b); err != nil {
		return nil, fmt.Errorf("calling the agents: %w", err)
	}
	var all []presence
	over := time.Now().Add(rollEvery)
	for {
		part, cancel := context.WithDeadline(ctx, over)
		m, err := sub.NextMsgWithContext(part)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, context.DeadlineExceeded):
			return all, nil
		case errors.Is(err, nats.ErrNoResponders):
			// Nobody is there yet.
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-time.After(time.Until(over)):
				return nil, nil
			}
		case err != nil:
			return nil, fmt.Errorf("calling the agents: %w", err)
		}
		var other *versionError
		switch p, err := decode[presence](m.Data); {
		case errors.As(err, &other):
			all = append(all, presence{Version: other.version, Name: other.name, ID: other.name})
		case err == nil:
			all = append(all, p)
		}
	}
}

// newMember returns an agent under a name that no other one has.
func (f *Fleet) newMember(p presence) *member {
	m := &member{presence: p, label: p.Name, pulsed: time.Now()}
	m.ctx, m.lose = context.WithCancelCause(context.Background())
	taken := func(l string) bool {
		return slices.ContainsFunc(f.all, func(o *member) bool { return o.label == l })
	}
	for i := 2; taken(m.label); i++ {
		m.label = fmt.Sprintf("%s (%d)", p.Name, i)
	}
	return m
}

// pings is how often an agent is claimed: the shortest round trip counts.
const pings = 3

// claim makes the agent work for this epoch.
func (f *Fleet) claim(ctx context.Context, m *member) error {
	m.rtt = 0
	for range pings {
		_, rtt, err := f.ask(ctx, m, order{Kind: claimOrder}, replyTimeout)
		if err != nil {
			return err
		}
		if m.rtt == 0 || rtt < m.rtt {
			m.rtt = rtt
		}
	}
	return nil
}

// A voidError is a fault of the fleet and not of the server.
type voidError struct{ text string }

func (e *voidError) Error() string { return e.text }

// Unwrap makes it a load.ErrVoid.
func (e *voidError) Unwrap() error { return load.ErrVoid }

// ask sends an order and waits for the answer. Its error is a *voidError when
// the agent is lost or has lost track, and names the agent.
func (f *Fleet) ask(ctx context.Context, m *member, o order, timeout time.Duration) (reply, time.Duration, error) {
	f.mu.Lock()
	o.Version, o.Controller, o.Epoch = Protocol, f.id, f.epoch
	epoch := f.cutCtx
	f.mu.Unlock()
	b, err := encode(o)
	if err != nil {
		return reply{}, 0, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(m.ctx, func() { cancel(m.lost()) })()
	defer context.AfterFunc(epoch, func() { cancel(context.Cause(epoch)) })()
	timed, stop := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer to %s within %v", o.Kind, timeout))
	defer stop()
	sent := time.Now()
	msg, err := f.nc.RequestWithContext(timed, agentSubject+m.ID, b)
	rtt := time.Since(sent)
	switch {
	case err == nil:
	case m.lost() == nil && epoch.Err() == nil && ctx.Err() != nil:
		return reply{}, rtt, context.Cause(ctx)
	case errors.Is(err, nats.ErrNoResponders):
		m.lose(errors.New("it has ended"))
		return reply{}, rtt, f.isLost(m)
	case m.lost() != nil:
		return reply{}, rtt, f.isLost(m)
	case timed.Err() != nil:
		if epoch.Err() == nil {
			m.lose(context.Cause(timed))
			return reply{}, rtt, f.isLost(m)
		}
		return reply{}, rtt, &voidError{context.Cause(timed).Error()}
	default:
		return reply{}, rtt, &voidError{fmt.Sprintf("agent %s: %v", m.label, err)}
	}
	r, err := decode[reply](msg.Data)
	switch {
	case err != nil:
		return r, rtt, fmt.Errorf("agent %s: %w", m.label, err)
	case r.Error != "" && r.Void:
		return r, rtt, &voidError{fmt.Sprintf("agent %s: %s", m.label, r.Error)}
	case r.Error != "":
		return r, rtt, fmt.Errorf("agent %s: %s", m.label, r.Error)
	}
	return r, rtt, nil
}

func (f *Fleet) isLost(m *member) error {
	return &voidError{fmt.Sprintf("agent %s is lost (%v)", m.label, m.lost())}
}

// askAll sends an order to several agents at once and returns their answers in
// the order of the agents. It returns at the first error; the others are then
// no longer waited for.
func (f *Fleet) askAll(ctx context.Context, to []*member, timeout time.Duration, what func(i int) order) ([]reply, []time.Duration, error) {
	replies, rtts := make([]reply, len(to)), make([]time.Duration, len(to))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var asked sync.WaitGroup
	for i, m := range to {
		asked.Go(func() {
			var err error
			if replies[i], rtts[i], err = f.ask(ctx, m, what(i), timeout); err != nil {
				cancel(err)
			}
		})
	}
	asked.Wait()
	return replies, rtts, context.Cause(ctx)
}

// pulse notes that an agent lives.
func (f *Fleet) pulse(msg *nats.Msg) {
	p, err := decode[pulse](msg.Data)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.all {
		if m.ID == p.ID {
			m.pulsed = time.Now()
			if len(p.Inserted) > 0 && p.Epoch == f.epoch {
				m.before, m.inserted = m.inserted, p.Inserted
			}
		}
	}
}

// beat tells the agents that the controller lives, and finds those that do
// not.
func (f *Fleet) beat(ctx context.Context) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		f.sendBeat()
		before := time.Now()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// Where this process was stopped, or NATS away, the agents could not
		// be heard.
		deaf := time.Since(before) > 4*beatEvery || f.nc.Status() != nats.CONNECTED
		f.mu.Lock()
		for _, m := range f.all {
			switch {
			case deaf:
				m.pulsed = time.Now()
			case m.lost() == nil && time.Since(m.pulsed) > lostAfter:
				m.lose(fmt.Errorf("no sign of life for %v", lostAfter))
			}
		}
		f.mu.Unlock()
	}
}

func (f *Fleet) sendBeat() {
	f.mu.Lock()
	b, err := encode(beat{Version: Protocol, Controller: f.id, Epoch: f.epoch})
	f.mu.Unlock()
	if err == nil {
		_ = f.nc.Publish(beatSubject+f.id, b) // what misses it ends its lease
		_ = f.nc.FlushTimeout(beatEvery)      // Flush would wait 10 s for a NATS that is away
	}
}

// cutOff ends what waits for agents in this epoch.
func (f *Fleet) cutOff(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = true
	f.cut(cause)
}

// abandon ends the epoch: agents that hear of the next one stop their load.
func (f *Fleet) abandon(cause error) {
	f.cutOff(cause)
	f.mu.Lock()
	f.epoch++
	f.mu.Unlock()
	f.sendBeat()
}

// restore begins the next epoch with the agents that are left, when the last
// one has ended.
func (f *Fleet) restore(ctx context.Context) error {
	f.mu.Lock()
	broken, cause := f.broken, context.Cause(f.cutCtx)
	f.mu.Unlock()
	if !broken {
		return nil
	}
	if err := f.connected(ctx); err != nil {
		return err
	}
	f.mu.Lock()
	f.epoch++
	f.broken = false
	f.cutCtx, f.cut = context.WithCancelCause(context.Background())
	f.mu.Unlock()
	f.sendBeat()
	patience := claimTime
	if errors.Is(cause, errNATS) {
		patience = replyTimeout
	}
	var claimed sync.WaitGroup
	for _, m := range f.members() {
		claimed.Go(func() {
			if err := f.claimAgain(ctx, m, patience); err != nil && ctx.Err() == nil {
				m.lose(err)
			}
		})
	}
	claimed.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	left := f.members()
	for _, m := range f.all {
		if m.lost() != nil && !m.said {
			m.said = true
			f.say(fmt.Sprintf("agent %s is lost (%v); %d of %d go on", m.label, m.lost(), len(left), len(f.all)))
		}
	}
	if len(left) == 0 {
		return errNoAgent
	}
	return nil
}

// claimTime is how long agents may take to answer a claim when NATS was there
// all the time.
const claimTime = time.Second

// claimAgain claims an agent. Its connection to NATS may be a moment later than
// ours to be back.
func (f *Fleet) claimAgain(ctx context.Context, m *member, patience time.Duration) error {
	for until := time.Now().Add(patience); ; {
		err := f.claimOnce(ctx, m)
		if err == nil {
			return f.claim(ctx, m)
		}
		if ctx.Err() != nil || time.Now().After(until) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnectEvery / 2):
		}
	}
}

// claimOnce claims an agent without losing it when it does not answer.
func (f *Fleet) claimOnce(ctx context.Context, m *member) error {
	f.mu.Lock()
	b, err := encode(order{Version: Protocol, Kind: claimOrder, Controller: f.id, Epoch: f.epoch})
	f.mu.Unlock()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	defer context.AfterFunc(m.ctx, cancel)()
	msg, err := f.nc.RequestWithContext(ctx, agentSubject+m.ID, b)
	switch {
	case m.lost() != nil:
		return m.lost()
	case errors.Is(err, nats.ErrNoResponders):
		return errors.New("it has ended")
	case err != nil:
		return err
	}
	r, err := decode[reply](msg.Data)
	if err == nil && r.Error != "" {
		err = errors.New(r.Error)
	}
	return err
}

// connected waits until NATS is back.
func (f *Fleet) connected(ctx context.Context) error {
	for until := time.Now().Add(reconnectTimeout); f.nc.Status() != nats.CONNECTED; {
		if f.nc.IsClosed() || time.Now().After(until) {
			return fmt.Errorf("%w and is not back within %v", errNATS, reconnectTimeout)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(reconnectEvery / 4):
		}
	}
	return nil
}

// members returns the agents that are not lost.
func (f *Fleet) members() []*member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.all), func(m *member) bool { return m.lost() != nil })
}

// Clients returns how many connections the agents can open together.
func (f *Fleet) Clients() int {
	n := 0
	for _, m := range f.members() {
		n += m.presence.Clients
	}
	return n
}

// Close releases the agents and closes the connection to NATS.
func (f *Fleet) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), replyTimeout)
	defer cancel()
	// Agents that do not hear of it end their lease by themselves.
	if err := f.restore(ctx); err == nil {
		_, _, _ = f.askAll(ctx, f.members(), replyTimeout, func(int) order { return order{Kind: releaseOrder} })
	}
	f.stop()
	f.done.Wait()
	f.nc.Close()
	return nil
}
