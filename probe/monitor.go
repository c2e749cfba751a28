package probe

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// An Activity is what a server, its machine and its network did between two
// readings. What is not known is nil: INFO does not tell it, a counter was
// reset, the server was started anew, or its machine is another one.
type Activity struct {
	At      time.Time     `json:"at"` // of the second reading
	Elapsed time.Duration `json:"elapsed_ns"`

	// CPU of the server's process and of its main thread, in cores: 1 is one
	// core all the time.
	ServerUser   *float64 `json:"server_user_cores"`
	ServerSystem *float64 `json:"server_system_cores"`
	MainUser     *float64 `json:"main_user_cores"`
	MainSystem   *float64 `json:"main_system_cores"`

	// MainWait is how long the main thread was ready to run without a core to
	// run on, as a ratio of the time: others starved it. It is known where the
	// process can be seen.
	MainWait *float64 `json:"main_wait_ratio"`

	// CPU of all cores of the server's machine, as a ratio of their time.
	HostUser    *float64 `json:"host_user_ratio"` // at any priority
	HostSystem  *float64 `json:"host_system_ratio"`
	HostSoftirq *float64 `json:"host_softirq_ratio"` // soft interrupts: mostly the network's work
	HostSteal   *float64 `json:"host_steal_ratio"`   // taken by the hypervisor

	// These are those of the second reading.
	Clients         *int64 `json:"clients"` // ours included
	BlockedClients  *int64 `json:"blocked_clients"`
	UsedMemoryBytes *int64 `json:"used_memory_bytes"`
	RSSBytes        *int64 `json:"rss_bytes"`
	Keys            *int64 `json:"keys"` // of all databases

	Commands *float64 `json:"commands_per_second"` // without our own INFO
	Expired  *float64 `json:"expired_per_second"`  // keys
	Evicted  *float64 `json:"evicted_per_second"`  // keys
	HitRatio *float64 `json:"hit_ratio"`           // of key lookups; nil when there was none

	// What the server received from its clients and sent to them.
	BytesReceived *float64 `json:"bytes_received_per_second"`
	BytesSent     *float64 `json:"bytes_sent_per_second"`

	// What the network interface of this machine carried, of everybody, that
	// leads to the server if that is on this machine. Loopback receives what
	// it sends.
	InterfaceBytesReceived   *float64 `json:"interface_bytes_received_per_second"`
	InterfaceBytesSent       *float64 `json:"interface_bytes_sent_per_second"`
	InterfacePacketsReceived *float64 `json:"interface_packets_received_per_second"`
	InterfacePacketsSent     *float64 `json:"interface_packets_sent_per_second"`

	// Whether an RDB save or an AOF rewrite runs, or has ended since the first
	// reading, and how often a write waited for an AOF fsync.
	Saving        *bool    `json:"rdb_save"`
	Rewriting     *bool    `json:"aof_rewrite"`
	DelayedFsyncs *float64 `json:"delayed_fsyncs_per_second"`
}

// A Monitor reads what a server does, one interval after another. It must be
// closed after use, and used by one goroutine at a time.
type Monitor struct {
	server  *Server
	local   bool        // the server's address is one of this machine's
	nic     string      // "" when there is none, or it is not the server's
	process *osProcess  // nil when it cannot be seen
	last    monitorRead // what the next Activity begins with
}

// A monitorRead is one reading. What could not be read is absent.
type monitorRead struct {
	at         time.Time
	info       info      // nil when the server did not give it
	infoAt     time.Time // by the server's clock if it tells it
	keys       *int64
	process    processTimes
	hasProcess bool // only where INFO does not tell the main thread's CPU
	wait       float64
	hasWait    bool
	host       hostTimes
	hasHost    bool
	network    networkCounters
	hasNetwork bool
}

// NewMonitor connects to the target and takes the first reading. The target may
// be a replica; of a cluster it is the one node, of a target with sentinels
// the master. A server that does not give INFO is an error.
func NewMonitor(ctx context.Context, t Target) (*Monitor, error) {
	t, err := t.ready(ctx)
	if err != nil {
		return nil, err
	}
	s, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	m := &Monitor{server: s, local: s.Identity.Local || t.local()}
	if m.local {
		m.nic = interfaceTo(t)
	}
	if m.last, err = m.read(ctx); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// Local reports whether the server's machine is this one, so that its CPU and
// its network interface can be seen.
func (m *Monitor) Local() bool { return m.local }

// Close closes the connection.
func (m *Monitor) Close() error { return m.server.Close() }

// Next takes a reading and returns what has happened since the one before. An
// error says why the server did not give INFO; the Activity then has the rest,
// and the next call tries again.
func (m *Monitor) Next(ctx context.Context) (Activity, error) {
	next, err := m.read(ctx)
	a := between(&m.last, &next)
	m.last = next
	return a, err
}

// read costs one INFO and, on the server's machine, three files of /proc.
func (m *Monitor) read(ctx context.Context) (monitorRead, error) {
	r := monitorRead{at: time.Now()}
	if m.local {
		r.host, r.hasHost = readHost()
	}
	if m.nic != "" {
		r.network, r.hasNetwork = readNetwork(m.nic)
	}
	text, err := m.server.Client.Info(ctx).Result()
	if err != nil {
		return r, m.explain(ctx, err)
	}
	r.info, r.infoAt = parseInfo(text), time.Now()
	if us := r.info.int("server_time_usec"); us > 0 {
		r.infoAt = time.UnixMicro(us)
	}
	r.keys = r.info.keys(strings.Contains(text, "# Keyspace"))
	m.readProcess(&r)
	return r, nil
}

// readProcess reads what the system knows of the server's process: how long
// its main thread waited and, where INFO lacks it, the CPU of that (before
// Redis 6.2).
func (m *Monitor) readProcess(r *monitorRead) {
	if !m.server.Identity.Local {
		return
	}
	pid := int(r.info.int("process_id"))
	if m.process == nil || int(m.process.Pid) != pid { // it was started anew
		m.process = serverProcess(pid, m.server.Target)
	}
	if m.process == nil {
		return
	}
	r.wait, r.hasWait = runQueueWait(pid, pid)
	if r.info["used_cpu_user_main_thread"] == "" {
		r.process, r.hasProcess = readProcess(m.process)
	}
}

// explain turns an error of INFO into one line.
func (m *Monitor) explain(ctx context.Context, err error) error {
	t := m.server.Target
	var refused redis.Error
	if errors.As(err, &refused) && ctx.Err() == nil {
		return fmt.Errorf("monitoring %s: INFO: %s", t.Addr(), explainReply(t.hide(refused.Error())))
	}
	return t.explain(ctx, err)
}

// keys returns the number of keys in all databases. INFO has a line for a
// database that is not empty, such as "db0:keys=1,expires=0,avg_ttl=0", so
// that without one there are none, if told says that INFO has the section.
func (in info) keys(told bool) *int64 {
	var sum int64
	for name, value := range in {
		number, isDB := strings.CutPrefix(name, "db")
		if _, err := strconv.ParseUint(number, 10, 31); !isDB || err != nil {
			continue
		}
		text, found := strings.CutPrefix(value, "keys=")
		text, _, _ = strings.Cut(text, ",")
		if n, err := strconv.ParseInt(text, 10, 64); found && err == nil {
			sum, told = sum+n, true
		}
	}
	if !told {
		return nil
	}
	return &sum
}

// between returns what has happened from reading a to the later reading b.
func between(a, b *monitorRead) Activity {
	x := Activity{At: b.at, Elapsed: b.at.Sub(a.at)}
	if a.hasHost && b.hasHost {
		total := b.host.total - a.host.total
		x.HostUser = perUnit(b.host.user-a.host.user, total)
		x.HostSystem = perUnit(b.host.system-a.host.system, total)
		x.HostSoftirq = perUnit(b.host.softirq-a.host.softirq, total)
		x.HostSteal = perUnit(b.host.steal-a.host.steal, total)
	}
	if a.hasNetwork && b.hasNetwork {
		rate := func(a, b uint64) *float64 { return perUnit(float64(b)-float64(a), x.Elapsed.Seconds()) }
		x.InterfaceBytesReceived = rate(a.network.bytesReceived, b.network.bytesReceived)
		x.InterfaceBytesSent = rate(a.network.bytesSent, b.network.bytesSent)
		x.InterfacePacketsReceived = rate(a.network.packetsReceived, b.network.packetsReceived)
		x.InterfacePacketsSent = rate(a.network.packetsSent, b.network.packetsSent)
	}
	if b.info != nil {
		x.gauges(b)
	}
	if a.info != nil && b.info != nil && a.info["run_id"] == b.info["run_id"] {
		x.counters(a, b)
	}
	return x
}

// gauges takes what INFO tells of a moment.
func (x *Activity) gauges(b *monitorRead) {
	x.Clients = b.info.number("connected_clients")
	x.BlockedClients = b.info.number("blocked_clients")
	x.UsedMemoryBytes = b.info.number("used_memory")
	x.RSSBytes = b.info.number("used_memory_rss")
	x.Keys = b.keys
	x.Saving = b.info.truth("rdb_bgsave_in_progress")
	x.Rewriting = b.info.truth("aof_rewrite_in_progress")
}

// counters takes the differences of the counters of INFO.
func (x *Activity) counters(a, b *monitorRead) {
	elapsed := b.infoAt.Sub(a.infoAt).Seconds()
	delta := func(name string) *float64 { return increase(a.info, b.info, name) }
	rate := func(name string) *float64 {
		d := delta(name)
		if d == nil {
			return nil
		}
		return perUnit(*d, elapsed)
	}
	x.ServerUser, x.ServerSystem = rate("used_cpu_user"), rate("used_cpu_sys")
	x.MainUser, x.MainSystem = rate("used_cpu_user_main_thread"), rate("used_cpu_sys_main_thread")
	if a.hasWait && b.hasWait {
		x.MainWait = perUnit(b.wait-a.wait, elapsed)
	}
	if a.hasProcess && b.hasProcess {
		p, q := a.process, b.process
		x.MainUser = perUnit((q.main-q.mainSystem)-(p.main-p.mainSystem), elapsed)
		x.MainSystem = perUnit(q.mainSystem-p.mainSystem, elapsed)
		if x.ServerUser == nil {
			x.ServerUser = perUnit((q.all-q.system)-(p.all-p.system), elapsed)
			x.ServerSystem = perUnit(q.system-p.system, elapsed)
		}
	}
	// A server that has answered us cannot have processed none: Garnet says so
	// when its metrics are off. An INFO counts after its own reply.
	if c := delta("total_commands_processed"); c != nil && a.info.int("total_commands_processed") > 0 {
		x.Commands = perUnit(max(0, *c-1), elapsed)
	}
	x.Expired, x.Evicted = rate("expired_keys"), rate("evicted_keys")
	if hits, misses := delta("keyspace_hits"), delta("keyspace_misses"); hits != nil && misses != nil {
		x.HitRatio = perUnit(*hits, *hits+*misses)
	}
	x.BytesReceived, x.BytesSent = rate("total_net_input_bytes"), rate("total_net_output_bytes")
	x.DelayedFsyncs = rate("aof_delayed_fsync")
	// The counts came with Redis 7.0.
	x.Saving = either(x.Saving, delta("rdb_saves"))
	x.Rewriting = either(x.Rewriting, delta("aof_rewrites"))
}

// increase returns by how much a counter has risen, or nil when one of the two
// does not have it or it has fallen: it was reset.
func increase(a, b info, name string) *float64 {
	from, errA := strconv.ParseFloat(a[name], 64)
	to, errB := strconv.ParseFloat(b[name], 64)
	if errA != nil || errB != nil || !(to >= from) {
		return nil
	}
	return known(to - from)
}

// perUnit returns n/d, or nil where that is no quantity: n is negative or d is
// not positive.
func perUnit(n, d float64) *float64 {
	if !(n >= 0 && d > 0) {
		return nil
	}
	return known(n / d)
}

// either reports whether something runs or has been counted.
func either(now *bool, counted *float64) *bool {
	if now == nil || counted == nil {
		return now
	}
	happened := *now || *counted > 0
	return &happened
}

// number returns the number of that name, nil when there is none.
func (in info) number(name string) *int64 {
	n, err := strconv.ParseInt(in[name], 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// truth returns a field that is 0 or 1, nil when there is none.
func (in info) truth(name string) *bool {
	n := in.number(name)
	if n == nil {
		return nil
	}
	yes := *n != 0
	return &yes
}
