package load

import (
	"bytes"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/poolsweep/poolsweep/internal/resp"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// A guest is a request that a node of a cluster has redirected, on its way
// over a connection to another node. The session that it is from, its home,
// waits for it as for the other requests of its batch: as with a client of a
// cluster, a redirect makes a request slower but not the requests in flight
// more.
type guest struct {
	at    int64    // number of its reply among those of the connection
	home  *session // nil for ASKING, whose reply is nobody's
	index int      // in the batch of home
	hops  int      // how often it was redirected
}

// maxRedirects is how often a request is sent again; more than that and the
// nodes do not agree. Clients use 3 to 16.
const maxRedirects = 5

// A redirect is what a node says that does not serve a request. See the Redis
// cluster specification, "MOVED redirection" and "ASK redirection".
type redirect struct {
	ask  bool   // this time only, and with ASKING before it
	slot int    // of the key
	host string // "": that of the node itself
	port string
}

// parseRedirect reads "MOVED slot host:port" and "ASK slot host:port". The host
// may be an IPv6 address without brackets.
func parseRedirect(text []byte) (r redirect, ok bool) {
	word, rest, _ := bytes.Cut(text, []byte(" "))
	r.ask = string(word) == "ASK"
	if !r.ask && string(word) != "MOVED" {
		return r, false
	}
	slot, addr, _ := bytes.Cut(rest, []byte(" "))
	n, err := strconv.ParseUint(string(slot), 10, 16)
	i := bytes.LastIndexByte(addr, ':')
	if err != nil || n >= workload.Slots || i < 0 {
		return r, false
	}
	port, err := strconv.ParseUint(string(addr[i+1:]), 10, 16)
	if err != nil || port == 0 {
		return r, false
	}
	host := addr[:i]
	if bytes.HasPrefix(host, []byte("[")) && bytes.HasSuffix(host, []byte("]")) {
		host = host[1 : len(host)-1]
	}
	r.slot, r.host, r.port = int(n), string(host), strconv.FormatUint(port, 10)
	return r, true
}

// addr returns where a request is to be sent that the node at asked redirected.
func (r redirect) addr(asked string) string {
	host := r.host
	if host == "" {
		host, _, _ = net.SplitHostPort(asked)
	}
	return net.JoinHostPort(host, r.port)
}

// redirect takes the reply just completed, which answers g. If it redirects
// the request to a node that the shard has a connection to, it is sent there;
// else the reply is an error like others.
func (s *session) redirect(now time.Duration, g guest) bool {
	if !s.scan.IsError() {
		return false
	}
	r, ok := parseRedirect(s.scan.ErrorText())
	if !ok {
		return false
	}
	sh := s.shard
	if !r.ask {
		s.node.source.Moved(r.slot)
	}
	if g.hops++; g.hops > maxRedirects {
		return false
	}
	addr := r.addr(s.node.addr)
	i := slices.IndexFunc(sh.nodes, func(n *node) bool { return n.addr == addr })
	if i < 0 {
		return false
	}
	to := sh.nodes[i].carrier()
	request := nthCommand(g.home.batch, g.index)
	if to == nil || request == nil {
		return false
	}
	sh.m.Redirects++
	sh.passing = sh.passing[:0]
	if r.ask {
		sh.passing = resp.AppendCommand(sh.passing, "ASKING")
		to.expect(guest{})
	}
	sh.passing = append(sh.passing, request...)
	to.expect(g)
	if g.home.inWindow(now) {
		sh.m.BytesOut += int64(len(sh.passing))
	}
	// A failed write closes the connection, and that loses its guests.
	_, _ = to.out.Write(sh.passing)
	return true
}

// carrier returns a session of the node that can take a guest, nil for none.
func (n *node) carrier() *session {
	for range n.sessions {
		n.turn = (n.turn + 1) % len(n.sessions)
		if s := n.sessions[n.turn]; !s.lost {
			return s
		}
	}
	return nil
}

// expect notes that the next request written to the connection is a guest.
func (s *session) expect(g guest) {
	s.written++
	g.at = s.written
	s.guests = append(s.guests, g)
}

// serve takes the reply just completed, which is a guest's.
func (s *session) serve(now time.Duration) {
	g := s.guests[0]
	s.guests = slices.Delete(s.guests, 0, 1)
	h := g.home
	if h == nil || h.lost || s.redirect(now, g) {
		return
	}
	sh := s.shard
	var o outcome
	o.add(&s.scan)
	if s.scan.IsError() {
		sh.countError(h.inWindow(now), s.scan.ErrorText())
	}
	var kind uint8
	if len(h.kinds) > 0 {
		kind = h.kinds[g.index]
	}
	sh.count(now, h, s.node, kind, o)
	if h.open--; h.open == 0 && h != s {
		if h.inWindow(now) {
			sh.m.BatchTime += now - h.start
		}
		sh.ready = append(sh.ready, h)
	}
}

// nthCommand returns the i-th command of a batch, nil when there is none.
func nthCommand(batch []byte, i int) []byte {
	var scan commandScanner
	for ; ; i-- {
		n, done, err := scan.Scan(batch)
		switch {
		case !done || err != nil:
			return nil
		case i == 0:
			return batch[:n]
		}
		batch = batch[n:]
	}
}

// A commandScanner finds the ends of commands as a resp.Scanner does those of
// replies: arrays, and lines as a person types them. The zero value is ready.
type commandScanner struct {
	scan resp.Scanner
	in   byte // 'a' within an array, 'l' within a line, 0 between commands
}

// Scan reads from data up to the end of one command, or all of data. See
// resp.Scanner.Scan.
func (c *commandScanner) Scan(data []byte) (n int, done bool, err error) {
	if len(data) == 0 {
		return 0, false, nil
	}
	if c.in == 0 {
		c.in = 'l'
		if data[0] == '*' {
			c.in = 'a'
		}
	}
	if c.in == 'a' {
		n, done, err = c.scan.Scan(data)
	} else if n = bytes.IndexByte(data, '\n') + 1; n > 0 {
		done = true
	} else {
		n = len(data)
	}
	if done {
		c.in = 0
	}
	return n, done, err
}
