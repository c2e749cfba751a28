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

	Goal Goal // empty means GoalKnee

	// Instances is the number of application processes that share the
	// server, each with its own pool; 0 means 1.
	Instances int
}
