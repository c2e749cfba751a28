package report

import (
	"testing"
	"time"

	"github.com/poolsweep/poolsweep/internal/arrivals"
	"github.com/poolsweep/poolsweep/sweep"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// TestRepeatCommand: what differs from the defaults is in the command, and
// nothing else.
func TestRepeatCommand(t *testing.T) {
	three := workload.Values{Sizes: []workload.Size{{Min: 3, Max: 3}}}
	spec := func(s workload.Spec, err error) workload.Spec {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Values.Sizes) == 0 {
			s.Values = three
		}
		return s
	}
	tests := []struct {
		name   string
		change func(*sweep.Header)
		want   string
	}{
		{"defaults", func(*sweep.Header) {}, "poolsweep run redis://127.0.0.1:6379 -t set,get --threads 1"},
		{"embedded", func(h *sweep.Header) { h.Embedded = "redis-server" }, "poolsweep run --embedded -t set,get --threads 1"},
		{"a target that a shell would take apart", func(h *sweep.Header) { h.Target = "unix:///tmp/a b?db=1" }, "poolsweep run 'unix:///tmp/a b?db=1' -t set,get --threads 1"},
		{"sweep", func(h *sweep.Header) {
			p := &h.Plan
			p.Clients, p.Depths, p.Trials, p.Duration, p.Slices = []int{1, 2, 5, 10, 20, 30}, []int{1, 16}, 5, 2*time.Second, 1
			p.Order, p.Seed, p.Fixed, p.Tolerance, p.Threads = sweep.Ascending, 7, true, .1, 2
		}, "poolsweep run redis://127.0.0.1:6379 -t set,get -c 1,2,5,10:30:10 -P 1,16 --trials 5 --duration 2s --slices 1 --order ascending --seed 7 --fixed --tolerance 0.1 --threads 2"},
		{"requests", func(h *sweep.Header) {
			h.Plan.Requests, h.Plan.Auto, h.Plan.Clients, h.Plan.Idle, h.Plan.PerRequest = 100_000, true, []int{1, 2, 4, 8}, 10, true
		}, "poolsweep run redis://127.0.0.1:6379 -t set,get -c auto -n 100000 -I 10 -k 0 --threads 1"},
		{"rates", func(h *sweep.Header) {
			h.Plan.Rates = sweep.Rates{
				Offered: []arrivals.Rate{{Share: .2}, {Share: .2 + 2*.2}, {QPS: 20000}}, SLOP99: 2 * time.Millisecond, Arrivals: arrivals.Constant,
			}
		}, "poolsweep run redis://127.0.0.1:6379 -t set,get --rate 20%,60%,20000 --slo-p99 2ms --arrivals constant --threads 1"},
		{"guards and settings", func(h *sweep.Header) {
			h.Plan.Guards = sweep.Guards{MaxRate: 20000, MaxServerCPU: .8, MaxP99: 5 * time.Millisecond}
			h.Plan.Vary = sweep.Vary{Setting: "appendonly", Values: []string{"no", "yes"}}
			h.RESP3, h.Tracking = true, true
		}, "poolsweep run redis://127.0.0.1:6379 -t set,get --vary appendonly=no,yes --max-rate 20000 --max-server-cpu 80% --max-p99 5ms --threads 1 -3 --enable-tracking"},
		{"keys and values", func(h *sweep.Header) {
			for i := range h.Plan.Workloads {
				w := &h.Plan.Workloads[i]
				w.Keys = workload.Keys{Space: 1000, Dist: workload.Zipfian, Exponent: 1.1}
				w.Values = workload.Values{Sizes: []workload.Size{{Min: 32, Max: 64, Weight: 70}, {Min: 1024, Max: 1024, Weight: 30}}, Content: workload.Random}
				w.Expiry = workload.Expiry{Min: 10, Max: 60}
			}
		}, "poolsweep run redis://127.0.0.1:6379 -t set,get -r 1000 --keys zipfian:1.1 -d 32-64:70,1024:30 --content random --expiry 10-60 --threads 1"},
		{"ratio", func(h *sweep.Header) { h.Plan.Workloads = []workload.Spec{spec(workload.Ratio("1:10"))} },
			"poolsweep run redis://127.0.0.1:6379 --ratio 1:10 --threads 1"},
		{"mix", func(h *sweep.Header) { h.Plan.Workloads = []workload.Spec{spec(workload.Mix("get=80,set=20"))} },
			"poolsweep run redis://127.0.0.1:6379 --mix get=80,set=20 --threads 1"},
		{"YCSB", func(h *sweep.Header) { h.Plan.Workloads = []workload.Spec{spec(workload.YCSB("a"))} },
			"poolsweep run redis://127.0.0.1:6379 --ycsb a --threads 1"},
		{"a command", func(h *sweep.Header) {
			h.Plan.Workloads = []workload.Spec{spec(workload.Custom([]string{"HSET", "__key__", "it's", "__data__"}))}
		}, `poolsweep run redis://127.0.0.1:6379 --threads 1 -- HSET __key__ 'it'\''s' __data__`},
		{"not preloaded", func(h *sweep.Header) {
			h.Plan.Workloads = []workload.Spec{testSpec(t, "get")}
			h.Plan.Workloads[0].Fill = nil
		},
			"poolsweep run redis://127.0.0.1:6379 -t get --load=no --threads 1"},
	}
	for _, test := range tests {
		h := &sweep.Header{Target: "redis://127.0.0.1:6379", Plan: sweep.DefaultPlan()}
		h.Plan.Workloads = []workload.Spec{testSpec(t, "set"), testSpec(t, "get")}
		test.change(h)
		if got, _ := repeatCommand(h); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}

// TestRepeatCommandUntold: what a result file does not tell is said.
func TestRepeatCommandUntold(t *testing.T) {
	tests := []struct {
		name    string
		change  func(*sweep.Header)
		missing int
	}{
		{"password", func(*sweep.Header) {}, 1},
		{"embedded", func(h *sweep.Header) { h.Embedded = "redis-server" }, 0},
		{"TLS", func(h *sweep.Header) { h.Target = "rediss://db:6379" }, 2},
		{"recording", func(h *sweep.Header) {
			h.Plan.Workloads = []workload.Spec{{Name: "a.aof", Replay: new(workload.Replay)}}
		}, 2},
		{"nothing sent", func(h *sweep.Header) { h.Plan.Workloads = nil }, 2},
		{"unknown", func(h *sweep.Header) {
			h.Plan.Workloads = []workload.Spec{{Name: "x", Commands: make([]workload.Command, 2)}}
		}, 2},
	}
	for _, test := range tests {
		h := &sweep.Header{Target: "redis://127.0.0.1:6379", Plan: sweep.DefaultPlan()}
		h.Plan.Workloads = []workload.Spec{testSpec(t, "set")}
		test.change(h)
		if _, missing := repeatCommand(h); len(missing) != test.missing {
			t.Errorf("%s: %q, want %d sentences", test.name, missing, test.missing)
		}
	}
}

// TestLevelsFlag: the flag gives the same levels back.
func TestLevelsFlag(t *testing.T) {
	for _, list := range []string{"1", "1,2", "10:110:10", "1,2,5,10:60:10", "1:3:1,7", "1,2,4,8,16", "5:9:2,20:40:10"} {
		levels, err := sweep.ParseLevels(list)
		if err != nil {
			t.Fatal(err)
		}
		got := levelsFlag(levels.Values)
		if got != list {
			t.Errorf("%v: %s, want %s", levels.Values, got, list)
		}
	}
}
