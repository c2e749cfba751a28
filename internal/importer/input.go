package importer

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/poolsweep/poolsweep/analyze"
)

// An input is a source while it is read: its lines, and what was found in
// them so far.
type input struct {
	name    string
	clients int // from N=FILE; 0 is unknown

	r    *bufio.Reader
	read int    // bytes read
	next int    // number of the line that is read next, less 1
	line int    // number of the line of text
	text string // the line, without space around it
	err  error  // what reading ended with, other than io.EOF

	results  []result
	problems []Problem
	untold   int  // Problems over maxProblems
	full     bool // maxResults was reached

	unplaced     []string // tests of results without a client count
	unplacedLine int
	contradicted bool // a Problem says that N= and the file differ
}

// A result is one measurement of one step, as a file states it.
type result struct {
	test    string
	depth   int // pipeline depth; 0, not stated, counts as 1
	clients int // 0 when the file does not state it
	trial   analyze.Trial
}

func newInput(s Source, r *bufio.Reader) *input {
	return &input{name: s.Name, clients: s.Clients, r: r, next: 1}
}

// scan moves on to the next line that is not blank and reports whether there
// is one. Carriage returns end a line too, as progress is drawn with them,
// but are not counted as one: in.line is what an editor shows.
func (in *input) scan() bool {
	if in.full {
		return false
	}
	var buf []byte
	long := false
	for {
		b, err := in.r.ReadByte()
		if err != nil && err != io.EOF {
			in.err = err
			return false
		}
		if in.read++; in.read > maxInput && err == nil {
			in.problem(in.next, "the file is longer than %d MiB, the rest was not read", maxInput>>20)
			in.full = true
			return false
		}
		if err == nil && b != '\n' && b != '\r' {
			if len(buf) < maxLine {
				buf = append(buf, b)
			} else {
				long = true
			}
			continue
		}
		in.line = in.next
		if b == '\n' {
			in.next++
		}
		if long {
			in.problem(in.line, "a line longer than %d MiB was left out", maxLine>>20)
			buf, long = buf[:0], false
		}
		in.text = strings.TrimSpace(string(buf))
		if in.text != "" {
			return true
		}
		if err == io.EOF {
			return false
		}
		buf = buf[:0]
	}
}

// problem records what is wrong in a line; line 0 means the whole file.
func (in *input) problem(line int, text string, args ...any) {
	if len(in.problems) >= maxProblems {
		in.untold++
		return
	}
	in.problems = append(in.problems, Problem{in.name, line, fmt.Sprintf(text, args...)})
}

// add takes a result that was found in a line. One without a client count
// gets that of N=FILE; when there is none, finish reports it.
func (in *input) add(line int, r result) {
	if !(r.trial.QPS > 0) || math.IsInf(r.trial.QPS, 0) {
		in.problem(line, "throughput %v of %s is not a number above 0", r.trial.QPS, r.test)
		return
	}
	switch {
	case r.clients > maxClients:
		in.problem(line, "%d clients are not plausible", r.clients)
		return
	case r.clients == 0 && in.clients == 0:
		if len(in.unplaced) == 0 {
			in.unplacedLine = line
		}
		if len(in.unplaced) < maxResults {
			in.unplaced = append(in.unplaced, r.test)
		}
		return
	case r.clients == 0:
		r.clients = in.clients
	case in.clients > 0 && r.clients != in.clients && !in.contradicted:
		in.problem(line, "%d= is not used: the file itself states %d clients", in.clients, r.clients)
		in.contradicted = true
	}
	if len(in.results) == maxResults {
		in.problem(line, "more than %d results, the rest was not read", maxResults)
		in.full = true
		return
	}
	in.results = append(in.results, r)
}

// finish adds the Problems that concern the file as a whole. format is its
// name.
func (in *input) finish(format string) {
	if len(in.unplaced) > 0 {
		// Not subject to maxProblems: it says how to make the file useful.
		in.problems = append(in.problems, Problem{in.name, in.unplacedLine, fmt.Sprintf(
			"%s: the file does not state its number of clients; if it was 20, give it as 20=%s",
			plural(len(in.unplaced), "result"), in.name)})
	}
	if len(in.results) == 0 && len(in.problems) == 0 {
		in.problem(0, "%s output without a result; was the run interrupted?", format)
	}
	if in.untold > 0 {
		in.problems = append(in.problems, Problem{in.name, 0, fmt.Sprintf("and %s like these", plural(in.untold, "more problem"))})
	}
}

// plural returns n with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
