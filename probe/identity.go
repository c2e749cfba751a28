package probe

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// An Identity is what a server said of itself before the load. Fields that it
// did not tell are zero, and Missing says why. Its JSON form is part of the
// result file; it holds no secret.
//
// That of a whole cluster is that of the node which was given, or of the first
// master if that is a replica, except for what is noted at the fields.
type Identity struct {
	Kind    string `json:"kind"`    // redis, valkey, keydb, dragonfly, garnet; "unknown"
	Version string `json:"version"` // of that kind
	Mode    string `json:"mode"`    // standalone, cluster, sentinel
	Role    string `json:"role"`    // master, slave or replica; KeyDB's active-replica
	RunID   string `json:"run_id,omitempty"`

	// Sentinel is the name by which sentinels know it, when they were asked.
	Sentinel string `json:"sentinel,omitempty"`

	PID   int  `json:"process_id,omitempty"`
	Local bool `json:"local"` // its process is on this machine, and seen; cluster: that of any node

	// Cluster: both are of the node that has the least room for clients,
	// maxclients less those connected, as a load spread evenly fills it first.
	MaxClients       int64 `json:"maxclients,omitempty"`
	ConnectedClients int64 `json:"connected_clients"` // ours included

	CommandsPerSec float64 `json:"commands_per_second"` // cluster: the sum

	UsedMemoryBytes   int64  `json:"used_memory_bytes,omitempty"`   // cluster: the sum
	MaxMemoryBytes    int64  `json:"maxmemory_bytes,omitempty"`     // 0: no limit; cluster: the sum, if all have one
	SystemMemoryBytes int64  `json:"system_memory_bytes,omitempty"` // of its host; cluster: the sum over the hosts
	MaxMemoryPolicy   string `json:"maxmemory_policy,omitempty"`

	Save        string `json:"save,omitempty"`       // as CONFIG GET save
	AppendOnly  string `json:"appendonly,omitempty"` // yes or no
	AppendFsync string `json:"appendfsync,omitempty"`

	// IOThreads is how many threads read requests and write replies: 0 is not
	// told, 1 the main thread alone. KeyDB's and Dragonfly's threads run the
	// commands, too.
	IOThreads int `json:"io_threads,omitempty"`

	// Nodes are the masters of a cluster, in the order of Server.Nodes.
	Nodes []NodeIdentity `json:"nodes,omitempty"`

	// Missing has a sentence for each thing the server would not tell.
	Missing []string `json:"missing,omitempty"`
}

// A NodeIdentity is what tells one master of a cluster from the others.
type NodeIdentity struct {
	Addr    string `json:"addr"`
	RunID   string `json:"run_id,omitempty"`
	Version string `json:"version,omitempty"`
	Slots   int    `json:"slots"` // how many it owns
	Local   bool   `json:"local"`
}

// identify fills in the identity and refuses a server that must not be
// measured.
func (s *Server) identify(ctx context.Context) error {
	id := &s.Identity
	text, err := s.Client.Info(ctx).Result()
	if err != nil {
		if ctx.Err() != nil {
			return s.Target.explain(ctx, err)
		}
		id.miss("INFO", err, "no server CPU, memory or commands from it")
	}
	in := parseInfo(text)
	s.readInfo(in)
	if id.Kind == "unknown" || id.Mode == "" || id.Role == "" {
		s.readHello(ctx)
	}
	if id.Role == "" {
		// ROLE may be allowed where INFO is not.
		if r, err := s.Client.Do(ctx, "ROLE").Slice(); err == nil && len(r) > 0 {
			id.Role = fmt.Sprint(r[0])
		}
	}
	s.readConfig(ctx)
	if host := in["master_host"]; host != "" {
		s.following = fmt.Sprintf(" (%s:%s)", host, in["master_port"])
	}
	at := "connecting to " + s.Target.Addr()
	switch {
	case in["loading"] == "1" || in["async_loading"] == "1":
		return fmt.Errorf("%s: %s", at, explainReply("LOADING"))
	case id.Mode == "sentinel" || id.Role == "sentinel":
		return fmt.Errorf("%s: this is a sentinel; give redis+sentinel://%s/NAME with the name of the master that it watches", at, s.Target.Addr())
	}
	return nil
}

// readInfo takes what INFO tells.
func (s *Server) readInfo(in info) {
	id := &s.Identity
	id.Kind, id.Version = in.kind()
	id.Mode = in.mode()
	id.Role, id.RunID = in["role"], in["run_id"]
	id.PID = int(in.int("process_id"))
	id.MaxClients = in.maxClients()
	id.ConnectedClients = in.int("connected_clients")
	id.CommandsPerSec = in.float("instantaneous_ops_per_sec")
	id.UsedMemoryBytes = in.int("used_memory")
	id.MaxMemoryBytes = in.int("maxmemory")
	id.SystemMemoryBytes = in.int("total_system_memory")
	id.MaxMemoryPolicy = in["maxmemory_policy"]
	id.IOThreads = in.threads()
	if a, ok := in["aof_enabled"]; ok {
		id.AppendOnly = map[string]string{"0": "no", "1": "yes"}[a]
	}
	id.Local = s.Target.local() && serverProcess(id.PID, s.Target) != nil
	if len(in) > 0 && id.PID == 0 {
		id.Missing = append(id.Missing, "INFO tells no process_id: the server's process cannot be observed")
	}
}

// readHello takes what HELLO tells where INFO does not. Without arguments it
// changes nothing; servers before Redis 6.0 do not know it.
func (s *Server) readHello(ctx context.Context) {
	reply, err := s.Client.Do(ctx, "HELLO").Slice()
	if err != nil {
		return
	}
	hello := make(map[string]string)
	for i := 0; i+1 < len(reply); i += 2 {
		hello[fmt.Sprint(reply[i])] = fmt.Sprint(reply[i+1])
	}
	id := &s.Identity
	if server := hello["server"]; id.Kind == "unknown" && (server == "redis" || slices.Contains(kinds, server)) {
		id.Kind, id.Version = server, hello["version"]
	}
	if id.Mode == "" {
		id.Mode = hello["mode"]
	}
	if id.Role == "" {
		id.Role = hello["role"]
	}
}

// readConfig takes what CONFIG GET tells, one parameter at a time, as a
// managed service may forbid some of them.
func (s *Server) readConfig(ctx context.Context) {
	id := &s.Identity
	var missing []string
	var why error
	get := func(name string) string {
		v, err := s.Client.ConfigGet(ctx, name).Result()
		if err != nil {
			missing, why = append(missing, name), err
		}
		return v[name]
	}
	id.Save = get("save")
	if v := get("appendonly"); v != "" {
		id.AppendOnly = v
	}
	id.AppendFsync = get("appendfsync")
	if n, err := strconv.Atoi(get("io-threads")); err == nil {
		id.IOThreads = max(n, id.IOThreads)
	}
	if v := get("maxclients"); v != "" {
		id.MaxClients, _ = strconv.ParseInt(v, 10, 64)
	}
	if len(missing) > 0 {
		id.miss("CONFIG GET "+strings.Join(missing, ", "), why, "persistence, io-threads and maxclients may be unknown")
	}
}

func (id *Identity) miss(command string, err error, consequence string) {
	id.Missing = append(id.Missing, fmt.Sprintf("%s: %s: %s", command, withoutArguments(err.Error()), consequence))
}

// Title returns kind and version for print: "redis 7.0.15".
func (id Identity) Title() string {
	if id.Version == "" {
		return "a server of unknown kind"
	}
	return id.Kind + " " + id.Version
}

// ofCluster makes the identity of one master that of the whole cluster.
func (id *Identity) ofCluster(nodes []*Server) {
	id.MaxClients, id.ConnectedClients, id.CommandsPerSec = 0, 0, 0
	id.UsedMemoryBytes, id.MaxMemoryBytes, id.SystemMemoryBytes = 0, 0, 0
	limited := true
	hosts := make(map[string]bool)
	for _, n := range nodes {
		o := n.Identity
		id.Nodes = append(id.Nodes, NodeIdentity{n.Target.Addr(), o.RunID, o.Version, slotCount(n.Slots), o.Local})
		id.Local = id.Local || o.Local
		id.CommandsPerSec += o.CommandsPerSec
		id.UsedMemoryBytes += o.UsedMemoryBytes
		id.MaxMemoryBytes += o.MaxMemoryBytes
		limited = limited && o.MaxMemoryBytes > 0
		if !hosts[n.Target.Host] {
			hosts[n.Target.Host] = true
			id.SystemMemoryBytes += o.SystemMemoryBytes
		}
		known := id.MaxClients > 0
		if o.MaxClients > 0 && (!known || o.MaxClients-o.ConnectedClients < id.MaxClients-id.ConnectedClients) {
			id.MaxClients, id.ConnectedClients = o.MaxClients, o.ConnectedClients
		}
		for _, m := range o.Missing {
			if !slices.Contains(id.Missing, m) {
				id.Missing = append(id.Missing, m)
			}
		}
	}
	if !limited {
		id.MaxMemoryBytes = 0
	}
}
