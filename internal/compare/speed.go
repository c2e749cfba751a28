package compare

import (
	"math"
	"slices"

	"github.com/poolsweep/poolsweep/analyze"
)

// maxMoved is how far the speed of the machine may have moved, as ln, for
// anything to be said of tail latencies: that from which package analyze warns
// of a pass effect. Of one server on a machine that others loaded to a
// different degree, p99 grew by 200 to 700 % where that speed fell by 45 to
// 80 %, while throughput fell by 40 to 60 %.
var maxMoved = math.Log(1.2)

// A machineSpeed is how much faster the generator's machine was in the new
// run, by what the same event loops reached against the null responder.
type machineSpeed struct {
	ratio  analyze.Quantity // new over old; unknown for other tools' runs
	shared bool             // the server runs on that machine, in both runs
}

// speed compares the ceilings of the generator at the steps that both runs
// have with the same number of event loops.
func speed(old, new analyze.Curve) machineSpeed {
	s := machineSpeed{ratio: analyze.Unknown()}
	var logs []float64
	for _, p := range align(old, new) {
		a, b := values(p.old, ceilingOf), values(p.new, ceilingOf)
		if len(a) == 0 || len(b) == 0 || p.old[0].Load.GeneratorLoops != p.new[0].Load.GeneratorLoops {
			continue
		}
		logs = append(logs, math.Log(float64(newSample(b).Median/newSample(a).Median)))
		s.shared = p.old[0].Load.SharedHost && p.new[0].Load.SharedHost
	}
	if len(logs) > 0 {
		slices.Sort(logs)
		s.ratio = analyze.Quantity(math.Exp(logs[len(logs)/2]))
	}
	return s
}

func ceilingOf(t analyze.Trial) analyze.Quantity { return t.Load.GeneratorCeiling }

// margin returns what an interval of ln x is widened by. A server elsewhere is
// not touched by the speed of the generator's machine.
func (s machineSpeed) margin() float64 {
	if !s.shared || !s.ratio.Known() {
		return 0
	}
	return math.Abs(math.Log(float64(s.ratio)))
}
