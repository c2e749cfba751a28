package redistest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// slots is the number of hash slots of a cluster.
const slots = 16384

// A Cluster is a Redis cluster on loopback.
type Cluster struct {
	// Masters own the slots in even parts, in their order, until one is
	// moved.
	Masters []*Server

	args         []string
	certificates *Certificates   // nil without TLS
	clients      []*redis.Client // of Masters
	ids          []string        // of Masters
}

// StartCluster starts a cluster of masters, each with the arguments, and
// waits until every node says that the cluster is ok.
func StartCluster(t testing.TB, masters int, args ...string) *Cluster {
	t.Helper()
	return startCluster(t, masters, nil, args)
}

func startCluster(t testing.TB, masters int, certificates *Certificates, args []string) *Cluster {
	t.Helper()
	c := &Cluster{args: args, certificates: certificates}
	for i := range masters {
		s := startNode(t, certificates, args)
		client := s.Client(t)
		c.Masters, c.clients = append(c.Masters, s), append(c.clients, client)
		c.ids = append(c.ids, do(t, client, "CLUSTER", "MYID").Val().(string))
		// Epochs that differ spare the nodes the quarrel about them.
		do(t, client, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
		add := []any{"CLUSTER", "ADDSLOTS"}
		for slot := i * slots / masters; slot < (i+1)*slots/masters; slot++ {
			add = append(add, slot)
		}
		do(t, client, add...)
		if i > 0 {
			do(t, client, "CLUSTER", "MEET", "127.0.0.1", c.Masters[0].Port)
		}
	}
	for i, client := range c.clients {
		wait(t, "cluster_state:ok on "+c.Masters[i].Addr, func() bool { return knows(client, masters) })
	}
	return c
}

func startNode(t testing.TB, certificates *Certificates, args []string) *Server {
	t.Helper()
	s := start(t, true, func(port int) []string {
		own := []string{"--port", strconv.Itoa(port), "--cluster-enabled", "yes", "--cluster-node-timeout", "3000"}
		if certificates != nil {
			own = append(own, "--port", "0", "--tls-port", strconv.Itoa(port), "--tls-cluster", "yes", "--tls-replication", "yes")
		}
		return slices.Concat(own, keepNothing, args)
	})
	s.certificates = certificates
	return s
}

// knows reports whether a node sees that many nodes and every slot served.
func knows(node *redis.Client, nodes int) bool {
	text := node.ClusterInfo(context.Background()).Val()
	return field(text, "cluster_state") == "ok" && field(text, "cluster_known_nodes") == strconv.Itoa(nodes)
}

// AddReplica starts a replica of a master and waits until both know of it.
func (c *Cluster) AddReplica(t testing.TB, master int) *Server {
	t.Helper()
	s := startNode(t, c.certificates, c.args)
	client := s.Client(t)
	do(t, client, "CLUSTER", "MEET", "127.0.0.1", c.Masters[0].Port)
	for _, node := range append([]*redis.Client{client}, c.clients...) {
		wait(t, "the replica is known", func() bool { return knows(node, len(c.Masters)+1) })
	}
	do(t, client, "CLUSTER", "REPLICATE", c.ids[master])
	wait(t, "the replica follows", func() bool {
		return field(client.Info(context.Background(), "replication").Val(), "master_link_status") == "up" &&
			strings.Contains(fmt.Sprint(c.clients[master].Do(context.Background(), "CLUSTER", "REPLICAS", c.ids[master]).Val()), s.Addr)
	})
	return s
}

// Migrate moves a slot with its keys from one master to another.
func (c *Cluster) Migrate(t testing.TB, slot, from, to int) {
	t.Helper()
	c.BeginMigration(t, slot, from, to)
	c.MoveKeys(t, slot, from, to)
	c.EndMigration(t, slot, from, to)
}

// BeginMigration opens the slot for its move: a key that is not at from, or
// no longer, is redirected to the other with ASK.
func (c *Cluster) BeginMigration(t testing.TB, slot, from, to int) {
	t.Helper()
	do(t, c.clients[to], "CLUSTER", "SETSLOT", slot, "IMPORTING", c.ids[from])
	do(t, c.clients[from], "CLUSTER", "SETSLOT", slot, "MIGRATING", c.ids[to])
}

// MoveKeys moves the keys of a slot whose move has begun.
func (c *Cluster) MoveKeys(t testing.TB, slot, from, to int) {
	t.Helper()
	for {
		keys, err := c.clients[from].ClusterGetKeysInSlot(context.Background(), slot, 100).Result()
		if err != nil {
			t.Fatal(err)
		}
		if len(keys) == 0 {
			return
		}
		move := []any{"MIGRATE", "127.0.0.1", c.Masters[to].Port, "", 0, patience.Milliseconds(), "KEYS"}
		for _, k := range keys {
			move = append(move, k)
		}
		do(t, c.clients[from], move...)
	}
}

// EndMigration gives the slot to its new owner: from now on the old one
// redirects with MOVED. Every master is told.
func (c *Cluster) EndMigration(t testing.TB, slot, from, to int) {
	t.Helper()
	do(t, c.clients[to], "CLUSTER", "SETSLOT", slot, "NODE", c.ids[to])
	do(t, c.clients[from], "CLUSTER", "SETSLOT", slot, "NODE", c.ids[to])
	for i, client := range c.clients {
		if i != from && i != to {
			// One that was killed is not told.
			client.Do(context.Background(), "CLUSTER", "SETSLOT", slot, "NODE", c.ids[to])
		}
	}
}
