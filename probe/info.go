package probe

import (
	"slices"
	"strconv"
	"strings"
)

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
var kinds = []string{"valkey", "dragonfly", "garnet", "keydb"}

// kind tells which server it is and its version in that server's own count.
// Valkey, Dragonfly and Garnet have a field for it. KeyDB has none: its
// redis_version is its own version, and what gives it away is mvcc_depth,
// the field of a section that no other server has.
func (in info) kind() (kind, version string) {
	for _, k := range kinds {
		if v := in[k+"_version"]; v != "" {
			return k, strings.TrimPrefix(v, "df-") // Dragonfly's "df-v1.30.0"
		}
	}
	version = in["redis_version"]
	switch name := in["server_name"]; {
	case slices.Contains(kinds, name):
		return name, version
	case in["mvcc_depth"] != "":
		return "keydb", version
	case version != "":
		return "redis", version
	}
	return "unknown", ""
}

// maxClients returns the limit on connections, 0 when it is not told.
// Dragonfly has it under a name of its own.
func (in info) maxClients() int64 {
	return max(in.int("maxclients"), in.int("max_clients"))
}

// threads returns how many threads read, run and answer commands on a server
// that has no main thread for it (KeyDB, Dragonfly), 0 on any other.
func (in info) threads() int {
	return int(max(in.int("server_threads"), in.int("thread_count")))
}

// mode returns how the server runs: standalone, cluster or sentinel; "" when
// it is not told. Valkey has a name of its own for it.
func (in info) mode() string {
	if m := in["server_mode"]; m != "" {
		return m
	}
	return in["redis_mode"]
}

// isMaster reports whether a server of that role takes writes of its own:
// KeyDB's active replicas do.
func isMaster(role string) bool { return role == "master" || role == "active-replica" }

// isReplica reports whether a server of that role follows another one.
// Dragonfly says "replica".
func isReplica(role string) bool { return role == "slave" || role == "replica" }
