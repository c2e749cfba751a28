// Package importer reads the result files of other load generators into
// analyze.Curve: redis-benchmark and valkey-benchmark (text, -q, --csv),
// memtier_benchmark (text, JSON), YCSB, JMH, JMeter, and plain CSV.
//
// It records facts only. Which results can be trusted is for package analyze
// to say; poolsweep's own result files are read by package sweep. A format is
// found by what is in the file, never by its name, and a quantity that the
// file does not state stays unknown.
//
// # What becomes a trial
//
// Results of the same test, depth and number of clients, in one file or in
// several, are the trials of one Point. Tests of redis-benchmark and
// valkey-benchmark keep their bare names ("SET"); those of other tools carry
// the tool's name ("memtier SET+GET 1:10", "YCSB UPDATE"), so that different
// tools are not taken for repeats of each other. A plain CSV file without a
// test column is a test named after the file.
//
// The order in which files are given makes no difference: they are read by
// name. Within a file, trials keep the order of the file.
package importer

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/poolsweep/poolsweep/analyze"
)

// Limits of what is read, so that a wrong file costs neither memory nor time.
// What is over a limit is reported as a Problem.
const (
	maxInput    = 64 << 20   // bytes of a file
	maxLine     = 1 << 20    // bytes of a line
	maxHead     = 256 << 10  // bytes in which a format must show
	maxResults  = 100_000    // trials of a file
	maxProblems = 10         // Problems of a file that are told one by one
	maxClients  = 10_000_000 // clients of a step
)

// A Source is one file to read.
type Source struct {
	Name    string // for messages, and the test of a plain CSV file
	Clients int    // clients of all results of which the file does not say it; 0 is unknown
	R       io.Reader
}

// ParseName splits a command line argument of the form N=FILE into the file
// and its number of clients. Any other argument is the name of a file of
// which the clients are unknown, 0. (A file named 20=x is given as ./20=x.)
func ParseName(arg string) (name string, clients int) {
	before, after, ok := strings.Cut(arg, "=")
	if n, valid := count(before); ok && valid && after != "" {
		return after, n
	}
	return arg, 0
}

// An Import is what was read from all sources.
type Import struct {
	Curves   []analyze.Curve // one for each test and depth, in this order
	Problems []Problem       // by file and line
}

// A Problem is something in a file that could not be used, or that the reader
// of the result must know of how it was used.
type Problem struct {
	File string
	Line int // counted from 1; 0 when the file as a whole is meant
	Text string
}

// String returns "file:line: text".
func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// A format is a kind of file that can be read.
type format struct {
	name   string
	detect detectFunc
	parse  parseFunc
}

// A detectFunc reports whether a file that starts with head has the format.
type detectFunc func(head string) bool

// A parseFunc reads all of in and hands over what it finds with in.add and
// in.problem.
type parseFunc func(in *input)

// formats is searched from the top. Formats that show themselves by words of
// their own come before those known only by their shape.
var formats = []format{
	{"memtier_benchmark JSON", detectMemtierJSON, parseMemtierJSON},
	{"memtier_benchmark", detectMemtier, parseMemtier},
	{"YCSB", detectYCSB, parseYCSB},
	{"JMH", detectJMH, parseJMH},
	{"JMeter", detectJMeter, parseJMeter},
	{"sar -n DEV", detectSar, parseSar},
	{"CSV", detectPlainCSV, parsePlainCSV},
	{"redis-benchmark", detectRedisBenchmark, parseRedisBenchmark},
}

// Read reads all sources into curves. Lines that cannot be used are Problems,
// the rest is used; so is the rest of the sources when one of them holds
// nothing that is known. Of sources with the same name only one is read, as
// a file given twice would count its trials twice.
//
// Read fails when a source cannot be read, and when no source has a known
// format. An Import without curves is possible without an error: then the
// Problems say why.
func Read(sources []Source) (*Import, error) {
	sources = slices.SortedStableFunc(slices.Values(sources), func(a, b Source) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Clients, b.Clients))
	})
	imp := new(Import)
	var results []result
	var unknown []string
	for i, s := range sources {
		if i > 0 && s.Name == sources[i-1].Name {
			imp.Problems = append(imp.Problems, Problem{s.Name, 0, "given more than once, read once"})
			continue
		}
		in, err := readSource(s)
		if errors.Is(err, errUnknownFormat) {
			unknown = append(unknown, s.Name)
			imp.Problems = append(imp.Problems, Problem{s.Name, 0, err.Error()})
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", s.Name, err)
		}
		results = append(results, in.results...)
		imp.Problems = append(imp.Problems, in.problems...)
	}
	if len(unknown) > 0 && len(unknown) == countNames(sources) {
		return nil, fmt.Errorf("reading %s: %w", strings.Join(unknown, ", "), errUnknownFormat)
	}
	imp.Curves = curves(results)
	return imp, nil
}

// errUnknownFormat says that a file has none of the formats.
var errUnknownFormat = errors.New("no known results in it; give the output of redis-benchmark, " +
	"valkey-benchmark, memtier_benchmark, YCSB, JMH or JMeter, or a CSV with the columns clients,qps")

// countNames returns the number of different names in sorted sources.
func countNames(sorted []Source) int {
	n := 0
	for i := range sorted {
		if i == 0 || sorted[i].Name != sorted[i-1].Name {
			n++
		}
	}
	return n
}

// readSource finds the format of s and reads it. The error is
// errUnknownFormat or the reader's.
func readSource(s Source) (*input, error) {
	br := bufio.NewReaderSize(s.R, maxHead)
	head, err := br.Peek(maxHead)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		in := newInput(s, br)
		in.problem(0, "is UTF-16, as PowerShell writes it: save it as UTF-8")
		return in, nil
	}
	if rest, ok := bytes.CutPrefix(head, []byte("\ufeff")); ok {
		head = rest
		br.Discard(len("\ufeff"))
	}
	// The head is copied: reading on overwrites the buffer behind it.
	text := string(head)
	i := slices.IndexFunc(formats, func(f format) bool { return f.detect(text) })
	if i < 0 {
		return nil, errUnknownFormat
	}
	in := newInput(s, br)
	formats[i].parse(in)
	in.finish(formats[i].name)
	return in, in.err
}
