package verify

import (
	"bytes"
	"strconv"

	"github.com/poolsweep/poolsweep/sweep/workload"
)

// requests are the requests of a workload as go-redis takes them: a slice of
// arguments. They must not be used by two goroutines at once.
type requests struct{ source *workload.Source }

// next returns the next request. The caller owns it.
func (r *requests) next() []any { return arguments(r.source.Append(nil, 1)) }

// arguments splits a command of ours, which is well-formed: an array of bulk
// strings, or a line of words. The arguments are parts of command.
func arguments(command []byte) []any {
	if len(command) == 0 || command[0] != '*' {
		var args []any
		for _, word := range bytes.Fields(command) {
			args = append(args, word)
		}
		return args
	}
	head, rest, _ := bytes.Cut(command[1:], crlf)
	n, _ := strconv.Atoi(string(head))
	args := make([]any, 0, n)
	for range n {
		head, rest, _ = bytes.Cut(rest, crlf)
		size, _ := strconv.Atoi(string(head[1:]))
		args = append(args, rest[:size:size])
		rest = rest[size+len(crlf):]
	}
	return args
}

var crlf = []byte("\r\n")
