// Package redistest starts real servers for tests: single ones, clusters,
// sentinels and servers that speak TLS. It is for tests only. Each server
// listens on a free loopback port, keeps nothing, and ends with the test; on
// Linux also when the test's process is killed.
//
// It must not import package probe, whose own tests use it.
package redistest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// patience bounds every wait for a condition. It is far beyond what a server
// needs, as the machine may be busy.
const patience = 30 * time.Second

// A Server is a redis-server that runs.
type Server struct {
	Addr string // host:port
	Port int    // of Addr

	certificates *Certificates // nil without TLS

	process *exec.Cmd
	gone    chan struct{} // closed when the process has ended
	output  *bytes.Buffer // valid when it has ended
}

// Start starts redis-server with the arguments behind those for port and
// persistence, and waits until it answers.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, false, func(port int) []string {
		return slices.Concat([]string{"--port", strconv.Itoa(port)}, keepNothing, args)
	})
}

// keepNothing are the arguments of a server without persistence.
var keepNothing = []string{"--bind", "127.0.0.1", "--save", "", "--appendonly", "no"}

// start starts redis-server with the arguments for a port that is free, and
// with bus the port 10,000 above it, too. Another process may take the port
// first: a server that ends at once is tried again with another one.
func start(t testing.TB, bus bool, arguments func(port int) []string) *Server {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal(err)
	}
	var s *Server
	for range 5 {
		port := freePort(t, bus)
		s = &Server{
			Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Port: port,
			gone: make(chan struct{}), output: new(bytes.Buffer),
		}
		s.process = exec.Command(program, arguments(port)...)
		s.process.Dir = t.TempDir()
		s.process.Stdout, s.process.Stderr = s.output, s.output
		if err := s.run(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Kill)
		if s.listens() {
			return s
		}
		s.Kill()
	}
	t.Fatalf("redis-server does not start:\n%s", s.output)
	return nil
}

// listens waits until the server takes connections; false when it has ended
// or time is up.
func (s *Server) listens() bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if c, err := net.Dial("tcp", s.Addr); err == nil {
			c.Close()
			return true
		}
		select {
		case <-s.gone:
			return false
		case <-time.After(5 * time.Millisecond): // between two looks
		}
	}
	return false
}

// Kill ends the server at once, as a crash does, and waits until it is gone.
// It may be called again.
func (s *Server) Kill() {
	s.process.Process.Kill()
	<-s.gone
}

// Restart ends the server at once and starts it anew at the same port.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Kill()
	old := s.process
	s.process, s.gone = exec.Command(old.Path, old.Args[1:]...), make(chan struct{})
	s.process.Dir, s.process.Stdout, s.process.Stderr = old.Dir, old.Stdout, old.Stderr
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
	if !s.listens() {
		t.Fatalf("redis-server does not start again:\n%s", s.output)
	}
}

// run starts the process.
func (s *Server) run() error {
	if err := startProcess(s.process); err != nil {
		return err
	}
	process, gone := s.process, s.gone
	go func() {
		process.Wait()
		close(gone)
	}()
	return nil
}

// Client returns a client of the server that is closed with the test. The
// server must want no password.
func (s *Server) Client(t testing.TB) *redis.Client {
	t.Helper()
	logging.Disable()
	c := redis.NewClient(&redis.Options{
		Addr:                     s.Addr,
		TLSConfig:                s.certificates.config(t),
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { c.Close() })
	return c
}

// do sends a command that must succeed.
func do(t testing.TB, c *redis.Client, args ...any) *redis.Cmd {
	t.Helper()
	reply := c.Do(context.Background(), args...)
	if err := reply.Err(); err != nil {
		t.Fatalf("%s: %s: %v", c.Options().Addr, fmt.Sprintln(args...), err)
	}
	return reply
}

// wait waits until the condition holds.
func wait(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
		time.Sleep(5 * time.Millisecond) // between two looks
	}
}

var (
	portsMu sync.Mutex
	ports   = make(map[int]bool) // those given out
)

// freePort returns a loopback port that nobody listens on and that this
// process has not given out before; with bus, of the port 10,000 above, too.
func freePort(t testing.TB, bus bool) int {
	t.Helper()
	portsMu.Lock()
	defer portsMu.Unlock()
	for range 1000 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if ports[port] {
			continue
		}
		if bus {
			if ports[port+10000] || port+10000 > 65535 {
				continue
			}
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+10000))
			if err != nil {
				continue
			}
			l.Close()
			ports[port+10000] = true
		}
		ports[port] = true
		return port
	}
	t.Fatal("no port is free")
	return 0
}

// field returns a field of an INFO-like text, "" when it is not there.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
