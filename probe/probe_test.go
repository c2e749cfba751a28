package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/poolsweep/poolsweep/internal/modelserver"
)

func TestSecretIsNotPrinted(t *testing.T) {
	target, err := ParseTarget("redis://bob:hunter2@db")
	if err != nil {
		t.Fatal(err)
	}
	if target.Password.Reveal() != "hunter2" {
		t.Fatalf("the password is lost: %q", target.Password.Reveal())
	}
	b, err := json.Marshal(target)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{fmt.Sprintf("%v %+v %#v %s %q %x", target, target, target, target, target, target), string(b)} {
		if strings.Contains(s, "hunter2") || strings.Contains(s, "68756e74657232") {
			t.Errorf("the password is printed: %s", s)
		}
	}
}

func TestPassword(t *testing.T) {
	t.Setenv("REDISCLI_AUTH", "hunter2")
	if got := PasswordFromEnvironment().Reveal(); got != "hunter2" {
		t.Errorf("from the environment: %q", got)
	}
	if _, still := os.LookupEnv("REDISCLI_AUTH"); still {
		t.Error("the variable is still there for child processes")
	}
	dir := t.TempDir()
	file := func(text string) string {
		path := filepath.Join(dir, "password")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if s, err := SecretFromFile("the password", file("a b\r\nsecond")); err != nil || s.Reveal() != "a b" {
		t.Errorf("from a file: %q, %v", s.Reveal(), err)
	}
	if _, err := SecretFromFile("the password", file("\n")); err == nil {
		t.Error("an empty first line is taken as a password")
	}
	if _, err := SecretFromFile("the password", filepath.Join(dir, "none")); err == nil {
		t.Error("a missing file is no error")
	}
}

// fake starts a server that answers each command as reply says, and returns
// it as a target.
func fake(t *testing.T, reply func(command string) string) Target {
	t.Helper()
	s, err := modelserver.Start(modelserver.Model{Reply: reply})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	target, err := ParseTarget(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// Each thing that makes a target unfit gives one line that says what to do.
func TestConnectRefuses(t *testing.T) {
	info := func(text string) func(string) string {
		return func(command string) string {
			if command == "INFO" {
				return bulk(text)
			}
			return ""
		}
	}
	always := func(reply string) func(string) string {
		return func(string) string { return reply }
	}
	closed := fake(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Port = l.Addr().(*net.TCPAddr).Port
	l.Close()

	for _, tt := range []struct {
		name   string
		target Target
		want   string
	}{
		{"nothing listens", closed, "connection refused; is the server running?"},
		{"no socket", Target{Network: "unix", Socket: "/nowhere/redis.sock"}, "no such socket"},
		{"no password", fake(t, always("-NOAUTH Authentication required.\r\n")), "wants a password; set REDISCLI_AUTH"},
		{"wrong password", fake(t, always("-WRONGPASS invalid username-password pair or user is disabled.\r\n")), "wrong user name or password"},
		{"loading", fake(t, always("-LOADING Redis is loading the dataset in memory\r\n")), "still loading"},
		{"loading, by INFO", fake(t, info("loading:1\r\nrole:master\r\n")), "still loading"},
		{"replica", fake(t, info("role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\n")), "replica; sweep its master (10.0.0.1:6379)"},
		{"replica of Dragonfly", fake(t, info("role:replica\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\n")), "replica; sweep its master (10.0.0.1:6379)"},
		{"sentinel", fake(t, info("redis_mode:sentinel\r\n")), "this is a sentinel; give redis+sentinel://127.0.0.1:"},
		{"no CLUSTER command", fake(t, func(command string) string {
			switch command {
			case "INFO":
				return bulk("redis_mode:cluster\r\nrole:master\r\n")
			case "CLUSTER":
				return "-NOPERM this user has no permissions to run the 'cluster' command\r\n"
			}
			return ""
		}), "CLUSTER SHARDS: NOPERM this user has no permissions to run the 'cluster' command; CLUSTER SLOTS: NOPERM"},
		{"no RESP3", withRESP3(fake(t, nil)), "does not speak RESP3, which came with Redis 6.0; leave out -3"},
		{"no PING", fake(t, func(command string) string {
			if command == "PING" {
				return "-NOPERM this user has no permissions to run the 'ping' command\r\n"
			}
			return ""
		}), "'ping' command; give a user that may run it (--user)"},
		{"AUTH renamed", withPassword(fake(t, always("-ERR unknown command 'AUTH', with args beginning with: 'bob' 'hunter2' \r\n"))), "ERR unknown command 'AUTH'; the server may know no users"},
		{"web server", fake(t, always("HTTP/1.1 400 Bad Request\r\n\r\n")), "not a RESP line; is this a Redis port?"},
		{"maxclients", fake(t, always("-ERR max number of clients reached\r\n")), "max number of clients"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Connect(t.Context(), tt.target)
			if err == nil {
				s.Close()
				t.Fatal("connected")
			}
			wantLine(t, err, tt.want)
		})
	}
}

func withRESP3(t Target) Target {
	t.RESP3 = true
	return t
}

func withPassword(t Target) Target {
	t.User, t.Password = "bob", NewSecret("hunter2")
	return t
}

// wantLine wants an error of one line with the text and without our password.
func wantLine(t *testing.T, err error, text string) {
	t.Helper()
	switch {
	case err == nil:
		t.Errorf("no error, want one with %q", text)
	case !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n"):
		t.Errorf("got %q, want one line with %q", err, text)
	case strings.Contains(err.Error(), "hunter2"):
		t.Errorf("the error tells the password: %v", err)
	}
}

func TestConnectHonoursContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Connect(ctx, fake(t, nil)); err == nil {
		t.Error("connected with a cancelled context")
	}
}

// miniredis knows neither INFO server nor CONFIG: the identity has what there
// is and says what is missing.
func TestConnectWithFewFacts(t *testing.T) {
	m := miniredis.RunT(t)
	target, err := ParseTarget(m.Addr())
	if err != nil {
		t.Fatal(err)
	}
	s, err := Connect(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id := s.Identity
	if missing := strings.Join(id.Missing, "\n"); !strings.Contains(missing, "CONFIG GET save") || id.Kind != "unknown" || id.Local {
		t.Errorf("got %+v", id)
	}
}

func TestReadInfo(t *testing.T) {
	text := "# Server\r\nvalkey_version:8.1.0\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nserver_mode:standalone\r\n" +
		"process_id:12\r\n# Clients\r\nconnected_clients:7\r\nmaxclients:10000\r\ninstantaneous_ops_per_sec:1234\r\n" +
		"used_memory:1000\r\nmaxmemory:0\r\nrole:master\r\naof_enabled:1\r\nexecutable:/usr/bin/a:b\r\n"
	target := fake(t, func(command string) string {
		switch command {
		case "INFO":
			return bulk(text)
		case "CONFIG":
			return "-NOPERM this user has no permissions to run the 'config|get' command\r\n"
		}
		return ""
	})
	s, err := Connect(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want := Identity{
		Kind: "valkey", Version: "8.1.0", Mode: "standalone", Role: "master",
		PID: 12, MaxClients: 10000, ConnectedClients: 7, CommandsPerSec: 1234, UsedMemoryBytes: 1000, AppendOnly: "yes",
		Missing: []string{"CONFIG GET save, appendonly, appendfsync, io-threads, maxclients: " +
			"NOPERM this user has no permissions to run the 'config|get' command: persistence, io-threads and maxclients may be unknown"},
	}
	if d := cmp.Diff(want, s.Identity); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestWindowMerge(t *testing.T) {
	one := func() *Window {
		return &Window{
			Elapsed:   time.Second,
			Generator: GeneratorWindow{CPUSeconds: 1, WaitSeconds: known(0.5), MaxRSSBytes: 7},
			Server:    &ServerWindow{Elapsed: time.Second, CPUSeconds: known(0.9), Commands: 10, ConnectedClients: 3},
			Process:   &ProcessWindow{CPUSeconds: 1, MainCPUSeconds: 0.9},
			Host:      &HostWindow{Cores: 2, BusySeconds: 1.5},
			Network:   &NetworkWindow{Interface: "lo", BytesSent: 5},
		}
	}
	w := one()
	c := w.Clone()
	o := one()
	o.Network = nil // could not be observed this time
	w.Merge(o)
	want := &Window{
		Elapsed:   2 * time.Second,
		Generator: GeneratorWindow{CPUSeconds: 2, WaitSeconds: known(1), MaxRSSBytes: 7},
		Server:    &ServerWindow{Elapsed: 2 * time.Second, CPUSeconds: known(1.8), Commands: 20, ConnectedClients: 3},
		Process:   &ProcessWindow{CPUSeconds: 2, MainCPUSeconds: 1.8},
		Host:      &HostWindow{Cores: 2, BusySeconds: 3},
	}
	if d := cmp.Diff(want, w); d != "" {
		t.Errorf("merged, -want +got:\n%s", d)
	}
	if d := cmp.Diff(one(), c); d != "" {
		t.Errorf("the clone has changed with its original, -want +got:\n%s", d)
	}
}

func FuzzParseInfo(f *testing.F) {
	f.Add("# Server\r\na:b\r\nc:1\r\n")
	f.Fuzz(func(t *testing.T, s string) {
		for name := range parseInfo(s) {
			if strings.ContainsAny(name, ":\n") {
				t.Fatalf("name %q", name)
			}
		}
	})
}
