package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/embedded"
	"github.com/poolsweep/poolsweep/internal/report"
	"github.com/poolsweep/poolsweep/sweep"
)

// answerFlags say what to conclude and how to print it.
type answerFlags struct {
	goal      string
	tolerance float64
	instances int
	procs     int
	targetQPS float64
	sloP99    time.Duration
	client    string
	output    outputFlags
}

func (a *answerFlags) add(f *pflag.FlagSet) {
	f.StringVar(&a.goal, "goal", string(analyze.GoalKnee), "what the pool is for: knee (fewest connections) or peak (highest throughput)")
	f.Float64Var(&a.tolerance, "tolerance", 0.05, "share of throughput that may be given up for fewer connections")
	f.Float64Var(&a.targetQPS, "target-qps", 0, "requests/s that all instances together will send; the pool is then for that rate")
	f.DurationVar(&a.sloP99, "slo-p99", 0, "longest p99 of waiting for a connection and the reply: for the pool at --target-qps, and for the highest of the rates of run --rate")
	f.IntVar(&a.instances, "instances", 1, "application instances that share the server, each with its own pool")
	f.IntVar(&a.procs, "procs", 1, "processes of each instance, each with its own pool")
	f.StringVar(&a.client, "client", "go-redis", "client library whose settings are printed: "+strings.Join(analyze.ClientNames(), ", ")+", all or none")
}

// check returns the format, or the first thing that is wrong.
func (a *answerFlags) check() (report.Format, error) {
	switch {
	case a.goal != string(analyze.GoalKnee) && a.goal != string(analyze.GoalPeak):
		return nil, fmt.Errorf("unknown goal %q; want %s or %s", a.goal, analyze.GoalKnee, analyze.GoalPeak)
	case a.tolerance <= 0 || a.tolerance >= 0.5:
		return nil, fmt.Errorf("a tolerance of %v; want more than 0 and less than 0.5", a.tolerance)
	case a.instances < 1:
		return nil, fmt.Errorf("%d instances; want 1 or more", a.instances)
	case a.procs < 1:
		return nil, fmt.Errorf("%d processes; want 1 or more", a.procs)
	case a.targetQPS < 0:
		return nil, fmt.Errorf("a target of %v requests/s; want more than 0", a.targetQPS)
	case a.sloP99 < 0:
		return nil, fmt.Errorf("a p99 of %v; want more than 0", a.sloP99)
	case a.client != "all" && a.client != noClient && !slices.Contains(analyze.ClientNames(), a.client):
		return nil, fmt.Errorf("unknown client %q; the clients are %s, all and none", a.client, strings.Join(analyze.ClientNames(), ", "))
	}
	return report.Named(a.output.format)
}

// checkSLO reports that --slo-p99 has nothing to hold to. rates says that rates
// were or will be offered.
func (a *answerFlags) checkSLO(rates bool) error {
	if a.sloP99 > 0 && a.targetQPS == 0 && !rates {
		return errors.New("--slo-p99 needs --target-qps or the rates of run --rate: a latency depends on the rate")
	}
	return nil
}

// noClient prints no settings.
const noClient = "none"

// options are what to conclude from a curve of the server that h tells of; h is
// nil when nothing is known of it.
func (a *answerFlags) options(h *sweep.Header) analyze.Options {
	o := analyze.Options{
		Tolerance: a.tolerance, Goal: analyze.Goal(a.goal), Instances: a.instances, Procs: a.procs,
		TargetQPS: a.targetQPS, SLOP99: a.sloP99.Seconds(),
	}
	if h != nil {
		// Of a cluster both are those of the node with the least room.
		nodes := max(1, len(h.Server.Nodes))
		o.MaxClients, o.ReservedClients = nodes*int(h.Server.MaxClients), nodes*int(h.Server.ConnectedClients)
	}
	return o
}

// document analyses the curves. res is the result file that they are of, nil
// when they come from another tool.
func (a *answerFlags) document(res *sweep.Result, curves []analyze.Curve) *report.Document {
	d := &report.Document{Result: res, Curves: curves}
	var h *sweep.Header
	if res != nil {
		h = &res.Header
		d.Header, d.Remarks = h, remarks(h)
	}
	for _, c := range curves {
		d.Analyses = append(d.Analyses, analyze.Analyze(c, a.options(h)))
	}
	if res != nil {
		for _, w := range res.Sweeps() {
			var nodes []*analyze.Analysis
			for _, c := range res.NodeCurves(w) {
				nodes = append(nodes, analyze.Analyze(c, analyze.Options{Tolerance: a.tolerance}))
			}
			d.Nodes = append(d.Nodes, nodes)
		}
	}
	if res != nil {
		for _, c := range res.RateCurves() {
			if slices.ContainsFunc(curves, func(x analyze.Curve) bool { return x.Test == c.Test && max(1, x.Depth) == c.Depth }) {
				slo := cmp.Or(a.sloP99, h.Plan.Rates.SLOP99)
				d.Rates = append(d.Rates, analyze.AnalyzeRates(c, slo.Seconds()))
			}
		}
	}
	if a.client != noClient {
		d.Client = a.client
	}
	return d
}

// remarks says what concerns all sweeps of a run.
func remarks(h *sweep.Header) []string {
	var r []string
	if h.Embedded == embedded.Emulator {
		r = append(r, "no redis-server or valkey-server was found: these are the numbers of an emulator (miniredis), "+
			"which say nothing about a real server.")
	}
	for _, m := range h.Server.Missing {
		r = append(r, "the server does not tell everything: "+m+".")
	}
	return r
}

// answered returns errNoAnswer when a sweep has none.
func answered(all []*analyze.Analysis) error {
	for _, a := range all {
		if !a.Answer {
			return errNoAnswer
		}
	}
	return nil
}
