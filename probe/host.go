package probe

// All use of gopsutil is in this file. It was asked for by name; its version 3
// is the predecessor of the one maintained now, and may be changed here alone.

import (
	"net"
	"strings"

	"github.com/shirou/gopsutil/v3/cpu"
	psnet "github.com/shirou/gopsutil/v3/net"
	"github.com/shirou/gopsutil/v3/process"
)

// local reports whether the target's address is one of this machine's.
func (t Target) local() bool {
	if t.Network == "unix" {
		return true
	}
	ips, err := net.LookupIP(t.Host)
	if err != nil {
		return false
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, ip := range ips {
		if ip.IsLoopback() {
			return true
		}
		for _, a := range own {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
				return true
			}
		}
	}
	return false
}

// An osProcess is a process of this machine.
type osProcess = process.Process

// serverProcess returns the process with the server's id if it is on this
// machine and listens where the target is; nil otherwise. The check matters:
// the id of a server in a container or behind a tunnel is some other process
// here.
func serverProcess(pid int, t Target) *osProcess {
	if pid <= 0 {
		return nil
	}
	p, err := process.NewProcess(int32(pid))
	if err != nil {
		return nil
	}
	kind := "tcp"
	if t.Network == "unix" {
		kind = "unix"
	}
	conns, err := psnet.ConnectionsPidWithoutUids(kind, int32(pid))
	if err != nil {
		return nil
	}
	for _, c := range conns {
		switch {
		case kind == "unix" && c.Laddr.IP == t.Socket, // gopsutil has the path there
			kind == "tcp" && c.Status == "LISTEN" && int(c.Laddr.Port) == t.Port:
			return p
		}
	}
	return nil
}

// processTimes is the CPU time of a process so far, in seconds.
type processTimes struct {
	all, main, io      float64
	system, mainSystem float64 // the part of all and of main spent in the kernel
	rssBytes           uint64
	swapBytes          int64
	hasSwap            bool
}

// readProcess reads the CPU times of a server: of all its threads, of the
// main one and of those that only read and write sockets.
func readProcess(p *osProcess) (processTimes, bool) {
	var t processTimes
	threads, err := p.Threads()
	if err != nil {
		return t, false
	}
	for tid, times := range threads {
		cpu := times.User + times.System
		t.all += cpu
		t.system += times.System
		if tid == p.Pid {
			t.main, t.mainSystem = cpu, times.System
		} else if strings.HasPrefix(threadName(int(p.Pid), int(tid)), "io_thd") {
			t.io += cpu
		}
	}
	if m, err := p.MemoryInfo(); err == nil {
		t.rssBytes = m.RSS
	}
	t.swapBytes, t.hasSwap = swapOf(int(p.Pid))
	return t, true
}

// hostTimes is the CPU time of all cores so far, in seconds.
type hostTimes struct {
	busy, steal           float64
	user, system, softirq float64 // parts of busy; user at any priority
	total                 float64 // idle and stolen time included
}

func readHost() (hostTimes, bool) {
	all, err := cpu.Times(false)
	if err != nil || len(all) == 0 {
		return hostTimes{}, false
	}
	t := all[0]
	// Guest time is part of User already. Steal is not ours to count as
	// busy: nobody here had it.
	return hostTimes{
		busy:    t.User + t.System + t.Nice + t.Irq + t.Softirq,
		steal:   t.Steal,
		user:    t.User + t.Nice,
		system:  t.System,
		softirq: t.Softirq,
		total:   t.User + t.System + t.Nice + t.Irq + t.Softirq + t.Steal + t.Idle + t.Iowait,
	}, true
}

// hostCores returns the number of logical cores.
func hostCores() int {
	n, err := cpu.Counts(true)
	if err != nil {
		return 0
	}
	return n
}

// networkCounters are what an interface has carried so far.
type networkCounters struct {
	bytesSent, bytesReceived, packetsSent, packetsReceived uint64
}

func readNetwork(name string) (networkCounters, bool) {
	all, err := psnet.IOCounters(true)
	if err != nil {
		return networkCounters{}, false
	}
	for _, c := range all {
		if c.Name == name {
			return networkCounters{c.BytesSent, c.BytesRecv, c.PacketsSent, c.PacketsRecv}, true
		}
	}
	return networkCounters{}, false
}

// interfaceTo returns the name of the interface that packets to the target
// leave by; empty for a unix socket and when it cannot be told.
func interfaceTo(t Target) string {
	if t.Network == "unix" {
		return ""
	}
	// Dialling UDP sends nothing: it only looks up the route.
	c, err := net.Dial("udp", t.Addr())
	if err != nil {
		return ""
	}
	defer c.Close()
	own, ok := c.LocalAddr().(*net.UDPAddr)
	if !ok {
		return ""
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return ""
	}
	for _, i := range interfaces {
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(own.IP) {
				return i.Name
			}
		}
	}
	return ""
}
