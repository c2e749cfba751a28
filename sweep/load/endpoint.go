package load

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
)

// An Endpoint is a server that connections are opened to.
type Endpoint struct {
	// Addr names it, as host:port as in the redirects of a cluster.
	Addr string

	// Dial opens a connection that is ready to be used: authenticated, its
	// database selected.
	Dial func(context.Context) (net.Conn, error)
}

// dialers bounds how many connections are being opened at a time: enough to
// open 10,000 in a second, few enough for a listen queue of 128.
const dialers = 32

// dialAll opens n connections, the i-th to endpoint i modulo their number, and
// hands each to take, which owns it from then on. Both run on several
// goroutines at once. The first error ends it all.
func dialAll(ctx context.Context, n int, endpoints []Endpoint, take func(i int, c net.Conn) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(dialers, n) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n || ctx.Err() != nil {
					return
				}
				c, err := endpoints[i%len(endpoints)].Dial(ctx)
				if err == nil {
					err = take(i, c)
				}
				if err != nil {
					cancel(fmt.Errorf("opening connection %d of %d: %w", i+1, n, err))
					return
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// reset closes a connection without a farewell. Nothing is in flight on it,
// and a sweep that leaves tens of thousands of sockets in TIME_WAIT runs out of
// ports.
func reset(c net.Conn) {
	// Closing TLS itself would send an alert first.
	if wrapped, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = wrapped.NetConn()
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
