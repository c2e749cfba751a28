package analyze

// Facts are what the validity gates look at in one slice of a trial.
type Facts struct {
	Requests, Errors int64 // in the window; Errors also counts lost requests

	// Utilisation is X·R̄/(N·P), R̄ the mean time from writing a batch to its
	// last reply.
	Utilisation Quantity

	Steal       Quantity // share of the host's CPU time that the hypervisor took
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
	add(f.Evictions > 0, GateEvictions)
	add(f.Forks > 0 || f.ChildAtWork, GateFork)
	add(float64(f.Others) > tooManyOthers*float64(f.Commands), GateOtherClients)
	return codes
}

// outsideLittle reports whether the share of the clients that Little's law
// finds in flight is not all of them. False when it is unknown.
func outsideLittle(share Quantity) bool { return share < littleLow || share > littleHigh }
