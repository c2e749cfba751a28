package compare

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// header is that of a run on a server of today's defaults.
func header() *sweep.Header {
	return &sweep.Header{
		Schema: sweep.Schema, Build: "v1.0.0", Started: time.Unix(1, 0), Target: "redis://a:6379",
		Server: probe.Identity{
			Kind: "redis", Version: "7.0.15", Mode: "standalone", Role: "master", RunID: "1", PID: 1, Local: true,
			MaxClients: 10000, ConnectedClients: 1, UsedMemoryBytes: 1e6, SystemMemoryBytes: 1 << 34,
			MaxMemoryPolicy: "noeviction", Save: "3600 1", AppendOnly: "no", AppendFsync: "everysec", IOThreads: 1,
		},
		Host: sweep.Host{OS: "linux", Arch: "amd64", Cores: 2, Go: "go1.26"},
		Plan: sweep.Plan{
			Workloads: []workload.Spec{{Name: "SET", Values: workload.Values{Sizes: []workload.Size{{Min: 3, Max: 3}}}}},
			Clients:   []int{1, 2}, Trials: 3, Slices: 4, Duration: time.Second, Order: sweep.Shuffled, Seed: 1, Threads: 1,
		},
	}
}

func TestDifferences(t *testing.T) {
	tests := []struct {
		name   string
		change func(*sweep.Header)
		want   []string // name: old → new
	}{
		{"none", func(h *sweep.Header) {}, nil},
		{"another run", func(h *sweep.Header) {
			h.Started = time.Unix(2, 0)
			h.Server.RunID, h.Server.PID, h.Server.ConnectedClients, h.Server.UsedMemoryBytes = "2", 2, 5, 2e6
			h.Plan.Seed, h.Plan.Clients, h.Plan.Fixed = 2, []int{4}, true
		}, nil},
		{"server", func(h *sweep.Header) { h.Server.Kind, h.Server.Version = "valkey", "8.1.0" },
			[]string{"server: redis → valkey", "version: 7.0.15 → 8.1.0"}},
		{"persistence", func(h *sweep.Header) { h.Server.AppendOnly, h.Server.AppendFsync, h.Server.Save = "yes", "always", "" },
			[]string{"appendfsync: everysec → always", "appendonly: no → yes", "save: 3600 1 → "}},
		{"appendfsync without effect", func(h *sweep.Header) { h.Server.AppendFsync = "always" }, nil},
		{"threads and memory", func(h *sweep.Header) {
			h.Server.IOThreads, h.Server.MaxMemoryBytes, h.Server.MaxMemoryPolicy = 4, 1<<20, "allkeys-lru"
		}, []string{"io-threads: 1 → 4", "maxmemory:  → 1048576 bytes", "maxmemory-policy: noeviction → allkeys-lru"}},
		{"machine and target", func(h *sweep.Header) { h.Host.Cores, h.Target, h.Server.Local = 8, "redis://b:6379", false },
			[]string{"server on the generator's machine: true → false", "target: redis://a:6379 → redis://b:6379", "generator's cores: 2 → 8"}},
		{"load", func(h *sweep.Header) { h.Plan.Duration, h.Plan.Threads, h.Plan.Trials = 300*time.Millisecond, 2, 5 },
			[]string{"time of a trial: 1s → 300ms", "event loops: 1 → 2", "trials a step: 3 → 5"}},
		{"workload", func(h *sweep.Header) { h.Plan.Workloads[0].Values.Sizes[0] = workload.Size{Min: 3, Max: 100} },
			[]string{"SET values sizes 1 max: 3 bytes → 100 bytes"}},
		{"another workload", func(h *sweep.Header) {
			h.Plan.Workloads = append(h.Plan.Workloads, workload.Spec{Name: "GET", Seed: 7})
		}, nil},
		{"build", func(h *sweep.Header) { h.Build = "v1.1.0" }, []string{"poolsweep: v1.0.0 → v1.1.0"}},
	}
	for _, test := range tests {
		new := header()
		test.change(new)
		var got []string
		for _, d := range differences(header(), new) {
			got = append(got, d.Name+": "+d.Old+" → "+d.New)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s, -want +got:\n%s", test.name, diff)
		}
	}
}

// TestEmbedded: two embedded servers have different ports and are alike.
func TestEmbedded(t *testing.T) {
	old, new := header(), header()
	old.Embedded, new.Embedded, new.Target = "redis-server", "redis-server", "redis://127.0.0.1:1"
	if ds := differences(old, new); len(ds) > 0 {
		t.Errorf("%+v", ds)
	}
	new.Embedded = ""
	if ds := differences(old, new); len(ds) != 2 {
		t.Errorf("one of them embedded: %+v", ds)
	}
}

// TestFlatten: things with a name go by it, so that another order of workloads
// is no difference; and what the plan says of what is sent is compared.
func TestFlatten(t *testing.T) {
	leaves := func(text string) map[string]string {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		all := make(map[string]string)
		flatten(all, "", v)
		return all
	}
	got := leaves(`{"plan": {"workloads": [
		{"name": "SET", "prefix": "x:", "seed": 3, "values": {"sizes": [{"min_bytes": 3}, {"min_bytes": 100}]}},
		{"name": "GET", "expiry": null, "idle": true, "empty": ""}], "warmup_ns": 1500000}}`)
	want := map[string]string{
		"plan.workloads.SET.name":                     "SET",
		"plan.workloads.SET.values.sizes.1.min_bytes": "3 bytes",
		"plan.workloads.SET.values.sizes.2.min_bytes": "100 bytes",
		"plan.workloads.GET.name":                     "GET",
		"plan.workloads.GET.idle":                     "true",
		"plan.warmup_ns":                              "1.5ms",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got, want := nameOf("plan.workloads.SET.values.sizes.1.min_bytes"), "SET values sizes 1 min"; got != want {
		t.Errorf("called %q, want %q", got, want)
	}
}
