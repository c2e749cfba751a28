package sweep

import (
	"fmt"
	"runtime"
	"syscall"

	"github.com/poolsweep/poolsweep/probe"
)

// A limit is what bounds the number of clients.
type limit struct {
	clients int
	name    string
}

const (
	// sparedClients is how many of the server's connections are left to
	// others at least: to operators, replicas and our own control connection;
	// sparedShare how much of maxclients.
	sparedClients = 10
	sparedShare   = 0.1
	// sparedFiles is how many open files are left to everything that is no
	// connection of the load, and filesPerLoop what the calibration of an
	// event loop takes: both ends of its connections.
	sparedFiles  = 100
	filesPerLoop = 100
)

// clientLimit returns the lowest of the limits on the number of clients. On a
// cluster the clients are spread evenly, so that the master with the least
// room counts. room is how many the agents of a fleet can open, 0 where the load
// comes from this process.
func clientLimit(p Plan, s *probe.Server, room int) limit {
	l := limit{p.MaxClients, fmt.Sprintf("--max-clients %d", p.MaxClients)}
	lower := func(clients int64, name string) {
		if clients < int64(l.clients) {
			l = limit{int(max(0, clients)), name}
		}
	}
	nodes := masters(s)
	for _, n := range nodes {
		id := n.Identity
		if id.MaxClients == 0 {
			continue
		}
		spared := max(sparedClients, int64(sparedShare*float64(id.MaxClients)))
		name := fmt.Sprintf("the server's maxclients %d (%d in use, %d left to others)", id.MaxClients, id.ConnectedClients, spared)
		if len(nodes) > 1 {
			name = fmt.Sprintf("maxclients %d of each master (%d in use on %s, %d left to others)",
				id.MaxClients, id.ConnectedClients, n.Target.Addr(), spared)
		}
		lower(int64(len(nodes))*(id.MaxClients-id.ConnectedClients-spared)-int64(p.Idle), name)
	}
	if room > 0 {
		lower(int64(room), fmt.Sprintf("the agents' limits of open files (ulimit -n), %d connections in all,", room))
		return l
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil && files.Cur < 1<<30 {
		lower(int64(files.Cur)-sparedFiles-filesPerLoop*int64(p.Threads)-int64(p.Idle),
			fmt.Sprintf("the limit of %d open files (ulimit -n)", files.Cur))
	}
	return l
}

func thisHost() Host {
	return Host{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version()}
}
