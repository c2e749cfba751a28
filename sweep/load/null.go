package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"time"

	"github.com/panjf2000/gnet/v2"

	"github.com/poolsweep/poolsweep/sweep/workload"
)

// A Calibrator measures what the event loops can drive when the server costs
// nothing: it runs them against a null responder on loopback, one event loop
// that counts the bytes of requests and answers with ready replies. Near this
// ceiling the generator is the limit, whatever its CPU says: a loop polls, so
// that its CPU reads near 100 % long before it has no time left.
type Calibrator struct {
	driver   *EventLoops
	listener net.Listener
	null     *gnet.Client
}

// calibrationClients is how many connections each loop gets: more do not make
// it faster.
const calibrationClients = 50

// NewCalibrator prepares the calibration of n event loops that send w.
func NewCalibrator(n int, w *workload.Workload) (*Calibrator, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("calibrating the generator: %w", err)
	}
	c := &Calibrator{listener: l}
	c.null, err = startClient(&nullHandler{command: w.CommandBytes(), reply: w.Reply()},
		max(1, min(n, runtime.NumCPU()-n)))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("calibrating the generator: %w", err), l.Close())
	}
	go c.accept()
	c.driver, err = NewEventLoops(n, w, func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	})
	if err != nil {
		return nil, errors.Join(err, c.null.Stop(), l.Close())
	}
	return c, nil
}

// accept hands connections to the null responder's event loop.
func (c *Calibrator) accept() {
	for {
		nc, err := c.listener.Accept()
		if err != nil {
			return
		}
		if _, err := c.null.EnrollContext(nc, new(nullConn)); err != nil {
			return
		}
	}
}

// Run drives the null responder at the pipeline depth for a moment.
func (c *Calibrator) Run(ctx context.Context, depth int) (*Measurement, error) {
	m, err := c.driver.Run(ctx, Job{
		Step:     Step{Clients: calibrationClients * len(c.driver.loops), Depth: depth},
		Warmup:   40 * time.Millisecond,
		Duration: 100 * time.Millisecond,
	})
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("calibrating the generator: %w", err)
	}
	return m, err
}

// Close ends the event loops and the responder.
func (c *Calibrator) Close() error {
	return errors.Join(c.driver.Close(), c.listener.Close(), c.null.Stop())
}

// A nullHandler answers every command bytes with a reply.
type nullHandler struct {
	gnet.BuiltinEventEngine
	command int
	reply   []byte
}

// A nullConn is a connection of the responder.
type nullConn struct {
	partial int    // bytes of a command that have come
	out     []byte // replies, as many as were ever needed at once
}

// OnTraffic answers the commands that have come whole.
func (h *nullHandler) OnTraffic(c gnet.Conn) gnet.Action {
	data, err := c.Next(-1)
	if err != nil {
		return gnet.Close
	}
	nc := c.Context().(*nullConn)
	nc.partial += len(data)
	n := nc.partial / h.command
	nc.partial %= h.command
	for len(nc.out) < n*len(h.reply) {
		nc.out = append(nc.out, h.reply...)
	}
	_, _ = c.Write(nc.out[:n*len(h.reply)])
	return gnet.None
}
