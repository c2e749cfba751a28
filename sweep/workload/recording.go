package workload

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/poolsweep/poolsweep/internal/resp"
)

// What a recording may hold.
const (
	maxRecorded      = 1_000_000 // commands
	maxRecordedBytes = 256 << 20
	maxRecordedArgs  = 1 << 20 // of a command, as in Redis
)

// A Format is how a recording is written down.
type Format string

const (
	Monitor  Format = "monitor"  // what redis-cli MONITOR prints
	AOF      Format = "aof"      // an append-only file: commands as the protocol has them
	TextFile Format = "commands" // a command a line, quoted as redis-cli takes it
)

// commands is a list of commands as they go over the wire.
type commands struct {
	wire []byte
	ends []int // of each command in wire
}

func (c *commands) add(args []string) {
	c.wire = resp.AppendCommand(c.wire, args...)
	c.ends = append(c.ends, len(c.wire))
}

func (c *commands) len() int { return len(c.ends) }

// at returns the bytes of the i-th command.
func (c *commands) at(i int) []byte {
	begin := 0
	if i > 0 {
		begin = c.ends[i-1]
	}
	return c.wire[begin:c.ends[i]]
}

// args returns the arguments of the i-th command.
func (c *commands) args(i int) []string {
	// What add has written needs no checks.
	rest := c.at(i)
	number := func() int {
		line, after, _ := bytes.Cut(rest, []byte("\r\n"))
		n, _ := strconv.Atoi(string(line[1:]))
		rest = after
		return n
	}
	args := make([]string, number())
	for i := range args {
		n := number()
		args[i] = string(rest[:n])
		rest = rest[n+len("\r\n"):]
	}
	return args
}

// ParseReplay reads a recording: the output of redis-cli MONITOR, an
// append-only file, or a text file of a command a line, in which lines that
// begin with # are comments. Which of them it is follows from its contents.
//
// Lines that are no command are counted; it is an error when all are. An
// append-only file may end within a command, as after a crash, but must have
// no other fault. The limits are a million commands and 256 MB.
func ParseReplay(r io.Reader) (*Replay, error) {
	limited := &io.LimitedReader{R: r, N: maxRecordedBytes + 1}
	p := &parser{in: bufio.NewReaderSize(limited, 64<<10), out: new(Replay)}
	err := p.parse()
	switch {
	case limited.N == 0:
		err = fmt.Errorf("it has over %d MB; cut it, as it is sent in a loop", maxRecordedBytes>>20)
	case err == nil && p.out.raw.len() == 0 && p.out.Wrong > 0:
		err = fmt.Errorf("none of its %d lines is a command; %s", p.out.Wrong, p.out.FirstWrong)
	case err == nil && p.out.raw.len() == 0:
		err = errors.New("it has no command")
	}
	if err != nil {
		return nil, fmt.Errorf("reading a recording: %w", err)
	}
	p.out.Commands = p.out.raw.len()
	return p.out, nil
}

// A parser reads one recording.
type parser struct {
	in   *bufio.Reader
	line int // number of the line read last, from 1
	out  *Replay
}

func (p *parser) parse() error {
	head, err := p.in.Peek(9)
	if err != nil && err != io.EOF {
		return err
	}
	switch {
	case bytes.HasPrefix(head, []byte("REDIS")), bytes.HasPrefix(head, []byte("VALKEY")):
		return errors.New("it begins with a snapshot (RDB), which has no commands; take the .incr.aof file beside it, or rewrite it with aof-use-rdb-preamble no")
	case len(head) > 1 && head[0] == '*' && isDigit(head[1]), bytes.HasPrefix(head, []byte("#TS:")):
		p.out.Format = AOF
		return p.aof()
	}
	return p.text()
}

// add keeps a command.
func (p *parser) add(args []string) error {
	if p.out.raw.len() == maxRecorded {
		return fmt.Errorf("it has over %d commands; cut it, as it is sent in a loop", maxRecorded)
	}
	p.out.raw.add(args)
	return nil
}

// wrong counts a line that is no command. What is wrong with it is told, not
// the line: it may hold what is nobody's business.
func (p *parser) wrong(where string, err error) {
	if p.out.Wrong++; p.out.Wrong == 1 {
		p.out.FirstWrong = fmt.Sprintf("%s: %v", where, err)
	}
}

// text reads lines, those of MONITOR or commands. Its first line that is
// neither blank nor a comment says which.
func (p *parser) text() error {
	for {
		line, err := p.in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return err
		}
		p.line++
		if kerr := p.textLine(string(bytes.TrimSpace(line))); kerr != nil {
			return kerr
		}
		if err == io.EOF {
			return nil
		}
	}
}

func (p *parser) textLine(line string) error {
	if line == "" || line[0] == '#' || p.out.Format != TextFile && (line == "OK" || line == "+OK") {
		return nil
	}
	m, isMonitor := cutMonitor(line)
	if p.out.Format == "" {
		p.out.Format = TextFile
		if isMonitor {
			p.out.Format = Monitor
		}
	}
	if p.out.Format == Monitor {
		if line = m.command; m.script {
			return nil // the script's own line is replayed, which does it again
		}
	}
	args, err := splitArgs(line)
	switch {
	case p.out.Format == Monitor && !isMonitor:
		err = errors.New("it is not what MONITOR prints")
	case err == nil && (len(args) == 0 || args[0] == ""):
		err = errors.New("a command without a name")
	}
	if err != nil {
		p.wrong(fmt.Sprintf("line %d", p.line), err)
		return nil
	}
	return p.add(args)
}

// A monitored is a line of MONITOR.
type monitored struct {
	command string // with its quotes
	script  bool   // a script has sent it, not a client
}

// cutMonitor takes a line of MONITOR apart:
//
//	1339518083.107412 [0 127.0.0.1:60866] "keys" "*"
//
// over a plain connection with "+" before it.
func cutMonitor(line string) (monitored, bool) {
	stamp, rest, ok := strings.Cut(strings.TrimPrefix(line, "+"), " [")
	seconds, micros, dot := strings.Cut(stamp, ".")
	if !ok || !dot || !isNumber(seconds) || !isNumber(micros) {
		return monitored{}, false
	}
	// The address may hold brackets of its own: [0 [::1]:60866].
	client, command, ok := strings.Cut(rest, `] "`)
	if !ok {
		return monitored{}, false
	}
	_, from, _ := strings.Cut(client, " ")
	return monitored{`"` + command, from == "lua"}, true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isNumber(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}

// splitArgs splits a line into arguments by the rules of redis-cli, which are
// also what MONITOR prints: "…" with the escapes \" \\ \n \r \t \a \b \xff,
// '…' with the escape \' only, anything else up to the next space.
func splitArgs(line string) ([]string, error) {
	var args []string
	for {
		line = strings.TrimLeft(line, " \t")
		if line == "" {
			return args, nil
		}
		arg, rest, err := cutArg(line)
		if err != nil {
			return nil, err
		}
		if args = append(args, arg); len(args) > maxRecordedArgs {
			return nil, fmt.Errorf("over %d arguments", maxRecordedArgs)
		}
		line = rest
	}
}

// cutArg cuts the first argument off a line that does not begin with a space.
func cutArg(line string) (arg, rest string, err error) {
	var out []byte
	var quote byte // the open one; 0: none
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote == 0 && (c == ' ' || c == '\t'):
			return string(out), line[i:], nil
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote == 0:
			out = append(out, c)
		case c == quote:
			if i+1 < len(line) && line[i+1] != ' ' && line[i+1] != '\t' {
				return "", "", errors.New("a closing quote that no space follows")
			}
			return string(out), line[i+1:], nil
		case quote == '\'' && strings.HasPrefix(line[i:], `\'`):
			out = append(out, '\'')
			i++
		case quote == '"' && c == '\\' && i+1 < len(line):
			var n int
			out, n = appendEscaped(out, line[i+1:])
			i += n
		default:
			out = append(out, c)
		}
	}
	if quote != 0 {
		return "", "", errors.New("a quote that is not closed")
	}
	return string(out), "", nil
}

// appendEscaped appends what the text after a backslash stands for and returns
// how many of its bytes that are.
func appendEscaped(dst []byte, s string) ([]byte, int) {
	if s[0] == 'x' && len(s) >= 3 {
		if v, err := strconv.ParseUint(s[1:3], 16, 8); err == nil {
			return append(dst, byte(v)), 3
		}
	}
	c := s[0]
	if i := strings.IndexByte("nrtab", c); i >= 0 {
		c = "\n\r\t\a\b"[i]
	}
	return append(dst, c), 1
}

// aof reads an append-only file. Lines that begin with # are annotations, as
// the times that aof-timestamp-enabled writes.
func (p *parser) aof() error {
	for {
		head, err := p.in.Peek(1)
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case head[0] == '#':
			if _, err := p.in.ReadBytes('\n'); err != nil && err != io.EOF {
				return err
			}
			continue
		}
		args, err := p.aofCommand()
		where := fmt.Sprintf("command %d", p.out.raw.len()+1)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			p.wrong(where, errors.New("the file ends within it"))
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w; redis-check-aof mends such a file", where, err)
		}
		if err := p.add(args); err != nil {
			return err
		}
	}
}

func (p *parser) aofCommand() ([]string, error) {
	n, err := p.aofLength('*', maxRecordedArgs)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, errors.New("it has no name")
	}
	var args []string
	var text bytes.Buffer
	for range n {
		size, err := p.aofLength('$', maxRecordedBytes)
		if err != nil {
			return nil, err
		}
		text.Reset()
		if _, err := io.CopyN(&text, p.in, int64(size)+2); err != nil {
			return nil, err
		}
		if !bytes.HasSuffix(text.Bytes(), []byte("\r\n")) {
			return nil, errors.New("an argument is longer than its length")
		}
		args = append(args, string(text.Bytes()[:size]))
	}
	if args[0] == "" {
		return nil, errors.New("it has no name")
	}
	return args, nil
}

// aofLength reads a line with a kind and a length of at most limit.
func (p *parser) aofLength(kind byte, limit int) (int, error) {
	line, err := p.in.ReadSlice('\n')
	if err != nil {
		if errors.Is(err, bufio.ErrBufferFull) {
			return 0, fmt.Errorf("a line that should be %q and a length", kind)
		}
		return 0, err
	}
	text, ok := strings.CutSuffix(string(line), "\r\n")
	if !ok || text == "" || text[0] != kind || !isNumber(text[1:]) {
		return 0, fmt.Errorf("a line that should be %q and a length", kind)
	}
	n, err := strconv.Atoi(text[1:])
	if err != nil || n > limit {
		return 0, fmt.Errorf("a length of over %d", limit)
	}
	return n, nil
}
