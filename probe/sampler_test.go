package probe_test

import (
	"math"
	"testing"

	"github.com/poolsweep/poolsweep/internal/redistest"
	"github.com/poolsweep/poolsweep/probe"
)

// connect starts a real server and connects to it.
func connect(t testing.TB) *probe.Server {
	t.Helper()
	target, err := probe.ParseTarget(redistest.Start(t).Addr)
	if err != nil {
		t.Fatal(err)
	}
	s, err := probe.Connect(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestIdentityOfRealServer(t *testing.T) {
	id := connect(t).Identity
	if id.Kind != "redis" || id.Role != "master" || id.Mode != "standalone" || id.PID == 0 || !id.Local ||
		id.MaxClients == 0 || id.UsedMemoryBytes == 0 || id.IOThreads != 1 || id.AppendFsync != "everysec" || len(id.Missing) != 0 {
		t.Errorf("identity %+v", id)
	}
}

// Between two samples the server has done what we had it do.
func TestSamplerCounts(t *testing.T) {
	s := connect(t)
	ctx := t.Context()
	s.Client.Set(ctx, "p:a", "x", 0)
	sm := probe.NewSampler(s)
	a := sm.Sample(ctx)
	const n = 3000
	for range n {
		s.Client.Get(ctx, "p:a")
	}
	s.Client.Get(ctx, "p:none")
	b := sm.Sample(ctx)
	w := sm.Between(a, b)

	if w.Server == nil || w.Process == nil || w.Host == nil || w.Network == nil {
		t.Fatalf("a group was not observed: %+v", w)
	}
	// The first INFO is counted after its own reply.
	if got := w.Server.Commands; got != n+2 {
		t.Errorf("%d commands, want %d GET and 1 INFO", got, n+1)
	}
	if w.Server.Hits != n || w.Server.Misses != 1 {
		t.Errorf("%d hits and %d misses, want %d and 1", w.Server.Hits, w.Server.Misses, n)
	}
	// Each GET is a packet to the server and one back, both on loopback.
	if w.Network.PacketsSent < 2*n || w.Network.BytesReceived < n*20 {
		t.Errorf("network %+v: too little for %d round trips", w.Network, n)
	}
	// A thread cannot use more CPU than there was time; ticks are 10 ms.
	limit := w.Elapsed.Seconds() + 0.02
	for name, cpu := range map[string]float64{
		"INFO main": *w.Server.MainCPUSeconds, "process main": w.Process.MainCPUSeconds, "wait": *w.Process.MainWaitSeconds,
	} {
		if cpu < 0 || cpu > limit {
			t.Errorf("%s: %.3f s of CPU in %.3f s", name, cpu, w.Elapsed.Seconds())
		}
	}
	if d := math.Abs(*w.Server.CPUSeconds - w.Process.CPUSeconds); d > 0.1 {
		t.Errorf("INFO and the system differ by %.3f s of CPU", d)
	}
	if w.Generator.CPUSeconds <= 0 || w.Generator.MaxRSSBytes < 1<<20 {
		t.Errorf("generator %+v", w.Generator)
	}
}

// BenchmarkSample is what a sample costs; a sweep takes about six a second.
func BenchmarkSample(b *testing.B) {
	sm := probe.NewSampler(connect(b))
	for b.Loop() {
		sm.Sample(b.Context())
	}
}
