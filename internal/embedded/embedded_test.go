package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/poolsweep/poolsweep/probe"
)

// userVariable marks a process of TestRemovedWhenUserIsKilled.
const userVariable = "POOLSWEEP_TEST_USER"

func TestMain(m *testing.M) {
	Main()
	if os.Getenv(userVariable) != "" {
		s, err := Start(context.Background(), "")
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(s.Target.Addr())
		select {}
	}
	os.Exit(m.Run())
}

func TestStart(t *testing.T) {
	for _, program := range []string{"redis-server", Emulator} {
		t.Run(program, func(t *testing.T) {
			s, err := Start(t.Context(), program)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if s.Program != program {
				t.Errorf("%s runs, want %s", s.Program, program)
			}
			server, err := probe.Connect(t.Context(), s.Target)
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			if id := server.Identity; s.Program != Emulator && (!id.Local || id.Save != "" || id.AppendOnly != "no") {
				t.Errorf("identity %+v: want a local server without persistence", id)
			}
			// The password is wanted.
			other := s.Target
			other.Password = probe.Secret{}
			if c, err := probe.Connect(t.Context(), other); err == nil {
				c.Close()
				t.Error("connected without the password")
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			waitUntilGone(t, s.Target.Addr())
		})
	}
}

func TestStartUnknownProgram(t *testing.T) {
	if s, err := Start(t.Context(), "no-such-server"); err == nil {
		s.Close()
		t.Error("started")
	} else if !strings.Contains(err.Error(), "no-such-server is not on PATH") {
		t.Errorf("got error %v", err)
	}
}

// A user that is killed cannot close anything; the server ends all the same.
func TestRemovedWhenUserIsKilled(t *testing.T) {
	user := exec.Command(os.Args[0])
	user.Env = append(os.Environ(), userVariable+"=1")
	out, err := user.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := user.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	addr := strings.TrimSpace(line)
	if c, err := net.Dial("tcp", addr); err != nil {
		t.Fatal(err)
	} else {
		c.Close()
	}
	user.Process.Kill()
	user.Wait()
	waitUntilGone(t, addr)
}

func waitUntilGone(t *testing.T, addr string) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		c.Close()
		time.Sleep(10 * time.Millisecond) // between two looks
	}
	t.Errorf("a server still listens at %s", addr)
}

// A dump of somebody else in the current folder is not loaded: the server is
// empty, and measured as such.
func TestLoadsNoDump(t *testing.T) {
	t.Chdir(t.TempDir())
	first, err := Start(t.Context(), "redis-server")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	s, err := probe.Connect(t.Context(), first.Target)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := errors.Join(
		s.Client.Set(t.Context(), "key", "of somebody else", 0).Err(),
		s.Client.Save(t.Context()).Err(),
	); err != nil {
		t.Fatal(err)
	}
	dir := s.Client.ConfigGet(t.Context(), "dir").Val()["dir"]
	dump, err := os.ReadFile(filepath.Join(dir, "dump.rdb"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("dump.rdb", dump, 0o600); err != nil {
		t.Fatal(err)
	}
	second, err := Start(t.Context(), "redis-server")
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	again, err := probe.Connect(t.Context(), second.Target)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if n := again.Client.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("an embedded server begins with %d keys", n)
	}
}

// The folder of a server goes with it.
func TestLeavesNoFolder(t *testing.T) {
	e, err := Start(t.Context(), "redis-server")
	if err != nil {
		t.Fatal(err)
	}
	s, err := probe.Connect(t.Context(), e.Target)
	if err != nil {
		t.Fatal(err)
	}
	dir := s.Client.ConfigGet(t.Context(), "dir").Val()["dir"]
	if here, err := os.Getwd(); err != nil || dir == here {
		t.Errorf("the server works in %s, which is ours", dir)
	}
	if err := s.Client.ConfigSet(t.Context(), "appendonly", "yes").Err(); err != nil {
		t.Fatal(err)
	}
	for busy := true; busy; { // a server that writes its first AOF does not end
		if busy, err = s.Saving(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}
