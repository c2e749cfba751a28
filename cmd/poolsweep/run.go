package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/arrivals"
	"github.com/poolsweep/poolsweep/internal/embedded"
	"github.com/poolsweep/poolsweep/internal/report"
	"github.com/poolsweep/poolsweep/internal/verify"
	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep"
)

// runOptions are the flags of poolsweep run.
type runOptions struct {
	target targetFlags
	answer answerFlags

	workload        workloadFlags
	safety          safetyFlags
	fleet           fleetFlags
	clients, depths string
	order           string
	keepAlive       int
	vary            string
	rate, arrivals  string
	verify          bool
	output, resume  string
	quiet           bool
	plan            sweep.Plan
}

func runCommand() *cobra.Command {
	o := &runOptions{plan: sweep.DefaultPlan()}
	c := &cobra.Command{
		Use:   "run [URL] [-- COMMAND...]",
		Short: "Sweep a server, find the knee, recommend a pool",
		Long: `Run sweeps the number of clients of a server: it drives each number in turn,
several times over, and prints a row for each with throughput, latency and CPU,
then where the knee is, who stopped the throughput, how sure that is, and the
pool that follows. It writes keys under a prefix of its own and removes them.
Everything measured is kept in a result file for poolsweep analyze.

The URL is redis://[user@]host[:port][/db], rediss:// for TLS, unix:///path[?db=N]
or redis+sentinel://host[:port],.../NAME; any node stands for a whole cluster. Point
it at a server that nobody else is using: one that serves others is refused.

What stands behind -- is a command to be sent instead of the tests. In its
arguments __key__ stands for a key of ours, __rand_int__ for twelve digits drawn
from -r, __data__ for a value, __sha__ for the script of --script and {tag} on a
cluster for the hash tag of a node. Only keys of __key__ are removed afterwards.`,
		Example: `  poolsweep run --embedded -t set,get
  poolsweep run redis://127.0.0.1:6379 -t get -r 100000 -d 100
  poolsweep run -h 127.0.0.1 -p 6379 -c auto --instances 8
  poolsweep run -c 10:110:10 -P 1,16 --duration 2s
  poolsweep run --embedded -t get --rate 20%:100%:20% --slo-p99 2ms
  poolsweep run --embedded --mix get=80,set=20 -r 100000 --keys zipfian
  poolsweep run --embedded -c 1,2,5,10,20,50 -- HSET __key__ field __data__`,
		Args: cobra.ArbitraryArgs, // split counts them
	}
	var groups []flagGroup
	o.target.add(group(&groups, "Target"))
	p := &o.plan

	f := group(&groups, "Workload")
	o.workload.add(f)
	f.IntVarP(&o.keepAlive, "keep-alive", "k", 1, "1 keeps connections, 0 opens one for each request")
	f.IntVarP(&p.Idle, "idle", "I", 0, "connections without load that are held beside those of a step")

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
	f.StringVar(&o.vary, "vary", "", "sweep for each value of a setting of the server and compare: appendonly=no,yes; it is restored afterwards")
	f.StringVar(&o.rate, "rate", "", "offer these rates afterwards in an open loop, over the clients of the knee: requests/s or percent of X*, a list or range; with --slo-p99 search the highest that meets it")
	f.StringVar(&o.arrivals, "arrivals", string(arrivals.Poisson), "gaps between the requests of --rate: poisson (at random) or constant")
	f.BoolVar(&o.verify, "verify", false, "try the recommended pool afterwards, as poolsweep verify does; the test is then get unless -t says another")
	f.IntVar(&p.Threads, "threads", 0, "event loops of the generator (default: what leaves the server its cores)")

	o.fleet.add(&groups)
	o.safety.add(group(&groups, "Safety"))
	o.answer.add(group(&groups, "Answer"))

	f = group(&groups, "Output")
	o.answer.output.add(f)
	f.StringVarP(&o.output, "output", "o", "", "result file (default: poolsweep-DATE-TIME.jsonl here)")
	f.StringVar(&o.resume, "resume", "", "go on with the run of this result file, with its plan")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no progress on standard error")
	useGroups(c, groups)
	c.RunE = func(c *cobra.Command, args []string) error {
		if o.resume != "" {
			if err := o.checkResume(c, groups); err != nil {
				return usage(err)
			}
		}
		return o.run(c, args)
	}
	return c
}

// run is the whole of poolsweep run.
func (o *runOptions) run(c *cobra.Command, args []string) (err error) {
	ctx := c.Context()
	url, command, err := split(c, args)
	if err != nil {
		return usage(err)
	}
	if o.resume != "" && url == "" {
		if url, err = resumeURL(o.resume, c.Flags()); err != nil {
			return err
		}
	}
	target, err := o.target.target(c.Flags(), url)
	if err != nil {
		return err
	}
	if err := errors.Join(o.readPlan(c, command), o.fleet.check(c.Flags())); err != nil {
		return usage(err)
	}
	format, err := o.answer.check()
	if err != nil {
		return usage(err)
	}
	if o.rate != "" && target.TLS != nil {
		return usage(errors.New("--rate takes event loops, which have no TLS; poolsweep verify offers rates over TLS"))
	}
	header := sweep.Header{Build: version(), Started: time.Now()}
	if o.target.embedded {
		e, err := embedded.Start(ctx, "")
		if err != nil {
			return err
		}
		defer e.Close()
		e.Target.RESP3, e.Target.Tracking, e.Target.Sources = target.RESP3, target.Tracking, target.Sources
		target, header.Embedded = e.Target, e.Program
	}
	server, err := probe.Connect(ctx, target)
	if err != nil {
		return err
	}
	defer server.Close()
	if done, err := o.safety.check(ctx, os.Stdout, server, o.plan, o.target.embedded); done || err != nil {
		return err
	}
	journal, earlier, err := o.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	if earlier != nil {
		sayDifferences(earlier.Header, server)
	}
	o.chooseThreads(server.Identity)

	progress := newProgress(os.Stderr, o.quiet)
	config := sweep.Config{
		Plan: o.plan, Server: server, Header: header, Resume: earlier, Journal: journal, Progress: progress.event,
	}
	agents, err := o.fleet.gather(ctx, &config)
	if err != nil {
		progress.close()
		return o.conclude(earlier, journal, format, err)
	}
	res, runErr := sweep.Run(ctx, config)
	runErr = errors.Join(runErr, agents.Close())
	progress.close()
	if err := o.conclude(res, journal, format, runErr); err != nil || !o.verify {
		if o.verify && errors.Is(err, errNoAnswer) {
			fmt.Fprintln(os.Stderr, "poolsweep: nothing to verify: the sweep recommends no pool; poolsweep verify --pool N tries one of yours")
		}
		return err
	}
	return o.verifyPools(ctx, server, res)
}

// verifyPools tries the pool of each sweep at depth 1.
func (o *runOptions) verifyPools(ctx context.Context, server *probe.Server, res *sweep.Result) error {
	format, err := report.VerifyNamed("table")
	if err != nil {
		return err
	}
	for i, c := range res.Curves() {
		if c.Depth != 1 || i >= len(o.plan.Workloads) {
			continue
		}
		a := analyze.Analyze(c, o.answer.options(&res.Header))
		v := verify.Default()
		v.Duration = time.Second // it ends a run of minutes; poolsweep verify takes its time
		v.Pool = a.Recommendation.PerProcess
		forecast(&v, c, a)
		fmt.Println()
		found, err := verifyPool(ctx, server, o.plan.Workloads[i], v, o.quiet)
		if err := printVerification(found, format, err); err != nil {
			return err
		}
	}
	return nil
}

// split returns the URL, "" for none, and the command behind --, nil for none.
func split(c *cobra.Command, args []string) (url string, command []string, err error) {
	if dash := c.ArgsLenAtDash(); dash >= 0 {
		args, command = args[:dash], args[dash:]
	}
	if len(args) > 1 {
		return "", nil, fmt.Errorf("%d arguments before --; want one URL", len(args))
	}
	return strings.Join(args, ""), command, nil
}

// readPlan takes the flags that are not numbers, and checks the plan as far
// as that can be done without the server.
func (o *runOptions) readPlan(c *cobra.Command, command []string) error {
	p := &o.plan
	var err error
	if o.verify {
		if err := o.checkVerify(c); err != nil {
			return err
		}
	}
	if p.Workloads, err = o.workload.specs(c.Flags(), command, p.Seed); err != nil {
		return err
	}
	if o.keepAlive != 0 && o.keepAlive != 1 {
		return fmt.Errorf("-k %d; want 1 or 0", o.keepAlive)
	}
	p.PerRequest = o.keepAlive == 0
	if o.vary != "" {
		if p.Vary, err = sweep.ParseVary(o.vary); err != nil {
			return fmt.Errorf("--vary: %w", err)
		}
	}
	if err := o.readRates(c); err != nil {
		return err
	}
	if p.Guards, err = o.safety.guards(); err != nil {
		return err
	}
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
	if n := len(p.Workloads) * len(p.Depths) * max(1, len(p.Vary.Values)); n > 1 && o.answer.output.format == "hgrm" {
		return fmt.Errorf("--format hgrm holds one distribution, and these are %d sweeps; take hlog, or analyze --format hgrm --test afterwards", n)
	}
	check := *p
	if check.Threads == 0 { // chosen when the server is known
		check.Threads = 1
	}
	return check.Check()
}

// readRates takes the flags of the open loop.
func (o *runOptions) readRates(c *cobra.Command) error {
	if err := o.answer.checkSLO(o.rate != "" || o.resume != ""); err != nil {
		return err
	}
	if o.rate == "" {
		if c.Flags().Changed("arrivals") {
			return errors.New("--arrivals is for --rate")
		}
		return nil
	}
	rates, err := arrivals.ParseRates(o.rate)
	if err != nil {
		return fmt.Errorf("--rate: %w", err)
	}
	if o.fleet.agents > 0 {
		return errors.New("--rate is not for --agents yet: agents have no open loop")
	}
	o.plan.Rates = sweep.Rates{Offered: rates, SLOP99: o.answer.sloP99, Arrivals: arrivals.Kind(o.arrivals)}
	return nil
}

// checkVerify sets the test of a run with --verify and refuses what cannot be
// verified.
func (o *runOptions) checkVerify(c *cobra.Command) error {
	switch {
	case o.vary != "", o.keepAlive == 0, o.depths != "1", o.workload.replay != "", o.workload.script != "", o.workload.function != "":
		return errors.New("--verify is for sweeps at depth 1 without --vary, -k 0, --replay, --script and --function")
	case o.answer.output.format != "table":
		return errors.New("--verify prints a table; leave out --format")
	}
	if !c.Flags().Changed("tests") {
		o.workload.tests = "get"
	}
	return nil
}

// chooseThreads leaves the server its cores when it is on this machine, and
// one core to everything else when it is not.
func (o *runOptions) chooseThreads(id probe.Identity) {
	if o.plan.Threads != 0 {
		return
	}
	taken := 1
	if id.Local {
		servers := 0 // of a cluster those that are here
		for _, n := range id.Nodes {
			if n.Local {
				servers++
			}
		}
		taken = max(1, servers) * max(1, id.IOThreads)
	}
	o.plan.Threads = max(1, runtime.NumCPU()-taken)
}

// conclude analyses and prints what was measured, however the run ended.
func (o *runOptions) conclude(res *sweep.Result, journal *sweep.Journal, format report.Format, runErr error) error {
	if res == nil || len(res.Slices) == 0 {
		// A file without a slice is of no use to anyone.
		return errors.Join(runErr, os.Remove(journal.Path()))
	}
	d := o.answer.document(res, res.Curves())
	err := errors.Join(runErr, journal.Analyses(d.Analyses))
	err = errors.Join(err, o.answer.output.print(os.Stdout, format, []*report.Document{d}))
	if o.plan.Vary.Setting != "" && o.answer.output.format == "table" {
		err = errors.Join(err, compareValues(os.Stdout, d))
	}
	fmt.Fprintf(os.Stderr, "poolsweep: result file: %s\n", journal.Path())
	if err != nil {
		return err
	}
	return answered(d.Analyses)
}
