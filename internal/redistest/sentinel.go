package redistest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// StartSentinel starts a sentinel that watches the master under the name,
// with further lines of configuration. It speaks TLS if the master does.
func StartSentinel(t testing.TB, name string, master *Server, lines ...string) *Server {
	t.Helper()
	s := start(t, false, func(port int) []string {
		// A sentinel writes its configuration anew.
		path := filepath.Join(t.TempDir(), "sentinel.conf")
		text := fmt.Sprintf("bind 127.0.0.1\nsentinel monitor %s 127.0.0.1 %d 1\n%s\n", name, master.Port, strings.Join(lines, "\n"))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{path, "--sentinel"}
		if c := master.certificates; c != nil {
			args = append(args, "--port", "0", "--tls-port", strconv.Itoa(port), "--tls-replication", "yes")
			return append(args, c.arguments(c.Server)...)
		}
		return append(args, "--port", strconv.Itoa(port))
	})
	s.certificates = master.certificates
	return s
}

// StartReplica starts a replica of a master and waits until it follows.
func StartReplica(t testing.TB, master *Server, args ...string) *Server {
	t.Helper()
	s := Start(t, append([]string{"--replicaof", fmt.Sprintf("127.0.0.1 %d", master.Port)}, args...)...)
	client := s.Client(t)
	wait(t, "the replica follows", func() bool {
		return field(client.Info(context.Background(), "replication").Val(), "master_link_status") == "up"
	})
	return s
}
