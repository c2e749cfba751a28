package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/poolsweep/poolsweep/internal/resp"
)

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
		return fmt.Errorf("%s: %s", what, explainReply(t.hide(string(reply))))
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: %w", what, syntax)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s: connection refused; is the server running?", what)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: no such socket; is the server running, and with this unixsocket?", what)
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("%s: too many open files; raise the limit (ulimit -n) or sweep to fewer clients", what)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s: no local port is left, or no such address here; sweep to fewer clients, or from more addresses with --source", what)
	}
	if t.TLS != nil {
		if text := t.TLS.explain(err, t.Host); text != "" {
			return fmt.Errorf("%s: %s", what, text)
		}
	}
	switch {
	case errors.Is(err, errTLS):
		return fmt.Errorf("%s: the server speaks TLS; give --tls", what)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%s: no reply within %v; is this a Redis port, and is the server stalled?", what, replyTimeout)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("%s: the server closed the connection; is this a Redis port, does it want --tls, is maxclients reached, or has it just ended?", what)
	}
	// net's text repeats the address; what is left is the cause.
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// errDatabase is what a target with a database number is told by a cluster.
var errDatabase = errors.New("on a cluster only database 0 is swept; leave out the database number")

// hide takes the password out of a text that the server has sent.
func (t Target) hide(text string) string {
	if p := t.Password.Reveal(); p != "" {
		text = strings.ReplaceAll(text, p, "***")
	}
	return text
}

// withoutArguments cuts from an error reply the arguments of a command that
// the server does not know: there may be a password among them.
func withoutArguments(text string) string {
	before, _, _ := strings.Cut(text, ", with args beginning with")
	return before
}

// explainReply adds what to do to an error reply.
func explainReply(text string) string {
	text = withoutArguments(text)
	class, _, _ := strings.Cut(text, " ")
	lower := strings.ToLower(text)
	switch {
	case class == "NOAUTH":
		return "the server wants a password; set REDISCLI_AUTH or give --password-file"
	case class == "WRONGPASS":
		return "wrong user name or password"
	case class == "LOADING":
		return "the server is still loading its data; try again when it has finished"
	case class == "NOPERM":
		return text + "; give a user that may run it (--user)"
	case class == "NOPROTO", strings.Contains(lower, "unknown command") && strings.Contains(lower, "hello"):
		return "the server does not speak RESP3, which came with Redis 6.0; leave out -3"
	case strings.Contains(lower, "select is not allowed in cluster mode"):
		return errDatabase.Error()
	case class == "ERR" && strings.Contains(text, "AUTH"):
		return text + "; the server may know no users, or need no password"
	case class == "ERR" && strings.Contains(lower, "tracking"):
		return text + "; the server may know no client-side caching: leave out tracking"
	}
	return text
}
