package embedded

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/poolsweep/poolsweep/probe"
)

// anyProgram stands for "the best there is" in the guard's variable, which
// must not be empty.
const anyProgram = "any"

func guardValue(program string) string {
	if program == "" {
		return anyProgram
	}
	return program
}

// Main turns this process into a guard if it was started as one, and then
// does not return. Otherwise it does nothing.
func Main() {
	program := os.Getenv(guardVariable)
	if program == "" {
		return
	}
	os.Unsetenv(guardVariable)
	// A terminal's Ctrl-C is for the user of the server, who may still want
	// to remove keys.
	signal.Ignore(os.Interrupt, syscall.SIGHUP)
	// A child's death signal is tied to the thread that started it.
	runtime.LockOSThread()
	stop, g, err := startServer(program)
	if err != nil {
		g.Error = err.Error()
	}
	line, _ := json.Marshal(g)
	fmt.Println(string(line))
	if err != nil {
		os.Exit(1)
	}
	io.Copy(io.Discard, os.Stdin) // until our user closes it or is gone
	stop()
	os.Exit(0)
}

// startServer starts the program and returns how to stop it.
func startServer(program string) (stop func(), g greeting, err error) {
	candidates := []string{"redis-server", "valkey-server"}
	if program != anyProgram {
		candidates = []string{program}
	}
	for _, name := range candidates {
		if name == Emulator {
			break
		}
		if path, err := exec.LookPath(name); err == nil {
			return startReal(name, path)
		}
	}
	if program != anyProgram && program != Emulator {
		return nil, g, fmt.Errorf("%s is not on PATH", program)
	}
	m := miniredis.NewMiniRedis()
	g = greeting{Program: Emulator, Password: rand.Text()}
	m.RequireAuth(g.Password)
	if err := m.StartAddr("127.0.0.1:0"); err != nil {
		return nil, g, err
	}
	g.Port = m.Server().Addr().Port
	return m.Close, g, nil
}

// startReal starts a real server. The port is free when it is chosen, not
// when the server takes it: another process may be faster, so a server that
// ends at once is tried again.
func startReal(name, path string) (stop func(), g greeting, err error) {
	// The server's own folder: it would load a dump.rdb of the current one,
	// and write its append-only file there where somebody turns that on.
	dir, err := os.MkdirTemp("", "poolsweep-")
	if err != nil {
		return nil, g, err
	}
	for range 5 {
		g = greeting{Program: name, Password: rand.Text()}
		if g.Port, err = freePort(); err != nil {
			break
		}
		server := exec.Command(path, "-") // configuration from standard input: the password is in no argument
		server.Stdin = strings.NewReader(fmt.Sprintf(configuration, g.Port, g.Password, dir))
		endWithParent(server)
		if err = server.Start(); err != nil {
			break
		}
		gone := make(chan error, 1)
		go func() { gone <- server.Wait() }()
		end := func() {
			server.Process.Signal(syscall.SIGTERM)
			select {
			case <-gone:
			case <-time.After(5 * time.Second):
				server.Process.Kill()
			}
		}
		if err = ready(g, gone); err == nil {
			return func() { end(); os.RemoveAll(dir) }, g, nil
		}
		end()
	}
	os.RemoveAll(dir)
	return nil, g, fmt.Errorf("starting %s: %w", name, err)
}

const configuration = `bind 127.0.0.1
port %d
requirepass %s
save ""
appendonly no
dir %s
daemonize no
loglevel warning
logfile /dev/null
`

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// ready waits until the server answers or has ended.
func ready(g greeting, gone chan error) error {
	t := probe.Target{Port: g.Port, Password: probe.NewSecret(g.Password)}.Normal()
	deadline := time.After(10 * time.Second)
	for {
		c, err := t.Dial(context.Background())
		if err == nil {
			return c.Close()
		}
		select {
		case werr := <-gone:
			gone <- werr // for stop
			return errors.New("it ended at once")
		case <-deadline:
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}
