package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"time"

	"github.com/poolsweep/poolsweep/sweep/workload"
)

// A Transport says how connections are driven.
type Transport struct {
	Loops      int  // event loops; 0: a goroutine a connection, as Conns does
	TLS        bool // with goroutines only
	PerRequest bool // a connection for each batch; with goroutines only
}

// A Calibrator measures what a driver can do when the server costs nothing: it
// runs it against a null responder on loopback, which counts requests and
// answers with ready replies. Near this ceiling the generator is the limit,
// whatever its CPU says: an event loop polls, so that its CPU reads near 100 %
// long before it has no time left.
type Calibrator struct {
	driver    Driver
	responder io.Closer
	clients   int
}

// calibrationClients is how many connections each event loop gets, or all
// goroutines together: more do not make them faster.
const calibrationClients = 50

// NewCalibrator prepares the calibration of what sends w over the transport.
// The nodes of a cluster are one null responder.
func NewCalibrator(w *workload.Workload, t Transport) (*Calibrator, error) {
	c, err := newCalibrator(w, t)
	if err != nil {
		return nil, fmt.Errorf("calibrating the generator: %w", err)
	}
	return c, nil
}

func newCalibrator(w *workload.Workload, t Transport) (*Calibrator, error) {
	responder, dial, err := startResponder(w, t)
	if err != nil {
		return nil, err
	}
	c := &Calibrator{responder: responder, clients: max(calibrationClients*max(1, t.Loops), w.Parts())}
	endpoints := make([]Endpoint, w.Parts())
	for i := range endpoints {
		endpoints[i] = Endpoint{Addr: fmt.Sprintf("null-%d", i+1), Dial: dial}
	}
	if t.Loops > 0 {
		c.driver, err = NewEventLoops(t.Loops, w, endpoints...)
	} else {
		c.driver, err = NewConns(w, t.PerRequest, endpoints...)
	}
	if err != nil {
		return nil, errors.Join(err, responder.Close())
	}
	return c, nil
}

// startResponder starts the responder that suits the transport, and returns
// how it is dialled. Its event loops take the cores that those of the
// generator leave.
func startResponder(w *workload.Workload, t Transport) (io.Closer, func(context.Context) (net.Conn, error), error) {
	n := null{command: w.CommandBytes(), reply: w.Reply()}
	if t.Loops > 0 {
		l, err := startLoopResponder(n, max(1, min(t.Loops, runtime.NumCPU()-t.Loops)))
		if err != nil {
			return nil, nil, err
		}
		return l, dialer(l.listener.Addr().String()), nil
	}
	var server *tls.Config
	if t.TLS {
		var err error
		if server, err = selfSigned(); err != nil {
			return nil, nil, err
		}
	}
	r, err := startConnResponder(n, server)
	if err != nil {
		return nil, nil, err
	}
	dial := dialer(r.listener.Addr().String())
	if t.TLS {
		dial = tlsDialer(dial)
	}
	return r, dial, nil
}

func dialer(addr string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
}

// Run drives the null responder at the pipeline depth for a moment.
func (c *Calibrator) Run(ctx context.Context, depth int) (*Measurement, error) {
	m, err := c.driver.Run(ctx, Job{
		Step:     Step{Clients: c.clients, Depth: depth},
		Warmup:   40 * time.Millisecond,
		Duration: 100 * time.Millisecond,
	})
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("calibrating the generator: %w", err)
	}
	return m, err
}

// Close ends the driver and the responder.
func (c *Calibrator) Close() error {
	return errors.Join(c.driver.Close(), c.responder.Close())
}
