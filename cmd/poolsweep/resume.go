package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep"
)

// checkResume refuses flags that --resume takes from the file: only what
// concerns the target, the answer and the output may stand beside it.
func (o *runOptions) checkResume(c *cobra.Command, groups []flagGroup) error {
	var wrong []string
	for _, g := range groups {
		if g.title != "Workload" && g.title != "Sweep" {
			continue
		}
		g.flags.VisitAll(func(f *pflag.Flag) {
			if c.Flags().Changed(f.Name) && f.Name != "resume" {
				wrong = append(wrong, "--"+f.Name)
			}
		})
	}
	switch {
	case len(wrong) > 0:
		return fmt.Errorf("--resume goes on with the plan of the file; leave out %s", strings.Join(wrong, " "))
	case o.output != "":
		return errors.New("--resume goes on writing the file; leave out -o")
	case o.target.embedded:
		return errors.New("--resume cannot go on with an embedded server, which is gone")
	}
	return nil
}

// open creates the result file, or opens the one that is to be continued and
// takes its plan.
func (o *runOptions) open() (*sweep.Journal, *sweep.Result, error) {
	switch {
	case o.resume != "":
		j, res, err := sweep.Continue(o.resume)
		if err != nil {
			return nil, nil, err
		}
		if err := resumable(res); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("--resume %s: %w", o.resume, err), j.Close())
		}
		o.plan = res.Header.Plan
		return j, res, nil
	case o.output != "":
		j, err := sweep.Create(o.output)
		return j, nil, err
	}
	j, err := sweep.CreateDated(time.Now())
	return j, nil, err
}

// resumable reports what keeps a run from being continued.
func resumable(r *sweep.Result) error {
	if r.Header.Embedded != "" {
		return errors.New("it was a run on an embedded server, which is gone")
	}
	for _, w := range r.Header.Plan.Workloads {
		if w.Replay != nil {
			return fmt.Errorf("%s: the commands of a recording are not kept in the file; sweep anew", w.Name)
		}
	}
	return nil
}

// sayDifferences says in what the server that goes on is not the one that the
// file is of.
func sayDifferences(h sweep.Header, s *probe.Server) {
	say := func(what, before, now string) {
		if before != now {
			fmt.Fprintf(os.Stderr, "poolsweep: warning: %s was %s when the run began and is %s now; the parts may not be comparable\n", what, before, now)
		}
	}
	say("the target", h.Target, s.Target.String())
	say("the server", h.Server.Title(), s.Identity.Title())
	say("appendonly", h.Server.AppendOnly, s.Identity.AppendOnly)
	say("RESP3", fmt.Sprint(h.RESP3), fmt.Sprint(s.Target.RESP3))
	say("client tracking", fmt.Sprint(h.Tracking), fmt.Sprint(s.Target.Tracking))
	say("its process", h.Server.RunID, s.Identity.RunID)
}

// resumeURL returns the target of a result file, unless flags name another.
func resumeURL(path string, flags *pflag.FlagSet) (string, error) {
	if flags.Changed("host") || flags.Changed("port") || flags.Changed("socket") {
		return "", nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("--resume: %w", err)
	}
	defer f.Close()
	res, err := sweep.Read(f)
	if err != nil {
		return "", fmt.Errorf("--resume %s: %w", path, err)
	}
	if err := resumable(res); err != nil {
		return "", fmt.Errorf("--resume %s: %w", path, err)
	}
	return res.Header.Target, nil
}
