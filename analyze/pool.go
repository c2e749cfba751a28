package analyze

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
)

// A Recommendation is the pool that follows from a knee and from what the
// reader wants. Connections that block (BLPOP, XREAD BLOCK) or subscribe come
// on top: they are not of the pool.
type Recommendation struct {
	Goal Goal `json:"goal"`

	// Feasible is true when the pool, with the one server that was swept,
	// meets what was asked for. Without a target rate that is so whenever
	// there is a pool.
	Feasible bool `json:"feasible"`

	// Reason says in a clause why the pool is what it is, or why there is
	// none.
	Reason string `json:"reason"`

	// Pool is the number of connections in all: PerProcess × Procs ×
	// Instances. 0 means that no pool can be recommended.
	Pool int `json:"pool"`

	// Low and High are the range of the knee, where the pool is chosen by
	// the knee; with GoalPeak from knee to peak. Both are 0 when the pool
	// follows from a rate or the range is unknown.
	Low  int `json:"low"`
	High int `json:"high"`

	// Need is the number of connections that the goal needs before they are
	// divided among the processes. Pool differs from it by rounding up, by
	// what separate pools need more than a common one, or because it was
	// clipped.
	Need int `json:"need"`

	PerInstance int `json:"per_instance"` // connections of an instance, all its processes
	PerProcess  int `json:"per_process"`  // connections of one process: its pool setting
	Instances   int `json:"instances"`
	Procs       int `json:"procs"` // of each instance

	// Nodes is the number of masters of a cluster, 1 for a single server.
	// The pool settings of clients count for each node: PerNode is
	// PerProcess divided among them.
	Nodes   int `json:"nodes"`
	PerNode int `json:"per_node"`

	// ClippedBy names what made PerProcess less than the goal needs; empty
	// when nothing did.
	ClippedBy Limit `json:"clipped_by"`

	// Shards is the number of servers among which the rate must be divided;
	// Pool and all else are then those of one shard, and Feasible is false
	// when it is above 1. It is 0 when no number of them would do.
	Shards int `json:"shards"`

	// Capacity is the throughput that Pool connections carry at most, in
	// requests/s: X(Pool).
	Capacity Quantity `json:"capacity_qps"`

	// Load is what a target rate leads to. All of it is unknown without one.
	Load Prediction `json:"load"`

	// MinIdle is the number of connections of each process that should stay
	// open: those that are busy on average at the target rate, without one
	// half of PerProcess.
	MinIdle int `json:"min_idle"`

	// WaitTimeout is how long a request should wait for a connection before
	// it gives up, in seconds: five times the 99th percentile of a response,
	// at least 0.25 s. 1 s where that percentile is unknown.
	WaitTimeout float64 `json:"wait_timeout_s"`

	Confidence Confidence `json:"confidence"`
}

// Limit is what clips a pool.
type Limit string

const (
	// LimitCeiling: with more connections in all, throughput falls.
	LimitCeiling Limit = "ceiling"
	// LimitMaxClients: the server would refuse connections.
	LimitMaxClients Limit = "maxclients"
)

// A Prediction is what happens when requests come at random (Poisson) at a
// rate, and find one common pool. Processes with pools of their own wait a
// little longer.
type Prediction struct {
	Rate        Quantity `json:"rate_qps"`          // λ, of each shard, requests/s
	Utilisation Quantity `json:"utilisation_ratio"` // ρ = λ/X
	Busy        Quantity `json:"busy_connections"`  // connections in use, mean

	WaitProbability Quantity `json:"wait_probability"` // that all connections are in use
	Wait            Quantity `json:"wait_s"`           // for a connection, mean over all requests, seconds
	Wait99          Quantity `json:"wait_p99_s"`       // its 99th percentile
	Response        Quantity `json:"response_s"`       // wait and reply, mean

	// Response99 is the 99th percentile of wait and reply, taken as the sum
	// of both percentiles, so a little too high. Unknown when the sweep
	// recorded no p99.
	Response99 Quantity `json:"response_p99_s"`
}

func unknownPrediction() Prediction {
	u := Unknown()
	return Prediction{u, u, u, u, u, u, u, u}
}

const (
	// maxUtilisation is ρ_max, the share of a server's capacity that random
	// arrivals may use: at 0.8 a single server has on average ρ/(1−ρ) = 4
	// requests before it, and twice as many whenever what is left halves.
	maxUtilisation = 0.8

	// clientsHeadroom is the share of maxclients that pools may use; what is
	// left is for people with redis-cli, failovers and what was forgotten.
	clientsHeadroom = 0.8

	// surge is how many more instances run during a rolling deployment, as a
	// ratio. Kubernetes' default for maxSurge, which it rounds up.
	surge = 0.25

	// staffing is the 99 % quantile of the standard normal distribution. A
	// pool of a + staffing·√a is seldom found empty when a connections are
	// busy on average, as the number in use is nearly Poisson: "square-root
	// staffing", see Halfin and Whitt (1981), Operations Research 29.
	staffing = 2.33

	waitTimeoutP99s = 5

	// minWaitTimeout lies above 200 ms, Linux' shortest retransmission
	// timeout: a lost packet delays a request, it should not fail others.
	minWaitTimeout     = 0.25
	unknownWaitTimeout = 1.0

	maxShards = 1 << 12 // beyond it, more shards are not the answer
)

// recommend derives the pool: for the highest throughput, for a target rate,
// or for a rate and a 99th percentile, then divided among the processes. There
// is none when k names no knee.
func recommend(c Curve, k Knee, o Options) Recommendation {
	r := Recommendation{
		Goal:       cmp.Or(o.Goal, GoalKnee),
		Instances:  max(o.Instances, 1),
		Procs:      max(o.Procs, 1),
		Nodes:      max(c.Nodes, 1),
		Shards:     1,
		Capacity:   Unknown(),
		Load:       unknownPrediction(),
		Confidence: k.Confidence,
	}
	if k.Clients == 0 {
		r.Reason = "no knee is named"
		return r
	}
	x := newCapacity(newTable(c), k)
	var busy float64 // connections in use on average; 0 without a rate
	switch {
	case o.TargetQPS <= 0:
		r.throughput(k)
	case o.SLOP99 <= 0:
		busy = r.rate(x, o.TargetQPS)
	default:
		busy = r.latency(x, o.TargetQPS, o.SLOP99)
	}
	if r.Need == 0 {
		return r
	}
	r.divide(busy, x.ceiling, o)
	if r.Pool == 0 {
		return r
	}
	r.Capacity = Quantity(x.requests(float64(r.Pool)))
	if o.TargetQPS > 0 {
		r.predict(x, o.TargetQPS/float64(r.Shards), o.SLOP99)
	}
	r.advise(x, busy)
	return r
}

// throughput chooses the pool for the highest throughput.
func (r *Recommendation) throughput(k Knee) {
	r.Feasible = true
	if r.Goal == GoalPeak {
		r.Need, r.Low, r.High = k.Peak, k.Clients, k.Peak
		r.Reason = "the peak, where throughput is highest"
		return
	}
	r.Need, r.Low, r.High = k.Clients, k.Low, k.High
	r.Reason = "the knee, the fewest that give the plateau's throughput"
}

// rate chooses the pool for lambda requests/s: the connections with which the
// server is used to ρ_max, but no fewer than are found free with 99 %. It
// returns the connections in use on average, L = λR, with R at that pool.
//
// See Little (1961), "A Proof for the Queuing Formula: L = λW".
func (r *Recommendation) rate(x capacity, lambda float64) (busy float64) {
	r.Shards = x.shards(lambda)
	r.Feasible = r.Shards == 1
	lambda /= float64(r.Shards)
	n := x.clientsFor(lambda / maxUtilisation)
	busy = lambda / x.requests(float64(n)) * float64(n) // R = N/X, as in a closed loop
	r.Need = max(n, staffed(busy))
	r.Reason = fmt.Sprintf("%s requests/s keep %s busy on average, and %d are seldom all in use",
		thousands(lambda), count(roundUp(busy), "connection"), r.Need)
	if r.Shards > 1 {
		r.Reason = fmt.Sprintf("one server carries %s requests/s at %s of its plateau, so %d shards are needed; with these, %s",
			thousands(maxUtilisation*x.plateau), percent(maxUtilisation), r.Shards, r.Reason)
	}
	return busy
}

// latency chooses the fewest connections with which lambda requests/s have a
// 99th percentile of slo seconds, and returns those in use on average. When no
// number of connections does it, the rate is divided among more shards.
func (r *Recommendation) latency(x capacity, lambda, slo float64) (busy float64) {
	if len(x.p99) == 0 {
		busy = r.rate(x, lambda)
		r.Feasible = false
		r.Reason = "no p99 was measured, so the latency target is left out; " + r.Reason
		return busy
	}
	least := x.shards(lambda)
	more := sort.Search(maxShards, func(i int) bool {
		_, ok := x.clientsWithin(lambda/float64(least+i), slo)
		return ok
	})
	if more == maxShards {
		r.Shards = 0
		r.Reason = fmt.Sprintf("a p99 of %s cannot be had: at one connection and without a wait it is %s already",
			milliseconds(Quantity(slo)), milliseconds(Quantity(x.p99At(1))))
		return 0
	}
	r.Shards = least + more
	r.Feasible = r.Shards == 1
	lambda /= float64(r.Shards)
	q, _ := x.clientsWithin(lambda, slo)
	r.Need = q.c
	r.Reason = fmt.Sprintf("the fewest with which %s requests/s stay within a p99 of %s", thousands(lambda), milliseconds(Quantity(slo)))
	if r.Shards > 1 {
		r.Reason = fmt.Sprintf("one server cannot carry that rate within that p99, so %d shards are needed; with these, %s", r.Shards, r.Reason)
	}
	return q.busy()
}

// divide gives every process its pool: its share of Need, and where a rate is
// known no fewer than a pool of its own needs, since what is free in another
// process is of no use. Two things clip it: the ceiling of a retrograde curve,
// and maxclients, of which pools may use 80 % while a rolling deployment runs
// a quarter more instances.
func (r *Recommendation) divide(busy float64, ceiling int, o Options) {
	pools := r.Instances * r.Procs
	r.PerProcess = (r.Need + pools - 1) / pools
	if pools > 1 && busy > 0 {
		r.PerProcess = max(r.PerProcess, staffed(busy/float64(pools)))
	}
	r.PerProcess = (r.PerProcess + r.Nodes - 1) / r.Nodes * r.Nodes // as many to each node
	wanted := r.PerProcess
	if ceiling > 0 && r.PerProcess*pools > ceiling {
		r.PerProcess = max(ceiling/pools, 1)
		if r.PerProcess < wanted {
			r.ClippedBy = LimitCeiling
			r.Reason += fmt.Sprintf("; clipped from %d to %d a process by the ceiling: with more than %s in all throughput falls",
				wanted, r.PerProcess, count(ceiling, "connection"))
		}
		if pools > ceiling {
			r.Reason += fmt.Sprintf("; even one connection for each of %d processes is more than the %d beyond which throughput falls", pools, ceiling)
		}
	}
	if o.MaxClients > 0 {
		deploying := r.Instances + roundUp(surge*float64(r.Instances))
		budget := int(clientsHeadroom * float64(max(o.MaxClients-o.ReservedClients, 0)))
		if most := budget / (deploying * r.Procs); r.PerProcess > most {
			r.PerProcess = most
			r.ClippedBy = LimitMaxClients
			r.Reason += fmt.Sprintf("; clipped from %d to %d a process by maxclients %s, of which %s must be enough for %s during a deployment",
				wanted, most, thousands(float64(o.MaxClients)), count(budget, "connection"), count(deploying, "instance"))
		}
	}
	r.spread()
	r.PerInstance = r.PerProcess * r.Procs
	r.Pool = r.PerInstance * r.Instances
	r.Feasible = r.Feasible && r.Pool > 0
}

// spread divides the pool of a process among the nodes of a cluster, evenly,
// as clients do. What was clipped is rounded down, to one at least.
func (r *Recommendation) spread() {
	r.PerNode = r.PerProcess / r.Nodes
	if r.PerNode == 0 && r.PerProcess > 0 {
		r.PerNode = 1
		r.Reason += fmt.Sprintf("; one connection to each of %d nodes is the least", r.Nodes)
	}
	r.PerProcess = r.PerNode * r.Nodes
}

// predict says what lambda requests/s lead to with the pool, at most with what
// was needed: connections beyond it are there because the processes do not
// share theirs. A pool that was clipped too far is no longer feasible.
func (r *Recommendation) predict(x capacity, lambda, slo float64) {
	r.Load = x.predict(lambda, min(r.Need, r.Pool))
	used := float64(r.Load.Utilisation)
	switch {
	case used > maxUtilisation*(1+rounding):
		r.Feasible = false
		r.Reason += fmt.Sprintf("; that rate would use %s of what these carry", percent(Quantity(used)))
	case slo > 0 && r.Load.Response99 > Quantity(slo*(1+rounding)):
		r.Feasible = false
		r.Reason += fmt.Sprintf("; with these the p99 would be %s", milliseconds(r.Load.Response99))
	}
}

// Forecast returns what rate requests/s lead to with a pool of n connections,
// n ≥ 1, to the server whose curve is c and in which Analyze has found the knee
// k. All of it is unknown when no knee is named, and all but the utilisation
// when the rate is more than the pool carries.
func Forecast(c Curve, k Knee, n int, rate float64) Prediction {
	if k.Clients == 0 {
		return unknownPrediction()
	}
	return newCapacity(newTable(c), k).predict(rate, n)
}

// predict is Forecast for one capacity. From a utilisation of 1 on there is no
// equilibrium to be predicted.
func (x capacity) predict(lambda float64, n int) Prediction {
	q := x.queue(lambda, n)
	used := q.utilisation()
	p := unknownPrediction()
	p.Rate, p.Utilisation = Quantity(lambda), Quantity(used)
	if used >= 1 {
		return p
	}
	p.Busy = Quantity(q.busy())
	p.WaitProbability = Quantity(q.waitProbability())
	p.Wait = Quantity(q.wait())
	p.Wait99 = Quantity(q.waitQuantile(.99))
	p.Response = Quantity(q.wait() + q.service())
	if len(x.p99) > 0 {
		p.Response99 = p.Wait99 + Quantity(x.p99At(float64(q.c)))
	}
	return p
}

// advise fills the settings that come with a pool size.
func (r *Recommendation) advise(x capacity, busy float64) {
	r.MinIdle = (r.PerProcess + 1) / 2
	if busy > 0 {
		r.MinIdle = min(roundUp(busy/float64(r.Instances*r.Procs)), r.PerProcess)
	}
	p99 := r.Load.Response99
	if !p99.Known() && len(x.p99) > 0 {
		p99 = Quantity(x.p99At(float64(r.Pool)))
	}
	r.WaitTimeout = unknownWaitTimeout
	if p99.Known() {
		r.WaitTimeout = max(minWaitTimeout, math.Ceil(waitTimeoutP99s*float64(p99)*100)/100)
	}
}

// rounding is how far a result of floating point may be off, as a ratio,
// before it counts.
const rounding = 1e-9

// roundUp is the ceiling of v, with a v that is whole but for rounding.
func roundUp(v float64) int { return int(math.Ceil(v * (1 - rounding))) }

// staffed returns the connections of which one is free with about 99 % when
// busy are in use on average.
func staffed(busy float64) int { return roundUp(busy + staffing*math.Sqrt(busy)) }

// A capacity is X(n), the throughput of n clients for any n, and the 99th
// percentile with it. Between levels both are interpolated as powers of n
// (straight lines in a log-log plot), which a linear start and a flat top both
// are. Below the first level X(n) is a line through the origin, which says too
// little rather than too much, since curves bend downwards; the percentile is
// that of the first level. Above the last level of a plateau X(n) stays flat
// and the percentile grows with n, as it must in a closed loop. A curve that
// falls has a ceiling, and is not looked at beyond it.
//
// X(n) is never more than X*: a level above it was lucky.
type capacity struct {
	n, x    []float64 // levels and their requests/s
	p99n    []float64 // levels with a known p99
	p99     []float64 // seconds; empty when none is known
	plateau float64   // X*, requests/s
	ceiling int       // 0: throughput does not fall
	depth   float64   // P; a connection is busy with P requests at a time
}

func newCapacity(t *table, k Knee) capacity {
	x := capacity{n: t.n, plateau: float64(k.Plateau), ceiling: k.Ceiling, depth: float64(t.depth)}
	for i, y := range t.y {
		x.x = append(x.x, min(y, x.plateau))
		if p99 := t.representativeTrial(i).P99; p99 > 0 && p99.Known() {
			x.p99n = append(x.p99n, t.n[i])
			x.p99 = append(x.p99, float64(p99))
		}
	}
	return x
}

// requests returns X(n) in requests/s.
func (x capacity) requests(n float64) float64 {
	if x.ceiling > 0 {
		n = min(n, float64(x.ceiling))
	}
	if n < x.n[0] {
		return x.x[0] * n / x.n[0]
	}
	return interpolate(x.n, x.x, n)
}

// p99At returns the 99th percentile of a response with n clients, in seconds.
func (x capacity) p99At(n float64) float64 {
	last := x.p99n[len(x.p99n)-1]
	return interpolate(x.p99n, x.p99, n) * max(1, n/last)
}

// interpolate returns the value at n of the line through the points (xs, ys)
// in a log-log plot. Outside of xs, which must rise, it is that of the end.
func interpolate(xs, ys []float64, n float64) float64 {
	i, _ := slices.BinarySearch(xs, n)
	switch {
	case i == 0:
		return ys[0]
	case i == len(xs):
		return ys[i-1]
	}
	share := math.Log(n/xs[i-1]) / math.Log(xs[i]/xs[i-1])
	return ys[i-1] * math.Pow(ys[i]/ys[i-1], share)
}

// shards returns the servers that lambda requests/s need with none used above
// ρ_max.
func (x capacity) shards(lambda float64) int {
	return max(1, roundUp(lambda/(maxUtilisation*x.plateau)))
}

// clientsFor returns the fewest clients that give the throughput, in
// requests/s, which must be at most X*.
func (x capacity) clientsFor(throughput float64) int {
	n := 1
	for last := int(x.n[len(x.n)-1]); n < last && x.requests(float64(n)) < throughput*(1-rounding); {
		n++
	}
	return n
}

// clientsWithin returns the queue with the fewest connections with which
// lambda requests/s use at most ρ_max and have a 99th percentile of at most
// slo seconds; false when there is none. More connections than the ceiling, or
// than the last level of a plateau, only add to the response time.
func (x capacity) clientsWithin(lambda, slo float64) (queue, bool) {
	most := int(x.n[len(x.n)-1])
	if x.ceiling > 0 {
		most = x.ceiling
	}
	q := newQueue(lambda / x.depth)
	for n := 1; n <= most; n++ {
		q = q.add(x.requests(float64(n)) / x.depth)
		if q.utilisation() <= maxUtilisation*(1+rounding) && q.waitQuantile(.99)+x.p99At(float64(n)) <= slo*(1+rounding) {
			return q, true
		}
	}
	return q, false
}

// queue returns the queue of lambda requests/s before n connections. With a
// pipeline depth P what arrives and is served is a batch of P requests.
func (x capacity) queue(lambda float64, n int) queue {
	q := newQueue(lambda / x.depth)
	for i := 1; i <= n; i++ {
		q = q.add(x.requests(float64(i)) / x.depth)
	}
	return q
}

// A queue is a pool of c connections at which batches arrive at random, rate λ
// a second, and wait when all are in use. With n in use the server completes
// X(n) batches a second, so that the number in the system is a birth-death
// process: births λ, deaths X(min(n,c)), p_n ∝ Π λ/X(min(i,c)), i = 1…n. With
// X(n) = nμ it is Erlang's queue M/M/c.
//
// What is kept are two sums over the states up to c, scaled so that nothing
// overflows for thousands of connections: with them a connection more costs
// one multiplication. See Kleinrock (1975), "Queueing Systems", vol. 1, §3.2
// (birth-death equilibrium) and §3.5 (M/M/m); the recurrence is that of
// Erlang's B formula.
type queue struct {
	c       int
	lambda  float64
	x       float64 // X(c)
	inverse float64 // (p_0 + … + p_c)/p_c; +Inf when p_c is next to nothing
	within  float64 // mean number in use, given that it is at most c
	below   float64 // the same, given that it is less than c
}

func newQueue(lambda float64) queue { return queue{lambda: lambda, inverse: 1} }

// add returns the queue with a connection more, x being X(c+1).
func (q queue) add(x float64) queue {
	q.c++
	q.x = x
	q.inverse = 1 + q.inverse*x/q.lambda
	q.below = q.within
	q.within += (float64(q.c) - q.within) / q.inverse
	return q
}

// utilisation returns ρ = λ/X(c). From 1 on there is no equilibrium, and the
// methods below mean nothing.
func (q queue) utilisation() float64 { return q.lambda / q.x }

// waitProbability returns P_w, the probability that all connections are in
// use: [p_c/(1−ρ)] / (Σ_{n<c} p_n + p_c/(1−ρ)), for M/M/c Erlang's C formula.
func (q queue) waitProbability() float64 {
	free := 1 - q.utilisation()
	return 1 / (1 + (q.inverse-1)*free)
}

// wait returns W_q, the mean wait for a connection over all batches, in
// seconds.
func (q queue) wait() float64 { return q.waitProbability() / (q.x - q.lambda) }

// waitQuantile returns the quantile of the wait, in seconds: those who wait do
// so for an exponential time with the rate X(c)−λ, the others for 0.
func (q queue) waitQuantile(quantile float64) float64 {
	return max(0, math.Log(q.waitProbability()/(1-quantile))/(q.x-q.lambda))
}

// busy returns the mean number of connections in use.
func (q queue) busy() float64 {
	p := q.waitProbability()
	return (1-p)*q.below + p*float64(q.c)
}

// service returns S, the mean time that a batch holds a connection, in
// seconds, by Little's law. It grows with c as the server is shared by more.
func (q queue) service() float64 { return q.busy() / q.lambda }
