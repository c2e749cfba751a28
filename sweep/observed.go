package sweep

import (
	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep/load"
)

// loadOf turns what was observed during a trial into rates: cores, ratios,
// events. What was not observed stays unknown.
func loadOf(t Trial, local bool) analyze.Load {
	l := analyze.UnknownLoad()
	l.GeneratorLoops, l.SharedHost = t.Measurement.Loops, local
	w := t.Window
	if w == nil || w.Elapsed <= 0 {
		return l
	}
	elapsed := w.Elapsed.Seconds()
	per := func(x float64) analyze.Quantity { return analyze.Quantity(x / elapsed) }
	ifKnown := func(x *float64, elapsed float64) analyze.Quantity {
		if x == nil || elapsed <= 0 {
			return analyze.Unknown()
		}
		return analyze.Quantity(*x / elapsed)
	}
	l.GeneratorCPU = per(w.Generator.CPUSeconds)
	l.GeneratorWait = ifKnown(w.Generator.WaitSeconds, elapsed)
	if s := w.Server; s != nil {
		// INFO is answered a little after it is asked for: its own clock
		// says over which time its counters ran.
		l.ServerCPU = ifKnown(s.CPUSeconds, s.Elapsed.Seconds())
		l.ServerMain = ifKnown(s.MainCPUSeconds, s.Elapsed.Seconds())
		l.Forks = analyze.Quantity(s.Forks)
		if s.ChildAtWork {
			l.Forks = max(l.Forks, 1)
		}
		l.AOFDelayed = analyze.Quantity(s.DelayedFsyncs)
		l.Evictions = analyze.Quantity(s.Evictions)
	}
	if p := w.Process; p != nil {
		l.ServerCPUSeen = per(p.CPUSeconds)
		l.ServerIO = per(p.IOCPUSeconds)
		l.ServerWait = ifKnown(p.MainWaitSeconds, elapsed)
		if !l.ServerCPU.Known() {
			l.ServerCPU = per(p.CPUSeconds)
		}
		if !l.ServerMain.Known() {
			l.ServerMain = per(p.MainCPUSeconds)
		}
		if p.SwapBytes != nil {
			l.SwapBytes = analyze.Quantity(*p.SwapBytes)
		}
	}
	if len(w.Nodes) > 0 {
		l.ServerMain = fullest(w.Nodes)
	}
	if c := w.CPULimit; c != nil {
		l.Throttled = analyze.Quantity(c.Throttled)
	}
	if h := w.Host; h != nil {
		l.HostCores = h.Cores
		l.HostCPU, l.Steal = per(h.BusySeconds), per(h.StealSeconds)
	}
	if n := w.Network; n != nil {
		l.Packets = per(float64(n.PacketsSent + n.PacketsReceived))
		if n.SpeedBitsPerSec != nil && *n.SpeedBitsPerSec > 0 {
			bits := 8 * float64(max(n.BytesSent, n.BytesReceived)) // the directions have a full link each
			l.NetworkUse = per(bits / float64(*n.SpeedBitsPerSec))
		}
	}
	return l
}

// loadOfAgents makes the generator's load that of a fleet: the CPU of all its
// agents, and a ceiling that is reached when the fullest of them has reached
// its own, since the others cannot take over its connections.
func loadOfAgents(trial *analyze.Trial, m *load.Measurement) {
	if len(m.Agents) == 0 {
		return
	}
	l := &trial.Load
	l.GeneratorCPU, l.GeneratorWait, l.GeneratorCeiling = 0, analyze.Unknown(), analyze.Unknown()
	highest := 0.0
	for _, a := range m.Agents {
		if a.Elapsed > 0 {
			l.GeneratorCPU += analyze.Quantity(a.CPUSeconds / a.Elapsed.Seconds())
		}
		if use := a.Use(); use > highest {
			highest = use
			l.Generator = "agent " + a.Name
			l.GeneratorCeiling = analyze.Quantity(trial.QPS / use)
		}
	}
}

// fullest returns the main thread's use of a core on the master of a cluster
// where it is highest: that one stops first. Unknown when one is unknown.
func fullest(nodes []probe.NodeWindow) analyze.Quantity {
	highest := analyze.Quantity(0)
	for _, n := range nodes {
		main := mainThread(n)
		if !main.Known() {
			return main
		}
		highest = max(highest, main)
	}
	return highest
}

// mainThread returns a node's main thread's use of a core.
func mainThread(n probe.NodeWindow) analyze.Quantity {
	if s := n.Server; s != nil && s.MainCPUSeconds != nil && s.Elapsed > 0 {
		return analyze.Quantity(*s.MainCPUSeconds / s.Elapsed.Seconds())
	}
	return analyze.Unknown()
}

// facts is what the validity gates of package analyze look at.
func facts(m *load.Measurement, w *probe.Window) analyze.Facts {
	f := analyze.Facts{
		Requests:    m.Requests,
		Errors:      m.ErrorCount() + m.Lost,
		Utilisation: analyze.Quantity(m.Utilisation()),
		Steal:       analyze.Unknown(),
	}
	if w == nil {
		return f
	}
	if s := w.Server; s != nil {
		f.Evictions, f.Forks = s.Evictions, s.Forks
		f.ChildAtWork = s.ChildAtWork
	}
	if c := w.CPULimit; c != nil {
		f.Throttled = c.Throttled
	}
	if h := w.Host; h != nil && h.Cores > 0 && w.Elapsed > 0 {
		f.Steal = analyze.Quantity(h.StealSeconds / (w.Elapsed.Seconds() * float64(h.Cores)))
	}
	return f
}

// hitRatio returns the share of reads of a trial that found their key, as the
// server counted them.
func hitRatio(t Trial) analyze.Quantity {
	if t.Window == nil || t.Window.Server == nil {
		return analyze.Unknown()
	}
	s := t.Window.Server
	return analyze.HitRatio(s.Hits, s.Misses, s.Commands)
}
