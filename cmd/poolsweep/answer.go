package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/report"
)

// answerFlags say what to conclude and how to print it.
type answerFlags struct {
	goal      string
	tolerance float64
	instances int
	format    string
}

func (a *answerFlags) add(f *pflag.FlagSet) {
	f.StringVar(&a.goal, "goal", string(analyze.GoalKnee), "what the pool is for: knee (fewest connections) or peak (highest throughput)")
	f.Float64Var(&a.tolerance, "tolerance", 0.05, "share of throughput that may be given up for fewer connections")
	f.IntVar(&a.instances, "instances", 1, "application instances that share the server, each with its own pool")
}

func (a *answerFlags) addFormat(f *pflag.FlagSet) {
	f.StringVar(&a.format, "format", "table", "of standard output: table, json or csv")
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
	}
	return report.Named(a.format)
}

func (a *answerFlags) options() analyze.Options {
	return analyze.Options{Tolerance: a.tolerance, Goal: analyze.Goal(a.goal), Instances: a.instances}
}
