package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/poolsweep/poolsweep/sweep/load"
)

// obey carries an order out that was read at that time.
func (s *service) obey(o order, read time.Time) reply {
	switch o.Kind {
	case claimOrder:
		if err := s.claim(o); err != nil {
			return reply{Error: err.Error(), Void: true}
		}
		p := s.presence()
		return reply{Presence: &p}
	case releaseOrder:
		return s.released(o)
	}
	l, err := s.leased(o)
	if err != nil {
		return reply{Error: err.Error(), Void: true}
	}
	var r reply
	switch o.Kind {
	case setupOrder:
		err = s.setUp(l, o.Setup)
	case calibrateOrder:
		r.Result, err = l.calibrate(o.Share.Depth)
	case prepareOrder:
		err = l.prepare(o)
	case startOrder, awaitOrder, collectOrder:
		r.Result, err = l.tend(o, read)
	}
	if err != nil {
		r.Error = err.Error()
		// What the end of the lease has cut off is not the server's fault.
		r.Void = l.ctx.Err() != nil || errors.Is(err, errNoTrial)
	}
	return r
}

// released ends the lease because the controller is done.
func (s *service) released(o order) reply {
	l, err := s.leased(o)
	if err != nil {
		return reply{Error: err.Error(), Void: true}
	}
	s.mu.Lock()
	s.end(l, errReleased)
	s.mu.Unlock()
	return reply{}
}

// errNoTrial says that an order came for something that is not under way.
var errNoTrial = errors.New("no such trial is under way")

// setUp makes what drives and calibrates the load.
func (s *service) setUp(l *lease, x *setup) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.work != nil {
		l.work.close()
		l.work = nil
	}
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	w, err := newWork(l.ctx, s.Agent, s.loops(), x)
	if err != nil {
		return err
	}
	l.work = w
	return nil
}

// calibrate measures what the agent reaches against a null responder.
func (l *lease) calibrate(depth int) (*result, error) {
	w := l.at()
	if w == nil {
		return nil, errNoTrial
	}
	m, err := w.calibrator.Run(l.ctx, depth)
	if err != nil {
		return nil, err
	}
	w.calibrated(m)
	return &result{Measurement: m}, nil
}

// prepare begins a trial and returns when its connections are open.
func (l *lease) prepare(o order) error {
	l.mu.Lock()
	w := l.work
	if w == nil {
		l.mu.Unlock()
		return errNoTrial
	}
	t, err := w.begin(l.ctx, o.Trial, o.Share)
	l.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case <-t.ready:
		return nil
	case <-t.done:
		if t.err == nil {
			return fmt.Errorf("the load has ended before it was started")
		}
		return t.err
	}
}

// tend carries out an order about the trial under way.
func (l *lease) tend(o order, read time.Time) (*result, error) {
	w := l.at()
	if w == nil {
		return nil, errNoTrial
	}
	t := w.trial.Load()
	if t == nil || t.number != o.Trial {
		return nil, errNoTrial
	}
	switch o.Kind {
	case startOrder:
		return nil, t.start(read, o.In)
	case awaitOrder:
		select {
		case <-t.ended:
			return nil, nil
		case <-t.done:
			return nil, t.err
		}
	}
	t.finish()
	<-t.done
	if t.err != nil {
		return nil, t.err
	}
	return w.result(t), nil
}

// result is what a trial that is done has measured.
func (w *work) result(t *trial) *result {
	m := t.m
	m.Connect = max(0, m.Connect-t.held)
	r := &result{
		Measurement: m,
		Begun:       m.Start.Sub(t.read),
		Inserted:    w.work.Inserted(),
		Agent: load.Agent{
			Clients: m.Clients, Requests: m.Requests, Connect: m.Connect,
			BytesOut: m.BytesOut, BytesIn: m.BytesIn,
			Capacity: w.capacity(m),
		},
	}
	if t.observed {
		elapsed, own, host := t.before.Until(t.after)
		r.Agent.Elapsed, r.Agent.CPUSeconds = elapsed, own.CPUSeconds
		if host != nil {
			r.Agent.HostCores, r.Agent.HostBusySeconds = host.Cores, host.BusySeconds
		}
	}
	return r
}
