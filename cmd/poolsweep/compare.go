package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/compare"
	"github.com/poolsweep/poolsweep/internal/importer"
	"github.com/poolsweep/poolsweep/internal/report"
	"github.com/poolsweep/poolsweep/sweep"
)

func compareCommand() *cobra.Command {
	var answer answerFlags
	var format, plot string
	var failIf []string
	c := &cobra.Command{
		Use:   "compare OLD NEW [MORE...]",
		Short: "Hold runs against an earlier one",
		Long: `Compare says which steps changed from one run to another, by how much, and
whether that is more than noise; before that, what else was different: the
server, its settings, the machine, the load. Each argument is one run: a result
file of poolsweep run, another tool's file, or a folder of another tool's files.
Several runs are each held against the first.

A change is significant when its 95 % interval, from the noise of both runs,
leaves zero out and, with four trials a step or more, p of the Mann-Whitney
U test is below .05, too. With fewer trials p cannot get there. Runs that are to
be compared are best made with --trials 5 or more and the same -c and --fixed.

--fail-if is for CI: the exit code is 1 when a significant change, of a step or
of all steps together, is beyond the limit, and 3 when that cannot be said. Of a
knee it asks whether the 95 % ranges of the two have no level in common. Quote
it, as < and > mean something to the shell.`,
		Example: `  poolsweep compare before.jsonl after.jsonl
  poolsweep compare main.jsonl branch.jsonl --fail-if 'qps<-5%,p99>10%'
  poolsweep compare redis.jsonl valkey.jsonl keydb.jsonl --format markdown`,
		Args: arguments(cobra.MinimumNArgs(2)),
		RunE: func(_ *cobra.Command, args []string) error {
			print, conditions, err := compareOptions(&answer, format, failIf)
			if err != nil {
				return usage(err)
			}
			return compareFiles(args, answer, print, plot, conditions)
		},
	}
	var groups []flagGroup
	f := group(&groups, "Comparison")
	f.StringArrayVar(&failIf, "fail-if", nil, "exit code 1 if this holds: qps<-5%, p99>10% or knee!=, several with commas")
	f = group(&groups, "Answer")
	answer.add(f)
	_ = f.MarkHidden("client") // no settings are printed
	f = group(&groups, "Output")
	f.StringVar(&format, "format", "table", "of standard output: table, json, csv or markdown")
	f.StringVar(&plot, "plot", "", "write a chart of each test, with the curves of all runs, into this folder")
	useGroups(c, groups)
	return c
}

// compareOptions returns what the flags ask for, or the first thing that is
// wrong with them.
func compareOptions(answer *answerFlags, format string, failIf []string) (report.ComparisonFormat, []compare.Condition, error) {
	answer.output.format = "table" // of a document, of which there is none
	if _, err := answer.check(); err != nil {
		return nil, nil, err
	}
	if err := answer.checkSLO(false); err != nil {
		return nil, nil, err
	}
	print, err := report.ComparisonNamed(format)
	if err != nil {
		return nil, nil, err
	}
	var conditions []compare.Condition
	for _, text := range failIf {
		c, err := compare.ParseConditions(text)
		if err != nil {
			return nil, nil, fmt.Errorf("--fail-if: %w", err)
		}
		conditions = append(conditions, c...)
	}
	return print, conditions, nil
}

func compareFiles(args []string, answer answerFlags, print report.ComparisonFormat, plot string, conditions []compare.Condition) error {
	var runs []compare.Run
	for _, arg := range args {
		r, err := readRun(arg, answer)
		if err != nil {
			return err
		}
		runs = append(runs, r)
	}
	all := compare.Runs(runs)
	out := bufio.NewWriter(os.Stdout)
	if err := print(out, all); err != nil {
		return fmt.Errorf("printing the comparison: %w", err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("printing the comparison: %w", err)
	}
	if plot != "" {
		names, err := report.PlotComparison(plot, runs)
		if err != nil {
			return fmt.Errorf("writing the charts: %w", err)
		}
		fmt.Fprintf(os.Stderr, "poolsweep: %d charts in %s\n", len(names), plot)
	}
	return testConditions(all, conditions)
}

// testConditions returns an error that says which conditions hold, and
// errNoAnswer when none does, but one cannot be judged.
func testConditions(all *compare.Comparison, conditions []compare.Condition) error {
	var held []string
	open := false
	for _, c := range conditions {
		o := c.Test(all)
		for _, where := range o.Held {
			held = append(held, fmt.Sprintf("%s holds: %s", c, where))
		}
		for _, why := range o.Open {
			open = true
			fmt.Fprintf(os.Stderr, "poolsweep: comparing: whether %s holds cannot be said: %s\n", c, why)
		}
	}
	switch {
	case len(held) > 0:
		return errors.New("comparing: " + strings.Join(held, "; "))
	case open:
		return errNoAnswer
	}
	return nil
}

// readRun reads what an argument names as one run.
func readRun(arg string, answer answerFlags) (compare.Run, error) {
	run := compare.Run{Name: arg}
	sources, err := openFiles([]string{arg})
	if err != nil {
		return run, err
	}
	if i := indexResult(sources); i >= 0 {
		if len(sources) > 1 {
			return run, fmt.Errorf("comparing %s: %d files, of which %s is a run of its own; name one result file", arg, len(sources), sources[i].Name)
		}
		res, err := sweep.Read(sources[i].R)
		if err != nil {
			// What stands before the damage is still good.
			fmt.Fprintf(os.Stderr, "poolsweep: %s: %v\n", arg, err)
		}
		if res == nil || len(res.Slices) == 0 {
			return run, fmt.Errorf("comparing %s: it holds no measurement", arg)
		}
		run.Header, run.Curves = &res.Header, res.Curves()
	} else {
		imported, err := importer.Read(sources)
		if err != nil {
			return run, err
		}
		for _, p := range imported.Problems {
			fmt.Fprintf(os.Stderr, "poolsweep: %s\n", p)
		}
		run.Curves = imported.Curves
	}
	if len(run.Curves) == 0 {
		return run, fmt.Errorf("comparing %s: it holds no throughput at a known number of clients", arg)
	}
	for _, c := range run.Curves {
		run.Analyses = append(run.Analyses, analyze.Analyze(c, answer.options(run.Header)))
	}
	return run, nil
}

// indexResult returns the index of the first of our result files, -1 without
// one.
func indexResult(sources []importer.Source) int {
	for i, s := range sources {
		if isResult(s.R.(*bytes.Reader)) {
			return i
		}
	}
	return -1
}
