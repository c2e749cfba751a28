package probe

import (
	"context"
	"path/filepath"
	"sync"
	"time"
)

// A Sampler reads the counters of the server, its process, the host, the
// network and the generator; of a cluster those of every master. Two Samples
// make a Window.
type Sampler struct {
	nodes   []*nodeSampler // one for a single server
	cluster bool
	nic     string // empty when there is none
	speed   *int64 // of nic, bits/s; nil when it is unknown
	cores   int
}

// A nodeSampler reads the counters of one server and its process.
type nodeSampler struct {
	server  *Server
	process *osProcess // nil when it is not on this machine
	groups  []cpuGroup // of the process; empty when they cannot be seen
}

// NewSampler returns a sampler of s, which must outlive it.
func NewSampler(s *Server) *Sampler {
	sm := &Sampler{nic: interfaceTo(s.Target), cores: hostCores(), cluster: len(s.Nodes) > 0}
	if speed, ok := linkSpeed(filepath.Join("/sys/class/net", sm.nic)); sm.nic != "" && ok {
		sm.speed = &speed
	}
	servers := s.Nodes
	if !sm.cluster {
		servers = []*Server{s}
	}
	for _, server := range servers {
		n := &nodeSampler{server: server}
		if server.Identity.Local {
			n.process = serverProcess(server.Identity.PID, server.Target)
		}
		if n.process != nil {
			n.groups = cpuGroups(int(n.process.Pid))
		}
		sm.nodes = append(sm.nodes, n)
	}
	return sm
}

// A Sample is every counter at one moment. What could not be read is absent.
type Sample struct {
	at         time.Time
	nodes      []nodeSample // as Sampler.nodes
	host       hostTimes
	hasHost    bool
	network    networkCounters
	hasNetwork bool
	ownCPU     float64
	ownRSS     int64
	ownWait    float64
	hasOwnWait bool
}

// A nodeSample is every counter of one server and its process.
type nodeSample struct {
	info       info
	infoAt     time.Time // when INFO was answered, by the server's clock if it tells it
	process    processTimes
	hasProcess bool
	wait       float64
	hasWait    bool
	limit      cpuLimit
	hasLimit   bool
}

// Sample reads every counter. It costs one INFO on each server and about a
// millisecond of CPU.
func (s *Sampler) Sample(ctx context.Context) *Sample {
	x := &Sample{at: time.Now(), nodes: make([]nodeSample, len(s.nodes))}
	x.ownCPU, x.ownRSS = ownUsage()
	x.ownWait, x.hasOwnWait = ownRunQueueWait()
	for i, n := range s.nodes {
		n.readProcess(&x.nodes[i])
	}
	x.host, x.hasHost = readHost()
	if s.nic != "" {
		x.network, x.hasNetwork = readNetwork(s.nic)
	}
	// INFO comes last, as it has to wait its turn behind the load.
	s.each(func(i int, n *nodeSampler) { n.readInfo(ctx, &x.nodes[i]) })
	return x
}

// each calls f for every node, all at once: each waits for its server.
func (s *Sampler) each(f func(i int, n *nodeSampler)) {
	if len(s.nodes) == 1 {
		f(0, s.nodes[0])
		return
	}
	var wg sync.WaitGroup
	for i, n := range s.nodes {
		wg.Go(func() { f(i, n) })
	}
	wg.Wait()
}

func (n *nodeSampler) readProcess(x *nodeSample) {
	if n.process == nil {
		return
	}
	x.process, x.hasProcess = readProcess(n.process)
	x.wait, x.hasWait = runQueueWait(int(n.process.Pid), int(n.process.Pid))
	x.limit, x.hasLimit = readCPULimit(n.groups)
}

func (n *nodeSampler) readInfo(ctx context.Context, x *nodeSample) {
	text, err := n.server.Client.Info(ctx).Result()
	if err != nil {
		return
	}
	x.info, x.infoAt = parseInfo(text), time.Now()
	if us := x.info.int("server_time_usec"); us > 0 {
		x.infoAt = time.UnixMicro(us)
	}
}

// Commands returns how many commands the server has processed since its start,
// of a cluster all masters together; false when one does not tell. It is
// cheaper than a Sample.
func (s *Sampler) Commands(ctx context.Context) (int64, bool) {
	counts := make([]int64, len(s.nodes))
	s.each(func(i int, n *nodeSampler) { counts[i] = n.commands(ctx) })
	var sum int64
	for _, c := range counts {
		if c == 0 {
			return 0, false
		}
		sum += c
	}
	return sum, true
}

// commands returns the count of one server, 0 when it does not tell. A server
// that has answered us cannot have processed none: Garnet says so when its
// metrics are off.
func (n *nodeSampler) commands(ctx context.Context) int64 {
	text, err := n.server.Client.Info(ctx, "stats").Result()
	if err != nil {
		return 0
	}
	return parseInfo(text).int("total_commands_processed")
}

// Between returns what has happened from sample a to the later sample b, both
// of this sampler.
func (s *Sampler) Between(a, b *Sample) *Window {
	w := &Window{
		Elapsed: b.at.Sub(a.at),
		Generator: GeneratorWindow{
			CPUSeconds:  b.ownCPU - a.ownCPU,
			MaxRSSBytes: b.ownRSS,
		},
	}
	if a.hasOwnWait && b.hasOwnWait {
		w.Generator.WaitSeconds = known(max(0, b.ownWait-a.ownWait)) // a thread that ended takes its wait along
	}
	nodes := make([]NodeWindow, len(s.nodes))
	for i, n := range s.nodes {
		nodes[i] = nodeWindow(n.server.Target.Addr(), &a.nodes[i], &b.nodes[i])
	}
	if s.cluster {
		w.Nodes = nodes
		w.sumNodes()
	} else {
		w.Server, w.Process, w.CPULimit = nodes[0].Server, nodes[0].Process, nodes[0].CPULimit
	}
	if a.hasHost && b.hasHost && s.cores > 0 {
		w.Host = hostWindow(a.host, b.host, s.cores)
	}
	if a.hasNetwork && b.hasNetwork {
		w.Network = &NetworkWindow{
			Interface:       s.nic,
			BytesSent:       int64(b.network.bytesSent - a.network.bytesSent),
			BytesReceived:   int64(b.network.bytesReceived - a.network.bytesReceived),
			PacketsSent:     int64(b.network.packetsSent - a.network.packetsSent),
			PacketsReceived: int64(b.network.packetsReceived - a.network.packetsReceived),
			SpeedBitsPerSec: clone(s.speed),
		}
	}
	return w
}

// nodeWindow is what one server has done.
func nodeWindow(addr string, a, b *nodeSample) NodeWindow {
	w := NodeWindow{Addr: addr, Process: processWindow(a, b), CPULimit: cpuLimitWindow(a, b)}
	if a.info != nil && b.info != nil && a.info["run_id"] == b.info["run_id"] {
		w.Server = serverWindow(a, b)
	}
	return w
}

// hostWindow is what the host has done from a to b.
func hostWindow(a, b hostTimes, cores int) *HostWindow {
	return &HostWindow{
		Cores:          cores,
		BusySeconds:    b.busy - a.busy,
		UserSeconds:    b.user - a.user,
		SystemSeconds:  b.system - a.system,
		SoftIRQSeconds: b.softirq - a.softirq,
		StealSeconds:   b.steal - a.steal,
	}
}

// processWindow is what the server's process has done; nil when that is
// unknown.
func processWindow(a, b *nodeSample) *ProcessWindow {
	if !a.hasProcess || !b.hasProcess {
		return nil
	}
	w := &ProcessWindow{
		CPUSeconds:     b.process.all - a.process.all,
		MainCPUSeconds: b.process.main - a.process.main,
		IOCPUSeconds:   b.process.io - a.process.io,
		SystemSeconds:  b.process.system - a.process.system,
		RSSBytes:       int64(b.process.rssBytes),
	}
	if b.process.hasSwap {
		w.SwapBytes = clone(&b.process.swapBytes)
	}
	if a.hasWait && b.hasWait {
		w.MainWaitSeconds = known(b.wait - a.wait)
	}
	return w
}

// cpuLimitWindow is what the server's control groups have done; nil when that
// is unknown.
func cpuLimitWindow(a, b *nodeSample) *CPULimitWindow {
	if !a.hasLimit || !b.hasLimit || b.limit.throttled < a.limit.throttled { // a group is gone
		return nil
	}
	w := &CPULimitWindow{
		Throttled:        int64(b.limit.throttled - a.limit.throttled),
		ThrottledSeconds: max(0, b.limit.seconds-a.limit.seconds),
	}
	if b.limit.cores > 0 {
		w.LimitCores = known(b.limit.cores)
	}
	return w
}

// serverWindow takes the differences of INFO's counters.
func serverWindow(a, b *nodeSample) *ServerWindow {
	delta := func(name string) int64 { return b.info.int(name) - a.info.int(name) }
	seconds := func(names ...string) *float64 {
		var sum float64
		for _, n := range names {
			if b.info[n] == "" {
				return nil
			}
			sum += b.info.float(n) - a.info.float(n)
		}
		return known(sum)
	}
	return &ServerWindow{
		Elapsed:            b.infoAt.Sub(a.infoAt),
		CPUSeconds:         seconds("used_cpu_user", "used_cpu_sys"),
		MainCPUSeconds:     seconds("used_cpu_user_main_thread", "used_cpu_sys_main_thread"),
		Commands:           delta("total_commands_processed"),
		Hits:               delta("keyspace_hits"),
		Misses:             delta("keyspace_misses"),
		Evictions:          delta("evicted_keys"),
		Expired:            delta("expired_keys"),
		RejectedClients:    delta("rejected_connections"),
		Forks:              delta("total_forks"),
		DelayedFsyncs:      delta("aof_delayed_fsync"),
		BytesReceived:      delta("total_net_input_bytes"),
		BytesSent:          delta("total_net_output_bytes"),
		ConnectedClients:   b.info.int("connected_clients"),
		BlockedClients:     b.info.int("blocked_clients"),
		UsedMemoryBytes:    b.info.int("used_memory"),
		RSSBytes:           b.info.int("used_memory_rss"),
		ChildAtWork:        b.info.int("rdb_bgsave_in_progress")+b.info.int("aof_rewrite_in_progress") > 0,
		FragmentationRatio: b.info.float("mem_fragmentation_ratio"),
	}
}

func known(x float64) *float64 { return &x }
