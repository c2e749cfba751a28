package report

import "github.com/poolsweep/poolsweep/analyze"

// advice says what to do about each warning, in a sentence or two; at length it
// stands in docs/reading-a-report.md.
var advice = map[string]string{
	analyze.WarnNoisy:          "Stop what else runs on the two machines, take more trials (--trials 5) or longer ones (--duration 2s).",
	analyze.WarnTooNoisy:       "Find what else uses the machines or the network, then sweep again; more trials alone do not mend this.",
	analyze.WarnNoiseUnknown:   "Take three trials a step, or import the trials and not only their mean.",
	analyze.WarnPassEffect:     "Compare rows by the column adjusted. If it differs much from QPS, sweep again in a quieter hour.",
	analyze.WarnFirstLevel:     "Add lower levels: -c 1,2,5,10:110:10.",
	analyze.WarnIsolatedPeak:   "Measure the peak and its neighbours again before acting on --goal peak.",
	analyze.WarnSoftKnee:       "Choose from the range: few connections where latency counts, more where throughput does. --target-qps gives a firmer answer.",
	analyze.WarnFewLevels:      "Measure more levels around the knee.",
	analyze.WarnContested:      "Raise --budget for more trials there, or take the upper end of the range if too small a pool would be the costlier mistake.",
	analyze.WarnLimitReached:   "Raise that limit and sweep again.",
	analyze.WarnGeneratorBound: "Give the generator more event loops (--threads) or a machine of its own; if it has all cores, sweep at the pipeline depth of the application.",
	analyze.WarnGeneratorLate:  "Leave the generator a core of its own, use fewer event loops (--threads), or measure from another machine.",
	analyze.WarnRatesDisagree:  "Measure again on a quiet machine, or longer (--duration 5s); the highest rate may be more than is named.",
	analyze.WarnCPUStarved:     "Stop what else runs, give the generator fewer event loops (--threads), or use two machines.",
	analyze.WarnCPUDisagree:    "Do not trust the CPU of the server, nor what is said to have stopped it, before the reason is found.",
	analyze.WarnUnusableTrials: "Look at how these trials were measured.",

	analyze.GateErrors:       "Look at the text of the first error of each kind, in the result file; the throughput means little until they are gone.",
	analyze.GateNotInFlight:  "Do not trust these latencies; if the clients idled, the server had less to do than the row says.",
	analyze.GateSteal:        "Sweep again at another time or on a machine with its own cores.",
	analyze.GateThrottled:    "Raise the CPU limit of the server's container, or keep the answer if production has the same limit.",
	analyze.GateEvictions:    "Raise maxmemory, or sweep with fewer keys (-r) or smaller values (-d).",
	analyze.GateFork:         "Sweep with snapshots and rewrites off, or accept them as part of the load when production does the same all day.",
	analyze.GateOtherClients: "Sweep a server that is not in use.",
	analyze.GateHitRatio:     "Make sure that keys are there for the whole sweep and do not expire.",
	analyze.GateLost:         "See what is between the generator and the server: a proxy, a firewall, a link that stalls.",
	analyze.GateVoid:         "See why the agent was lost, and whether those that are left were the limit.",
	analyze.GateUnsteady:     "Measure longer (--duration) and warm up longer (--warmup).",
}
