package probe

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// An Identity is what a server said of itself before the load. Fields that it
// did not tell are zero, and Missing says why. Its JSON form is part of the
// result file; it holds no secret.
type Identity struct {
	Kind    string `json:"kind"`    // redis, valkey, keydb, dragonfly, garnet; "unknown"
	Version string `json:"version"` // of that kind
	Mode    string `json:"mode"`    // standalone, cluster, sentinel
	Role    string `json:"role"`    // master or slave
	RunID   string `json:"run_id,omitempty"`

	PID   int  `json:"process_id,omitempty"`
	Local bool `json:"local"` // its process is on this machine, and seen

	MaxClients       int64   `json:"maxclients,omitempty"`
	ConnectedClients int64   `json:"connected_clients"` // ours included
	CommandsPerSec   float64 `json:"commands_per_second"`

	UsedMemoryBytes   int64  `json:"used_memory_bytes,omitempty"`
	MaxMemoryBytes    int64  `json:"maxmemory_bytes,omitempty"`     // 0: no limit
	SystemMemoryBytes int64  `json:"system_memory_bytes,omitempty"` // of its host
	MaxMemoryPolicy   string `json:"maxmemory_policy,omitempty"`

	Save        string `json:"save,omitempty"`       // as CONFIG GET save
	AppendOnly  string `json:"appendonly,omitempty"` // yes or no
	AppendFsync string `json:"appendfsync,omitempty"`
	IOThreads   int    `json:"io_threads,omitempty"` // 0: not told; 1: the main thread does all

	// Missing has a sentence for each thing the server would not tell.
	Missing []string `json:"missing,omitempty"`
}

// A Server is a target that has answered. It must be closed after use.
type Server struct {
	Target   Target
	Identity Identity

	// Client is the control connection: a pool of at most two, with the
	// rights of the load.
	Client *redis.Client
}

// Connect connects to the target, reads the server's identity and reports
// what keeps it from being measured: nothing listens, wrong credentials, not
// Redis, still loading, a replica, a sentinel. Each is an error of one line.
func Connect(ctx context.Context, t Target) (*Server, error) {
	t = t.Normal()
	// The first connection is ours and not go-redis', so that what is wrong
	// is said in our words.
	c, err := t.dial(ctx, "PING")
	if err != nil {
		return nil, err
	}
	c.Close()
	s := &Server{Target: t, Client: t.client()}
	if err := s.identify(ctx); err != nil {
		s.Client.Close()
		return nil, err
	}
	return s, nil
}

// Close closes the control connection.
func (s *Server) Close() error { return s.Client.Close() }

func (t Target) client() *redis.Client {
	logging.Disable() // what goes wrong comes back as an error
	return redis.NewClient(&redis.Options{
		Network:         t.Network,
		Addr:            t.Addr(),
		ClientName:      clientName,
		Username:        t.User,
		Password:        t.Password.Reveal(),
		DB:              t.DB,
		Protocol:        2,
		DialTimeout:     replyTimeout,
		ReadTimeout:     replyTimeout,
		WriteTimeout:    replyTimeout,
		PoolSize:        2,
		MaxRetries:      -1, // a retry would hide a stall from the sampler
		DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{
			Mode: maintnotifications.ModeDisabled,
		},
	})
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
		id.miss("INFO", err, "no server CPU, memory, commands or role from it")
	}
	in := parseInfo(text)
	s.readInfo(in)
	s.readConfig(ctx)
	if id.Role == "" {
		// ROLE may be allowed where INFO is not.
		if r, err := s.Client.Do(ctx, "ROLE").Slice(); err == nil && len(r) > 0 {
			id.Role = fmt.Sprint(r[0])
		}
	}
	return s.refuse(in)
}

// readInfo takes what INFO tells.
func (s *Server) readInfo(in info) {
	id := &s.Identity
	id.Kind, id.Version = in.kind()
	id.Mode = in["redis_mode"]
	if m := in["server_mode"]; m != "" { // Valkey
		id.Mode = m
	}
	id.Role, id.RunID = in["role"], in["run_id"]
	id.PID = int(in.int("process_id"))
	id.MaxClients = in.int("maxclients")
	id.ConnectedClients = in.int("connected_clients")
	id.CommandsPerSec = in.float("instantaneous_ops_per_sec")
	id.UsedMemoryBytes = in.int("used_memory")
	id.MaxMemoryBytes = in.int("maxmemory")
	id.SystemMemoryBytes = in.int("total_system_memory")
	id.MaxMemoryPolicy = in["maxmemory_policy"]
	if a, ok := in["aof_enabled"]; ok {
		id.AppendOnly = map[string]string{"0": "no", "1": "yes"}[a]
	}
	id.Local = s.Target.local() && serverProcess(id.PID, s.Target) != nil
	if len(in) > 0 && id.PID == 0 {
		id.Missing = append(id.Missing, "INFO tells no process_id: the server's process cannot be observed")
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
	id.IOThreads, _ = strconv.Atoi(get("io-threads"))
	if v := get("maxclients"); v != "" {
		id.MaxClients, _ = strconv.ParseInt(v, 10, 64)
	}
	if len(missing) > 0 {
		id.miss("CONFIG GET "+strings.Join(missing, ", "), why, "persistence, io-threads and maxclients may be unknown")
	}
}

func (id *Identity) miss(command string, err error, consequence string) {
	id.Missing = append(id.Missing, fmt.Sprintf("%s: %v: %s", command, err, consequence))
}

// refuse reports what makes a server unfit to be measured.
func (s *Server) refuse(in info) error {
	id := s.Identity
	at := "connecting to " + s.Target.Addr()
	switch {
	case in["loading"] == "1" || in["async_loading"] == "1":
		return fmt.Errorf("%s: the server is still loading its data; try again when it has finished", at)
	case id.Role == "slave" || id.Role == "replica":
		return fmt.Errorf("%s: this is a replica; sweep its master (%s:%s) instead", at, in["master_host"], in["master_port"])
	case id.Mode == "sentinel" || id.Role == "sentinel":
		return fmt.Errorf("%s: this is a sentinel; sweep the master that it watches", at)
	case id.Mode == "cluster":
		return fmt.Errorf("%s: this is a node of a cluster, which is not supported yet", at)
	}
	return nil
}

// info is a parsed reply of INFO. Numbers that are not there are 0.
type info map[string]string

// parseInfo reads the lines "name:value" of INFO.
func parseInfo(text string) info {
	in := make(info)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok && !strings.HasPrefix(line, "#") {
			in[name] = value
		}
	}
	return in
}

func (in info) int(name string) int64 {
	n, _ := strconv.ParseInt(in[name], 10, 64)
	return n
}

func (in info) float(name string) float64 {
	x, _ := strconv.ParseFloat(in[name], 64)
	return x
}

// kinds are the servers that name their own version beside redis_version,
// which they keep for compatibility.
var kinds = []string{"valkey", "keydb", "dragonfly", "garnet"}

func (in info) kind() (kind, version string) {
	for _, k := range kinds {
		if v := in[k+"_version"]; v != "" {
			return k, v
		}
	}
	if name := in["server_name"]; slices.Contains(kinds, name) {
		return name, in["redis_version"]
	}
	if v := in["redis_version"]; v != "" {
		return "redis", v
	}
	return "unknown", ""
}

// Title returns kind and version for print: "redis 7.0.15".
func (id Identity) Title() string {
	if id.Version == "" {
		return "a server of unknown kind"
	}
	return id.Kind + " " + id.Version
}
