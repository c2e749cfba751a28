package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/arrivals"
	"github.com/poolsweep/poolsweep/internal/embedded"
	"github.com/poolsweep/poolsweep/internal/report"
	"github.com/poolsweep/poolsweep/internal/verify"
	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// verifyOptions are the flags of poolsweep verify.
type verifyOptions struct {
	target   targetFlags
	workload workloadFlags
	safety   safetyFlags

	sizes, rates, arrivals string
	result                 string
	format                 string
	quiet                  bool
	config                 verify.Config
}

func verifyCommand() *cobra.Command {
	o := &verifyOptions{config: verify.Default()}
	c := &cobra.Command{
		Use:   "verify [URL] --pool N [-- COMMAND...]",
		Short: "Try a pool with a real client, under requests that do not wait",
		Long: `Verify tries a pool of N connections in a real go-redis client, beside pools of
half and of double the size. Requests arrive at random and do not wait for each
other's replies, as those of an application's users; each is timed from when it
was due, so that waiting for a connection is latency. The rates are 50, 70 and
80 % of what this one client carries, which a short closed loop finds first.

It prints a table for each rate, a row a pool, and recommends the smallest pool
whose p99 is within 10 % of the best. With the result file of a sweep of the same
test, --pool is the pool recommended there, and what the sweep forecasts stands
beside what was seen.`,
		Example: `  poolsweep verify redis://127.0.0.1:6379 --pool 10 -t get
  poolsweep verify --embedded --pool 8 --rate 5000,10000 --duration 10s
  poolsweep verify redis://127.0.0.1:6379 -t set --result poolsweep-20261201-120000.jsonl`,
		Args: cobra.ArbitraryArgs, // split counts them
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args) },
	}
	var groups []flagGroup
	o.target.add(group(&groups, "Target"))
	o.workload.add(group(&groups, "Workload"))

	v := &o.config
	f := group(&groups, "Verification")
	f.IntVar(&v.Pool, "pool", 0, "connections of the pool in question (default: those recommended in --result)")
	f.StringVar(&o.sizes, "sizes", "", "pools to try: a list or range (default: N/2, N and 2N)")
	f.StringVar(&o.rates, "rate", "50%,70%,80%", "requests/s, or percent of what one client carries with N: a list or range")
	f.StringVar(&o.arrivals, "arrivals", string(v.Arrivals), "gaps between requests: poisson (at random) or constant")
	f.DurationVar(&v.Duration, "duration", v.Duration, "time of a trial")
	f.IntVar(&v.Rounds, "rounds", v.Rounds, "trials of each pool at each rate; the median by p99 stands for it")
	f.DurationVar(&v.Warmup, "warmup", v.Warmup, "arrivals before each trial that do not count")
	f.DurationVar(&v.PoolTimeout, "pool-timeout", v.PoolTimeout, "longest wait for a connection; then the request fails")
	f.Uint64Var(&v.Seed, "seed", v.Seed, "seed of arrivals, keys and order")
	f.StringVar(&o.result, "result", "", "result file of a sweep of the same test, for its pool and its forecast")
	f.BoolVar(&o.safety.allowTraffic, "allow-traffic", false, "verify though the server is serving others")

	f = group(&groups, "Output")
	f.StringVar(&o.format, "format", "table", "of standard output: table or json")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no progress on standard error")
	useGroups(c, groups)
	return c
}

// run is the whole of poolsweep verify.
func (o *verifyOptions) run(c *cobra.Command, args []string) error {
	ctx := c.Context()
	url, command, err := split(c, args)
	if err != nil {
		return usage(err)
	}
	target, err := o.target.target(c.Flags(), url)
	if err != nil {
		return err
	}
	format, err := report.VerifyNamed(o.format)
	if err != nil {
		return usage(err)
	}
	spec, err := o.spec(c, command)
	if err != nil {
		return usage(err)
	}
	if o.result != "" {
		if err := forecastFrom(&o.config, o.result, spec.Name); err != nil {
			return err
		}
	}
	if err := o.readConfig(); err != nil {
		return usage(err)
	}
	if o.target.embedded {
		e, err := embedded.Start(ctx, "")
		if err != nil {
			return err
		}
		defer e.Close()
		target = e.Target
	}
	server, err := probe.Connect(ctx, target)
	if err != nil {
		return err
	}
	defer server.Close()
	plan := sweep.Plan{Workloads: []workload.Spec{spec}}
	if _, err := o.safety.check(ctx, os.Stdout, server, plan, o.target.embedded); err != nil {
		return err
	}
	res, err := verifyPool(ctx, server, spec, o.config, o.quiet)
	return printVerification(res, format, err)
}

// spec returns what to send: one workload.
func (o *verifyOptions) spec(c *cobra.Command, command []string) (workload.Spec, error) {
	if !c.Flags().Changed("tests") {
		o.workload.tests = "get"
	}
	specs, err := o.workload.specs(c.Flags(), command, o.config.Seed)
	if err != nil {
		return workload.Spec{}, err
	}
	switch {
	case len(specs) != 1:
		return workload.Spec{}, fmt.Errorf("-t: %d tests; verify one at a time", len(specs))
	case specs[0].Replay != nil || len(specs[0].Setup) > 0:
		return workload.Spec{}, errors.New("verify does not know recordings, scripts and libraries; give a test, a mix or a command")
	}
	return specs[0], nil
}

// readConfig takes the flags that are not numbers, and checks all of them.
func (o *verifyOptions) readConfig() error {
	v := &o.config
	if v.Pool == 0 {
		return errors.New("no pool to verify; give --pool N or --result FILE")
	}
	v.Arrivals = arrivals.Kind(o.arrivals)
	var err error
	if v.Rates, err = arrivals.ParseRates(o.rates); err != nil {
		return fmt.Errorf("--rate: %w", err)
	}
	if o.sizes != "" {
		levels, err := sweep.ParseLevels(o.sizes)
		if err != nil {
			return fmt.Errorf("--sizes: %w", err)
		}
		if levels.Auto {
			return errors.New("--sizes: auto is for sweeps; give a list or a range")
		}
		v.Sizes = levels.Values
	}
	return v.Check()
}

// verifyPool makes the workload and runs the verification.
func verifyPool(ctx context.Context, server *probe.Server, spec workload.Spec, v verify.Config, quiet bool) (*verify.Result, error) {
	spec.Prefix = workload.NewPrefix()
	w, err := workload.New(spec)
	if err != nil {
		return nil, err
	}
	v.Server, v.Workload = server, w
	tenths := 0
	v.Progress = func(done, total int) {
		if done == 0 {
			tenths = 0
		}
		if !quiet && (done == 0 || done*10/total > tenths) {
			tenths = done * 10 / total
			fmt.Fprintf(os.Stderr, "%s, verifying a pool of %d: %d of %d trials\n", spec.Name, v.Pool, done, total)
		}
	}
	return verify.Run(ctx, v)
}

// printVerification prints what was measured, however the run ended.
func printVerification(res *verify.Result, format report.VerifyFormat, runErr error) error {
	if res == nil {
		return runErr
	}
	if err := format(os.Stdout, res); err != nil {
		runErr = errors.Join(runErr, fmt.Errorf("printing the report: %w", err))
	}
	if runErr == nil && res.Verdict().Pool == 0 {
		return errNoAnswer
	}
	return runErr
}

// forecastFrom takes pool, knee and forecast from the sweep of a test at depth
// 1 in a result file.
func forecastFrom(v *verify.Config, path, test string) error {
	in, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("--result: %w", err)
	}
	defer in.Close()
	res, err := sweep.Read(in)
	if res == nil {
		return fmt.Errorf("--result %s: %w", path, err)
	}
	curves := res.Curves()
	i := slices.IndexFunc(curves, func(c analyze.Curve) bool {
		return strings.EqualFold(c.Test, test) && max(1, c.Depth) == 1
	})
	if i < 0 {
		var have []string
		for _, c := range curves {
			have = append(have, c.Test+" at depth "+strconv.Itoa(max(1, c.Depth)))
		}
		return fmt.Errorf("--result %s: no sweep of %s at depth 1; it holds %s", path, test, strings.Join(have, ", "))
	}
	var answer answerFlags
	forecast(v, curves[i], analyze.Analyze(curves[i], answer.options(&res.Header)))
	return nil
}

// forecast takes from a sweep what is to be expected, and its pool where none
// is given.
func forecast(v *verify.Config, c analyze.Curve, a *analyze.Analysis) {
	if a.Knee.Clients == 0 {
		return
	}
	v.Swept = v.Pool == 0 || v.Pool == a.Recommendation.Pool
	v.Pool = cmp.Or(v.Pool, a.Recommendation.Pool)
	v.Knee = a.Knee.QPS
	v.Forecast = func(n int, rate float64) analyze.Prediction { return analyze.Forecast(c, a.Knee, n, rate) }
}
