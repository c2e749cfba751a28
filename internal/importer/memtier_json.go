package importer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/poolsweep/poolsweep/analyze"
)

func detectMemtierJSON(head string) bool {
	return strings.HasPrefix(strings.TrimSpace(head), "{") &&
		(strings.Contains(head, `"run information"`) || strings.Contains(head, `"ALL STATS"`) ||
			strings.Contains(head, `"Ops/sec"`))
}

// parseMemtierJSON reads the documents that --json-out-file wrote, one or
// several behind each other.
func parseMemtierJSON(in *input) {
	data, err := io.ReadAll(io.LimitReader(in.r, maxInput+1))
	if err != nil {
		in.err = err
		return
	}
	if len(data) > maxInput {
		in.problem(0, "the file is longer than %d MiB, it was not read", maxInput>>20)
		return
	}
	d := json.NewDecoder(bytes.NewReader(data))
	for !in.full {
		start := d.InputOffset()
		var doc map[string]json.RawMessage
		err := d.Decode(&doc)
		if err == io.EOF {
			return
		}
		if err != nil {
			offset := d.InputOffset()
			if syntax, ok := err.(*json.SyntaxError); ok {
				offset = syntax.Offset
			}
			in.problem(lineAt(data, offset), "not the JSON of memtier_benchmark: %v", err)
			return
		}
		readMemtierJSON(in, doc, lineAt(data, start+int64(leadingSpace(data[start:]))))
	}
}

// lineAt returns the number of the line in which data[offset] is.
func lineAt(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:min(offset, int64(len(data)))], []byte("\n"))
}

// leadingSpace returns the number of bytes of space that b begins with.
func leadingSpace(b []byte) int { return len(b) - len(bytes.TrimLeft(b, " \t\r\n")) }

// A memtierStats is the object of one command, or of the totals.
type memtierStats struct {
	Count       float64
	QPS         *float64 `json:"Ops/sec"`
	Latency     float64  // mean, ms; 0 in the totals of 2.x
	Average     float64  `json:"Average Latency"`     // since 1.4; 0 in the totals, too
	Accumulated float64  `json:"Accumulated Latency"` // ms
	Min         float64  `json:"Min Latency"`         // ms
	Percentiles struct {
		P50   float64 `json:"p50.00"` // ms
		P99   float64 `json:"p99.00"`
		P999  float64 `json:"p99.90"`
		Codec struct {
			Compressed string `json:"Compressed Histogram"` // µs
		} `json:"Histogram log format"`
	} `json:"Percentile Latencies"`
}

// readMemtierJSON reads one document, which starts in the given line.
func readMemtierJSON(in *input, doc map[string]json.RawMessage, line int) {
	var config struct{ Threads, Clients, Pipeline int }
	var info struct {
		Threads int
		Each    int `json:"Connections per thread"`
	}
	// Both may be missing; what they state is then unknown.
	json.Unmarshal(doc["configuration"], &config)
	json.Unmarshal(doc["run information"], &info)
	if info.Threads < 1 || info.Each < 1 {
		info.Threads, info.Each = config.Threads, config.Clients
	}
	clients := 0
	if min(info.Threads, info.Each) >= 1 && max(info.Threads, info.Each) <= maxClients {
		clients = info.Threads * info.Each
	}
	var runs []memtierRun
	// By length first: RUN #10 comes after RUN #9.
	titles := slices.SortedFunc(maps.Keys(doc), func(a, b string) int {
		return cmp.Or(len(a)-len(b), cmp.Compare(a, b))
	})
	for _, title := range titles {
		if !memtierTitle.MatchString(title) {
			continue
		}
		run := memtierRun{title: title, line: line}
		var tables map[string]json.RawMessage
		if err := json.Unmarshal(doc[title], &tables); err != nil {
			in.problem(line, "%s: %v", title, err)
			continue
		}
		readMemtierTables(in, &run, tables)
		if run.total.QPS > 0 {
			runs = append(runs, run)
		} else {
			in.problem(line, "%s: no totals with a throughput above 0", title)
		}
	}
	addMemtier(in, runs, clients, config.Pipeline)
}

// readMemtierTables reads the commands and the totals of one run.
func readMemtierTables(in *input, run *memtierRun, tables map[string]json.RawMessage) {
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		var s memtierStats
		// Beside commands there are other things ("Runtime", lists of
		// latencies in 1.x), which have no throughput.
		if json.Unmarshal(tables[name], &s) != nil || s.QPS == nil {
			continue
		}
		t := newTrial(*s.QPS)
		if name == "Totals" {
			s.setLatencies(in, run.line, &t)
		}
		run.add(name, t)
	}
}

// setLatencies sets the latencies of t. Percentiles that were not asked for
// with --print-percentiles are read from the histogram.
func (s *memtierStats) setLatencies(in *input, line int, t *analyze.Trial) {
	switch {
	case s.Accumulated > 0 && s.Count > 0:
		t.Mean = milliseconds(s.Accumulated / s.Count)
	case s.Average > 0:
		t.Mean = milliseconds(s.Average)
	default:
		t.Mean = milliseconds(s.Latency)
	}
	t.LatencyMin = milliseconds(s.Min)
	t.P50, t.P99, t.P999 = milliseconds(s.Percentiles.P50), milliseconds(s.Percentiles.P99), milliseconds(s.Percentiles.P999)
	if s.Percentiles.Codec.Compressed == "" || t.P50.Known() && t.P99.Known() && t.P999.Known() {
		return
	}
	h, err := hdrhistogram.Decode([]byte(s.Percentiles.Codec.Compressed))
	if err != nil {
		in.problem(line, "histogram of the totals: %v", err)
		return
	}
	if h.TotalCount() == 0 {
		return
	}
	for percentile, q := range map[float64]*analyze.Quantity{50: &t.P50, 99: &t.P99, 99.9: &t.P999} {
		if v := h.ValueAtPercentile(percentile); !q.Known() && v > 0 {
			*q = analyze.Quantity(float64(v) / perSecondUS)
		}
	}
}

// milliseconds returns a latency of v ms; unknown when v is not above 0.
func milliseconds(v float64) analyze.Quantity {
	if !(v > 0) {
		return analyze.Unknown()
	}
	return analyze.Quantity(v / perSecondMS)
}
