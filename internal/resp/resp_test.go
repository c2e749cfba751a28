package resp

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// reply is what a Scanner says of one reply.
type reply struct {
	kind byte
	null bool
	text string
}

// scan feeds the pieces in turn and returns the replies found.
func scan(pieces ...[]byte) (replies []reply, rest *Scanner, err error) {
	s := new(Scanner)
	for _, p := range pieces {
		for len(p) > 0 {
			n, done, err := s.Scan(p)
			if err != nil {
				return replies, s, err
			}
			p = p[n:]
			if done {
				replies = append(replies, reply{s.Kind(), s.Null(), string(s.ErrorText())})
			}
		}
	}
	return replies, s, nil
}

// The replies are the examples of the protocol specification.
var examples = []struct {
	name string
	in   string
	want []reply
}{
	{"simple string", "+OK\r\n", []reply{{'+', false, ""}}},
	{"empty simple string", "+\r\n", []reply{{'+', false, ""}}},
	{"error", "-ERR unknown command 'asdf'\r\n", []reply{{'-', false, "ERR unknown command 'asdf'"}}},
	{"error, then none", "-OOM x\r\n+OK\r\n", []reply{{'-', false, "OOM x"}, {'+', false, ""}}},
	{"integer", ":1000\r\n", []reply{{':', false, ""}}},
	{"bulk", "$5\r\nhello\r\n", []reply{{'$', false, ""}}},
	{"bulk with line ends", "$6\r\n+\r\n-\r\n\r\n", []reply{{'$', false, ""}}},
	{"empty bulk", "$0\r\n\r\n", []reply{{'$', false, ""}}},
	{"null bulk", "$-1\r\n+OK\r\n", []reply{{'$', true, ""}, {'+', false, ""}}},
	{"null array", "*-1\r\n", []reply{{'*', true, ""}}},
	{"RESP3 null", "_\r\n", []reply{{'_', true, ""}}},
	{"empty array", "*0\r\n", []reply{{'*', false, ""}}},
	{"array", "*2\r\n$5\r\nhello\r\n$5\r\nworld\r\n", []reply{{'*', false, ""}}},
	{"null in an array", "*3\r\n$5\r\nhello\r\n$-1\r\n$5\r\nworld\r\n", []reply{{'*', false, ""}}},
	{"error in an array", "*2\r\n-ERR x\r\n:1\r\n", []reply{{'*', false, ""}}},
	{"nested", "*2\r\n*3\r\n:1\r\n:2\r\n:3\r\n*2\r\n+Hello\r\n-World\r\n+next\r\n", []reply{{'*', false, ""}, {'+', false, ""}}},
	{"map", "%2\r\n+first\r\n:1\r\n+second\r\n:2\r\n", []reply{{'%', false, ""}}},
	{"set", "~1\r\n+a\r\n", []reply{{'~', false, ""}}},
	{"double, bool, big number", ",1.23\r\n#t\r\n(3492890328409238509324850943850943825024385\r\n", []reply{{',', false, ""}, {'#', false, ""}, {'(', false, ""}}},
	{"verbatim", "=15\r\ntxt:Some string\r\n", []reply{{'=', false, ""}}},
	{"push", ">2\r\n+invalidate\r\n*1\r\n+k\r\n", []reply{{'>', false, ""}}},
	{"attribute", "|1\r\n+key-popularity\r\n%2\r\n$1\r\na\r\n,0.19\r\n$1\r\nb\r\n,0.01\r\n*2\r\n:2039123\r\n:9543892\r\n", []reply{{'*', false, ""}}},
}

func TestScan(t *testing.T) {
	for _, tt := range examples {
		t.Run(tt.name, func(t *testing.T) {
			got, s, err := scan([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if s.left != 0 {
				t.Errorf("%d elements left at the end", s.left)
			}
			equal(t, got, tt.want)
		})
	}
}

// A stream says the same however it is cut.
func TestScanInPieces(t *testing.T) {
	for _, tt := range examples {
		var single [][]byte
		for i := range tt.in {
			single = append(single, []byte{tt.in[i]})
		}
		got, _, err := scan(single...)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		equal(t, got, tt.want)
	}
}

func TestScanSyntaxError(t *testing.T) {
	for _, in := range []string{
		"HTTP/1.1 400 Bad Request\r\n",
		"\r\n",
		"+OK\n",
		"$x\r\n",
		"$-2\r\n",
		"*99999999999999\r\n",
		"*9999999999999\r\n",
		"+" + strings.Repeat("a", maxLine) + "\r\n",
	} {
		// In two pieces, so that the bound on a line is reached too.
		_, _, err := scan([]byte(in[:len(in)-2]), []byte(in[len(in)-2:]))
		var syntax *SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("%.20q: got error %v, want a *SyntaxError", in, err)
		}
	}
}

func TestAppendCommand(t *testing.T) {
	// The example of the protocol specification.
	want := "*2\r\n$4\r\nLLEN\r\n$6\r\nmylist\r\n"
	if got := AppendCommand(nil, "LLEN", "mylist"); string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestScanAllocates(t *testing.T) {
	stream := []byte("+OK\r\n$3\r\nxxx\r\n-ERR no\r\n$-1\r\n")
	s := new(Scanner)
	once := func() {
		for p := stream; len(p) > 0; {
			n, _, err := s.Scan(p)
			if err != nil {
				t.Fatal(err)
			}
			p = p[n:]
		}
	}
	if got := testing.AllocsPerRun(100, once); got != 0 {
		t.Errorf("%v allocations a run, want 0", got)
	}
}

// FuzzScan holds the Scanner to its law: a stream gives the same replies, or
// the same failure, in one piece and cut anywhere.
func FuzzScan(f *testing.F) {
	for _, tt := range examples {
		f.Add([]byte(tt.in), 1)
	}
	f.Add([]byte("*1\r\n*1\r\n$-2\r\n"), 3)
	f.Fuzz(func(t *testing.T, in []byte, at int) {
		whole, _, errWhole := scan(in)
		if at < 0 || at > len(in) {
			at = len(in) / 2
		}
		cut, _, errCut := scan(bytes.Clone(in[:at]), bytes.Clone(in[at:]))
		if (errWhole == nil) != (errCut == nil) {
			t.Fatalf("in one piece: %v, cut at %d: %v", errWhole, at, errCut)
		}
		equal(t, cut, whole)
	})
}

func equal(t *testing.T, got, want []reply) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d replies %v, want %d %v", len(got), got, len(want), want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("reply %d: got %v, want %v", i, got[i], want[i])
		}
	}
}

func BenchmarkScan(b *testing.B) {
	for _, bb := range []struct{ name, in string }{
		{"ok", "+OK\r\n"},
		{"bulk3", "$3\r\nxxx\r\n"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			s, in := new(Scanner), []byte(bb.in)
			for b.Loop() {
				s.Scan(in)
			}
		})
	}
}
