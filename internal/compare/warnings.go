package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/poolsweep/poolsweep/analyze"
)

// Codes of the warnings of a comparison.
const (
	// WarnDiffers: something beside the numbers is not the same, and may be
	// the reason of a change.
	WarnDiffers = "differs"

	// WarnOtherTool: a run comes from another load generator, which says
	// nothing of the server's settings.
	WarnOtherTool = "other-tool"

	// WarnOneRunOnly: a test or a depth is in one of the runs only.
	WarnOneRunOnly = "one-run-only"

	// WarnNoCommonStep: the runs have no number of clients in common.
	WarnNoCommonStep = "no-common-step"

	// WarnNoAnswer: the analysis of a run names no knee.
	WarnNoAnswer = "no-answer"

	// WarnMachineSpeed: the generator itself was faster or slower, so the
	// machine may be what changed.
	WarnMachineSpeed = "machine-speed"

	// WarnFewTrials: there are too few trials for the Mann-Whitney test.
	WarnFewTrials = "few-trials"

	// WarnNoiseUnknown: with one trial a step no change can be told from
	// noise.
	WarnNoiseUnknown = "noise-unknown"
)

// movedSpeed is by how much the generator's ceiling must have moved to be
// mentioned, a ratio. Less shows between any two runs; it widens the intervals
// all the same.
const movedSpeed = 0.03

// warn adds what concerns the pair as a whole.
func (p *Pair) warn(old, new Run) {
	add := func(code, format string, args ...any) {
		p.Warnings = append(p.Warnings, analyze.Warning{Code: code, Text: fmt.Sprintf(format, args...)})
	}
	if len(p.Differences) > 0 {
		var what []string
		for _, d := range p.Differences {
			what = append(what, d.Name)
		}
		add(WarnDiffers, "the runs differ in %s: that may be the reason of a change", strings.Join(what, ", "))
	}
	switch {
	case old.Header == nil && new.Header == nil:
		add(WarnOtherTool, "both runs come from other tools: whether server and settings were the same is not known")
	case old.Header == nil || new.Header == nil:
		other := old
		if new.Header == nil {
			other = new
		}
		add(WarnOtherTool, "%s comes from another load generator, and two generators do not load a server alike; "+
			"its server and settings are not known", other.Name)
	}
	alone := func(in, other Run) {
		for _, c := range in.Curves {
			if !slices.ContainsFunc(other.Curves, func(d analyze.Curve) bool { return same(c, d) }) {
				add(WarnOneRunOnly, "%s, pipeline depth %d, is in %s only", c.Test, max(1, c.Depth), in.Name)
			}
		}
	}
	alone(old, new)
	alone(new, old)
}

// warn adds what concerns one sweep.
func (s *Sweep) warn(old, new *analyze.Analysis, speed machineSpeed) {
	add := func(holds bool, code, format string, args ...any) {
		if holds {
			s.Warnings = append(s.Warnings, analyze.Warning{Code: code, Text: fmt.Sprintf(format, args...)})
		}
	}
	add(!old.Answer, WarnNoAnswer, "the old run has no knee: %s%s", old.Reason, notTheServers(old))
	add(!new.Answer, WarnNoAnswer, "the new run has no knee: %s%s", new.Reason, notTheServers(new))
	if moved := float64(speed.ratio - 1); math.Abs(moved) > movedSpeed {
		how, consequence := "faster", ""
		if moved < 0 {
			how = "slower"
		}
		if speed.shared {
			consequence = ", so its machine, which is the server's, too, may be what changed; all intervals are widened by that"
			if speed.margin() > maxMoved {
				consequence += ", and of p99 nothing can be said"
			}
		}
		add(true, WarnMachineSpeed, "against the null responder the generator was %.0f %% %s in the new run%s", 100*math.Abs(moved), how, consequence)
	}
	if s.Common == 0 {
		add(true, WarnNoCommonStep, "the runs have no number of clients in common: nothing can be compared step by step")
		return
	}
	if !s.QPS.Low.Known() {
		add(true, WarnNoiseUnknown, "a run has one trial a step: no change can be told from noise; take --trials 4 or more")
		return
	}
	unreachable := slices.ContainsFunc(s.Steps, func(st Step) bool { return st.QPS.P.Known() && !st.QPS.Reachable })
	add(unreachable, WarnFewTrials, "p (Mann-Whitney) needs 4 trials a step in both runs to get below .05, and some steps have fewer: "+
		"there the interval alone decides; take --trials 4 or more to have both")
}

// notTheServers says that a curve is not that of the server, where it is not.
func notTheServers(a *analyze.Analysis) string {
	if c := a.Bottleneck.Cause; c == analyze.CauseGenerator || c == analyze.CauseSharedCPU {
		return "; its numbers are not the server's alone, and a change of them need not be one of the server"
	}
	return ""
}
