package workload

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/poolsweep/poolsweep/internal/resp"
)

// list returns the commands of a recording.
func (r *Replay) list() [][]string {
	all := [][]string{}
	for i := range r.raw.len() {
		all = append(all, r.raw.args(i))
	}
	return all
}

func TestParseReplay(t *testing.T) {
	const (
		set = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$4\r\n\r\n\x00\xff\r\n"
		get = "*2\r\n$3\r\nGET\r\n$1\r\na\r\n"
	)
	for _, tt := range []struct {
		name   string
		in     string
		format Format
		want   [][]string
		wrong  int
		first  string // what is wrong first
	}{
		// The first two lines are those of the documentation of MONITOR.
		{"monitor", `OK
1339518083.107412 [0 127.0.0.1:60866] "keys" "*"
1339518087.877697 [0 127.0.0.1:60866] "dbsize"
1339518090.420270 [3 unix:/tmp/redis.sock] "set" "x" "6"
1339518096.506257 [0 [::1]:60866] "get" "x"
1339518099.363799 [0 lua] "get" "x"
`, Monitor, [][]string{{"keys", "*"}, {"dbsize"}, {"set", "x", "6"}, {"get", "x"}}, 0, ""},
		{"monitor over a plain connection", "+OK\r\n+1339518083.107412 [0 127.0.0.1:60866] \"get\" \"] \\\"x\"\r\n", Monitor, [][]string{{"get", `] "x`}}, 0, ""},
		{"escapes of monitor", `1.0 [0 a:1] "set" "\x00\xff\n\r\t\a\b\\\"'" ""`, Monitor, [][]string{{"set", "\x00\xff\n\r\t\a\b\\\"'", ""}}, 0, ""},
		{"monitor with other lines", "1.0 [0 a:1] \"ping\"\nError: Server closed the connection\n1.0 [0 a:1] \"get\n", Monitor, [][]string{{"ping"}}, 2, "line 2: it is not what MONITOR prints"},

		{"aof", set + get, AOF, [][]string{{"SET", "a", "\r\n\x00\xff"}, {"GET", "a"}}, 0, ""},
		{"aof with times", "#TS:1628217473\r\n" + set + "#TS:1628217474\r\n" + get, AOF, [][]string{{"SET", "a", "\r\n\x00\xff"}, {"GET", "a"}}, 0, ""},
		{"aof cut off", set + get[:len(get)-3], AOF, [][]string{{"SET", "a", "\r\n\x00\xff"}}, 1, "command 2: the file ends within it"},
		{"aof cut off in a length", set + "*", AOF, [][]string{{"SET", "a", "\r\n\x00\xff"}}, 1, "command 2: the file ends within it"},

		{"text", "# warm-up\n\n  SET a 1\r\nGET\ta  \nMGET a b", TextFile, [][]string{{"SET", "a", "1"}, {"GET", "a"}, {"MGET", "a", "b"}}, 0, ""},
		// The rules are those of redis-cli 7.0.15.
		{"quotes", `SET "a b" 'c d' e"f"g` + "\n" + `SET '\'\x41"' "\x41\q" \x41`, TextFile, [][]string{{"SET", `'\x41"`, "Aq", `\x41`}}, 1, "line 1: a closing quote that no space follows"},
		{"quote within a word", `GET a"b c"`, TextFile, [][]string{{"GET", "ab c"}}, 0, ""},
		{"empty argument", `SET a ""`, TextFile, [][]string{{"SET", "a", ""}}, 0, ""},
		{"open quote", "GET \"a\nGET b", TextFile, [][]string{{"GET", "b"}}, 1, "line 1: a quote that is not closed"},
		{"no name", "\"\" a\nGET b", TextFile, [][]string{{"GET", "b"}}, 1, "line 1: a command without a name"},
		{"half an escape", `GET "\x4"`, TextFile, [][]string{{"GET", "x4"}}, 0, ""},
		{"OK is a command in a text file", "GET a\nOK", TextFile, [][]string{{"GET", "a"}, {"OK"}}, 0, ""},
	} {
		r, err := ParseReplay(strings.NewReader(tt.in))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := r.list(); !reflect.DeepEqual(got, tt.want) || r.Format != tt.format || r.Commands != len(tt.want) {
			t.Errorf("%s: %s %q, want %s %q", tt.name, r.Format, got, tt.format, tt.want)
		}
		if r.Wrong != tt.wrong || r.FirstWrong != tt.first {
			t.Errorf("%s: %d wrong, %q; want %d, %q", tt.name, r.Wrong, r.FirstWrong, tt.wrong, tt.first)
		}
	}
}

func TestParseReplayRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, in, want string
	}{
		{"empty", "", "no command"},
		{"comments only", "# a\n\n# b", "no command"},
		{"snapshot first", "REDIS0010\xfa\tredis-ver\x057.0.0", "aof-use-rdb-preamble no"},
		{"Valkey's snapshot", "VALKEY080", "aof-use-rdb-preamble no"},
		{"all wrong", "\"a\n'b\n", "none of its 2 lines is a command; line 1: a quote"},
		{"aof without a whole command", "*1\r\n$4\r\nPI", "none of its 1 lines"},
		{"aof with a wrong length", "*1\r\n$3\r\nPING\r\n", "command 1: an argument is longer"},
		{"aof with something else", "*1\r\n$4\r\nPING\r\nPING\r\n", "command 2: a line that should be '*'"},
		{"aof with null", "*2\r\n$4\r\nPING\r\n$-1\r\n", "command 1: a line that should be '$'"},
		{"aof of no argument", "*1\r\n$4\r\nPING\r\n*0\r\n", "command 2: it has no name"},
		{"aof of many arguments", "*9999999\r\n", "a length of over 1048576"},
		{"aof of a huge argument", "*1\r\n$9999999999999999999999\r\n", "a length of over"},
		{"a long line", "*1" + strings.Repeat("0", 100_000), "a line that should be"},
		{"too many", strings.Repeat("PING\n", maxRecorded+1), "over 1000000 commands"},
	} {
		if _, err := ParseReplay(strings.NewReader(tt.in)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
	broken := errors.New("broken disk")
	if _, err := ParseReplay(io.MultiReader(strings.NewReader("PING\n"), failing{broken})); !errors.Is(err, broken) {
		t.Errorf("error %v, want the reader's", err)
	}
	if _, err := ParseReplay(endless{}); err == nil || !strings.Contains(err.Error(), "over 256 MB") {
		t.Errorf("an endless file: error %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// endless is comments without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '#'
	}
	p[len(p)-1] = '\n'
	return len(p), nil
}

// What a real server prints to MONITOR is read as what was sent.
func TestParseReplayOfAServersMonitor(t *testing.T) {
	db := realServer(t)
	ctx := t.Context()
	conn, err := net.Dial("tcp", db.Options().Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Write(resp.AppendCommand(resp.AppendCommand(nil, "AUTH", db.Options().Password), "MONITOR")); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	for range 2 { // from the second OK on it monitors
		if line, err := in.ReadString('\n'); err != nil || line != "+OK\r\n" {
			t.Fatalf("%q, %v", line, err)
		}
	}
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	sent := [][]string{{"SET", "a\"b\\c'd", string(every)}, {"GET", ""}, {"EVAL", "return redis.call('GET', KEYS[1])", "1", "k"}, {"ECHO", "end"}}
	for _, args := range sent {
		if err := db.Do(ctx, anys(args)...).Err(); err != nil && err != redis.Nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	for !strings.Contains(out.String(), `"ECHO" "end"`) {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(line)
	}
	r, err := ParseReplay(strings.NewReader(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, args := range r.list() {
		if name := strings.ToUpper(args[0]); name != "HELLO" && name != "AUTH" && name != "CLIENT" {
			got = append(got, args)
		}
	}
	if !reflect.DeepEqual(got, sent) || r.Format != Monitor || r.Wrong != 0 {
		t.Errorf("got %q (%s, %d wrong: %s) of\n%s", got, r.Format, r.Wrong, r.FirstWrong, out.String())
	}
}

// asMonitor returns commands as MONITOR prints them: Redis' sdscatrepr.
func asMonitor(all [][]string) string {
	var b strings.Builder
	b.WriteString("OK\n")
	for _, args := range all {
		b.WriteString("1339518083.107412 [0 127.0.0.1:60866]")
		for _, a := range args {
			b.WriteString(` "`)
			for i := range len(a) {
				switch c := a[i]; {
				case c == '\\' || c == '"':
					b.WriteString(`\` + string(c))
				case strings.IndexByte("\n\r\t\a\b", c) >= 0:
					b.WriteByte('\\')
					b.WriteByte("nrtab"[strings.IndexByte("\n\r\t\a\b", c)])
				case c >= ' ' && c <= '~':
					b.WriteByte(c)
				default:
					fmt.Fprintf(&b, `\x%02x`, c)
				}
			}
			b.WriteByte('"')
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Whatever is accepted, the same commands come out again when they are written
// down as an append-only file, as MONITOR's lines and as a text file.
func FuzzParseReplay(f *testing.F) {
	for _, s := range []string{
		"SET a 1\nGET a\n", "1.0 [0 a:1] \"set\" \"\\x00\\n\\\"\" \"\"\n", "OK\n1.0 [0 lua] \"get\" \"x\"\n1.0 [0 [::1]:6] \"ping\"",
		"*2\r\n$3\r\nGET\r\n$1\r\na\r\n#TS:1\r\n*1\r\n$4\r\nPING\r\n*1", "REDIS0010", "'a\\'b' \"c\n", "*", "#TS:1\r\n*0\r\n", "*1\r\n$999999\r\nx",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ParseReplay(bytes.NewReader(data))
		if err != nil {
			return
		}
		want := r.list()
		var aof []byte
		for _, args := range want {
			aof = resp.AppendCommand(aof, args...)
		}
		monitor := asMonitor(want)
		for format, text := range map[Format]string{
			AOF:      string(aof),
			Monitor:  monitor,
			TextFile: strings.ReplaceAll(monitor[3:], "1339518083.107412 [0 127.0.0.1:60866]", ""),
		} {
			again, err := ParseReplay(strings.NewReader(text))
			if err != nil {
				t.Fatalf("%s of %q: %v", format, want, err)
			}
			if got := again.list(); !reflect.DeepEqual(got, want) || again.Format != format || again.Wrong != 0 {
				t.Errorf("%q as %s: %q (%s)", want, format, got, again.Format)
			}
		}
	})
}
