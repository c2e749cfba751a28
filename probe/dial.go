package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/poolsweep/poolsweep/internal/resp"
)

// clientName is how our connections stand in CLIENT LIST.
const clientName = "poolsweep"

// replyTimeout bounds the wait for a reply of the control connection and of a
// handshake.
const replyTimeout = 5 * time.Second

// Dial opens a connection that is ready for commands: authenticated, named,
// its database selected. Its errors are one line that says what to do.
func (t Target) Dial(ctx context.Context) (net.Conn, error) {
	return t.dial(ctx)
}

// dial is Dial, with commands sent after the handshake, which must not fail
// either.
func (t Target) dial(ctx context.Context, commands ...string) (net.Conn, error) {
	d := net.Dialer{Timeout: replyTimeout}
	c, err := d.DialContext(ctx, t.Network, t.Addr())
	if err != nil {
		return nil, t.explain(ctx, err)
	}
	if err := t.handshake(c, commands); err != nil {
		c.Close()
		return nil, t.explain(ctx, err)
	}
	return c, nil
}

// handshake makes the connection ready. All commands go in one write: one
// round trip.
func (t Target) handshake(c net.Conn, commands []string) error {
	var out []byte
	needed := 0
	add := func(args ...string) {
		out = resp.AppendCommand(out, args...)
		needed++
	}
	switch {
	case t.User != "":
		add("AUTH", t.User, t.Password.Reveal())
	case t.Password.Reveal() != "":
		add("AUTH", t.Password.Reveal())
	}
	if t.DB != 0 {
		add("SELECT", strconv.Itoa(t.DB))
	}
	for _, command := range commands {
		add(command)
	}
	// A server may forbid or not know CLIENT: its reply is read, not judged.
	out = resp.AppendCommand(out, "CLIENT", "SETNAME", clientName)

	if err := c.SetDeadline(time.Now().Add(replyTimeout)); err != nil {
		return err
	}
	if _, err := c.Write(out); err != nil {
		return err
	}
	if err := readReplies(c, needed, 1); err != nil {
		return err
	}
	return c.SetDeadline(time.Time{})
}

// A replyError is an error that the server replied.
type replyError string

func (e replyError) Error() string { return string(e) }

// readReplies reads needed replies that must not be errors and ignored ones
// that may be.
func readReplies(c net.Conn, needed, ignored int) error {
	var scan resp.Scanner
	in := make([]byte, 512)
	for replies := 0; replies < needed+ignored; {
		n, err := c.Read(in)
		if err != nil {
			return err
		}
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

// explain turns an error of the network or of the server into one line:
// what was done, what happened, what to do next.
func (t Target) explain(ctx context.Context, err error) error {
	what := "connecting to " + t.Addr()
	var reply replyError
	var syntax *resp.SyntaxError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	case errors.As(err, &reply):
		return fmt.Errorf("%s: %s", what, explainReply(string(reply)))
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: %w", what, syntax)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s: connection refused; is the server running?", what)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: no such socket; is the server running, and with this unixsocket?", what)
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("%s: too many open files; raise the limit (ulimit -n) or sweep to fewer clients", what)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s: no local port is left; sweep to fewer clients", what)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%s: no reply within %v; is this a Redis port, and is the server stalled?", what, replyTimeout)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("%s: the server closed the connection; is this a Redis port, and is maxclients reached?", what)
	}
	// net's text repeats the address; what is left is the cause.
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// explainReply adds what to do to an error reply.
func explainReply(text string) string {
	switch class, _, _ := strings.Cut(text, " "); class {
	case "NOAUTH":
		return "the server wants a password; set REDISCLI_AUTH or give --password-file"
	case "WRONGPASS":
		return "wrong user name or password"
	case "LOADING":
		return "the server is still loading its data; try again when it has finished"
	case "NOPERM":
		return text + "; give a user that may run it (--user)"
	case "ERR":
		if strings.Contains(text, "AUTH") {
			return text + "; the server may know no users, or need no password"
		}
	}
	return text
}
