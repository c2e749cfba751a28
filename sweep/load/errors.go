package load

import "bytes"

// maxClasses bounds how many kinds of error are told apart.
const maxClasses = 16

// countError adds an error reply to its class, the first word of its text.
func (sh *shard) countError(in bool, text []byte) {
	if !in {
		return
	}
	class := text
	if i := bytes.IndexByte(text, ' '); i > 0 {
		class = text[:i]
	}
	e, known := sh.m.Errors[string(class)] // does not allocate
	if known {
		e.Count++
		sh.m.Errors[string(class)] = e
		return
	}
	name := string(class[:min(len(class), 40)])
	if len(sh.m.Errors) >= maxClasses {
		name = "other"
	}
	sh.m.addError(name, ErrorClass{1, string(text[:min(len(text), 200)])})
}

// Classes of what went wrong without a reply.
const (
	connectError    = "connect"    // no connection could be opened
	connectionError = "connection" // the connection ended
	protocolError   = "protocol"   // what was received is no RESP
	timeoutError    = "timeout"    // no reply came
)

func (sh *shard) fail(class, text string) { sh.m.addError(class, ErrorClass{1, text}) }
