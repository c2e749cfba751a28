package probe

import "time"

// A GeneratorSample is what this process and this machine have used so far:
// what a Sample has of a generator that does not watch the server itself.
type GeneratorSample struct {
	at      time.Time
	cpu     float64
	rss     int64
	wait    float64
	hasWait bool
	host    hostTimes
	hasHost bool
}

// SampleGenerator reads the counters of this process and this machine.
func SampleGenerator() GeneratorSample {
	s := GeneratorSample{at: time.Now()}
	s.cpu, s.rss = ownUsage()
	s.wait, s.hasWait = ownRunQueueWait()
	s.host, s.hasHost = readHost()
	return s
}

// Until returns what has happened up to the later sample b; the machine's part
// is nil where it could not be observed.
func (a GeneratorSample) Until(b GeneratorSample) (time.Duration, GeneratorWindow, *HostWindow) {
	w := GeneratorWindow{CPUSeconds: b.cpu - a.cpu, MaxRSSBytes: b.rss}
	if a.hasWait && b.hasWait {
		w.WaitSeconds = known(max(0, b.wait-a.wait)) // a thread that ended takes its wait along
	}
	var h *HostWindow
	if cores := hostCores(); a.hasHost && b.hasHost && cores > 0 {
		h = hostWindow(a.host, b.host, cores)
	}
	return b.at.Sub(a.at), w, h
}
