package analyze

import (
	"cmp"
	"fmt"
	"slices"
)

// Cause is what stopped the throughput from growing.
type Cause string

const (
	// CauseGenerator: the load generator was at its limit, or the server
	// cannot be shown to have been. No knee of the server may be named.
	CauseGenerator Cause = "generator"
	// CauseServerCPU: the thread of the server that runs commands was full.
	CauseServerCPU Cause = "server-cpu"
	// CauseCPULimit: the CPU limit of the server's container throttled it.
	CauseCPULimit Cause = "cpu-limit"
	// CauseSharedCPU: server or generator waited for a core that something
	// else used. No knee of the server may be named.
	CauseSharedCPU Cause = "shared-cpu"
	// CauseNetwork: the link carried all the bytes or packets it could.
	CauseNetwork Cause = "network"
	// CausePersistence: the server forked, rewrote its AOF or waited for fsync.
	CausePersistence Cause = "persistence"
	// CauseMemory: the server evicted keys or was swapped out.
	CauseMemory Cause = "memory"
	// CauseLatency: nothing is full; requests spend their time on the way.
	// More clients still help.
	CauseLatency Cause = "latency"
	// CauseUnknown: what was observed shows no limit, or nothing was observed.
	CauseUnknown Cause = "unknown"
)

// A Bottleneck says who stopped the throughput.
type Bottleneck struct {
	Cause Cause `json:"cause"`

	// Evidence holds what speaks for the cause, and then what else was seen
	// at the knee and at the peak, one clause with its numbers each.
	Evidence []string `json:"evidence"`

	// Advice is what to do about it, a sentence.
	Advice string `json:"advice"`
}

const (
	ceilingShare    = 0.85 // of the generator's ceiling; above, it may be the limit
	fullCore        = 0.90 // of a core; above, a thread has no time left
	fullHost        = 0.95 // of all cores of a host
	serverStarved   = 0.05 // cores that the server's main thread waited for
	generatorWaits  = 0.10 // cores a loop that the generator waited for
	crowd           = 0.25 // cores that others use on a full host
	stolenShare     = 0.05 // of a host's cores, taken by its hypervisor
	fullLink        = 0.80 // of the link speed
	packetsAtMost   = 0.90 // of the sweep's highest packet rate; above, it is flat
	smallPackets    = 1.5  // packets a batch; two are one each way
	ioThreadsActive = 0.10 // cores in io-threads; above, the main thread spins for them
	swappedOut      = 1 << 20
	companions      = 3 // levels of a plateau of which a median says more than each
)

// swept is what the rules need to know of the sweep as a whole.
type swept struct {
	rising     bool
	maxPackets Quantity // of any step, packets/s
	depth      int
}

// A site is one step of a sweep looked at for a cause: its median trial.
type site struct {
	clients int
	qps     float64
	load    Load
	swept
}

func (s site) where() string { return count(s.clients, "client") }

// causes are the rules in the order in which they are asked. Each returns the
// evidence, a clause, or "" when it does not hold.
//
// A CPU limit is asked before starvation: a throttled thread counts as waiting
// for a core, and the throttle is the plainer fact.
var causes = []struct {
	cause Cause
	holds func(site) string
}{
	{CauseSharedCPU, site.crowded},
	{CauseGenerator, site.generatorFull},
	{CauseServerCPU, site.serverFull},
	{CauseCPULimit, site.throttled},
	{CauseSharedCPU, site.starved},
	{CauseNetwork, site.networkFull},
	{CausePersistence, site.persisting},
	{CauseMemory, site.shortOfMemory},
	{CauseLatency, site.waitingOnTheWay},
}

// advice is what to do about each cause.
var advice = map[Cause]string{
	CauseGenerator:   "give the generator more: --threads, or a machine with more cores; this curve is not the server's",
	CauseServerCPU:   "the server's thread is full: more throughput needs pipelining, more shards or a faster core, not more connections",
	CauseCPULimit:    "raise the CPU limit of the server's container, or keep this answer for as long as the limit stays",
	CauseSharedCPU:   "stop what else runs there, or sweep on machines with cores of their own; this curve is not the server's alone",
	CauseNetwork:     "the network is full: smaller values, compression, pipelining or a faster link, not more connections",
	CausePersistence: "persistence was at work during the sweep: sweep again with it quiet, or see what appendfsync and save cost",
	CauseMemory:      "the server is short of memory: raise maxmemory or shrink the data, and sweep again",
	CauseLatency:     "nothing is full yet: raise --max-clients, or pipeline, to see the plateau",
	CauseUnknown:     "nothing that was observed is at its limit: look at what poolsweep could not see of the server and the network between",
}

// bottleneck asks the rules at the knee that was found and at the peak. The
// first rule that holds at either is the cause.
func (t *table) bottleneck(f finding) Bottleneck {
	s := swept{rising: f.shape == ShapeRising, maxPackets: Unknown(), depth: t.depth}
	for i := range t.points {
		if p := t.representativeTrial(i).Load.Packets; p.Known() && !(p <= s.maxPackets) {
			s.maxPackets = p
		}
	}
	levels := []int{f.knee}
	if f.peak != f.knee {
		levels = append(levels, f.peak)
	}
	var sites []site
	for _, i := range levels {
		trial := t.representativeTrial(i)
		sites = append(sites, site{t.points[i].Clients, trial.QPS, trial.Load, s})
	}
	b := Bottleneck{Cause: CauseUnknown}
	if evidence := t.plateauFull(f); evidence != "" {
		b = Bottleneck{Cause: CauseServerCPU, Evidence: []string{evidence}}
	}
	for _, rule := range causes {
		if b.Cause != CauseUnknown {
			break
		}
		for _, at := range sites {
			if evidence := rule.holds(at); evidence != "" {
				b.Cause = rule.cause
				b.Evidence = append(b.Evidence, evidence)
			}
		}
	}
	for _, at := range sites {
		for _, fact := range at.facts() {
			if !slices.Contains(b.Evidence, fact) {
				b.Evidence = append(b.Evidence, fact)
			}
		}
	}
	b.Advice = advice[b.Cause]
	if !slices.ContainsFunc(sites, site.cpuKnown) {
		b.Evidence = append(b.Evidence, "no CPU was recorded, neither the server's nor the generator's")
		if b.Cause == CauseUnknown {
			b.Advice = "who stopped it cannot be told without CPU figures: sweep with poolsweep run, or add them to the file"
		}
	}
	return b
}

// plateauFull holds when the server's thread is full on the plateau as a
// whole, by the median of its levels: then the plateau is the server's, and a
// reading of one disturbed level, or a generator that is close to its own end
// as well, does not make it another's. A rising curve has no plateau, and a
// thread that spins for its io-threads only looks full.
func (t *table) plateauFull(f finding) string {
	if f.shape == ShapeRising {
		return ""
	}
	var cores []float64
	name := ""
	for i := f.knee; i <= f.ceiling; i++ {
		at := site{load: t.representativeTrial(i).Load}
		c, n := at.busiest()
		if !c.Known() || at.ioActive() {
			return ""
		}
		cores, name = append(cores, float64(c)), n
	}
	if len(cores) < companions || median(cores) < fullCore {
		return ""
	}
	return fmt.Sprintf("%s %s of a core on the plateau, the median of %s from %s on",
		name, percent(Quantity(median(cores))), count(len(cores), "level"), count(t.points[f.knee].Clients, "client"))
}

// ioActive reports whether the server's io-threads are at work.
func (s site) ioActive() bool {
	io := s.load.ServerIO
	if !io.Known() {
		io = s.load.ServerCPU - s.load.ServerMain
	}
	return io > ioThreadsActive
}

func (s site) cpuKnown() bool {
	l := s.load
	return l.ServerCPU.Known() || l.ServerMain.Known() || l.GeneratorCPU.Known() ||
		l.GeneratorCeiling.Known() || l.HostCPU.Known()
}

// busiest returns the CPU of the server's main thread, or of its process where
// that is all there is, and which of the two it is.
func (s site) busiest() (cores Quantity, name string) {
	if s.load.ServerMain.Known() {
		return s.load.ServerMain, "server main thread"
	}
	return s.load.ServerCPU, "server process"
}

// serverFull also holds for a main thread that spins while its io-threads
// work; generatorFull is asked before.
func (s site) serverFull() string {
	cores, name := s.busiest()
	if !(cores >= fullCore) {
		return ""
	}
	return fmt.Sprintf("%s %s of a core at %s", name, percent(cores), s.where())
}

// generatorFull holds when the throughput is near what the generator reaches
// against a null responder. A server seen at the end of its own core overrules
// that, unless its io-threads are at work: then the main thread spins while it
// waits for them and always looks full.
//
// Where the ceiling is not known, a generator without CPU to spare next to a
// server that is not seen to be full is the limit as far as anyone can tell.
// An event loop polls, so its CPU proves less than a ceiling does.
func (s site) generatorFull() string {
	l := s.load
	if s.serverFull() != "" && !s.ioActive() {
		return ""
	}
	if l.GeneratorCeiling > 0 {
		if reached := Quantity(s.qps) / l.GeneratorCeiling; reached > ceilingShare {
			if l.Generator != "" {
				return fmt.Sprintf("%s of the fleet at %s of what it can give, at %s", l.Generator, percent(reached), s.where())
			}
			return fmt.Sprintf("generator at %s of the %s requests/s it can give, at %s",
				percent(reached), thousands(float64(l.GeneratorCeiling)), s.where())
		}
		return ""
	}
	full := l.GeneratorLoops > 0 && l.GeneratorCPU >= fullCore*Quantity(l.GeneratorLoops)
	if !full || s.rising || s.serverFull() != "" || s.throttled() != "" {
		return ""
	}
	return fmt.Sprintf("generator %.2f cores with %s, and the server not seen to be full, at %s",
		l.GeneratorCPU, count(l.GeneratorLoops, "event loop"), s.where())
}

func (s site) throttled() string {
	if !(s.load.Throttled > 0) {
		return ""
	}
	return fmt.Sprintf("the server's CPU limit throttled it in %.0f periods at %s", s.load.Throttled, s.where())
}

// crowded holds when others on a full host use cores that server and generator
// could have used. It comes before the generator's rule: of two busy
// neighbours the calibration tells as little as the sweep.
func (s site) crowded() string {
	l := s.load
	others := l.HostCPU - l.ServerCPU - l.GeneratorCPU
	if !l.SharedHost || l.HostCores == 0 || !(l.HostCPU >= fullHost*Quantity(l.HostCores)) || !(others >= crowd) || s.serverFull() != "" {
		return ""
	}
	return fmt.Sprintf("other processes used %.2f of the %d cores at %s", others, l.HostCores, s.where())
}

// starved holds when the hypervisor took the cores away, when a thread was
// ready to run and had no core, which the kernel counts, or when generator and
// server are on one host that is full. It is asked after serverFull: a server
// with a whole core is not starved.
func (s site) starved() string {
	l := s.load
	switch {
	case l.HostCores > 0 && l.Steal >= stolenShare*Quantity(l.HostCores):
		return fmt.Sprintf("the hypervisor gave %.2f of the %d cores to other machines at %s", l.Steal, l.HostCores, s.where())
	case l.ServerMain < fullCore && l.ServerWait >= serverStarved && l.ServerMain+l.ServerWait >= fullCore:
		return fmt.Sprintf("server main thread ran %s of the time and waited for a core for %s more at %s",
			percent(l.ServerMain), percent(l.ServerWait), s.where())
	case l.GeneratorLoops > 0 && l.GeneratorWait >= generatorWaits*Quantity(l.GeneratorLoops):
		return fmt.Sprintf("the generator waited for %.2f cores at %s", l.GeneratorWait, s.where())
	case l.SharedHost && l.HostCores > 0 && l.HostCPU >= fullHost*Quantity(l.HostCores):
		return fmt.Sprintf("generator and server share a host with %.2f of %d cores busy at %s",
			l.HostCPU, l.HostCores, s.where())
	}
	return ""
}

// networkFull holds when the link is full of bytes, or when the rate of small
// packets is flat between two machines while the server has CPU to spare: many
// cloud networks limit packets rather than bytes.
func (s site) networkFull() string {
	l := s.load
	if l.NetworkUse >= fullLink {
		return fmt.Sprintf("network at %s of the link speed at %s", percent(l.NetworkUse), s.where())
	}
	cores, _ := s.busiest()
	batches := Quantity(s.qps) / Quantity(s.depth)
	if s.rising || l.SharedHost || !(cores < fullCore) ||
		!(l.Packets >= smallPackets*batches) || !(l.Packets >= packetsAtMost*s.maxPackets) {
		return ""
	}
	return fmt.Sprintf("%s packets/s at %s, and no step has many more", thousands(float64(l.Packets)), s.where())
}

func (s site) persisting() string {
	switch l := s.load; {
	case l.Forks > 0:
		return fmt.Sprintf("the server forked or rewrote its AOF at %s", s.where())
	case l.AOFDelayed > 0:
		return fmt.Sprintf("%.0f delayed fsyncs of the AOF at %s", l.AOFDelayed, s.where())
	}
	return ""
}

func (s site) shortOfMemory() string {
	switch l := s.load; {
	case l.Evictions > 0:
		return fmt.Sprintf("%s keys evicted at %s", thousands(float64(l.Evictions)), s.where())
	case l.SwapBytes >= swappedOut:
		return fmt.Sprintf("%s MiB of the server swapped out at %s", thousands(float64(l.SwapBytes)/(1<<20)), s.where())
	}
	return ""
}

// waitingOnTheWay holds while the curve rises and the server has time left.
func (s site) waitingOnTheWay() string {
	cores, name := s.busiest()
	if !s.rising || !(cores < fullCore) {
		return ""
	}
	return fmt.Sprintf("%s only %s of a core at %s, and the throughput still rises", name, percent(cores), s.where())
}

// facts lists what is known of the machines at s.
func (s site) facts() []string {
	var facts []string
	add := func(known Quantity, format string, args ...any) {
		if known.Known() {
			facts = append(facts, fmt.Sprintf(format, append(args, s.where())...))
		}
	}
	l := s.load
	add(l.ServerMain, "server main thread %s of a core at %s", percent(l.ServerMain))
	if !l.ServerMain.Known() {
		add(l.ServerCPU, "server process %s of a core at %s", percent(l.ServerCPU))
	}
	if l.ServerIO > 0 {
		add(l.ServerIO, "server io-threads %.2f cores at %s", l.ServerIO)
	}
	if l.GeneratorCeiling > 0 {
		add(l.GeneratorCeiling, "%s at %s of its ceiling at %s", cmp.Or(l.Generator, "generator"), percent(Quantity(s.qps)/l.GeneratorCeiling))
	}
	add(l.GeneratorCPU, "generator %.2f cores at %s", l.GeneratorCPU)
	if l.HostCores > 0 {
		add(l.HostCPU, "host %.2f of %d cores busy at %s", l.HostCPU, l.HostCores)
	}
	add(l.NetworkUse, "network at %s of the link speed at %s", percent(l.NetworkUse))
	return facts
}
