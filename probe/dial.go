package probe

import (
	"context"
	"errors"
	"net"
	"strconv"
	"time"

	"github.com/poolsweep/poolsweep/internal/resp"
)

// clientName is how our connections stand in CLIENT LIST.
const clientName = "poolsweep"

// replyTimeout bounds the wait for a reply of the control connection and of a
// handshake.
const replyTimeout = 5 * time.Second

// Dial opens a connection for the load that is ready for commands:
// encrypted if the target is (then it is a *tls.Conn), authenticated, named,
// its database selected. Of a target with sentinels it asks them first. Its
// errors are one line that says what to do.
func (t Target) Dial(ctx context.Context) (net.Conn, error) {
	t, err := t.ready(ctx)
	if err != nil {
		return nil, err
	}
	return t.dial(ctx)
}

// ready returns t as it can be dialled: defaults filled in, certificates
// loaded, and the address of the master when there are sentinels to know it.
func (t Target) ready(ctx context.Context) (Target, error) {
	t = t.Normal()
	var err error
	if t.TLS, err = t.TLS.load(); err != nil {
		return t, err
	}
	if t.Sentinel == nil {
		return t, nil
	}
	return t.master(ctx)
}

// dial is Dial of a target that is ready, with commands sent after the
// handshake, which must not fail either.
func (t Target) dial(ctx context.Context, commands ...string) (net.Conn, error) {
	c, err := t.transport(ctx)
	if err != nil {
		return nil, t.explain(ctx, err)
	}
	if err = c.SetDeadline(time.Now().Add(replyTimeout)); err == nil {
		unbind := bind(ctx, c)
		err = t.handshake(c, commands)
		unbind()
	}
	if err != nil {
		c.Close()
		return nil, t.explain(ctx, err)
	}
	return c, nil
}

// transport opens the connection without a word of RESP.
func (t Target) transport(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{Timeout: replyTimeout, LocalAddr: t.Sources.local()}
	c, err := d.DialContext(ctx, t.Network, t.Addr())
	if err != nil || t.TLS == nil {
		return c, err
	}
	err = c.SetDeadline(time.Now().Add(replyTimeout))
	if err == nil {
		var secured net.Conn
		if secured, err = t.TLS.client(ctx, c, t.Host); err == nil {
			err = c.SetDeadline(time.Time{})
			return secured, err
		}
	}
	c.Close()
	return nil, err
}

// bind has what waits for c fail when ctx is over, until unbind is called.
func bind(ctx context.Context, c net.Conn) (unbind func()) {
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	return func() { stop() }
}

// handshake makes the connection ready; its deadline bounds that and is
// removed then. All commands go in one write: one round trip.
func (t Target) handshake(c net.Conn, commands []string) error {
	var out []byte
	needed := 0
	add := func(args ...string) {
		out = resp.AppendCommand(out, args...)
		needed++
	}
	if auth := t.authentication(); auth != nil {
		add(auth...)
	}
	if t.DB != 0 {
		add("SELECT", strconv.Itoa(t.DB))
	}
	if t.Tracking {
		add("CLIENT", "TRACKING", "ON")
	}
	for _, command := range commands {
		add(command)
	}
	// A server may forbid or not know CLIENT: its reply is read, not judged.
	out = resp.AppendCommand(out, "CLIENT", "SETNAME", clientName)

	if _, err := c.Write(out); err != nil {
		return err
	}
	if err := readReplies(c, needed, 1); err != nil {
		return err
	}
	return c.SetDeadline(time.Time{})
}

// authentication returns the command that says who we are and which version
// of the protocol we speak; nil when neither needs to be said.
func (t Target) authentication() []string {
	user, password := t.User, t.Password.Reveal()
	switch {
	case t.RESP3 && user == "" && password == "":
		return []string{"HELLO", "3"}
	case t.RESP3 && user == "":
		return []string{"HELLO", "3", "AUTH", "default", password}
	case t.RESP3:
		return []string{"HELLO", "3", "AUTH", user, password}
	case user != "":
		return []string{"AUTH", user, password}
	case password != "":
		return []string{"AUTH", password} // the form of servers without users
	}
	return nil
}

// A replyError is an error that the server replied.
type replyError string

func (e replyError) Error() string { return string(e) }

// errTLS is what a server that speaks TLS answers to plain RESP.
var errTLS = errors.New("the reply is TLS")

// alertRecord is the first byte of a TLS record with an alert (RFC 8446, 5.1).
// No reply of RESP begins with it.
const alertRecord = 0x15

// readReplies reads needed replies that must not be errors and ignored ones
// that may be.
func readReplies(c net.Conn, needed, ignored int) error {
	var scan resp.Scanner
	in := make([]byte, 512)
	first := true
	for replies := 0; replies < needed+ignored; {
		n, err := c.Read(in)
		if err != nil {
			return err
		}
		if first && n > 0 && in[0] == alertRecord {
			return errTLS
		}
		first = first && n == 0
		for data := in[:n]; len(data) > 0; {
			n, done, err := scan.Scan(data)
			if err != nil {
				return err
			}
			data = data[n:]
			if !done || scan.Kind() == '>' {
				continue
			}
			if replies++; scan.IsError() && replies <= needed {
				return replyError(scan.ErrorText())
			}
		}
	}
	return nil
}
