package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep"
)

// safetyFlags say what a run must not do to a server.
type safetyFlags struct {
	allowTraffic, dryRun bool
	maxRate              float64
	maxServerCPU         string
	maxP99               time.Duration
}

func (s *safetyFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&s.allowTraffic, "allow-traffic", false, "sweep though the server is serving others")
	f.Float64Var(&s.maxRate, "max-rate", 0, "end the sweep at the level whose throughput passes this, in requests/s")
	f.StringVar(&s.maxServerCPU, "max-server-cpu", "", "end it at the level that fills the server's main thread more than this, as 80%")
	f.DurationVar(&s.maxP99, "max-p99", 0, "end it at the level whose p99 passes this")
	f.BoolVar(&s.dryRun, "dry-run", false, "print the plan, what it costs and what was checked; send no load")
}

// inShort writes a number with three digits or so.
func inShort(x float64) string {
	switch {
	case x < 10:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case x < 100:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 0, 64)
}

func (s *safetyFlags) guards() (sweep.Guards, error) {
	g := sweep.Guards{MaxRate: s.maxRate, MaxP99: s.maxP99}
	if s.maxServerCPU == "" {
		return g, nil
	}
	x, err := strconv.ParseFloat(strings.TrimSuffix(s.maxServerCPU, "%"), 64)
	if err != nil || !(x > 0) || x > 100 {
		return g, fmt.Errorf("--max-server-cpu %q; want a percentage of a core, as 80%%", s.maxServerCPU)
	}
	g.MaxServerCPU = x / 100
	return g, nil
}

// check looks at the server before the load. It is done when there is to be no
// load; an error is what forbids it.
func (s *safetyFlags) check(ctx context.Context, out io.Writer, server *probe.Server, p sweep.Plan, embedded bool) (done bool, err error) {
	if embedded && !s.dryRun {
		return false, nil // nobody else knows it
	}
	checks, err := sweep.Checks(ctx, server, p)
	if err != nil {
		return false, err
	}
	var refused error
	for _, c := range checks {
		if c.OK || c.Override != "" && s.allowTraffic {
			continue
		}
		advice := ""
		if c.Override != "" {
			advice = "; give " + c.Override + " to sweep it all the same"
		}
		refused = fmt.Errorf("checking %s: %s%s", server.Target.Addr(), c.Text, advice)
		break
	}
	if !s.dryRun {
		return false, refused
	}
	if err := printPlan(ctx, out, server, p, checks); err != nil {
		return true, err
	}
	return true, refused
}

// printPlan prints what a run would do.
func printPlan(ctx context.Context, out io.Writer, server *probe.Server, p sweep.Plan, checks []sweep.Check) error {
	c, err := sweep.Config{Plan: p, Server: server}.Cost(ctx)
	if err != nil {
		return fmt.Errorf("planning: %w", err)
	}
	var names []string
	for _, w := range p.Workloads {
		names = append(names, w.Name)
	}
	fmt.Fprintf(out, "server      %s, %s\n", server.Target, server.Identity.Title())
	fmt.Fprintf(out, "workloads   %s; pipeline depths %v\n", strings.Join(names, ", "), p.Depths)
	more := fmt.Sprintf(", and what the analysis asks for up to %d", p.MaxClients)
	if p.Fixed {
		more = ", and no others"
	}
	fmt.Fprintf(out, "clients     %v%s\n", p.Clients, more)
	fmt.Fprintf(out, "slices      %d, of %v each after a warm-up of %v: %v at least\n",
		c.Slices, p.Duration/time.Duration(p.Slices), p.Warmup, c.Time.Round(time.Second))
	fmt.Fprintf(out, "connections %d opened in all, %d at a time\n", c.Connections, c.AtOnce)
	bound := "at most, by what this generator reached just now"
	if c.Exact {
		bound = "in all, warm-ups apart"
	}
	fmt.Fprintf(out, "requests    %s million, %s MB to the server, %s\n", inShort(float64(c.Requests)/1e6), inShort(float64(c.Bytes)/1e6), bound)
	if r := p.Rates; len(r.Offered) > 0 {
		fmt.Fprintf(out, "rates       %d besides, in an open loop, each in %d trials of %v at least\n", len(r.Offered), p.Trials, p.Duration)
	}
	for _, k := range checks {
		mark := "ok"
		if !k.OK {
			mark = "NO"
		}
		fmt.Fprintf(out, "check       %s  %s\n", mark, k.Text)
	}
	return nil
}
