package load

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/poolsweep/poolsweep/internal/resp"
)

// The examples are those of the Redis cluster specification, and of the
// servers' source (clusterRedirectClient) for what it leaves open.
func TestParseRedirect(t *testing.T) {
	const asked = "10.0.0.1:7000"
	for _, tt := range []struct {
		text string
		addr string // "": no redirect
		slot int
		ask  bool
	}{
		{"MOVED 3999 127.0.0.1:6381", "127.0.0.1:6381", 3999, false},
		{"ASK 16383 127.0.0.1:6381", "127.0.0.1:6381", 16383, true},
		{"MOVED 3999 :6381", "10.0.0.1:6381", 3999, false}, // no host: that of the node asked
		{"MOVED 0 node-1.example.org:6379", "node-1.example.org:6379", 0, false},
		{"MOVED 3999 2001:db8::1:6381", "[2001:db8::1]:6381", 3999, false}, // as servers write it
		{"MOVED 3999 [2001:db8::1]:6381", "[2001:db8::1]:6381", 3999, false},
		{"MOVED 16384 127.0.0.1:6381", "", 0, false}, // no such slot
		{"MOVED 3999 127.0.0.1", "", 0, false},
		{"MOVED 3999 127.0.0.1:0", "", 0, false},
		{"MOVED", "", 0, false},
		{"MOVEDX 3999 127.0.0.1:6381", "", 0, false},
		{"CLUSTERDOWN Hash slot not served", "", 0, false},
		{"TRYAGAIN Multiple keys request during rehashing of slot", "", 0, false},
	} {
		r, ok := parseRedirect([]byte(tt.text))
		if ok != (tt.addr != "") {
			t.Errorf("%s: a redirect: %v", tt.text, ok)
			continue
		}
		if ok && (r.addr(asked) != tt.addr || r.slot != tt.slot || r.ask != tt.ask) {
			t.Errorf("%s: slot %d to %s, ask %v", tt.text, r.slot, r.addr(asked), r.ask)
		}
	}
}

func FuzzParseRedirect(f *testing.F) {
	f.Add([]byte("MOVED 3999 127.0.0.1:6381"))
	f.Add([]byte("ASK 1 :1"))
	f.Add([]byte("ASK 1 []:1"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, ok := parseRedirect(text)
		if ok && (r.slot < 0 || r.slot >= 16384 || r.port == "") {
			t.Errorf("%q: %+v", text, r)
		}
		if !ok && r.host != "" {
			t.Errorf("%q: no redirect, but host %q", text, r.host)
		}
	})
}

// A batch is its commands, one behind the other, however it is cut.
func TestNthCommand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var batch []byte
		var commands [][]byte
		for i := range rapid.IntRange(1, 8).Draw(t, "commands") {
			var c []byte
			if rapid.Bool().Draw(t, "inline") {
				c = []byte("PING\r\n")
			} else {
				c = resp.AppendCommand(nil, rapid.SliceOfN(rapid.String(), 1, 4).Draw(t, "args")...)
			}
			commands = append(commands, c)
			batch = append(batch, commands[i]...)
		}
		for i, c := range commands {
			if got := nthCommand(batch, i); !bytes.Equal(got, c) {
				t.Fatalf("command %d is %q, want %q", i, got, c)
			}
		}
		if got := nthCommand(batch, len(commands)); got != nil {
			t.Fatalf("a command more: %q", got)
		}
		var scan commandScanner
		n := 0
		for rest := batch; len(rest) > 0; {
			piece := rest[:rapid.IntRange(1, len(rest)).Draw(t, "piece")]
			k, done, err := scan.Scan(piece)
			if err != nil {
				t.Fatal(err)
			}
			if done {
				n++
			}
			rest = rest[k:]
		}
		if n != len(commands) {
			t.Fatalf("%d commands in pieces, want %d", n, len(commands))
		}
	})
}

// No bytes make it panic or stand still.
func FuzzCommandScanner(f *testing.F) {
	f.Add([]byte("PING\r\n*1\r\n$4\r\nPING\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var scan commandScanner
		for len(data) > 0 {
			n, _, err := scan.Scan(data)
			if err != nil {
				return
			}
			if n < 1 || n > len(data) {
				t.Fatalf("%d bytes of %d", n, len(data))
			}
			data = data[n:]
		}
	})
}
