package probe

import "time"

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
	MainWaitSeconds *float64 `json:"main_wait_seconds,omitempty"`
	RSSBytes        int64    `json:"rss_bytes"` // at the end of the window, as what follows
	SwapBytes       *int64   `json:"swap_bytes,omitempty"`
}

// A HostWindow is all of this machine.
type HostWindow struct {
	Cores        int     `json:"cores"`
	BusySeconds  float64 `json:"busy_seconds"` // all cores together
	StealSeconds float64 `json:"steal_seconds"`
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
}

// Clone returns a copy that shares nothing with w.
func (w *Window) Clone() *Window {
	c := *w
	c.Server, c.Process, c.Host, c.Network = clone(w.Server), clone(w.Process), clone(w.Host), clone(w.Network)
	c.CPULimit = clone(w.CPULimit)
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

func (w *ProcessWindow) add(o *ProcessWindow) {
	w.CPUSeconds += o.CPUSeconds
	w.MainCPUSeconds += o.MainCPUSeconds
	w.IOCPUSeconds += o.IOCPUSeconds
	w.MainWaitSeconds = addKnown(w.MainWaitSeconds, o.MainWaitSeconds)
	w.RSSBytes = max(w.RSSBytes, o.RSSBytes)
	w.SwapBytes = merge(clone(w.SwapBytes), o.SwapBytes, func(a, b *int64) { *a = max(*a, *b) })
}

func (w *HostWindow) add(o *HostWindow) {
	w.BusySeconds += o.BusySeconds
	w.StealSeconds += o.StealSeconds
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
