package report

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep"
	"github.com/poolsweep/poolsweep/sweep/load"
)

const (
	resultSlices = 2
	resultTrials = 3
)

// resultFile is the document of a result file of tests, each at depths.
// N clients give 1000·min(N, 8) requests/s, the second trial 1 % more and the
// third 1 % less. Of a trial's requests 90 % take R = N·P/X, 9.5 % 2·R and
// 0.5 % 5·R: p50 is R, p99 2·R and p99.9 5·R.
func resultFile(t *testing.T, tests []string, depths ...int) *Document {
	t.Helper()
	started := time.Date(2026, 12, 1, 12, 0, 0, 400e6, time.UTC)
	res := &sweep.Result{Header: sweep.Header{
		Schema: sweep.Schema, Build: "v0.0.0", Started: started, Target: "redis://127.0.0.1:6379",
		Server: probe.Identity{Kind: "redis", Version: "7.0.15", Mode: "standalone", Role: "master"},
		Host:   sweep.Host{OS: "linux", Arch: "amd64", Cores: 2},
		Plan:   sweep.Plan{Trials: resultTrials, Slices: resultSlices},
	}}
	at := started
	for _, test := range tests {
		for _, depth := range depths {
			for pass := range resultTrials * resultSlices {
				for _, clients := range []int{1, 2, 4, 8, 12, 16, 24} {
					s := resultSlice(t, clients, depth, pass/resultSlices)
					s.Test, s.Pass, s.Measurement.Start = test, pass+1, at
					at = at.Add(s.Measurement.Elapsed)
					res.Slices = append(res.Slices, s)
				}
			}
		}
	}
	d := &Document{Header: &res.Header, Result: res, Curves: res.Curves()}
	for _, c := range d.Curves {
		d.Analyses = append(d.Analyses, analyze.Analyze(c, analyze.Options{}))
	}
	return d
}

// resultSlice is a second of a trial, the first one being 0.
func resultSlice(t *testing.T, clients, depth, trial int) sweep.Slice {
	t.Helper()
	requests := int64(1000 * min(clients, 8) * []int{100, 101, 99}[trial] / 100)
	r := int64(clients*depth) * int64(time.Second) / requests
	h := hdrhistogram.New(1, int64(time.Minute), 3)
	tail := requests / 200
	var sum int64
	for _, part := range []struct{ value, n int64 }{{r, requests * 9 / 10}, {2 * r, requests - requests*9/10 - tail}, {5 * r, tail}} {
		if err := h.RecordValues(part.value, part.n); err != nil {
			t.Fatal(err)
		}
		sum += part.value * part.n
	}
	encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	l := new(load.Latency)
	if err := json.Unmarshal(fmt.Appendf(nil, `{"hdr":%q,"sum_ns":%d}`, encoded, sum), l); err != nil {
		t.Fatal(err)
	}
	return sweep.Slice{Measurement: &load.Measurement{
		Step: load.Step{Clients: clients, Depth: depth}, Elapsed: time.Second,
		Requests: requests, Sent: requests, Received: requests, Latency: l, Loops: 1,
	}}
}

// oneResult is a result file of one sweep.
func oneResult(t *testing.T) *Document { return resultFile(t, []string{"SET"}, 1) }

// manyResults is a result file of several sweeps, one of whose names is not
// fit for every format.
func manyResults(t *testing.T) *Document {
	return resultFile(t, []string{"SET", "MSET (10 keys)"}, 1, 16)
}
