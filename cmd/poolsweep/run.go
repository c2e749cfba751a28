package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/poolsweep/poolsweep/internal/embedded"
	"github.com/poolsweep/poolsweep/internal/report"
	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// runOptions are the flags of poolsweep run.
type runOptions struct {
	target targetFlags
	answer answerFlags

	tests, clients, depths string
	order                  string
	output                 string
	quiet                  bool
	plan                   sweep.Plan
}

func runCommand() *cobra.Command {
	o := &runOptions{plan: sweep.DefaultPlan()}
	c := &cobra.Command{
		Use:   "run [URL]",
		Short: "Sweep a server, find the knee, recommend a pool",
		Long: `Run sweeps the number of clients of a server: it drives each number in turn,
several times over, and prints a row for each with throughput, latency and CPU,
then where the knee is, who stopped the throughput, how sure that is, and the
pool that follows. It writes keys under a prefix of its own and removes them.
Everything measured is kept in a result file for poolsweep analyze.

The URL is redis://[user@]host[:port][/db] or unix:///path[?db=N]. Point it at a
server that nobody else is using.`,
		Example: `  poolsweep run --embedded -t set,get
  poolsweep run redis://127.0.0.1:6379 -t get -r 100000 -d 100
  poolsweep run -h 127.0.0.1 -p 6379 -c auto --instances 8
  poolsweep run -c 10:110:10 -P 1,16 --duration 2s`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args) },
	}
	var groups []flagGroup
	o.target.add(group(&groups, "Target"))
	p := &o.plan

	f := group(&groups, "Workload")
	f.StringVarP(&o.tests, "tests", "t", "set,get", "tests, each a sweep of its own: "+strings.Join(workload.Names(), ", "))
	f.IntVarP(&p.ValueBytes, "data-size", "d", p.ValueBytes, "size of a value in bytes")
	f.IntVarP(&p.Keyspace, "keyspace", "r", p.Keyspace, "draw keys at random from this many; 0 is one key")

	f = group(&groups, "Sweep")
	f.StringVarP(&o.clients, "clients", "c", "10:110:10", "numbers of clients: a range FROM:TO:STEP, a list, or auto")
	f.StringVarP(&o.depths, "pipeline", "P", "1", "pipeline depths: a list or range, each a sweep of its own")
	f.IntVar(&p.Trials, "trials", p.Trials, "trials a step; the median stands for the step")
	f.DurationVar(&p.Duration, "duration", p.Duration, "time of a trial")
	f.Int64VarP(&p.Requests, "requests", "n", p.Requests, "requests of a trial, instead of a time")
	f.IntVar(&p.Slices, "slices", p.Slices, "pieces of a trial, each in another pass over the steps")
	f.Int64Var(&p.MinRequests, "min-requests", p.MinRequests, "make a slice longer until it has this many requests")
	f.DurationVar(&p.Warmup, "warmup", p.Warmup, "load before each slice that does not count")
	f.StringVar(&o.order, "order", string(p.Order), "order of the steps in a pass: shuffled or ascending")
	f.Uint64Var(&p.Seed, "seed", p.Seed, "seed of keys and order")
	f.IntVar(&p.MaxClients, "max-clients", p.MaxClients, "go on to this many clients while throughput rises")
	f.BoolVar(&p.Fixed, "fixed", p.Fixed, "measure the levels of -c and no others")
	f.DurationVar(&p.Budget, "budget", p.Budget, "time of a sweep after which no refinement is begun")
	f.IntVar(&p.Threads, "threads", 0, "event loops of the generator (default: what leaves the server its cores)")

	o.answer.add(group(&groups, "Answer"))

	f = group(&groups, "Output")
	o.answer.addFormat(f)
	f.StringVarP(&o.output, "output", "o", "", "result file (default: poolsweep-DATE-TIME.jsonl here)")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no progress on standard error")
	useGroups(c, groups)
	return c
}

// run is the whole of poolsweep run.
func (o *runOptions) run(c *cobra.Command, args []string) (err error) {
	ctx := c.Context()
	target, err := o.target.target(c.Flags(), strings.Join(args, ""))
	if err != nil {
		return err
	}
	if err := o.readPlan(); err != nil {
		return usage(err)
	}
	format, err := o.answer.check()
	if err != nil {
		return usage(err)
	}
	header := sweep.Header{Build: version(), Started: time.Now()}
	if o.target.embedded {
		e, err := embedded.Start(ctx, "")
		if err != nil {
			return err
		}
		defer e.Close()
		target, header.Embedded = e.Target, e.Program
	}
	server, err := probe.Connect(ctx, target)
	if err != nil {
		return err
	}
	defer server.Close()
	o.chooseThreads(server.Identity)
	journal, err := o.createFile()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()

	progress := newProgress(os.Stderr, o.quiet)
	res, runErr := sweep.Run(ctx, sweep.Config{
		Plan: o.plan, Server: server, Header: header, Journal: journal, Progress: progress.event,
	})
	progress.close()
	return o.conclude(res, journal, format, runErr)
}

// readPlan takes the flags that are not numbers, and checks the plan as far
// as that can be done without the server.
func (o *runOptions) readPlan() error {
	p := &o.plan
	p.Tests = strings.Split(strings.ToLower(o.tests), ",")
	p.Order = sweep.Order(o.order)
	p.Tolerance = o.answer.tolerance
	levels, err := sweep.ParseLevels(o.clients)
	if err != nil {
		return fmt.Errorf("-c: %w", err)
	}
	p.Clients, p.Auto = levels.Values, levels.Auto
	depths, err := sweep.ParseLevels(o.depths)
	if err != nil {
		return fmt.Errorf("-P: %w", err)
	}
	if depths.Auto {
		return errors.New("-P: auto is for -c; give a list or a range")
	}
	p.Depths = depths.Values
	check := *p
	if check.Threads == 0 { // chosen when the server is known
		check.Threads = 1
	}
	return check.Check()
}

// chooseThreads leaves the server its cores when it is on this machine, and
// one core to everything else when it is not.
func (o *runOptions) chooseThreads(id probe.Identity) {
	if o.plan.Threads != 0 {
		return
	}
	taken := 1
	if id.Local {
		taken = max(1, id.IOThreads)
	}
	o.plan.Threads = max(1, runtime.NumCPU()-taken)
}

func (o *runOptions) createFile() (*sweep.Journal, error) {
	if o.output == "" {
		return sweep.CreateDated(time.Now())
	}
	return sweep.Create(o.output)
}

// conclude analyses and prints what was measured, however the run ended.
func (o *runOptions) conclude(res *sweep.Result, journal *sweep.Journal, format report.Format, runErr error) error {
	if res == nil || len(res.Slices) == 0 {
		// A file without a slice is of no use to anyone.
		return errors.Join(runErr, os.Remove(journal.Path()))
	}
	d := o.answer.document(&res.Header, res.Curves())
	err := errors.Join(runErr, journal.Analyses(d.Analyses))
	if perr := format(os.Stdout, d); perr != nil {
		err = errors.Join(err, fmt.Errorf("printing the report: %w", perr))
	}
	fmt.Fprintf(os.Stderr, "poolsweep: result file: %s\n", journal.Path())
	if err != nil {
		return err
	}
	return answered(d.Analyses)
}
