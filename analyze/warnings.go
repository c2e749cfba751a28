package analyze

import (
	"fmt"
	"math"
	"slices"
)

// Codes of the warnings that an Analysis carries. Each is explained in
// docs/reading-a-report.md.
const (
	// WarnNoisy: σ is above 5 %. Levels closer than that cannot be told
	// apart. Stop what else runs on the machines, or take more trials.
	WarnNoisy = "noisy"

	// WarnTooNoisy: σ is above 12 %. No knee is named. Find out what else
	// uses the machines or the network before sweeping again.
	WarnTooNoisy = "too-noisy"

	// WarnNoiseUnknown: every step has a single trial, so nothing says how
	// far a second one would be off. The knee is that of the numbers as they
	// stand, without confidence. Take three trials a step.
	WarnNoiseUnknown = "noise-unknown"

	// WarnPassEffect: the speed of the machine moved by more than 20 %
	// between the passes. That was taken out before judging, but printed
	// rows are as measured and may not compare well with each other.
	WarnPassEffect = "pass-effect"

	// WarnFirstLevel: the knee is the first level that was measured and may
	// lie below it. Add lower levels.
	WarnFirstLevel = "first-level"

	// WarnIsolatedPeak: the highest level stands alone between two that are
	// clearly lower. It may be luck; give it and its neighbours more trials.
	WarnIsolatedPeak = "isolated-peak"

	// WarnSoftKnee: the throughput bends so slowly that no level can claim to
	// be the knee. Choose from the range, or by latency.
	WarnSoftKnee = "soft-knee"

	// WarnFewLevels: fewer than five levels were measured, so the knee may
	// lie anywhere between two of them. Measure more levels around it.
	WarnFewLevels = "few-levels"

	// WarnContested: for some levels the noise leaves open whether they reach
	// the plateau. More trials at these levels decide it.
	WarnContested = "contested"

	// WarnLimitReached: the sweep would have gone on to more clients, but
	// something kept it from doing so. Raise that limit.
	WarnLimitReached = "limit-reached"

	// WarnGeneratorBound: the load generator was the limit, not the server.
	// Give it more cores or machines.
	WarnGeneratorBound = "generator-bound"

	// WarnGeneratorLate: at some rate of an open loop the generator sent so late
	// that its lateness may be most of the p99. Give it a core of its own, or
	// another machine.
	WarnGeneratorLate = "generator-late"

	// WarnRatesDisagree: in an open loop a higher rate went better than a lower
	// one, which a server alone does not do. Measure again when the machine is
	// quiet, or longer.
	WarnRatesDisagree = "rates-disagree"

	// WarnCPUStarved: server or generator waited for a core that something
	// else used. Give them cores of their own.
	WarnCPUStarved = "cpu-starved"

	// WarnCPUDisagree: INFO and the system differ by more than 10 points of a
	// core on the server's CPU. One of them looks at another process, or the
	// server's clock is off; do not trust either.
	WarnCPUDisagree = "cpu-disagree"

	// WarnUnusableTrials: trials without a throughput above 0, or with no
	// clients, were left out. Look at how they were measured.
	WarnUnusableTrials = "unusable-trials"
)

// Codes of the validity gates of a trial, as found in Trial.Invalid. They
// become warnings of the same code. A trial that failed one is still judged,
// but the answer is no longer HIGH.
const (
	// GateErrors: more than 0.1 % of the requests failed. See which errors
	// they are; throughput of failing requests means little.
	GateErrors = "errors"

	// GateNotInFlight: by Little's law, the requests that were measured to be
	// in flight are not as many as the clients should have had (X·R̄/(N·P) is
	// outside 0.95…1.05). Below: clients idled or the generator held requests
	// back. Above: latency and clients do not belong together. poolsweep also
	// finds this itself, at the knee and at the peak.
	GateNotInFlight = "not-in-flight"

	// GateSteal: the hypervisor gave more than 1 % of the time to other
	// machines. Sweep again at another time, or on a machine with its own cores.
	GateSteal = "steal"

	// GateThrottled: the server's CPU limit stopped it. Raise the limit,
	// unless production has the same.
	GateThrottled = "throttled"

	// GateEvictions: the server evicted keys. Raise maxmemory.
	GateEvictions = "evictions"

	// GateFork: a snapshot or an AOF rewrite ran. Sweep without, or accept it
	// as part of the load.
	GateFork = "fork"

	// GateOtherClients: other clients sent more than 1 % of the commands.
	// Sweep a server that is not in use.
	GateOtherClients = "other-clients"

	// GateHitRatio: the share of GETs that found their key differs by more
	// than one point from other steps, so the steps did different work.
	GateHitRatio = "hit-ratio"

	// GateUnsteady: the throughput had not settled during the trial. Measure
	// longer.
	GateUnsteady = "unsteady"

	// GateVoid: an agent of the fleet was lost, or the connection to NATS was
	// cut, and the slice was measured again with the agents that were left.
	// See why; fewer agents reach less.
	GateVoid = "agent-lost"

	// GateLost: every connection was lost, or nothing was answered for a whole
	// slice, the server itself went on, and the slice was measured again. See
	// what is between generator and server.
	GateLost = "connections-lost"
)

// gateTexts says what each gate found, to follow "2 trials at 10, 20 clients: ".
// Its order is that of the warnings.
var gateTexts = []struct{ code, text string }{
	{GateErrors, "more than 0.1 % of the requests failed"},
	{GateNotInFlight, "requests were not kept in flight, so clients are not what the server saw"},
	{GateSteal, "the hypervisor took more than 1 % of the time"},
	{GateThrottled, "the server's CPU limit throttled it"},
	{GateEvictions, "the server evicted keys"},
	{GateFork, "a snapshot or an AOF rewrite ran"},
	{GateOtherClients, "other clients sent more than 1 % of the commands"},
	{GateHitRatio, "the hit ratio differs from other steps"},
	{GateUnsteady, "the throughput had not settled"},
	{GateVoid, "an agent of the fleet was lost or cut off, and the rest measured it again"},
	{GateLost, "all connections were lost or silent at once, and it was measured again"},
}

const (
	noisySigma    = 0.05
	movingMachine = 0.20 // pass effect from which rows may not compare
	fewLevels     = 5
	cpuDisagrees  = 0.10 // cores
)

// warnings collects what the reader must know beside the answer.
func (a *Analysis) warnings(t *table, f finding, contested []int, limit string) []Warning {
	var ws []Warning
	add := func(holds bool, code, format string, args ...any) {
		if holds {
			ws = append(ws, Warning{code, fmt.Sprintf(format, args...)})
		}
	}
	k, sigma := a.Knee, a.Noise.Sigma
	open := f.shape == ShapeRising || f.shape == ShapeUnconfirmed
	cause := a.Bottleneck.Cause
	add(cause == CauseGenerator, WarnGeneratorBound,
		"the generator was the limit, not the server: no knee of the server can be named")
	add(cause == CauseSharedCPU, WarnCPUStarved,
		"server and generator did not get the CPU they asked for: the curve is not the server's alone")
	add(sigma > tooNoisySigma, WarnTooNoisy,
		"the trials of a step scatter by σ = %s: too noisy to name a knee", percent(sigma))
	add(sigma > noisySigma && sigma <= tooNoisySigma, WarnNoisy,
		"the trials of a step scatter by σ = %s: levels closer than that cannot be told apart", percent(sigma))
	add(!sigma.Known(), WarnNoiseUnknown,
		"one trial a step: the noise is unknown, so no confidence is stated")
	add(a.Noise.PassEffect > movingMachine, WarnPassEffect,
		"the machine's speed moved by %s between passes; judged with that taken out, printed as measured", percent(a.Noise.PassEffect))
	add(open && limit != "", WarnLimitReached, "%s kept the sweep from going beyond %d clients", limit, int(t.n[len(t.n)-1]))
	add(k.AtFirst && !open, WarnFirstLevel,
		"%d clients, the first level, already give the plateau's throughput: the knee may lie below", k.Apparent)
	add(k.Isolated, WarnIsolatedPeak, "the peak at %d clients stands out between its neighbours: it may be luck", k.Peak)
	add(k.Spike > 0, WarnIsolatedPeak, "the throughput at %d clients stands out above levels that agree with one another on both sides: "+
		"it was taken for luck and not for the peak", k.Spike)
	add(k.Soft && !open, WarnSoftKnee, "the throughput bends slowly, from about %d clients on: only a range can be given", k.Power)
	add(len(t.n) < fewLevels, WarnFewLevels, "only %s measured: the knee may lie anywhere between two of them", count(len(t.n), "level"))
	add(len(contested) > 0 && k.Clients != 0, WarnContested,
		"noise leaves open whether %s reach the plateau", t.clientList(contested))
	if seen := t.representativeTrial(f.knee).Load; seen.disagrees() {
		add(true, WarnCPUDisagree, "at %s INFO says that the server used %s of a core, the system %s",
			count(k.Apparent, "client"), percent(seen.ServerCPU), percent(seen.ServerCPUSeen))
	}
	if t.dropped > 0 {
		ws = append(ws, t.unusable())
	}
	return ws
}

// disagrees reports whether the two sources of the server's CPU differ.
func (l Load) disagrees() bool {
	return math.Abs(float64(l.ServerCPU-l.ServerCPUSeen)) > cpuDisagrees
}

// unusable is the warning of trials that were left out.
func (t *table) unusable() Warning {
	return Warning{WarnUnusableTrials, count(t.dropped, "trial") + " without a usable throughput left out"}
}

// gateWarnings has one warning for each gate that trials failed.
func (t *table) gateWarnings(f finding) []Warning {
	trials := make(map[string]int)
	levels := make(map[string][]int)
	var unlisted []string
	mark := func(code string, level int) {
		trials[code]++
		if ls := levels[code]; len(ls) == 0 || ls[len(ls)-1] != level {
			levels[code] = append(ls, level)
		}
		if gateText(code) == "" && trials[code] == 1 {
			unlisted = append(unlisted, code)
		}
	}
	for i, p := range t.points {
		for j, trial := range p.Trials {
			for _, code := range trial.Invalid {
				mark(code, i)
			}
			relevant := (i == f.knee || i == f.peak) && j == t.representative(i)
			if relevant && t.notInFlight(i) && !slices.Contains(trial.Invalid, GateNotInFlight) {
				mark(GateNotInFlight, i)
			}
		}
	}
	var ws []Warning
	warn := func(code, text string) {
		if trials[code] > 0 {
			ws = append(ws, Warning{code, fmt.Sprintf("%s at %s: %s", count(trials[code], "trial"), t.clientList(levels[code]), text)})
		}
	}
	for _, g := range gateTexts {
		warn(g.code, g.text)
	}
	for _, code := range unlisted {
		warn(code, "marked "+code)
	}
	return ws
}

// gateText returns what the gate of that code found, "" for a code that is
// not one of ours.
func gateText(code string) string {
	for _, g := range gateTexts {
		if g.code == code {
			return g.text
		}
	}
	return ""
}

// clientList names levels, given by index: "10, 20 clients".
func (t *table) clientList(levels []int) string {
	var clients []int
	for _, i := range levels {
		clients = append(clients, t.points[i].Clients)
	}
	return clientList(clients)
}
