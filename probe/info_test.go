package probe

import "testing"

// The texts are of INFO as the servers' own sources print it, shortened:
// Dragonfly src/server/server_family.cc, Garnet
// libs/server/Metrics/Info/GarnetInfoMetrics.cs; KeyDB's and Valkey's are of
// running servers.
func TestInfoOfKinds(t *testing.T) {
	for _, tt := range []struct {
		name, text, kind, version, mode string
		maxClients                      int64
		threads                         int
	}{
		{"Redis", "redis_version:7.0.15\r\nredis_mode:standalone\r\nmaxclients:10000\r\n", "redis", "7.0.15", "standalone", 10000, 0},
		{"Valkey", "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.0\r\nserver_mode:cluster\r\n", "valkey", "8.1.0", "cluster", 0, 0},
		{"KeyDB", "redis_version:6.3.4\r\nredis_mode:standalone\r\nmaxclients:10000\r\nserver_threads:2\r\n# KeyDB\r\nmvcc_depth:0\r\n", "keydb", "6.3.4", "standalone", 10000, 2},
		{"Dragonfly", "redis_version:7.4.0\r\ndragonfly_version:df-v1.30.0\r\nredis_mode:standalone\r\nthread_count:4\r\nmax_clients:64000\r\n", "dragonfly", "v1.30.0", "standalone", 64000, 4},
		{"Garnet", "garnet_version:1.0.65\r\nredis_version:7.4.3\r\nredis_mode:cluster\r\n", "garnet", "1.0.65", "cluster", 0, 0},
		{"a name only", "redis_version:7.2.4\r\nserver_name:keydb\r\n", "keydb", "7.2.4", "", 0, 0},
		{"no sections", "", "unknown", "", "", 0, 0},
	} {
		in := parseInfo(tt.text)
		kind, version := in.kind()
		if kind != tt.kind || version != tt.version || in.mode() != tt.mode || in.maxClients() != tt.maxClients || in.threads() != tt.threads {
			t.Errorf("%s: %s %s, mode %q, maxclients %d, threads %d; want %s %s, %q, %d, %d", tt.name,
				kind, version, in.mode(), in.maxClients(), in.threads(), tt.kind, tt.version, tt.mode, tt.maxClients, tt.threads)
		}
	}
}
