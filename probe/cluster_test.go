package probe

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/poolsweep/poolsweep/internal/redistest"
)

// owners returns the ranges of each node of s.
func owners(s *Server) map[string][]SlotRange {
	m := make(map[string][]SlotRange)
	for _, n := range s.Nodes {
		m[n.Target.Addr()] = n.Slots
	}
	return m
}

func TestCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3)
	replica := c.AddReplica(t, 1)
	// redistest gives master i the slots from i·16384/3 on.
	want := map[string][]SlotRange{
		c.Masters[0].Addr: {{0, 5460}}, c.Masters[1].Addr: {{5461, 10921}}, c.Masters[2].Addr: {{10922, 16383}},
	}
	seeds := map[string]*redistest.Server{"master": c.Masters[2], "replica": replica}
	for name, seed := range seeds {
		t.Run("seed is a "+name, func(t *testing.T) {
			s, err := Connect(t.Context(), targetOf(t, seed))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if d := cmp.Diff(want, owners(s)); d != "" {
				t.Errorf("owners, -want +got:\n%s", d)
			}
			for i, n := range s.Nodes {
				if n.Target.Addr() != c.Masters[i].Addr || n.Identity.Role != "master" {
					t.Errorf("node %d is %s, a %s", i, n.Target.Addr(), n.Identity.Role)
				}
			}
			wantClusterIdentity(t, s)
		})
	}

	s, err := Connect(t.Context(), targetOf(t, c.Masters[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	t.Run("keys", func(t *testing.T) { testClusterKeys(t, s) })
	t.Run("sampler", func(t *testing.T) { testClusterSampler(t, s) })
	t.Run("traffic", func(t *testing.T) {
		// Of others there are the test's own clients and the replica.
		if traffic, err := s.Traffic(t.Context(), 10*time.Millisecond); err != nil || traffic.OtherClients < 1 {
			t.Errorf("%+v, %v", traffic, err)
		}
	})
	t.Run("moved slot", func(t *testing.T) { testMovedSlot(t, c, s) })
	t.Run("database", func(t *testing.T) {
		target := s.Target
		target.DB = 1
		_, err := Connect(t.Context(), target)
		wantLine(t, err, "on a cluster only database 0 is swept; leave out the database number")
	})
	t.Run("seed is gone", func(t *testing.T) {
		c.Masters[0].Kill()
		if shards, err := s.Topology(t.Context()); err != nil || len(shards) != 3 {
			t.Errorf("%v, %v", shards, err)
		}
		_, err := Connect(t.Context(), targetOf(t, c.Masters[2]))
		wantLine(t, err, "connecting to ")
	})
}

// wantClusterIdentity wants of the whole what follows from its nodes.
func wantClusterIdentity(t *testing.T, s *Server) {
	t.Helper()
	var memory int64
	var slots, local int
	for i, n := range s.Nodes {
		memory += n.Identity.UsedMemoryBytes
		got := s.Identity.Nodes[i]
		slots += got.Slots
		if got.Local {
			local++
		}
		if got.Addr != n.Target.Addr() || got.RunID != n.Identity.RunID || got.Version != n.Identity.Version {
			t.Errorf("node %+v, want %s, %s", got, n.Target.Addr(), n.Identity.RunID)
		}
	}
	id := s.Identity
	if id.Mode != "cluster" || id.Role != "master" || !id.Local || local != 3 || slots != slotsOfCluster ||
		id.UsedMemoryBytes != memory || id.SystemMemoryBytes != s.Nodes[0].Identity.SystemMemoryBytes {
		t.Errorf("identity %+v, want the sums over %d local nodes of one host", id, local)
	}
}

// Keys go to the nodes that own them, one for each slot of a sample.
func testClusterKeys(t *testing.T, s *Server) {
	ctx := t.Context()
	for i := range 200 {
		key := fmt.Sprint("p:", i)
		if err := s.Keys.Set(ctx, key, i, 0).Err(); err != nil {
			t.Fatal(err)
		}
		owner := 0
		for _, n := range s.Nodes {
			slot := int(do(t, n.Client, "CLUSTER", "KEYSLOT", key).Val().(int64))
			for _, r := range n.Slots {
				if r.First <= slot && slot <= r.Last {
					owner++
					if v := n.Client.Get(ctx, key).Val(); v != fmt.Sprint(i) {
						t.Errorf("%s is not on the owner of slot %d", key, slot)
					}
				}
			}
		}
		if owner != 1 {
			t.Errorf("%s has %d owners", key, owner)
		}
	}
}

// What each node did is counted as its own, and the whole is the sum.
func testClusterSampler(t *testing.T, s *Server) {
	ctx := t.Context()
	sm := NewSampler(s)
	before, ok := sm.Commands(ctx)
	if !ok {
		t.Fatal("commands are not counted")
	}
	a := sm.Sample(ctx)
	for i, n := range s.Nodes {
		for range 100 * (i + 1) {
			n.Client.Ping(ctx)
		}
	}
	w := sm.Between(a, sm.Sample(ctx))
	after, _ := sm.Commands(ctx)
	if w.Server == nil || w.Process == nil || len(w.Nodes) != 3 {
		t.Fatalf("window %+v", w)
	}
	var sum int64
	var cpu, memory, elapsed float64
	for i, n := range w.Nodes {
		// 1 INFO of ours, and what the bus and the replica ask for.
		if got, want := n.Server.Commands, int64(100*(i+1)+1); n.Addr != s.Nodes[i].Target.Addr() || got < want || got > want+20 {
			t.Errorf("%s: %d commands, want about %d", n.Addr, got, want)
		}
		sum += n.Server.Commands
		cpu += n.Process.CPUSeconds
		memory += float64(n.Server.UsedMemoryBytes)
		elapsed += n.Server.Elapsed.Seconds() / 3
	}
	near := func(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 }
	if w.Server.Commands != sum || !near(w.Process.CPUSeconds, cpu) || float64(w.Server.UsedMemoryBytes) != memory ||
		!near(w.Server.Elapsed.Seconds(), elapsed) {
		t.Errorf("%+v, %+v: not the sums over %+v", w.Server, w.Process, w.Nodes)
	}
	// Three INFOs of Sample and three of Commands more.
	if got := after - before; got < sum+3 || got > sum+60 {
		t.Errorf("%d commands by Commands, %d by the window", got, sum)
	}
}

// After a slot has moved, Topology tells so, and Keys follows it. Slot 5061 is
// that of {bar} (CLUSTER KEYSLOT).
func testMovedSlot(t *testing.T, c *redistest.Cluster, s *Server) {
	ctx := t.Context()
	const slot = 5061
	if err := s.Keys.Set(ctx, "{bar}", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	c.Migrate(t, slot, 0, 2)
	if v, err := s.Keys.Get(ctx, "{bar}").Result(); err != nil || v != "x" {
		t.Errorf("got %q, %v", v, err)
	}
	shards, err := s.Topology(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := []Shard{
		{c.Masters[0].Addr, []SlotRange{{0, 5060}, {5062, 5460}}},
		{c.Masters[2].Addr, []SlotRange{{5061, 5061}, {10922, 16383}}},
		{c.Masters[1].Addr, []SlotRange{{5461, 10921}}},
	}
	if d := cmp.Diff(want, shards); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	reply, err := s.Client.Do(ctx, "CLUSTER", "SLOTS").Slice()
	if err != nil {
		t.Fatal(err)
	}
	if old, err := parseSlots(reply, s.Target); err != nil || cmp.Diff(want, old) != "" {
		t.Errorf("CLUSTER SLOTS: %v, %v", old, err)
	}
}

// A cluster that has lost slots is refused.
func TestClusterWithoutSlots(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3)
	for _, m := range c.Masters {
		do(t, m.Client(t), "CLUSTER", "DELSLOTS", 7)
	}
	_, err := Connect(t.Context(), targetOf(t, c.Masters[0]))
	wantLine(t, err, "16383 of 16384 slots have a master; repair it first (redis-cli --cluster check)")
}

// The nodes of a cluster with TLS are reached by their ports for it, by the
// load, the control connections and the client for keys.
func TestClusterTLS(t *testing.T) {
	t.Parallel()
	certificates := redistest.NewCertificates(t)
	c := redistest.StartTLSCluster(t, certificates, 3)
	target, err := ParseTarget("rediss://" + c.Masters[0].Addr)
	if err != nil {
		t.Fatal(err)
	}
	target.TLS.CACert = certificates.CA
	s, err := Connect(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, n := range s.Nodes {
		if n.Target.Addr() != c.Masters[i].Addr {
			t.Errorf("node %d is %s, want %s", i, n.Target.Addr(), c.Masters[i].Addr)
		}
		conn, err := n.Target.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
	for i := range 20 {
		if err := s.Keys.Set(t.Context(), fmt.Sprint(i), "x", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// CLUSTER SHARDS and CLUSTER SLOTS as their documentation shows them.
func TestParseTopology(t *testing.T) {
	node := func(role, health string, port int64, endpoint any) []any {
		return []any{"id", "e10b", "port", port, "tls-port", port + 1, "ip", "10.0.0.9", "endpoint", endpoint, "role", role, "health", health}
	}
	shard := func(slots []any, nodes ...any) []any { return []any{"slots", slots, "nodes", nodes} }
	slots := func(n ...any) []any {
		for i := range n {
			n[i] = int64(n[i].(int))
		}
		return n
	}
	plain := Target{Network: "tcp", Host: "seed", Port: 1}
	secure := plain
	secure.TLS = &TLS{}
	for _, tt := range []struct {
		name   string
		parse  func([]any, Target) ([]Shard, error)
		target Target
		reply  []any
		want   []Shard
		err    string
	}{
		{"shards", parseShards, plain, []any{
			shard(slots(9000, 16383), node("slave", "online", 3, "c"), node("master", "online", 4, "d")),
			shard(slots(500, 600, 0, 400), node("master", "online", 7, "a"), node("slave", "online", 8, "b")),
			shard(nil, node("master", "online", 9, "e")),
		}, []Shard{{"a:7", []SlotRange{{0, 400}, {500, 600}}}, {"d:4", []SlotRange{{9000, 16383}}}}, ""},
		{"TLS", parseShards, secure, []any{shard(slots(0, 1), node("master", "online", 7, "a"))}, []Shard{{"a:8", []SlotRange{{0, 1}}}}, ""},
		{"after a failover", parseShards, plain, []any{shard(slots(0, 1), node("master", "fail", 7, "a"), node("master", "online", 8, "b"))},
			[]Shard{{"b:8", []SlotRange{{0, 1}}}}, ""},
		{"no master", parseShards, plain, []any{shard(slots(0, 1), node("master", "fail", 7, "a"))}, nil, "slots 0 to 1 have no master that is online"},
		{"the host that was asked", parseShards, plain, []any{shard(slots(0, 1), node("master", "online", 7, ""))}, []Shard{{"seed:7", []SlotRange{{0, 1}}}}, ""},
		{"null", parseShards, plain, []any{shard(slots(0, 1), node("master", "online", 7, nil))}, []Shard{{"seed:7", []SlotRange{{0, 1}}}}, ""},
		{"unknown host name", parseShards, plain, []any{shard(slots(0, 1), node("master", "online", 7, "?"))}, []Shard{{"seed:7", []SlotRange{{0, 1}}}}, ""},
		{"no TLS port", parseShards, secure, []any{shard(slots(0, 1), node("master", "online", -1, "a"))}, nil, "is TLS on on every node?"},
		{"half a range", parseShards, plain, []any{shard(slots(0))}, nil, "in pairs"},
		{"no slots", parseShards, plain, []any{shard(slots(5, 16384))}, nil, "5 to 16384 are no slots"},

		{"slots", parseSlots, plain, []any{
			[]any{int64(8192), int64(16383), []any{"b", int64(2), "id"}},
			[]any{int64(1), int64(8191), []any{"a", int64(1), "id", []any{"hostname", "x"}}, []any{"r", int64(3), "id"}},
			[]any{int64(0), int64(0), []any{"b", int64(2), "id"}},
		}, []Shard{{"b:2", []SlotRange{{0, 0}, {8192, 16383}}}, {"a:1", []SlotRange{{1, 8191}}}}, ""},
		{"slots, null", parseSlots, plain, []any{[]any{int64(0), int64(0), []any{nil, int64(2)}}}, []Shard{{"seed:2", []SlotRange{{0, 0}}}}, ""},
		{"slots, short", parseSlots, plain, []any{[]any{int64(0), int64(0)}}, nil, "a row of 2 parts"},
		{"slots, no master", parseSlots, plain, []any{[]any{int64(0), int64(0), []any{}}}, nil, "have no master"},
	} {
		got, err := tt.parse(tt.reply, tt.target)
		if tt.err != "" {
			wantLine(t, err, tt.err)
			continue
		}
		if d := cmp.Diff(tt.want, got); d != "" || err != nil {
			t.Errorf("%s: %v, -want +got:\n%s", tt.name, err, d)
		}
	}
}

// FuzzTopology: whatever the reply, what is accepted has addresses and slots
// that there are, in their order.
func FuzzTopology(f *testing.F) {
	f.Add(`[["slots",[0,5],"nodes",[["role","master","port",7,"endpoint","h","health","online"]]]]`)
	f.Add(`[[0,5,["h",7,"id"],["r",8]],[6,6,[null,9]]]`)
	f.Fuzz(func(t *testing.T, text string) {
		var reply []any
		if json.Unmarshal([]byte(text), &reply) != nil {
			return
		}
		reply = integers(reply).([]any)
		for _, parse := range []func([]any, Target) ([]Shard, error){parseShards, parseSlots} {
			shards, err := parse(reply, Target{Host: "seed"})
			if err != nil {
				if strings.Contains(err.Error(), "\n") {
					t.Fatalf("%q", err)
				}
				continue
			}
			for i, shard := range shards {
				host, port, err := splitAddr(shard.Addr)
				if err != nil || checkAddr(host, port) != nil || len(shard.Slots) == 0 {
					t.Fatalf("%+v", shard)
				}
				for j, r := range shard.Slots {
					if r.First < 0 || r.Last < r.First || r.Last >= slotsOfCluster || j > 0 && r.First < shard.Slots[j-1].First {
						t.Fatalf("%+v", shard)
					}
				}
				if i > 0 && shard.Slots[0].First < shards[i-1].Slots[0].First {
					t.Fatalf("%+v", shards)
				}
			}
		}
	})
}

// integers makes the numbers of JSON those of RESP.
func integers(v any) any {
	switch v := v.(type) {
	case float64:
		return int64(v)
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	}
	return v
}

// The identity of a cluster: clients are those of the node with the least
// room, memory is the sum, of a host once, and without a limit on one node
// there is none.
func TestClusterIdentity(t *testing.T) {
	node := func(host string, max, connected, used, limit int64) *Server {
		return &Server{
			Target: Target{Network: "tcp", Host: host, Port: 1},
			Slots:  []SlotRange{{0, 9}},
			Identity: Identity{
				MaxClients: max, ConnectedClients: connected, UsedMemoryBytes: used, MaxMemoryBytes: limit,
				SystemMemoryBytes: 1000, CommandsPerSec: 5, Missing: []string{"x"},
			},
		}
	}
	nodes := []*Server{node("a", 100, 10, 1, 7), node("a", 100, 30, 2, 8), node("b", 90, 5, 3, 9)}
	var id Identity
	id.ofCluster(nodes)
	want := Identity{
		MaxClients: 100, ConnectedClients: 30, CommandsPerSec: 15, UsedMemoryBytes: 6, MaxMemoryBytes: 24,
		SystemMemoryBytes: 2000, Missing: []string{"x"},
		Nodes: []NodeIdentity{{"a:1", "", "", 10, false}, {"a:1", "", "", 10, false}, {"b:1", "", "", 10, false}},
	}
	if d := cmp.Diff(want, id); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	nodes[1].Identity.MaxMemoryBytes = 0
	id = Identity{}
	if id.ofCluster(nodes); id.MaxMemoryBytes != 0 {
		t.Errorf("maxmemory %d, though a node has none", id.MaxMemoryBytes)
	}
}

// Nodes merge by their address; one that is in one window only is dropped, and
// a group that one window lacks is dropped of that node.
func TestMergeNodes(t *testing.T) {
	node := func(addr string, commands int64) NodeWindow {
		return NodeWindow{Addr: addr, Server: &ServerWindow{Commands: commands}, Process: &ProcessWindow{CPUSeconds: 1}}
	}
	w := &Window{Nodes: []NodeWindow{node("a", 1), node("b", 2), node("c", 3)}}
	o := &Window{Nodes: []NodeWindow{node("d", 4), node("c", 5), node("a", 6)}}
	o.Nodes[1].Process = nil
	original := w.Clone()
	merged := w.Clone()
	merged.Merge(o)
	want := []NodeWindow{
		{Addr: "a", Server: &ServerWindow{Commands: 7}, Process: &ProcessWindow{CPUSeconds: 2}},
		{Addr: "c", Server: &ServerWindow{Commands: 8}},
	}
	if d := cmp.Diff(want, merged.Nodes); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if d := cmp.Diff(original, w); d != "" {
		t.Errorf("merging into a clone changed the original:\n%s", d)
	}
}

// Summing is the same over nodes as over windows where nothing is a highest:
// sums and absences.
func TestSumNodes(t *testing.T) {
	swap := int64(5)
	w := Window{Nodes: []NodeWindow{
		{Addr: "a", Server: &ServerWindow{Elapsed: 2, Commands: 3, ConnectedClients: 4, UsedMemoryBytes: 10}, Process: &ProcessWindow{RSSBytes: 1, SwapBytes: &swap}},
		{Addr: "b", Server: &ServerWindow{Elapsed: 4, Commands: 5, ConnectedClients: 6, UsedMemoryBytes: 20}, Process: &ProcessWindow{RSSBytes: 2, SwapBytes: &swap}},
	}}
	w.sumNodes()
	ten := int64(10)
	if d := cmp.Diff(&ServerWindow{Elapsed: 3, Commands: 8, ConnectedClients: 10, UsedMemoryBytes: 30}, w.Server); d != "" {
		t.Errorf("server, -want +got:\n%s", d)
	}
	if d := cmp.Diff(&ProcessWindow{RSSBytes: 3, SwapBytes: &ten}, w.Process); d != "" {
		t.Errorf("process, -want +got:\n%s", d)
	}
	w.Nodes[1].Process = nil
	if w.sumNodes(); w.Process != nil || w.Server == nil || w.Nodes[0].Server.Commands != 3 {
		t.Errorf("a node's process is unknown, the sum is %+v", w.Process)
	}
}
