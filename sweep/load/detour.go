package load

import (
	"context"
	"net"
	"slices"
	"time"

	"github.com/poolsweep/poolsweep/internal/resp"
)

// A detour is a connection of a client to another node of a cluster than its
// own, for the requests that are redirected there. It is opened by the first of
// them. Redirects are rare: they cost a client of Conns a round trip each, one
// after the other.
type detour struct {
	session
	client *clientConn
	dial   func(context.Context) (net.Conn, error)
	ctx    context.Context // of the job
	nc     net.Conn        // nil: not open; taken under the client's mutex
}

// addDetours gives a client of a cluster a way to every node.
func (c *clientConn) addDetours(ctx context.Context, endpoints []Endpoint) {
	for i, e := range endpoints {
		n := &node{index: i, addr: e.Addr}
		if i == c.node.index {
			// A request may come back to where it was redirected first.
			n = c.node
			n.sessions = []*session{c.session}
			c.out = homeWriter{c}
		} else {
			d := &detour{session: session{shard: c.shard, node: n, ended: true}, client: c, dial: e.Dial, ctx: ctx}
			d.out = d
			n.source = c.node.source // learns which slots are elsewhere
			n.sessions = []*session{&d.session}
			c.detours = append(c.detours, d)
		}
		c.shard.nodes = append(c.shard.nodes, n)
	}
}

// A homeWriter writes guests to the client's own connection.
type homeWriter struct{ c *clientConn }

func (w homeWriter) Write(b []byte) (int, error) { return w.c.nc.Write(b) }

// Write sends a guest, over a new connection if there is none. An error ends
// the detour, and that loses the guest.
func (d *detour) Write(b []byte) (int, error) {
	if d.nc == nil {
		nc, err := d.dial(d.ctx)
		if err != nil {
			d.shard.fail(connectError, err.Error())
			d.lose()
			return 0, err
		}
		d.client.hold(&d.nc, nc)
		d.scan = resp.Scanner{}
	}
	n, err := d.nc.Write(b)
	if err != nil {
		_ = d.client.broken(err)
		d.lose()
	}
	return n, err
}

// read takes what the other node has answered.
func (d *detour) read() {
	n, err := d.nc.Read(d.client.in)
	if n > 0 {
		if _, syntax := d.receive(d.client.now(), d.client.in[:n]); syntax != nil {
			d.shard.fail(protocolError, syntax.Error())
			d.lose()
			return
		}
	}
	if err != nil {
		_ = d.client.broken(err)
		d.lose()
	}
}

// takeDetours waits for one answer over a detour. The batch of the client has
// no answer to come over its own connection.
func (c *clientConn) takeDetours() time.Duration {
	i := slices.IndexFunc(c.detours, func(d *detour) bool { return len(d.guests) > 0 })
	c.detours[i].read()
	c.shard.ready = c.shard.ready[:0] // there is but this client
	return c.now()
}
