package analyze

import "math"

// Facts are what the validity gates look at in one slice of a trial.
type Facts struct {
	Requests, Errors int64 // in the window; Errors also counts lost requests

	// Utilisation is X·R̄/(N·P), R̄ the mean time from writing a batch to its
	// last reply.
	Utilisation Quantity

	Steal       Quantity // share of the host's CPU time that the hypervisor took
	Throttled   int64    // periods in which the server's CPU limit stopped it
	Evictions   int64    // keys
	Forks       int64    // begun in the window
	ChildAtWork bool     // a save or an AOF rewrite ran
	Commands    int64    // processed by the server, ours included; 0: unknown
	Others      int64    // of these, sent by other clients
}

const (
	tooManyErrors = 0.001 // of the requests
	tooMuchSteal  = 0.01  // of the host's CPU time
	tooManyOthers = 0.01  // of the commands
	littleLow     = 0.95  // X·R̄/(N·P) below: not all requests were in flight
	littleHigh    = 1.05
	hitsDiffer    = 0.01 // in hit ratio, from the sweep's median

	// Fewer reads than this share of the commands may be those of somebody
	// else, whom the gate for other clients lets pass.
	tooFewReads = tooManyOthers
)

// Gates returns the codes of the validity gates that a slice fails, empty for
// one in order. A slice that fails should be measured again.
func Gates(f Facts) []string {
	var codes []string
	add := func(fails bool, code string) {
		if fails {
			codes = append(codes, code)
		}
	}
	add(float64(f.Errors) > tooManyErrors*float64(f.Requests+f.Errors), GateErrors)
	add(outsideLittle(f.Utilisation), GateNotInFlight)
	add(f.Steal > tooMuchSteal, GateSteal)
	add(f.Throttled > 0, GateThrottled)
	add(f.Evictions > 0, GateEvictions)
	add(f.Forks > 0 || f.ChildAtWork, GateFork)
	add(float64(f.Others) > tooManyOthers*float64(f.Commands), GateOtherClients)
	return codes
}

// outsideLittle reports whether the share of the clients that Little's law
// finds in flight is not all of them. False when it is unknown.
func outsideLittle(share Quantity) bool { return share < littleLow || share > littleHigh }

// HitRatio returns the share of reads that found their key, from 0 to 1, out
// of the server's counts over a trial. It is unknown when there were no reads
// to speak of: fewer than 1 % of the commands.
func HitRatio(hits, misses, commands int64) Quantity {
	reads := float64(hits + misses)
	if reads <= 0 || reads < tooFewReads*float64(commands) {
		return Unknown()
	}
	return Quantity(float64(hits) / reads)
}

// HitRatiosDiffer tells for each trial of a sweep, given by its hit ratio,
// whether it fails the gate GateHitRatio: it differs by more than one point
// from the median of all trials. A trial whose hit ratio is unknown passes.
// Unlike the other gates this one needs the whole sweep, and measuring again
// would not mend it: the steps did different work.
func HitRatiosDiffer(hitRatios []Quantity) []bool {
	var known []float64
	for _, h := range hitRatios {
		if h.Known() {
			known = append(known, float64(h))
		}
	}
	differ := make([]bool, len(hitRatios))
	if len(known) == 0 {
		return differ
	}
	middle := median(known)
	for i, h := range hitRatios {
		differ[i] = math.Abs(float64(h)-middle) > hitsDiffer
	}
	return differ
}
