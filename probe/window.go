package probe

import (
	"slices"
	"time"
)

// A Window is what was observed between two samples: differences of counters,
// not rates, so that windows of one step can be merged by adding. Groups and
// fields that could not be observed are nil. Its JSON form is part of the
// result file.
type Window struct {
	Elapsed   time.Duration   `json:"elapsed_ns"` // by this machine's clock
	Generator GeneratorWindow `json:"generator"`
	Server    *ServerWindow   `json:"server,omitempty"`  // from INFO
	Process   *ProcessWindow  `json:"process,omitempty"` // from this machine's system
	Host      *HostWindow     `json:"host,omitempty"`    // this machine
	Network   *NetworkWindow  `json:"network,omitempty"`
	CPULimit  *CPULimitWindow `json:"cpu_limit,omitempty"` // of the server's process, by control groups

	// Nodes are the masters of a cluster, nil for a single server. Server,
	// Process and CPULimit are then their sums, and absent when one is.
	Nodes []NodeWindow `json:"nodes,omitempty"`
}

// A NodeWindow is what was observed of one master of a cluster.
type NodeWindow struct {
	Addr     string          `json:"addr"`
	Server   *ServerWindow   `json:"server,omitempty"`
	Process  *ProcessWindow  `json:"process,omitempty"`
	CPULimit *CPULimitWindow `json:"cpu_limit,omitempty"`
}

// A GeneratorWindow is poolsweep's own use of the machine.
type GeneratorWindow struct {
	CPUSeconds  float64  `json:"cpu_seconds"`            // all threads
	WaitSeconds *float64 `json:"wait_seconds,omitempty"` // ready to run, but no core was free; all threads
	MaxRSSBytes int64    `json:"max_rss_bytes"`          // the most memory held so far
}

// A ServerWindow is what INFO tells of the server.
type ServerWindow struct {
	Elapsed          time.Duration `json:"elapsed_ns"` // between the two INFOs, by the server's clock if it tells it
	CPUSeconds       *float64      `json:"cpu_seconds,omitempty"`
	MainCPUSeconds   *float64      `json:"main_cpu_seconds,omitempty"` // Redis 6.2 and later
	Commands         int64         `json:"commands"`
	Hits             int64         `json:"hits"`
	Misses           int64         `json:"misses"`
	Evictions        int64         `json:"evictions"`
	Expired          int64         `json:"expired"`
	RejectedClients  int64         `json:"rejected_clients"`
	Forks            int64         `json:"forks"`
	DelayedFsyncs    int64         `json:"delayed_fsyncs"`
	BytesReceived    int64         `json:"bytes_received"`
	BytesSent        int64         `json:"bytes_sent"`
	ConnectedClients int64         `json:"connected_clients"` // at the end of the window, as what follows
	BlockedClients   int64         `json:"blocked_clients"`
	UsedMemoryBytes  int64         `json:"used_memory_bytes"`
	RSSBytes         int64         `json:"rss_bytes"`
	ChildAtWork      bool          `json:"child_at_work"` // an RDB save or an AOF rewrite runs

	FragmentationRatio float64 `json:"fragmentation_ratio"`
}

// A ProcessWindow is the server's process as this machine's system sees it.
// Its CPU times are counted in ticks, mostly of 10 ms.
type ProcessWindow struct {
	CPUSeconds      float64  `json:"cpu_seconds"`
	MainCPUSeconds  float64  `json:"main_cpu_seconds"`
	IOCPUSeconds    float64  `json:"io_cpu_seconds"` // its io-threads
	SystemSeconds   float64  `json:"system_seconds"` // the part of CPUSeconds spent in the kernel
	MainWaitSeconds *float64 `json:"main_wait_seconds,omitempty"`
	RSSBytes        int64    `json:"rss_bytes"` // at the end of the window, as what follows
	SwapBytes       *int64   `json:"swap_bytes,omitempty"`
}

// A HostWindow is all of this machine.
type HostWindow struct {
	Cores        int     `json:"cores"`
	BusySeconds  float64 `json:"busy_seconds"` // all cores together
	StealSeconds float64 `json:"steal_seconds"`

	// Parts of BusySeconds.
	UserSeconds    float64 `json:"user_seconds"`
	SystemSeconds  float64 `json:"system_seconds"`
	SoftIRQSeconds float64 `json:"softirq_seconds"` // mostly the network's
}

// A NetworkWindow is what the interface towards the server carried, of
// everybody.
type NetworkWindow struct {
	Interface       string `json:"interface"`
	BytesSent       int64  `json:"bytes_sent"`
	BytesReceived   int64  `json:"bytes_received"`
	PacketsSent     int64  `json:"packets_sent"`
	PacketsReceived int64  `json:"packets_received"`

	// SpeedBitsPerSec is the speed of the link, of each direction; nil where
	// the system does not know it, as for loopback and most virtual machines.
	SpeedBitsPerSec *int64 `json:"speed_bits_per_sec,omitempty"`
}

// A CPULimitWindow is what the control groups of the server's process allow
// it: its own group and those above it. Other processes may be in them.
type CPULimitWindow struct {
	LimitCores       *float64 `json:"limit_cores,omitempty"` // the lowest limit; nil when there is none
	Throttled        int64    `json:"throttled_periods"`     // in which a group had used up its share and was stopped
	ThrottledSeconds float64  `json:"throttled_seconds"`     // for how long, of all cores together
}

// Merge adds what was observed in o. A group that one of the two lacks is
// dropped: half a sum would be a wrong one.
func (w *Window) Merge(o *Window) {
	w.Elapsed += o.Elapsed
	w.Generator.CPUSeconds += o.Generator.CPUSeconds
	w.Generator.WaitSeconds = addKnown(w.Generator.WaitSeconds, o.Generator.WaitSeconds)
	w.Generator.MaxRSSBytes = max(w.Generator.MaxRSSBytes, o.Generator.MaxRSSBytes)
	w.Server = merge(w.Server, o.Server, (*ServerWindow).add)
	w.Process = merge(w.Process, o.Process, (*ProcessWindow).add)
	w.Host = merge(w.Host, o.Host, (*HostWindow).add)
	w.Network = merge(w.Network, o.Network, (*NetworkWindow).add)
	w.CPULimit = merge(w.CPULimit, o.CPULimit, (*CPULimitWindow).add)
	w.Nodes = mergeNodes(w.Nodes, o.Nodes)
}

// mergeNodes merges the nodes of the same address; one that is not in both is
// dropped.
func mergeNodes(a, b []NodeWindow) []NodeWindow {
	var merged []NodeWindow
	for _, n := range a {
		i := slices.IndexFunc(b, func(o NodeWindow) bool { return o.Addr == n.Addr })
		if i < 0 {
			continue
		}
		n.Server = merge(n.Server, b[i].Server, (*ServerWindow).add)
		n.Process = merge(n.Process, b[i].Process, (*ProcessWindow).add)
		n.CPULimit = merge(n.CPULimit, b[i].CPULimit, (*CPULimitWindow).add)
		merged = append(merged, n)
	}
	return merged
}

// sumNodes makes Server, Process and CPULimit the sums over Nodes, of which
// there is one at least.
func (w *Window) sumNodes() {
	w.Server, w.Process, w.CPULimit = clone(w.Nodes[0].Server), clone(w.Nodes[0].Process), clone(w.Nodes[0].CPULimit)
	for _, n := range w.Nodes[1:] {
		w.Server = merge(w.Server, n.Server, (*ServerWindow).join)
		w.Process = merge(w.Process, n.Process, (*ProcessWindow).join)
		// Groups that have several nodes in them count once for each.
		w.CPULimit = merge(w.CPULimit, n.CPULimit, (*CPULimitWindow).add)
	}
	if w.Server != nil {
		w.Server.Elapsed /= time.Duration(len(w.Nodes)) // the mean: they ran side by side
	}
}

// Clone returns a copy that shares nothing with w.
func (w *Window) Clone() *Window {
	c := *w
	c.Server, c.Process, c.Host, c.Network = clone(w.Server), clone(w.Process), clone(w.Host), clone(w.Network)
	c.CPULimit = clone(w.CPULimit)
	c.Nodes = slices.Clone(w.Nodes)
	for i, n := range c.Nodes {
		c.Nodes[i].Server, c.Nodes[i].Process, c.Nodes[i].CPULimit = clone(n.Server), clone(n.Process), clone(n.CPULimit)
	}
	return &c
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

func merge[T any](a, b *T, add func(a, b *T)) *T {
	if a == nil || b == nil {
		return nil
	}
	add(a, b)
	return a
}

func addKnown(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	return known(*a + *b)
}

// add adds what the same server did in another window.
func (w *ServerWindow) add(o *ServerWindow) {
	w.Elapsed += o.Elapsed
	w.CPUSeconds = addKnown(w.CPUSeconds, o.CPUSeconds)
	w.MainCPUSeconds = addKnown(w.MainCPUSeconds, o.MainCPUSeconds)
	w.Commands += o.Commands
	w.Hits += o.Hits
	w.Misses += o.Misses
	w.Evictions += o.Evictions
	w.Expired += o.Expired
	w.RejectedClients += o.RejectedClients
	w.Forks += o.Forks
	w.DelayedFsyncs += o.DelayedFsyncs
	w.BytesReceived += o.BytesReceived
	w.BytesSent += o.BytesSent
	w.ConnectedClients = max(w.ConnectedClients, o.ConnectedClients)
	w.BlockedClients = max(w.BlockedClients, o.BlockedClients)
	w.UsedMemoryBytes = max(w.UsedMemoryBytes, o.UsedMemoryBytes)
	w.RSSBytes = max(w.RSSBytes, o.RSSBytes)
	w.ChildAtWork = w.ChildAtWork || o.ChildAtWork
	w.FragmentationRatio = max(w.FragmentationRatio, o.FragmentationRatio)
}

// join adds what another server did in the same window: clients and memory,
// of which add keeps the highest, add up. The elapsed times do as in add.
func (w *ServerWindow) join(o *ServerWindow) {
	clients, blocked := w.ConnectedClients+o.ConnectedClients, w.BlockedClients+o.BlockedClients
	memory, rss := w.UsedMemoryBytes+o.UsedMemoryBytes, w.RSSBytes+o.RSSBytes
	w.add(o)
	w.ConnectedClients, w.BlockedClients, w.UsedMemoryBytes, w.RSSBytes = clients, blocked, memory, rss
}

// add adds what the same process did in another window.
func (w *ProcessWindow) add(o *ProcessWindow) {
	w.CPUSeconds += o.CPUSeconds
	w.MainCPUSeconds += o.MainCPUSeconds
	w.IOCPUSeconds += o.IOCPUSeconds
	w.SystemSeconds += o.SystemSeconds
	w.MainWaitSeconds = addKnown(w.MainWaitSeconds, o.MainWaitSeconds)
	w.RSSBytes = max(w.RSSBytes, o.RSSBytes)
	w.SwapBytes = merge(clone(w.SwapBytes), o.SwapBytes, func(a, b *int64) { *a = max(*a, *b) })
}

// join adds what another process did in the same window.
func (w *ProcessWindow) join(o *ProcessWindow) {
	rss := w.RSSBytes + o.RSSBytes
	swap := merge(clone(w.SwapBytes), o.SwapBytes, func(a, b *int64) { *a += *b })
	w.add(o)
	w.RSSBytes, w.SwapBytes = rss, swap
}

func (w *HostWindow) add(o *HostWindow) {
	w.BusySeconds += o.BusySeconds
	w.StealSeconds += o.StealSeconds
	w.UserSeconds += o.UserSeconds
	w.SystemSeconds += o.SystemSeconds
	w.SoftIRQSeconds += o.SoftIRQSeconds
}

func (w *NetworkWindow) add(o *NetworkWindow) {
	w.BytesSent += o.BytesSent
	w.BytesReceived += o.BytesReceived
	w.PacketsSent += o.PacketsSent
	w.PacketsReceived += o.PacketsReceived
	w.SpeedBitsPerSec = merge(clone(w.SpeedBitsPerSec), o.SpeedBitsPerSec, func(a, b *int64) { *a = min(*a, *b) })
}

// add keeps the lower limit.
func (w *CPULimitWindow) add(o *CPULimitWindow) {
	if o.LimitCores != nil && (w.LimitCores == nil || *o.LimitCores < *w.LimitCores) {
		w.LimitCores = o.LimitCores
	}
	w.Throttled += o.Throttled
	w.ThrottledSeconds += o.ThrottledSeconds
}
