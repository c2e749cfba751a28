package sweep

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/sweep/load"
)

// journaled runs a simulated sweep and returns the result and its file.
func journaled(t *testing.T) (*Result, []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "r.jsonl")
	j, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	res, err := simulate(t, &curveDriver{qps: hard(60, 1000)}, func(c *Config) { c.Journal = j })
	if err != nil {
		t.Fatal(err)
	}
	var all []*analyze.Analysis
	for _, c := range res.Curves() {
		all = append(all, analyze.Analyze(c, analyze.Options{}))
	}
	if err := j.Analyses(all); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return res, text
}

// decode∘encode = identity: what is read gives the same curves.
func TestJournalRoundTrip(t *testing.T) {
	res, text := journaled(t)
	read, err := Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(res.Header, read.Header, cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(0)); d != "" {
		t.Errorf("header, -written +read:\n%s", d)
	}
	// Unknown quantities are NaN, which equals nothing: compare as printed.
	if written, read := fmt.Sprintf("%+v", res.Curves()), fmt.Sprintf("%+v", read.Curves()); written != read {
		t.Errorf("written: %s\nread: %s", written, read)
	}
}

// Whatever a killed run leaves is read up to the last whole line.
func TestReadTruncated(t *testing.T) {
	_, text := journaled(t)
	lines := bytes.SplitAfter(text, []byte("\n"))
	head := len(lines[0])
	for _, cut := range []int{head, head + 1, head + len(lines[1])/2, head + len(lines[1]), len(text) - 2} {
		whole := bytes.Count(text[:cut], []byte("\n")) - 1 // slices, without the header
		res, err := Read(bytes.NewReader(text[:cut]))
		if err != nil {
			t.Errorf("cut at %d: %v", cut, err)
			continue
		}
		if len(res.Slices) != min(whole, len(lines)-3) {
			t.Errorf("cut at %d: %d slices, want %d", cut, len(res.Slices), whole)
		}
	}
}

func TestReadDamaged(t *testing.T) {
	_, text := journaled(t)
	lines := strings.SplitAfter(string(text), "\n")
	for _, tt := range []struct {
		name string
		text string
		want string // of the error
		kept int    // slices
	}{
		{"empty", "", "empty", 0},
		{"not ours", "clients,qps\n1,2\n", "line 1", 0},
		{"no header", lines[1] + lines[2], "no header", 0},
		{"another schema", strings.Replace(string(text), Schema, "poolsweep/99", 1), `schema "poolsweep/99"; this version reads poolsweep/1`, 0},
		{"two files", string(text) + string(text), "second header", 132},
		{"a broken line", lines[0] + lines[1] + "{x\n" + lines[2], "line 3", 1},
		{"a broken last line", lines[0] + lines[1] + "{x\n", "line 3", 1},
		{"a slice of nothing", lines[0] + lines[1] + `{"slice":{"test":"set","pass":1}}` + "\n" + lines[2], "without a measurement", 1},
		{"a slice of no clients", lines[0] + strings.Replace(lines[1], `"clients":10`, `"clients":0`, 1) + lines[2], "0 clients", 0},
		{"a broken histogram", lines[0] + strings.Replace(lines[1], `"sum_ns"`, `"hdr":"AAAA","sum_ns"`, 1) + lines[2], "histogram", 0},
	} {
		res, err := Read(strings.NewReader(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got error %v, want one with %q", tt.name, err, tt.want)
		}
		if res != nil && len(res.Slices) != tt.kept {
			t.Errorf("%s: %d slices are kept, want %d", tt.name, len(res.Slices), tt.kept)
		}
	}
}

func TestCreateNeverOverwrites(t *testing.T) {
	t.Chdir(t.TempDir())
	now := time.Now()
	var names []string
	for range 3 {
		j, err := CreateDated(now)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, j.Path())
		j.Close()
	}
	if names[0] == names[1] || names[1] == names[2] {
		t.Errorf("names %v", names)
	}
	if _, err := Create(names[0]); err == nil || !strings.Contains(err.Error(), "already there") {
		t.Errorf("got error %v, want that the file is there", err)
	}
}

// Slices of a step make trials in the order of their passes; what is left
// over counts only where there is no whole trial.
func TestTrials(t *testing.T) {
	slice := func(clients, pass int, requests int64) Slice {
		return Slice{Pass: pass, Measurement: &load.Measurement{
			Step: load.Step{Clients: clients, Depth: 1}, Elapsed: time.Second, Requests: requests, Latency: new(load.Latency)}}
	}
	w := Sweep{Slices: []Slice{
		slice(1, 3, 30), slice(1, 1, 10), slice(1, 2, 20), slice(1, 4, 40), slice(1, 5, 50),
		slice(2, 1, 7),
	}}
	trials := w.Trials(2)
	var got []int64
	for _, n := range []int{1, 2} {
		for _, t := range trials[n] {
			got = append(got, t.Measurement.Requests)
		}
	}
	if d := cmp.Diff([]int64{30, 70, 7}, got); d != "" {
		t.Errorf("requests of the trials, -want +got:\n%s", d)
	}
}

// FuzzRead: whatever the bytes, reading ends with an error or a result that
// can be analysed.
func FuzzRead(f *testing.F) {
	slice := `{"slice":{"test":"set","pass":1,"measurement":{"clients":1,"depth":1,"elapsed_ns":1000,"requests":5,"latency":{"sum_ns":5}},"window":{"elapsed_ns":5,"generator":{"cpu_seconds":1}}}}`
	f.Add([]byte(`{"header":{"schema":"poolsweep/1","plan":{"slices":2}}}` + "\n" + slice + "\n" + slice + "\n"))
	f.Add([]byte(`{"header":{"schema":"poolsweep/1"}}` + "\n" + `{"analyses":[null]}`))
	f.Add([]byte("{}\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		res, err := Read(bytes.NewReader(text))
		if res == nil && err == nil {
			t.Fatal("neither a result nor an error")
		}
		if res == nil {
			return
		}
		for _, c := range res.Curves() {
			analyze.Analyze(c, analyze.Options{}).Sentences()
		}
	})
}

// A disk that is full is reported once, and nothing is written after it.
func TestJournalOfAFullDisk(t *testing.T) {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	j := &Journal{file: f}
	defer j.Close()
	if err := j.header(Header{Schema: Schema}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got error %v, want a full disk", err)
	}
	if err := j.Analyses(nil); err != nil {
		t.Errorf("again: got error %v, want none", err)
	}
}

var corruptions = flag.Int("corruptions", 2000, "damaged files that TestReadCorrupted reads")

// Wherever a result file is damaged, what stands before that line is read, and
// nothing panics.
func TestReadCorrupted(t *testing.T) {
	_, whole := journaled(t)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	whole = bytes.Join(lines[:8], nil) // the header and a few slices
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range *corruptions {
		text := bytes.Clone(whole)
		at := rng.IntN(len(text))
		for range 1 + rng.IntN(3) {
			switch to := min(len(text), at+1+rng.IntN(40)); rng.IntN(4) {
			case 0:
				text[at] ^= 1 << rng.IntN(8)
			case 1:
				text = slices.Delete(text, at, to)
			case 2:
				text = slices.Insert(text, at, text[at:to]...)
			default:
				text = text[:at]
			}
			if at >= len(text) {
				break
			}
		}
		res, err := Read(bytes.NewReader(text))
		before := bytes.Count(whole[:at], []byte(`{"slice":`))
		if bytes.LastIndexByte(whole[:at], '\n') < bytes.LastIndex(whole[:at], []byte(`{"slice":`)) {
			before-- // the damaged line is one
		}
		switch {
		case res == nil && err == nil:
			t.Fatalf("seed %d, file %d: neither a result nor an error", seed, i)
		case res == nil && before > 0:
			t.Fatalf("seed %d, file %d, damaged at %d: %v, want the %d slices before", seed, i, at, err, before)
		case res == nil:
			continue
		case len(res.Slices) < before:
			t.Fatalf("seed %d, file %d, damaged at %d: %d slices, %v; want the %d before", seed, i, at, len(res.Slices), err, before)
		}
		for _, c := range res.Curves() {
			analyze.Analyze(c, analyze.Options{}).Sentences()
		}
	}
}
