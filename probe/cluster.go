package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// slotsOfCluster is the number of hash slots of a cluster. See the Redis
// cluster specification, "Key distribution model".
const slotsOfCluster = 16384

// A SlotRange is hash slots in a row, 0 to 16383, both ends included.
type SlotRange struct {
	First, Last int
}

// slotCount returns how many slots the ranges have.
func slotCount(ranges []SlotRange) int {
	n := 0
	for _, r := range ranges {
		n += r.Last - r.First + 1
	}
	return n
}

// A Shard is a master of a cluster and the slots that it owns.
type Shard struct {
	Addr  string // host:port as the load connects to it
	Slots []SlotRange
}

// Topology asks the cluster which master owns which slots, by their first
// slot. It asks the node of Target, and the masters after it when that one
// does not answer. Owners change when slots are moved and after a failover.
func (s *Server) Topology(ctx context.Context) ([]Shard, error) {
	shards, err := s.askTopology(ctx)
	for _, n := range s.Nodes {
		if err == nil || ctx.Err() != nil {
			break
		}
		shards, err = n.askTopology(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the topology of the cluster at %s: %w", s.Target.Addr(), err)
	}
	return shards, nil
}

// askTopology asks this node: with CLUSTER SHARDS, else, as before Redis 7.0
// and on services that forbid it, with CLUSTER SLOTS.
func (s *Server) askTopology(ctx context.Context) ([]Shard, error) {
	ask := func(name string, parse func(reply []any, t Target) ([]Shard, error)) ([]Shard, error) {
		reply, err := s.Client.Do(ctx, "CLUSTER", name).Slice()
		if err != nil {
			return nil, fmt.Errorf("CLUSTER %s: %s", name, withoutArguments(err.Error()))
		}
		shards, err := parse(reply, s.Target)
		if err != nil {
			return nil, fmt.Errorf("CLUSTER %s: %w", name, err)
		}
		return shards, nil
	}
	shards, err := ask("SHARDS", parseShards)
	if err == nil {
		return shards, nil
	}
	shards, err2 := ask("SLOTS", parseSlots)
	if err2 != nil {
		return nil, fmt.Errorf("%w; %w", err, err2)
	}
	return shards, nil
}

// parseShards reads the reply of CLUSTER SHARDS (Redis 7.0), which the node
// of t has given: maps, in RESP2 lists of names and values. A shard without
// slots is left out; of one with several masters the one that is online
// counts.
func parseShards(reply []any, t Target) ([]Shard, error) {
	var shards []Shard
	for _, r := range reply {
		shard := fieldsOf(r)
		slots, err := slotRanges(shard["slots"])
		if err != nil {
			return nil, err
		}
		if len(slots) == 0 {
			continue
		}
		addr := ""
		nodes, _ := shard["nodes"].([]any)
		for _, n := range nodes {
			node := fieldsOf(n)
			if node["role"] != "master" || node["health"] == "fail" || node["health"] == "failed" {
				continue
			}
			port, _ := node["port"].(int64)
			if t.TLS != nil {
				port, _ = node["tls-port"].(int64)
			}
			if addr, err = nodeAddr(node["endpoint"], port, t); err != nil {
				return nil, err
			}
			break
		}
		if addr == "" {
			return nil, fmt.Errorf("slots %d to %d have no master that is online", slots[0].First, slots[0].Last)
		}
		shards = append(shards, Shard{addr, slots})
	}
	return sorted(shards), nil
}

// parseSlots reads the reply of CLUSTER SLOTS, which the node of t has given:
// for each range of slots its first, its last, its master and its replicas.
// The ports are those of the kind of connection that asks.
func parseSlots(reply []any, t Target) ([]Shard, error) {
	byAddr := make(map[string][]SlotRange)
	for _, r := range reply {
		row, _ := r.([]any)
		if len(row) < 3 {
			return nil, fmt.Errorf("a row of %d parts; want first slot, last slot, master", len(row))
		}
		slots, err := slotRanges(row[:2])
		if err != nil {
			return nil, err
		}
		master, _ := row[2].([]any)
		if len(master) < 2 {
			return nil, fmt.Errorf("slots %d to %d have no master", slots[0].First, slots[0].Last)
		}
		port, _ := master[1].(int64)
		addr, err := nodeAddr(master[0], port, t)
		if err != nil {
			return nil, err
		}
		byAddr[addr] = append(byAddr[addr], slots...)
	}
	var shards []Shard
	for addr, slots := range byAddr {
		shards = append(shards, Shard{addr, slots})
	}
	return sorted(shards), nil
}

// fieldsOf returns a map that came as a list of names and values.
func fieldsOf(v any) map[string]any {
	list, _ := v.([]any)
	fields := make(map[string]any)
	for i := 0; i+1 < len(list); i += 2 {
		if name, ok := list[i].(string); ok {
			fields[name] = list[i+1]
		}
	}
	return fields
}

// slotRanges reads a list of first and last slots.
func slotRanges(v any) ([]SlotRange, error) {
	list, _ := v.([]any)
	if len(list)%2 != 0 {
		return nil, errors.New("slots come in pairs, first and last")
	}
	var ranges []SlotRange
	for i := 0; i < len(list); i += 2 {
		first, ok1 := list[i].(int64)
		last, ok2 := list[i+1].(int64)
		if !ok1 || !ok2 || first < 0 || first > last || last >= slotsOfCluster {
			return nil, fmt.Errorf("%v to %v are no slots", list[i], list[i+1])
		}
		ranges = append(ranges, SlotRange{int(first), int(last)})
	}
	return ranges, nil
}

// nodeAddr returns the address of a node: an empty or unknown host stands for
// the one that was asked. See CLUSTER SLOTS and CLUSTER SHARDS, "endpoint".
func nodeAddr(host any, port int64, t Target) (string, error) {
	if port < 1 || port > 65535 {
		return "", fmt.Errorf("a master has no port for this kind of connection (%d); is TLS on on every node?", port)
	}
	name, _ := host.(string)
	if name == "" || name == "?" {
		name = cmp.Or(t.Host, "127.0.0.1") // of a unix socket the host is ours
	}
	if err := checkAddr(name, int(port)); err != nil {
		return "", err
	}
	return joinAddr(name, int(port)), nil
}

// sorted puts ranges and shards in the order of their slots.
func sorted(shards []Shard) []Shard {
	for _, s := range shards {
		slices.SortFunc(s.Slots, func(a, b SlotRange) int { return cmp.Compare(a.First, b.First) })
	}
	slices.SortFunc(shards, func(a, b Shard) int {
		return cmp.Or(cmp.Compare(a.Slots[0].First, b.Slots[0].First), cmp.Compare(a.Addr, b.Addr))
	})
	return shards
}

// connectCluster connects to every master of the cluster whose node s is, and
// makes s the whole cluster.
func (s *Server) connectCluster(ctx context.Context) error {
	at := "connecting to the cluster at " + s.Target.Addr()
	if s.Target.DB != 0 {
		return fmt.Errorf("%s: %s", at, errDatabase)
	}
	shards, err := s.Topology(ctx)
	if err != nil {
		return err
	}
	covered := 0
	for _, shard := range shards {
		covered += slotCount(shard.Slots)
	}
	if covered != slotsOfCluster {
		return fmt.Errorf("%s: %d of %d slots have a master; repair it first (redis-cli --cluster check)", at, covered, slotsOfCluster)
	}
	// A service may forbid CLUSTER INFO: what matters is known by now.
	if parseInfo(s.Client.ClusterInfo(ctx).Val())["cluster_state"] == "fail" {
		return fmt.Errorf("%s: cluster_state is fail; repair it first (redis-cli --cluster check)", at)
	}
	if err := s.connectNodes(ctx, shards); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	if !isMaster(s.Identity.Role) {
		s.Identity = s.Nodes[0].Identity
	}
	s.Identity.ofCluster(s.Nodes)
	s.Keys = s.clusterClient(shards)
	return nil
}

// connectNodes connects to the masters, all at once.
func (s *Server) connectNodes(ctx context.Context, shards []Shard) error {
	nodes, errs := make([]*Server, len(shards)), make([]error, len(shards))
	var wg sync.WaitGroup
	for i, shard := range shards {
		wg.Go(func() { nodes[i], errs[i] = s.connectNode(ctx, shard) })
	}
	wg.Wait()
	for _, n := range nodes {
		if n != nil {
			s.Nodes = append(s.Nodes, n)
		}
	}
	for _, err := range errs {
		if err != nil {
			return err // one is enough: the others are mostly the same
		}
	}
	return nil
}

func (s *Server) connectNode(ctx context.Context, shard Shard) (*Server, error) {
	host, port, err := splitAddr(shard.Addr)
	if err != nil {
		return nil, err
	}
	n, err := s.Target.at(host, port).connect(ctx)
	if err != nil {
		return nil, err
	}
	if role := n.Identity.Role; isReplica(role) {
		n.Close()
		return nil, fmt.Errorf("%s owns slots but is a replica; is a failover under way?", shard.Addr)
	}
	n.Slots = shard.Slots
	return n, nil
}

// clusterClient returns a client that sends each command to the node of its
// key. It finds nodes as we do, so that both connect to the same addresses.
func (s *Server) clusterClient(shards []Shard) *redis.ClusterClient {
	o := s.Target.options()
	var addrs []string
	for _, shard := range shards {
		addrs = append(addrs, shard.Addr)
	}
	return redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: addrs,
		ClusterSlots: func(ctx context.Context) ([]redis.ClusterSlot, error) {
			shards, err := s.Topology(ctx)
			if err != nil {
				return nil, err
			}
			return clusterSlots(shards), nil
		},
		Dialer:                   s.Target.dialNode,
		OnConnect:                o.OnConnect,
		Username:                 o.Username,
		Password:                 o.Password,
		Protocol:                 o.Protocol,
		DialTimeout:              o.DialTimeout,
		ReadTimeout:              o.ReadTimeout,
		WriteTimeout:             o.WriteTimeout,
		PoolSize:                 o.PoolSize,
		DisableIdentity:          o.DisableIdentity,
		MaintNotificationsConfig: o.MaintNotificationsConfig,
	})
}

// clusterSlots returns the shards in go-redis' form.
func clusterSlots(shards []Shard) []redis.ClusterSlot {
	var slots []redis.ClusterSlot
	for _, shard := range shards {
		for _, r := range shard.Slots {
			slots = append(slots, redis.ClusterSlot{
				Start: r.First, End: r.Last, Nodes: []redis.ClusterNode{{Addr: shard.Addr}},
			})
		}
	}
	return slots
}

// dialNode is the Dialer of go-redis for any node of the cluster. A loopback
// host arrives empty, as go-redis takes it for one that only the node itself
// can use, and so does one that a MOVED leaves out.
func (t Target) dialNode(ctx context.Context, _, addr string) (net.Conn, error) {
	host, port, err := splitAddr(addr)
	if err != nil {
		return nil, err
	}
	return t.at(cmp.Or(host, t.Host, "127.0.0.1"), port).transport(ctx)
}
