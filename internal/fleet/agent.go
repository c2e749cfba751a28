package fleet

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/poolsweep/poolsweep/probe"
)

// An Agent is one load generator of a fleet.
type Agent struct {
	Name    string // in tables and errors
	Build   string // version of poolsweep
	Threads int    // event loops; 0: all cores but one

	// Password is that of the server's user; empty: none, or that which the
	// controller sends over an encrypted connection.
	Password probe.Secret

	// TLS has the files with which the server's certificate is checked and
	// our own shown; nil for none. Whether there is TLS is the server's
	// business.
	TLS *probe.TLS

	// Once ends Run when the first controller is done.
	Once bool

	// Wait bounds the wait for a controller; 0 is for ever.
	Wait time.Duration

	// Say is told what happens, a line a call; nil for nobody. It may be
	// called from several goroutines.
	Say func(string)
}

const (
	// sparedFiles is how many open files are left to everything that is no
	// connection of the load, filesPerLoop what the calibration of an event
	// loop takes.
	sparedFiles  = 100
	filesPerLoop = 100

	// knockEvery is the pause between two attempts to reach NATS.
	knockEvery = 500 * time.Millisecond
)

// errNoController says that Wait is over.
var errNoController = errors.New("no controller has come")

// Run waits for controllers and does what they say until ctx ends. It returns
// nil when ctx has ended or, with Once, when the controller has released it.
// No load is left when it returns.
func (a *Agent) Run(ctx context.Context, l Link) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &service{
		Agent: a, ctx: ctx, id: nuid.Next(), idleSince: time.Now(),
		done: func() { cancel(errReleased) },
	}
	if err := s.connect(l, cancel); err != nil {
		return over(err)
	}
	s.say("waits for a controller at %s", l.URL)
	defer s.nc.Close()
	defer s.leave(errLeaving)
	if err := s.serve(); err != nil {
		return over(err)
	}
	s.watch()
	return over(context.Cause(ctx))
}

// over tells what is no failure of Run.
func over(err error) error {
	if errors.Is(err, errReleased) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

var (
	errReleased = errors.New("the controller is done")
	errLeaving  = errors.New("the agent ends")
	errLease    = errors.New("the controller has not been heard of")
	errEpoch    = errors.New("the controller has begun anew")
)

// A service is an Agent at work.
type service struct {
	*Agent
	ctx       context.Context
	nc        *nats.Conn
	id        string
	done      func() // ends Run
	idleSince time.Time

	mu      sync.Mutex
	lease   *lease // nil: free
	leaving bool   // no order is taken any more
	orders  sync.WaitGroup
}

// A lease is the time during which an agent works for one controller.
type lease struct {
	controller string
	epoch      int64
	beaten     time.Time // when the last beat came
	beats      *nats.Subscription
	ctx        context.Context
	end        context.CancelCauseFunc

	mu   sync.Mutex // held while an order changes work
	work *work      // nil before the setup
}

func (s *service) say(format string, args ...any) {
	if s.Say != nil {
		s.Say(fmt.Sprintf(format, args...))
	}
}

// connect connects to NATS; a server that is not there yet is waited for.
func (s *service) connect(l Link, cancel context.CancelCauseFunc) error {
	said := false
	for {
		nc, err := l.connect("agent "+s.Name, nats.ClosedHandler(func(nc *nats.Conn) {
			if err := nc.LastError(); err != nil {
				cancel(fmt.Errorf("the connection to NATS: %w", explain(err)))
			}
		}))
		if err == nil {
			s.nc = nc
			return nil
		}
		if errors.Is(err, errRefused) || l.Check() != nil {
			return err
		}
		if !said {
			said = true
			s.say("%v; waits for it", err)
		}
		select {
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		case <-time.After(knockEvery):
		}
		if s.Wait > 0 && time.Since(s.idleSince) > s.Wait {
			return fmt.Errorf("%w within %v: %w", errNoController, s.Wait, err)
		}
	}
}

// serve subscribes to the subjects of an agent and says that it is there.
func (s *service) serve() error {
	roll := func(m *nats.Msg) {
		if _, err := decode[call](m.Data); err == nil || errors.As(err, new(*versionError)) {
			s.answer(m, s.presence()) // one of another version will say so
		}
	}
	if _, err := s.nc.Subscribe(rollSubject, roll); err != nil {
		return err
	}
	_, err := s.nc.Subscribe(agentSubject+s.id, func(m *nats.Msg) {
		read := time.Now()
		o, err := decode[order](m.Data)
		if err != nil {
			s.answer(m, reply{Version: Protocol, Error: err.Error()})
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.leaving {
			return
		}
		s.orders.Go(func() {
			r := s.obey(o, read)
			r.Version = Protocol
			s.answer(m, r)
			if o.Kind == releaseOrder && r.Error == "" && s.Once {
				_ = s.nc.FlushTimeout(replyTimeout) // or the controller does without the answer
				s.done()
			}
		})
	})
	return err
}

// answer replies to a message, with an error when that does not fit.
func (s *service) answer(m *nats.Msg, with any) {
	var b []byte
	var err error
	switch with := with.(type) {
	case presence:
		b, err = encode(with)
	case reply:
		b, err = encode(with)
		if most := s.nc.MaxPayload(); err == nil && most > 0 && int64(len(b)) > most {
			b, err = encode(reply{Version: Protocol, Error: fmt.Sprintf("the result has %d bytes, NATS takes %d; raise its max_payload", len(b), most)})
		}
	}
	if err == nil {
		// An answer that is lost is the controller's to miss.
		_ = m.Respond(b)
	}
}

func (s *service) presence() presence {
	p := presence{
		Version: Protocol, ID: s.id, Name: s.Name, Build: s.Build,
		Cores: runtime.NumCPU(), Loops: s.loops(), TLS: encrypted(s.nc),
	}
	p.Clients = maxClients
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil && files.Cur < maxClients {
		p.Clients = max(0, int(files.Cur)-sparedFiles-filesPerLoop*p.Loops)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease != nil {
		p.Busy = s.lease.controller
	}
	return p
}

func (s *service) loops() int {
	if s.Threads > 0 {
		return s.Threads
	}
	return max(1, runtime.NumCPU()-1)
}

// watch sends pulses and ends leases that have run out, until ctx ends.
func (s *service) watch() {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		s.mu.Lock()
		l := s.lease
		s.mu.Unlock()
		switch {
		case l == nil:
			if s.Wait > 0 && time.Since(s.idleSince) > s.Wait {
				s.say("%v within %v", errNoController, s.Wait)
				s.done()
			}
		case s.expired(l):
			s.leave(errLease)
		default:
			p := pulse{Version: Protocol, ID: s.id, Epoch: l.epoch}
			if w := l.at(); w != nil {
				p.Inserted = w.work.Inserted()
			}
			if b, err := encode(p); err == nil {
				_ = s.nc.Publish(pulseSubject+l.controller, b) // the controller misses it if it is lost
			}
		}
	}
}

func (s *service) expired(l *lease) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(l.beaten) > leaseTime
}

// at returns what the lease is at work with, nil for nothing.
func (l *lease) at() *work {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.work
}

// claim makes the agent work for a controller. A lease of an earlier epoch
// ends.
func (s *service) claim(o order) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving {
		return errLeaving
	}
	if l := s.lease; l != nil {
		switch {
		case l.controller != o.Controller:
			return fmt.Errorf("agent %s works for another controller", s.Name)
		case l.epoch == o.Epoch:
			return nil // asked again
		}
		s.end(l, errEpoch)
	}
	l := &lease{controller: o.Controller, epoch: o.Epoch, beaten: time.Now()}
	// Not of s.ctx: what ends it says why.
	l.ctx, l.end = context.WithCancelCause(context.Background())
	beats, err := s.nc.Subscribe(beatSubject+o.Controller, func(m *nats.Msg) {
		b, err := decode[beat](m.Data)
		if err != nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case s.lease != l:
		case b.Epoch > l.epoch:
			s.end(l, errEpoch)
		default:
			l.beaten = time.Now()
		}
	})
	if err != nil {
		l.end(err)
		return err
	}
	l.beats = beats
	s.lease = l
	return nil
}

// end ends a lease: its load stops at once, and its driver is closed when the
// last reply has come. s.mu is held.
func (s *service) end(l *lease, cause error) {
	if s.lease != l {
		return
	}
	s.lease, s.idleSince = nil, time.Now()
	l.end(cause)
	_ = l.beats.Unsubscribe() // or the connection is closed
	s.orders.Go(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.work != nil {
			l.work.close()
			l.work = nil
		}
	})
}

// leave ends the lease, if there is one, and waits for what it has begun when
// the agent ends.
func (s *service) leave(cause error) {
	s.mu.Lock()
	l := s.lease
	if l != nil {
		s.end(l, cause)
	}
	s.leaving = s.leaving || cause == errLeaving
	s.mu.Unlock()
	switch {
	case l != nil && cause == errLease:
		s.say("%v for %v: the load is stopped", cause, leaseTime)
	case cause == errLeaving:
		s.orders.Wait()
	}
}

// leased returns the lease that an order belongs to.
func (s *service) leased(o order) (*lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.lease; l != nil && l.controller == o.Controller && l.epoch == o.Epoch {
		return l, nil
	}
	return nil, fmt.Errorf("agent %s does not work for this controller (any more)", s.Name)
}
