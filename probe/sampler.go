package probe

import (
	"context"
	"path/filepath"
	"time"
)

// A Sampler reads the counters of the server, its process, the host, the
// network and the generator. Two Samples make a Window.
type Sampler struct {
	server  *Server
	process *osProcess // nil when it is not on this machine
	groups  []cpuGroup // of the process; empty when they cannot be seen
	nic     string     // empty when there is none
	speed   *int64     // of nic, bits/s; nil when it is unknown
	cores   int
}

// NewSampler returns a sampler of s, which must outlive it.
func NewSampler(s *Server) *Sampler {
	sm := &Sampler{server: s, nic: interfaceTo(s.Target), cores: hostCores()}
	if s.Identity.Local {
		sm.process = serverProcess(s.Identity.PID, s.Target)
	}
	if sm.process != nil {
		sm.groups = cpuGroups(int(sm.process.Pid))
	}
	if speed, ok := linkSpeed(filepath.Join("/sys/class/net", sm.nic)); sm.nic != "" && ok {
		sm.speed = &speed
	}
	return sm
}

// A Sample is every counter at one moment. What could not be read is absent.
type Sample struct {
	at         time.Time
	info       info
	infoAt     time.Time // when INFO was answered, by the server's clock if it tells it
	process    processTimes
	hasProcess bool
	wait       float64
	hasWait    bool
	limit      cpuLimit
	hasLimit   bool
	host       hostTimes
	hasHost    bool
	network    networkCounters
	hasNetwork bool
	ownCPU     float64
	ownRSS     int64
	ownWait    float64
	hasOwnWait bool
}

// Sample reads every counter. It costs one INFO on the server and about a
// millisecond of CPU.
func (s *Sampler) Sample(ctx context.Context) *Sample {
	x := &Sample{at: time.Now()}
	x.ownCPU, x.ownRSS = ownUsage()
	x.ownWait, x.hasOwnWait = ownRunQueueWait()
	if s.process != nil {
		x.process, x.hasProcess = readProcess(s.process)
		x.wait, x.hasWait = runQueueWait(int(s.process.Pid), int(s.process.Pid))
		x.limit, x.hasLimit = readCPULimit(s.groups)
	}
	x.host, x.hasHost = readHost()
	if s.nic != "" {
		x.network, x.hasNetwork = readNetwork(s.nic)
	}
	// INFO comes last, as it has to wait its turn behind the load.
	if text, err := s.server.Client.Info(ctx).Result(); err == nil {
		x.info, x.infoAt = parseInfo(text), time.Now()
		if us := x.info.int("server_time_usec"); us > 0 {
			x.infoAt = time.UnixMicro(us)
		}
	}
	return x
}

// Commands returns how many commands the server has processed since its start;
// false when it does not tell. It is cheaper than a Sample.
func (s *Sampler) Commands(ctx context.Context) (int64, bool) {
	text, err := s.server.Client.Info(ctx, "stats").Result()
	in := parseInfo(text)
	if err != nil || in["total_commands_processed"] == "" {
		return 0, false
	}
	return in.int("total_commands_processed"), true
}

// Between returns what has happened from sample a to the later sample b.
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
	if a.info != nil && b.info != nil && a.info["run_id"] == b.info["run_id"] {
		w.Server = serverWindow(a, b)
	}
	w.Process = processWindow(a, b)
	w.CPULimit = cpuLimitWindow(a, b)
	if a.hasHost && b.hasHost && s.cores > 0 {
		w.Host = &HostWindow{
			Cores:        s.cores,
			BusySeconds:  b.host.busy - a.host.busy,
			StealSeconds: b.host.steal - a.host.steal,
		}
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

// processWindow is what the server's process has done; nil when that is
// unknown.
func processWindow(a, b *Sample) *ProcessWindow {
	if !a.hasProcess || !b.hasProcess {
		return nil
	}
	w := &ProcessWindow{
		CPUSeconds:     b.process.all - a.process.all,
		MainCPUSeconds: b.process.main - a.process.main,
		IOCPUSeconds:   b.process.io - a.process.io,
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
func cpuLimitWindow(a, b *Sample) *CPULimitWindow {
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
func serverWindow(a, b *Sample) *ServerWindow {
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
