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
	// others: to operators, replicas and our own control connection.
	sparedClients = 10
	// sparedFiles is how many open files are left to everything that is no
	// connection of the load, and filesPerLoop what the calibration of an
	// event loop takes: both ends of its connections.
	sparedFiles  = 100
	filesPerLoop = 100
)

// clientLimit returns the lowest of the limits on the number of clients.
func clientLimit(p Plan, id probe.Identity) limit {
	l := limit{p.MaxClients, fmt.Sprintf("--max-clients %d", p.MaxClients)}
	lower := func(clients int64, name string) {
		if clients < int64(l.clients) {
			l = limit{int(max(0, clients)), name}
		}
	}
	if id.MaxClients > 0 {
		lower(id.MaxClients-id.ConnectedClients-sparedClients,
			fmt.Sprintf("the server's maxclients %d (%d in use, %d left to others)", id.MaxClients, id.ConnectedClients, sparedClients))
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil && files.Cur < 1<<30 {
		lower(int64(files.Cur)-sparedFiles-filesPerLoop*int64(p.Threads), fmt.Sprintf("the limit of %d open files (ulimit -n)", files.Cur))
	}
	return l
}

func thisHost() Host {
	return Host{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version()}
}
