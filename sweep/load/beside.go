package load

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrVoid is wrapped by the error of a driver whose job says nothing about the
// server, because something of the generator's own broke, and which can run
// jobs again: a fleet that has lost an agent.
var ErrVoid = errors.New("the measurement is void")

// An Agent is what one generator of a fleet has done inside the windows of a
// Measurement.
type Agent struct {
	Name     string `json:"name"`
	Clients  int    `json:"clients"` // its share of the connections
	Requests int64  `json:"requests"`

	// Capacity is how many requests its calibration lets expect of it in the
	// same time: near Requests, the agent was the limit. 0 is unknown.
	Capacity float64 `json:"capacity,omitempty"`

	// Elapsed is the time over which CPU and host were observed, CPUSeconds
	// what the agent used of it, all threads, and HostBusySeconds what all of
	// its machine did; HostCores is 0 where that is unknown.
	Elapsed         time.Duration `json:"elapsed_ns"`
	CPUSeconds      float64       `json:"cpu_seconds"`
	HostCores       int           `json:"host_cores,omitempty"`
	HostBusySeconds float64       `json:"host_busy_seconds,omitempty"`

	// Skew is how long after the earliest agent its window began, give or take
	// SkewError, half of the round trip by which it is known; of several
	// windows the longest.
	Skew      time.Duration `json:"start_skew_ns"`
	SkewError time.Duration `json:"start_skew_error_ns"`

	Connect  time.Duration `json:"connect_ns"`
	BytesOut int64         `json:"bytes_out"`
	BytesIn  int64         `json:"bytes_in"`
}

// Use returns which share of what its calibration lets expect an agent has
// sent; 0 when that is unknown.
func (a Agent) Use() float64 {
	if a.Capacity <= 0 {
		return 0
	}
	return float64(a.Requests) / a.Capacity
}

// mergeAgents adds what agents of the same name did in another window.
func mergeAgents(m, o []Agent) []Agent {
	m = slices.Clone(m)
	for _, a := range o {
		i := slices.IndexFunc(m, func(b Agent) bool { return b.Name == a.Name })
		if i < 0 {
			m = append(m, a)
			continue
		}
		b := &m[i]
		b.Clients = max(b.Clients, a.Clients)
		b.Requests += a.Requests
		b.Capacity += a.Capacity
		b.Elapsed += a.Elapsed
		b.CPUSeconds += a.CPUSeconds
		b.HostCores = max(b.HostCores, a.HostCores)
		b.HostBusySeconds += a.HostBusySeconds
		b.Skew, b.SkewError = max(b.Skew, a.Skew), max(b.SkewError, a.SkewError)
		b.Connect += a.Connect
		b.BytesOut += a.BytesOut
		b.BytesIn += a.BytesIn
	}
	return m
}

// Beside returns what generators have measured that ran side by side in one
// window, each with a share of the connections: counts, clients and loops add
// up, histograms are merged by counts, and the window is not longer than that
// of one. There must be one measurement at least, all of one pipeline depth.
//
// The windows may lie some milliseconds apart. As long as everybody loads
// until the last one has ended, the rates are those of the same load and may
// be added. Windows that a quota has ended differ in length; then Elapsed is
// the longest.
func Beside(all ...*Measurement) (*Measurement, error) {
	if len(all) == 0 {
		return nil, errors.New("merging measurements side by side: there is none")
	}
	sum := all[0].Clone()
	for _, m := range all[1:] {
		if m.Depth != sum.Depth {
			return nil, fmt.Errorf("merging measurements side by side: pipeline depths %d and %d", sum.Depth, m.Depth)
		}
		o := m.Clone()
		clients, elapsed, loops := sum.Clients+o.Clients, max(sum.Elapsed, o.Elapsed), sum.Loops+o.Loops
		connect, intervals := max(sum.Connect, o.Connect), besideIntervals(sum.Intervals, o.Intervals)
		nodes := besideClients(sum.Nodes, o.Nodes)
		o.Step = sum.Step
		if err := sum.Merge(o); err != nil {
			return nil, err
		}
		sum.Clients, sum.Elapsed, sum.Loops = clients, elapsed, loops
		sum.Connect, sum.Intervals = connect, intervals
		for i := range sum.Nodes {
			sum.Nodes[i].Clients = nodes[sum.Nodes[i].Name]
		}
	}
	return sum, nil
}

// besideIntervals adds the requests of the same tenth of a second.
func besideIntervals(a, b []int64) []int64 {
	if len(a) < len(b) {
		a, b = b, a
	}
	sum := slices.Clone(a)
	for i, n := range b {
		sum[i] += n
	}
	return sum
}

// besideClients adds the connections to each node.
func besideClients(all ...[]Part) map[string]int {
	clients := make(map[string]int)
	for _, parts := range all {
		for _, p := range parts {
			clients[p.Name] += p.Clients
		}
	}
	return clients
}
