// Package analyze says what may be concluded from a sweep: how noisy it was,
// where the knee is and how sure that is, what stopped the throughput, and
// which pool follows from it.
//
// It is a leaf: it imports nothing of poolsweep, does no I/O, reads no clock
// and draws its random numbers from a fixed seed, so that one curve always
// gives one analysis. Package sweep measures the curves, package importer
// reads them from other tools' files, package report prints the result.
// All thresholds and all verdicts of poolsweep are here; what the other
// packages record are facts. The method is explained in docs/method.md.
//
// Symbols used in the comments: N clients (connections), P pipeline depth,
// X throughput in requests per second, R response time, K trials of a step.
// Times are float64 seconds, shares are ratios from 0 to 1.
package analyze

import (
	"encoding/json"
	"math"
)

// A Quantity is a measured or derived number that may be unknown. Unknown is
// NaN in memory and null in JSON; it is never 0. The zero value is a known 0.
type Quantity float64

// Unknown returns the Quantity of which nothing is known.
func Unknown() Quantity { return Quantity(math.NaN()) }

// Known reports whether q has a value.
func (q Quantity) Known() bool { return !math.IsNaN(float64(q)) && !math.IsInf(float64(q), 0) }

// MarshalJSON writes null for an unknown (or infinite) quantity.
func (q Quantity) MarshalJSON() ([]byte, error) {
	if !q.Known() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(q))
}

// UnmarshalJSON reads null as unknown.
func (q *Quantity) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*q = Unknown()
		return nil
	}
	return json.Unmarshal(b, (*float64)(q))
}

// A Curve is what one sweep measured: the throughput at each number of
// clients, of one test at one pipeline depth.
type Curve struct {
	Test   string // name of the test, for print
	Depth  int    // pipeline depth P; 0 counts as 1
	Points []Point

	// Nodes is the number of masters over which the clients of a cluster
	// were spread evenly; 0 and 1 mean a single server. Node is the master,
	// when the curve is that of one of them and its own clients.
	Nodes int
	Node  string

	// IdleRoundTrip is the shortest round trip to the idle server, in
	// seconds; 0 when it is unknown.
	IdleRoundTrip float64

	// Limit names what keeps the sweep from going to more clients
	// ("--max-clients 400", "the server's maxclients"); empty when nothing
	// does or nothing is known of it.
	Limit string
}

// A Point is one step of a sweep. Points of a Curve may come in any order
// and must have different Clients.
type Point struct {
	Clients int // N, at least 1
	Trials  []Trial
}

// A Trial is one measurement of a step. Of its fields only QPS must be known.
type Trial struct {
	QPS float64 // X, requests per second, above 0

	// Slices are the pieces of which the trial is made, each measured in
	// another pass over the steps. Empty when the trial was measured in one
	// piece or when nothing is known of its pieces: then no pass effect can
	// be removed.
	Slices []Slice

	// Latency in seconds.
	Mean, P50, P99, P999 Quantity

	// LatencyMin is the smallest latency of the trial, in seconds.
	LatencyMin Quantity

	Load Load

	// Invalid holds the validity gates that the trial failed, as codes of
	// Warnings; empty for a trial in order.
	Invalid []string
}

// A Slice is one piece of a trial.
type Slice struct {
	Pass int     // passes are numbered over the whole sweep
	QPS  float64 // requests per second, above 0
}

// Load is what the machines did during a trial. CPU is counted in cores: 1 is
// one core, fully used. Every Quantity is unknown where it could not be
// observed; use UnknownLoad to start from.
type Load struct {
	ServerCPU Quantity // the server process, all threads
	// ServerCPUSeen is the same as the system sees it, when ServerCPU is the
	// server's own word.
	ServerCPUSeen Quantity
	ServerMain    Quantity // the server's main thread, the one that runs commands
	ServerIO      Quantity // the server's io-threads together
	ServerWait    Quantity // the main thread ready to run, but waiting for a core

	GeneratorCPU     Quantity // poolsweep itself, all threads
	GeneratorWait    Quantity // its threads ready to run, but waiting for a core
	GeneratorLoops   int      // event loops, each can use one core; 0 is unknown
	GeneratorCeiling Quantity // requests/s that these loops reach against a null responder

	// Generator names the agent of a fleet that was nearest to its own
	// ceiling, which is then that of the fleet: reached when this one has
	// reached it. Empty when there was but one generator.
	Generator string

	SharedHost bool     // generator and server are on one machine
	HostCPU    Quantity // that host, all processes
	HostCores  int      // cores of that host; 0 is unknown
	Steal      Quantity // cores that the hypervisor gave to others

	Throttled  Quantity // periods in which the server's CPU limit (cgroup) stopped it
	NetworkUse Quantity // bytes/s over the link speed, the busier direction, a ratio
	Packets    Quantity // packets/s, both directions together
	Forks      Quantity // fork or AOF rewrite activity seen: 0 or more
	AOFDelayed Quantity // delayed fsyncs
	Evictions  Quantity // keys evicted
	SwapBytes  Quantity // the server's memory that is swapped out
}

// UnknownLoad returns a Load of which nothing is known.
func UnknownLoad() Load {
	u := Unknown()
	return Load{
		ServerCPU: u, ServerCPUSeen: u, ServerMain: u, ServerIO: u, ServerWait: u,
		GeneratorCPU: u, GeneratorWait: u, GeneratorCeiling: u,
		HostCPU: u, Steal: u, Throttled: u, NetworkUse: u, Packets: u,
		Forks: u, AOFDelayed: u, Evictions: u, SwapBytes: u,
	}
}

// A Warning is something that the reader must know beside the answer. Doubts
// are data, not errors: each has a code, explained in
// docs/reading-a-report.md, and a sentence.
type Warning struct {
	Code string `json:"code"`
	Text string `json:"text"`
}
