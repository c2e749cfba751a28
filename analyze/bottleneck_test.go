package analyze

import (
	"strings"
	"testing"
)

// TestBottleneck has one row a rule, and the rows where two of them meet. The
// curve is a plateau of 12,000 requests/s from 12 clients on.
func TestBottleneck(t *testing.T) {
	disturbed := 0
	tests := []struct {
		name     string
		set      func(*Load)
		want     Cause
		evidence string // part of the first clause
		answer   bool
	}{
		{"nothing known", func(*Load) {}, CauseUnknown, "no CPU was recorded", true},
		{"server full", func(l *Load) { l.ServerMain = .97 }, CauseServerCPU, "server main thread 97 % of a core on the plateau, the median of 4 levels from 12 clients on", true},
		{"only the process known", func(l *Load) { l.ServerCPU = .95 }, CauseServerCPU, "server process 95 %", true},
		{"founding example", func(l *Load) { l.ServerCPU = .8 }, CauseUnknown, "server process 80 %", true},
		{"one disturbed reading on a plateau of full levels", func(l *Load) {
			l.ServerMain, l.GeneratorCeiling = .97, 13000
			if disturbed++; disturbed >= 7 && disturbed <= 9 { // the third level, 12 clients
				l.ServerMain = .8
			}
		}, CauseServerCPU, "on the plateau", true},
		{"generator near its ceiling", func(l *Load) { l.ServerMain, l.GeneratorCeiling = .6, 13000 },
			CauseGenerator, "generator at 92 % of the 13,000 requests/s it can give, at 12 clients", false},
		{"generator with room", func(l *Load) { l.ServerMain, l.GeneratorCeiling = .6, 20000 }, CauseUnknown, "server main thread 60 %", true},
		{"both near the end, the server seen full", func(l *Load) { l.ServerMain, l.GeneratorCeiling = .97, 13000 },
			CauseServerCPU, "server main thread 97 %", true},
		{"server spins for its io-threads", func(l *Load) { l.ServerMain, l.ServerIO, l.GeneratorCeiling = .99, 2, 13000 },
			CauseGenerator, "generator at 92 %", false},
		{"the same, io-threads seen in the total", func(l *Load) { l.ServerMain, l.ServerCPU, l.GeneratorCeiling = .99, 2.9, 13000 },
			CauseGenerator, "generator at 92 %", false},
		{"ceiling unknown, loop full", func(l *Load) { l.ServerMain, l.GeneratorCPU, l.GeneratorLoops = .6, .95, 1 },
			CauseGenerator, "generator 0.95 cores with 1 event loop", false},
		{"ceiling unknown, loop full, server full", func(l *Load) { l.ServerMain, l.GeneratorCPU, l.GeneratorLoops = .96, .95, 1 },
			CauseServerCPU, "server main thread 96 %", true},
		{"ceiling unknown, loop full, server throttled", func(l *Load) {
			l.ServerMain, l.GeneratorCPU, l.GeneratorLoops, l.Throttled = .3, .95, 1, 9
		}, CauseCPULimit, "throttled it in 9 periods", true},
		{"server waits for a core", func(l *Load) { l.ServerMain, l.ServerWait = .55, .4 },
			CauseSharedCPU, "ran 55 % of the time and waited for a core for 40 % more", false},
		// A throttled thread counts as waiting, too.
		{"server waits because it is throttled", func(l *Load) { l.ServerMain, l.ServerWait, l.Throttled = .3, .65, 9 },
			CauseCPULimit, "throttled it in 9 periods", true},
		{"generator waits for a core", func(l *Load) { l.ServerMain, l.GeneratorWait, l.GeneratorLoops, l.GeneratorCeiling = .7, .3, 2, 20000 },
			CauseSharedCPU, "the generator waited for 0.30 cores", false},
		{"one host, full", func(l *Load) { l.ServerMain, l.SharedHost, l.HostCPU, l.HostCores = .8, true, 1.96, 2 },
			CauseSharedCPU, "1.96 of 2 cores busy", false},
		{"one host, full, of the server", func(l *Load) { l.ServerMain, l.SharedHost, l.HostCPU, l.HostCores = .95, true, 1.96, 2 },
			CauseServerCPU, "server main thread 95 %", true},
		{"busy neighbours, and a ceiling that they lowered", func(l *Load) {
			l.ServerMain, l.ServerCPU, l.GeneratorCPU, l.GeneratorCeiling = .4, .4, .5, 9000
			l.SharedHost, l.HostCPU, l.HostCores = true, 1.96, 2
		}, CauseSharedCPU, "other processes used 1.06 of the 2 cores", false},
		{"cores taken by the hypervisor", func(l *Load) { l.ServerMain, l.HostCores, l.Steal = .6, 2, .3 },
			CauseSharedCPU, "the hypervisor gave 0.30 of the 2 cores to other machines", false},
		{"full link", func(l *Load) { l.ServerMain, l.NetworkUse = .5, .93 }, CauseNetwork, "93 % of the link speed", true},
		{"packets flat", func(l *Load) { l.ServerMain, l.Packets = .5, 24000 }, CauseNetwork, "24,000 packets/s", true},
		{"packets of loopback", func(l *Load) { l.ServerMain, l.Packets, l.SharedHost = .5, 24000, true }, CauseUnknown, "server main thread 50 %", true},
		{"fork", func(l *Load) { l.ServerMain, l.Forks = .5, 1 }, CausePersistence, "forked", true},
		{"fsync", func(l *Load) { l.ServerMain, l.AOFDelayed = .5, 3 }, CausePersistence, "3 delayed fsyncs", true},
		{"evictions", func(l *Load) { l.ServerMain, l.Evictions = .5, 4321 }, CauseMemory, "4,321 keys evicted", true},
		{"swap", func(l *Load) { l.ServerMain, l.SwapBytes = .5, 64<<20 }, CauseMemory, "64 MiB of the server swapped out", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			disturbed = 0
			c := model(hard(12), 3, 4, 8, 12, 24, 48, 96)
			for i := range c.Points {
				for j := range c.Points[i].Trials {
					test.set(&c.Points[i].Trials[j].Load)
				}
			}
			a := Analyze(c, Options{})
			if b := a.Bottleneck; b.Cause != test.want || !strings.Contains(b.Evidence[0], test.evidence) || b.Advice == "" {
				t.Errorf("%s, %q, %q; want %s, %q", b.Cause, b.Evidence, b.Advice, test.want, test.evidence)
			}
			if a.Answer != test.answer || (a.Knee.Clients == 12) != test.answer {
				t.Errorf("answer %v, knee %d (%s); want answer %v", a.Answer, a.Knee.Clients, a.Reason, test.answer)
			}
			if !test.answer && (a.Knee.Apparent != 12 || a.Knee.Confidence != ConfidenceNone) {
				t.Errorf("apparent knee %d with confidence %s, want 12 with NONE", a.Knee.Apparent, a.Knee.Confidence)
			}
		})
	}
}

// TestBottleneckLatency: a rising curve of a server with time left is one of
// latency, and its generator's polling loops prove nothing.
func TestBottleneckLatency(t *testing.T) {
	c := model(rising(1), 3, 10, 20, 30, 40)
	for i := range c.Points {
		for j := range c.Points[i].Trials {
			l := &c.Points[i].Trials[j].Load
			l.ServerMain, l.GeneratorCPU, l.GeneratorLoops = .2, 1, 1
		}
	}
	a := Analyze(c, Options{})
	if a.Bottleneck.Cause != CauseLatency || a.Reason != "still rising at 40 clients" {
		t.Errorf("%s, %q; want latency, still rising at 40 clients", a.Bottleneck.Cause, a.Reason)
	}
}
