package analyze

// Goal is what a pool is chosen for.
type Goal string

const (
	// GoalKnee is the fewest clients that give the throughput of the
	// plateau within the tolerance. It is the default.
	GoalKnee Goal = "knee"
	// GoalPeak is the number of clients with the highest throughput.
	GoalPeak Goal = "peak"
)

// Options are the reader's choices. The zero value is the default for every
// field.
type Options struct {
	// Tolerance is δ, the share of the plateau's throughput that may be
	// given up for fewer connections; 0 means 0.05.
	Tolerance float64

	// Goal is what the pool is chosen for; empty means GoalKnee. It has no
	// effect with a TargetQPS.
	Goal Goal

	// TargetQPS is λ, the requests/s that all application processes together
	// will send. The pool is then the one that this rate needs, not the one
	// for the highest throughput. 0 means none.
	TargetQPS float64

	// SLOP99 is the longest 99th percentile of the time from asking for a
	// connection to the reply, in seconds. It needs a TargetQPS, without
	// which it has no effect. 0 means none.
	SLOP99 float64

	// Instances is the number of application instances (containers, hosts)
	// that share the server; 0 means 1.
	Instances int

	// Procs is the number of processes of each instance (php-fpm children,
	// gunicorn or puma workers), each with a pool of its own; 0 means 1.
	Procs int

	// MaxClients is the server's maxclients. 0 means unknown: then it does
	// not limit the pools.
	MaxClients int

	// ReservedClients is how many of MaxClients others use: replicas,
	// monitoring, blocking consumers, pub/sub, other applications.
	ReservedClients int
}
