package probe

import (
	"bufio"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/poolsweep/poolsweep/internal/redistest"
)

// targetOf returns a started server as a target.
func targetOf(t *testing.T, s *redistest.Server) Target {
	t.Helper()
	target, err := ParseTarget(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// do has the server run a command that must succeed.
func do(t *testing.T, c *redis.Client, args ...any) *redis.Cmd {
	t.Helper()
	reply := c.Do(t.Context(), args...)
	if reply.Err() != nil {
		t.Fatalf("%v: %v", args, reply.Err())
	}
	return reply
}

// clientInfo returns what the server says of the connection that asks.
func clientInfo(t *testing.T, c net.Conn) string {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(replyTimeout)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, "CLIENT INFO\r\n")
	line := ""
	for r := bufio.NewReader(c); !strings.Contains(line, "laddr="); {
		var err error
		if line, err = r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	return strings.TrimSuffix(line, "\n") + " "
}

// A connection for the load is as the target says, by CLIENT INFO: resp is the
// version of the protocol, flags have t for tracking.
func TestDial(t *testing.T) {
	s := redistest.Start(t)
	admin := s.Client(t)
	do(t, admin, "ACL", "SETUSER", "bob", "on", ">hunter2", "+@all", "~*")
	plain := targetOf(t, s)
	for _, tt := range []struct {
		name string
		set  func(*Target)
		want []string
	}{
		{"plain", func(*Target) {}, []string{"resp=2 ", "user=default ", "db=0 ", "name=poolsweep ", "flags=N "}},
		{"user and database", func(t *Target) { t.User, t.Password, t.DB = "bob", NewSecret("hunter2"), 3 }, []string{"resp=2 ", "user=bob ", "db=3 "}},
		{"RESP3", func(t *Target) { t.RESP3 = true }, []string{"resp=3 ", "user=default ", "name=poolsweep "}},
		{"RESP3 and user", func(t *Target) { t.RESP3, t.User, t.Password = true, "bob", NewSecret("hunter2") }, []string{"resp=3 ", "user=bob "}},
		{"tracking", func(t *Target) { t.RESP3, t.Tracking = true, true }, []string{"resp=3 ", "flags=t "}},
		{"tracking with RESP2", func(t *Target) { t.Tracking = true }, []string{"resp=2 ", "flags=t "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := plain
			tt.set(&target)
			c, err := target.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			info := clientInfo(t, c)
			for _, want := range tt.want {
				if !strings.Contains(info, want) {
					t.Errorf("%q, want %q in it", info, want)
				}
			}
			// The control connection speaks RESP2 and tracks nothing.
			server, err := Connect(t.Context(), target)
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			if info := do(t, server.Client, "CLIENT", "INFO").Val().(string); !strings.Contains(info, "flags=N ") || !strings.Contains(info, "resp=2") {
				t.Errorf("the control connection: %q", info)
			}
		})
	}
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "redis.sock")
	redistest.Start(t, "--unixsocket", path)
	target, err := ParseTarget("unix://" + path + "?db=2")
	if err != nil {
		t.Fatal(err)
	}
	server, err := Connect(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	c, err := target.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if info := clientInfo(t, c); !server.Identity.Local || !strings.Contains(info, "db=2 ") {
		t.Errorf("identity %+v, connection %q", server.Identity, info)
	}
}

// What a real server refuses is said in one line.
func TestRefusedByServer(t *testing.T) {
	s := redistest.Start(t, "--requirepass", "hunter2", "--rename-command", "INFO", "", "--rename-command", "CONFIG", "")
	with := func(set func(*Target)) Target {
		target := targetOf(t, s)
		set(&target)
		return target
	}
	password := NewSecret("hunter2")
	if _, err := Connect(t.Context(), targetOf(t, s)); err == nil {
		t.Error("connected without a password")
	} else {
		wantLine(t, err, "wants a password; set REDISCLI_AUTH or give --password-file")
	}
	admin, err := Connect(t.Context(), with(func(t *Target) { t.Password = password }))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	do(t, admin.Client, "ACL", "SETUSER", "noclient", "on", "nopass", "+@all", "-client", "~*")
	do(t, admin.Client, "ACL", "SETUSER", "noping", "on", "nopass", "+@all", "-ping", "~*")
	do(t, admin.Client, "ACL", "SETUSER", "noselect", "on", "nopass", "+@all", "-select", "~*")
	for _, tt := range []struct {
		name string
		set  func(*Target)
		want string
	}{
		{"RESP3 without a password", func(t *Target) { t.RESP3 = true }, "wants a password"},
		{"wrong password", func(t *Target) { t.Password = NewSecret("x") }, "wrong user name or password"},
		{"wrong password, RESP3", func(t *Target) { t.RESP3, t.Password = true, NewSecret("x") }, "wrong user name or password"},
		{"wrong user", func(t *Target) { t.User, t.Password = "nobody", password }, "wrong user name or password"},
		{"no such database", func(t *Target) { t.Password, t.DB = password, 99 }, "DB index is out of range"},
		{"PING forbidden", func(t *Target) { t.User, t.Password = "noping", NewSecret("x") }, "'ping' command; give a user that may run it (--user)"},
		{"SELECT forbidden", func(t *Target) { t.User, t.Password, t.DB = "noselect", NewSecret("x"), 1 }, "'select' command; give a user"},
		{"tracking forbidden", func(t *Target) { t.User, t.Password, t.Tracking = "noclient", NewSecret("x"), true }, "'client|tracking' command; give a user"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Connect(t.Context(), with(tt.set))
			wantLine(t, err, "connecting to "+s.Addr+": ")
			wantLine(t, err, tt.want)
		})
	}
}

// A server that knows no INFO and no CONFIG, to a user who may not use CLIENT,
// is connected to all the same, and HELLO tells what it is.
func TestFewFactsOfRealServer(t *testing.T) {
	s := redistest.Start(t, "--rename-command", "INFO", "", "--rename-command", "CONFIG", "")
	do(t, s.Client(t), "ACL", "SETUSER", "bob", "on", "nopass", "+@all", "-client", "~*")
	target := targetOf(t, s)
	target.User, target.Password = "bob", NewSecret("x")
	server, err := Connect(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	id := server.Identity
	if id.Kind != "redis" || id.Version == "" || id.Mode != "standalone" || id.Role != "master" {
		t.Errorf("identity %+v", id)
	}
	missing := strings.Join(id.Missing, "\n")
	for _, want := range []string{"INFO: ERR unknown command 'info': no server CPU", "CONFIG GET save, appendonly, appendfsync, io-threads, maxclients: ERR unknown command 'config'"} {
		if !strings.Contains(missing, want) {
			t.Errorf("missing:\n%s\nwant %q in it", missing, want)
		}
	}
	sm := NewSampler(server)
	if _, ok := sm.Commands(t.Context()); ok {
		t.Error("commands are counted without INFO")
	}
	a := sm.Sample(t.Context())
	if w := sm.Between(a, sm.Sample(t.Context())); w.Server != nil || w.Host == nil {
		t.Errorf("window %+v", w)
	}
}

// A replica of a real server is refused with the address of its master.
func TestReplicaIsRefused(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	_, err := Connect(t.Context(), targetOf(t, redistest.StartReplica(t, master)))
	wantLine(t, err, "this is a replica; sweep its master ("+master.Addr+") instead")
}
