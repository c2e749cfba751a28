package sweep

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/poolsweep/poolsweep/analyze"
)

// Schema is the format of the result files that this version writes. A file
// of another schema is not read.
const Schema = "poolsweep/1"

// A record is one line of a result file: exactly one of its fields is set.
type record struct {
	Header      *Header             `json:"header,omitempty"`
	Slice       *Slice              `json:"slice,omitempty"`
	Calibration *Calibration        `json:"calibration,omitempty"`
	RoundTrip   *RoundTrip          `json:"round_trip,omitempty"`
	RateTrial   *RateTrial          `json:"rate_trial,omitempty"`
	Analyses    []*analyze.Analysis `json:"analyses,omitempty"`
}

// A Journal writes a result file line by line. Each line is on the disk
// before the next slice begins, so that whatever ends the run, what it has
// measured is kept. A nil *Journal writes nothing, and one that has failed
// writes nothing more, so that its last whole line remains the last.
type Journal struct {
	file   *os.File
	failed bool
}

// Create creates a result file. It fails if there is one of that name.
func Create(path string) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("creating the result file: %s is already there; give another name with -o", path)
	}
	if err != nil {
		return nil, fmt.Errorf("creating the result file: %w", err)
	}
	return &Journal{file: f}, nil
}

// CreateDated creates a result file in the current folder, named after the
// time, with a number behind it when that name is taken.
func CreateDated(now time.Time) (*Journal, error) {
	base := "poolsweep-" + now.Format("20060102-150405")
	for i := 1; ; i++ {
		path := base + ".jsonl"
		if i > 1 {
			path = fmt.Sprintf("%s-%d.jsonl", base, i)
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("creating the result file: %w; give another place with -o", err)
		}
		return &Journal{file: f}, nil
	}
}

// Continue opens a result file to go on writing, and returns what is in it. A
// last line that is cut short is removed.
func Continue(path string) (*Journal, *Result, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("continuing the result file: %w", err)
	}
	res, end, err := readWhole(f)
	if err == nil {
		err = f.Truncate(end)
	}
	if err == nil {
		_, err = f.Seek(end, io.SeekStart)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("continuing the result file %s: %w", path, err), f.Close())
	}
	return &Journal{file: f}, res, nil
}

// readWhole reads a result file and returns where its last whole line ends.
func readWhole(f *os.File) (*Result, int64, error) {
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, 0, err
	}
	end := bytes.LastIndexByte(text, '\n') + 1
	res, err := Read(bytes.NewReader(text[:end]))
	return res, int64(end), err
}

// Path returns where the file is, "" for a nil Journal.
func (j *Journal) Path() string {
	if j == nil {
		return ""
	}
	return j.file.Name()
}

// Close closes the file.
func (j *Journal) Close() error {
	if j == nil {
		return nil
	}
	return j.file.Close()
}

func (j *Journal) header(h Header) error { return j.write(record{Header: &h}) }

func (j *Journal) slice(s Slice) error { return j.write(record{Slice: &s}) }

func (j *Journal) calibration(c Calibration) error { return j.write(record{Calibration: &c}) }

func (j *Journal) roundTrip(t RoundTrip) error { return j.write(record{RoundTrip: &t}) }

func (j *Journal) rateTrial(t RateTrial) error { return j.write(record{RateTrial: &t}) }

// Analyses writes the last line: what was concluded. It is for other readers;
// poolsweep itself concludes anew.
func (j *Journal) Analyses(a []*analyze.Analysis) error { return j.write(record{Analyses: a}) }

func (j *Journal) write(r record) error {
	if j == nil || j.failed {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("writing the result file: %w", err)
	}
	n, err := j.file.Write(append(line, '\n'))
	if err == nil {
		err = j.file.Sync()
	} else if end, seeking := j.file.Seek(0, io.SeekCurrent); seeking == nil {
		_ = j.file.Truncate(end - int64(n)) // half a line, where the disk is full
	}
	if err != nil {
		j.failed = true
		return fmt.Errorf("writing the result file: %w; what was measured before is in it", err)
	}
	return nil
}

// maxLineBytes bounds a line of a result file. The longest is that of the
// analyses, of a thousand steps.
const maxLineBytes = 16 << 20

// Read reads a result file. A last line that is cut short, as a killed run
// leaves it, is passed over. When a line is damaged, Read returns what stands
// before it together with the error.
func Read(r io.Reader) (*Result, error) {
	tail := &lastByte{r: r}
	lines := bufio.NewScanner(tail)
	lines.Buffer(nil, maxLineBytes)
	res := new(Result)
	var damaged error // of the line before, which may be cut short
	for n := 1; damaged == nil && lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if err := res.add(line); err != nil {
			damaged = fmt.Errorf("reading a result file: line %d: %w", n, err)
			if n == 1 {
				return nil, damaged
			}
		}
	}
	switch err := lines.Err(); {
	case err != nil:
		return res, fmt.Errorf("reading a result file: %w", err)
	case damaged != nil && (lines.Scan() || tail.b == '\n'):
		return res, damaged
	case res.Header.Schema == "":
		return nil, errors.New("reading a result file: it is empty")
	}
	return res, nil
}

// A lastByte reader remembers the last byte that was read.
type lastByte struct {
	r io.Reader
	b byte
}

func (l *lastByte) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if n > 0 {
		l.b = p[n-1]
	}
	return n, err
}

// add takes one line.
func (r *Result) add(line []byte) error {
	var rec record
	if err := json.Unmarshal(line, &rec); err != nil {
		return err
	}
	switch {
	case rec.Header != nil:
		if r.Header.Schema != "" {
			return errors.New("a second header; two files in one?")
		}
		if rec.Header.Schema != Schema {
			return fmt.Errorf("schema %q; this version reads %s", rec.Header.Schema, Schema)
		}
		r.Header = *rec.Header
	case r.Header.Schema == "":
		return errors.New("no header; is this a poolsweep result file?")
	case rec.Slice != nil:
		if err := rec.Slice.check(); err != nil {
			return err
		}
		r.Slices = append(r.Slices, *rec.Slice)
	case rec.Calibration != nil:
		r.Calibrations = append(r.Calibrations, *rec.Calibration)
	case rec.RoundTrip != nil:
		r.RoundTrips = append(r.RoundTrips, *rec.RoundTrip)
	case rec.RateTrial != nil:
		if err := rec.RateTrial.check(); err != nil {
			return err
		}
		r.RateTrials = append(r.RateTrials, *rec.RateTrial)
	}
	return nil
}

// check reports what makes a slice unusable: a damaged file must not become a
// wrong answer.
func (s *Slice) check() error {
	m := s.Measurement
	switch {
	case m == nil || m.Latency == nil:
		return errors.New("a slice without a measurement")
	case m.Clients < 1 || m.Depth < 1 || s.Pass < 1:
		return fmt.Errorf("a slice of %d clients, depth %d, pass %d", m.Clients, m.Depth, s.Pass)
	case m.Elapsed <= 0 || m.Requests < 0:
		return fmt.Errorf("a slice of %d requests in %v", m.Requests, m.Elapsed)
	}
	return nil
}
