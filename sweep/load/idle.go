package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/panjf2000/gnet/v2"
)

// Idle is a number of connections that do nothing, as those of a pool that is
// too large.
type Idle struct {
	holder idleHolder
	client *gnet.Client // nil while none is held by the event loop

	mu    sync.Mutex
	loop  []gnet.Conn // on the event loop
	other []net.Conn  // with a goroutine each: those of TLS
	wait  sync.WaitGroup
}

// HoldIdle opens n connections, the i-th to endpoint i modulo their number,
// and holds them until Close. n may be 0.
func HoldIdle(ctx context.Context, n int, endpoints ...Endpoint) (*Idle, error) {
	h := new(Idle)
	if n == 0 {
		return h, nil
	}
	var err error
	if h.client, err = startClient(&h.holder, 1); err != nil {
		return nil, fmt.Errorf("holding %d idle connections: %w", n, err)
	}
	if err := dialAll(ctx, n, endpoints, func(_ int, c net.Conn) error { return h.hold(c) }); err != nil {
		return nil, errors.Join(fmt.Errorf("holding %d idle connections: %w", n, err), h.Close())
	}
	return h, nil
}

// hold takes over a connection: one of TLS gets a goroutine, as event loops
// cannot read it.
func (h *Idle) hold(c net.Conn) error {
	switch c.(type) {
	case *net.TCPConn, *net.UnixConn:
		gc, err := h.client.EnrollContext(c, h)
		if err != nil {
			return err
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.loop = append(h.loop, gc)
		return nil
	}
	h.mu.Lock()
	h.other = append(h.other, c)
	h.mu.Unlock()
	h.wait.Go(func() {
		in := make([]byte, 64)
		for {
			if _, err := c.Read(in); err != nil {
				h.holder.OnClose(nil, err)
				return
			}
		}
	})
	return nil
}

// Lost returns how many of the connections have ended.
func (h *Idle) Lost() int { return int(h.holder.lost.Load()) }

// Close resets the connections.
func (h *Idle) Close() error {
	if h == nil || h.client == nil {
		return nil
	}
	h.holder.closing.Store(true)
	for _, c := range h.other {
		reset(c)
	}
	h.wait.Wait()
	if len(h.loop) > 0 {
		done := make(chan struct{})
		err := h.loop[0].EventLoop().Execute(context.Background(), gnet.RunnableFunc(func(context.Context) error {
			defer close(done)
			for _, c := range h.loop {
				if c.Context() != nil { // else it is closed
					_ = c.SetLinger(0)
					_ = c.EventLoop().Close(c)
				}
			}
			return nil
		}))
		if err == nil {
			<-done
		}
	}
	return h.client.Stop()
}

// An idleHolder throws away what comes and counts the connections that end.
type idleHolder struct {
	gnet.BuiltinEventEngine
	lost    atomic.Int64
	closing atomic.Bool
}

// OnTraffic throws away what has come: push messages.
func (h *idleHolder) OnTraffic(c gnet.Conn) gnet.Action {
	_, _ = c.Discard(-1)
	return gnet.None
}

// OnClose counts a connection that has ended.
func (h *idleHolder) OnClose(gnet.Conn, error) gnet.Action {
	if !h.closing.Load() {
		h.lost.Add(1)
	}
	return gnet.None
}
