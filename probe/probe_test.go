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

func TestParseTarget(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want string // as String prints it; "" wants an error
		err  string
	}{
		{in: "redis://127.0.0.1:6379", want: "redis://127.0.0.1:6379"},
		{in: "redis://bob:hunter2@db.example:7000/3", want: "redis://bob@db.example:7000/3"},
		{in: "redis://:hunter2@db", want: "redis://db:6379"},
		{in: "db.example:7000", want: "redis://db.example:7000"},
		{in: "redis://[::1]:7000", want: "redis://[::1]:7000"},
		{in: "unix:///run/redis.sock?db=2", want: "unix:///run/redis.sock?db=2"},
		{in: "unix://", err: "needs a path"},
		{in: "http://db", err: `unknown scheme "http"`},
		{in: "rediss://db", err: "not supported yet"},
		{in: "redis://db:99999", err: "99999"},
		{in: "redis://db/x", err: `"x" is not a number`},
		{in: "redis://:hunter2@db:port", err: "URL"},
	} {
		got, err := ParseTarget(tt.in)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: got error %v, want one with %q", tt.in, err, tt.err)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: the error tells the password: %v", tt.in, err)
			}
			continue
		}
		if err != nil || got.Normal().String() != tt.want {
			t.Errorf("%s: got %v, %v, want %s", tt.in, got.Normal(), err, tt.want)
		}
	}
}

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
	if s, err := PasswordFromFile(file("a b\r\nsecond")); err != nil || s.Reveal() != "a b" {
		t.Errorf("from a file: %q, %v", s.Reveal(), err)
	}
	if _, err := PasswordFromFile(file("\n")); err == nil {
		t.Error("an empty first line is taken as a password")
	}
	if _, err := PasswordFromFile(filepath.Join(dir, "none")); err == nil {
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
		{"sentinel", fake(t, info("redis_mode:sentinel\r\n")), "sentinel"},
		{"cluster", fake(t, info("redis_mode:cluster\r\nrole:master\r\n")), "cluster"},
		{"web server", fake(t, always("HTTP/1.1 400 Bad Request\r\n\r\n")), "not a RESP line; is this a Redis port?"},
		{"maxclients", fake(t, always("-ERR max number of clients reached\r\n")), "max number of clients"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Connect(t.Context(), tt.target)
			if err == nil {
				s.Close()
				t.Fatal("connected")
			}
			if !strings.HasPrefix(err.Error(), "connecting to ") || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q, want one line with %q", err, tt.want)
			}
		})
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

// FuzzParseTarget: what is accepted prints as a URL that is read as the same
// target.
func FuzzParseTarget(f *testing.F) {
	for _, s := range []string{"redis://u:p@h:1/2", "unix:///a?db=1", "h:1", "redis://[::1%25lo]:1", "://", "redis://h:0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseTarget(s)
		if err != nil {
			return
		}
		a = a.Normal()
		a.Password = Secret{}
		b, err := ParseTarget(a.String())
		if err != nil {
			t.Fatalf("%q prints as %q: %v", s, a, err)
		}
		if b = b.Normal(); a != b {
			t.Fatalf("%q: %#v prints as %q, which is %#v", s, a, a, b)
		}
	})
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
