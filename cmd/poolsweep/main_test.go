package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/poolsweep/poolsweep/internal/embedded"
	"github.com/poolsweep/poolsweep/internal/modelserver"
	"github.com/poolsweep/poolsweep/internal/redistest"
	"github.com/poolsweep/poolsweep/probe"
)

func TestMain(m *testing.M) {
	embedded.Main()
	// Most of what a script does is to wait.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"poolsweep": main})
}

// TestScripts specifies the command. Beside testscript's own commands, the
// scripts have:
//
//	code N[,M] COMMAND...   runs a command that must end with one of these exit codes
//	server                  starts redis-server: sets URL, ADDR and PASSWORD
//	fake KIND               starts a server that refuses to be measured: sets URL
//	cluster N               starts a cluster of N masters: sets URL and NODE1…NODEN
//	tls                     starts a server with TLS that wants a client certificate: sets URL, CA, OTHER_CA, CERT and KEY
//	sentinel                starts a master and its sentinel: sets URL
//	others N                holds N connections to the server until the script ends
//	kill-server             ends the server with SIGKILL
//	setting NAME VALUE      the server's setting has the value
//	keys N                  the server holds N keys
//	lines FILE N            waits until a file has N lines
//	unseen TEXT             no process shows TEXT in its arguments (where there is a /proc)
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":        code,
			"server":      startServer,
			"fake":        startFake,
			"cluster":     func(ts *testscript.TestScript, neg bool, args []string) { startCluster(t, ts, neg, args) },
			"tls":         func(ts *testscript.TestScript, neg bool, args []string) { startTLS(t, ts, neg, args) },
			"sentinel":    func(ts *testscript.TestScript, neg bool, args []string) { startSentinel(t, ts, neg, args) },
			"others":      holdOthers,
			"kill-server": killServer,
			"keys":        countKeys,
			"setting":     checkSetting,
			"lines":       waitForLines,
			"unseen":      unseen,
		},
	})
}

func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N[,M] command...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("running %s: %v", args[1], err)
	}
	if !slices.Contains(strings.Split(args[0], ","), strconv.Itoa(got)) {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

func startServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: server")
	}
	s, err := embedded.Start(context.Background(), "redis-server")
	ts.Check(err)
	ts.Defer(func() { s.Close() })
	ts.Setenv("ADDR", s.Target.Addr())
	ts.Setenv("PORT", strconv.Itoa(s.Target.Port))
	ts.Setenv("URL", s.Target.String())
	ts.Setenv("PASSWORD", s.Target.Password.Reveal())
}

// fakes are the replies with which a server refuses to be measured.
var fakes = map[string]func(command string) string{
	"replica": info("role:slave\r\nmaster_host:db.example\r\nmaster_port:6379\r\n"),
	"loading": func(string) string { return "-LOADING Redis is loading the dataset in memory\r\n" },
	"web":     func(string) string { return "HTTP/1.1 400 Bad Request\r\n\r\n" },
	"full": func(command string) string {
		if command == "SET" {
			return "-OOM command not allowed when used memory > 'maxmemory'.\r\n"
		}
		return info("role:master\r\n")(command)
	},
}

func info(text string) func(string) string {
	return func(command string) string {
		switch command {
		case "INFO":
			return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
		case "UNLINK":
			return ":0\r\n"
		}
		return ""
	}
}

func startFake(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || fakes[args[0]] == nil {
		ts.Fatalf("usage: fake replica|loading|web|full")
	}
	s, err := modelserver.Start(modelserver.Model{Reply: fakes[args[0]]})
	ts.Check(err)
	ts.Defer(s.Close)
	ts.Setenv("URL", "redis://"+s.Addr)
}

// A scriptTB makes the starters of redistest work within a script.
type scriptTB struct {
	testing.TB
	ts *testscript.TestScript
}

func (s scriptTB) Helper()                      {}
func (s scriptTB) Fatal(args ...any)            { s.ts.Fatalf("%s", fmt.Sprint(args...)) }
func (s scriptTB) Fatalf(f string, args ...any) { s.ts.Fatalf(f, args...) }
func (s scriptTB) Cleanup(f func())             { s.ts.Defer(f) }
func (s scriptTB) TempDir() string {
	dir, err := os.MkdirTemp(s.ts.Getenv("WORK"), "")
	s.ts.Check(err)
	return dir
}

func startCluster(t *testing.T, ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: cluster N")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	c := redistest.StartCluster(scriptTB{t, ts}, n)
	for i, m := range c.Masters {
		ts.Setenv(fmt.Sprintf("NODE%d", i+1), m.Addr)
	}
	ts.Setenv("URL", "redis://"+c.Masters[0].Addr)
	ts.Setenv("PASSWORD", "")
}

func startTLS(t *testing.T, ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: tls")
	}
	tb := scriptTB{t, ts}
	c := redistest.NewCertificates(tb)
	s := redistest.StartTLS(tb, c, c.Server)
	ts.Setenv("URL", "rediss://"+s.Addr)
	ts.Setenv("PORT", strconv.Itoa(s.Port))
	for name, value := range map[string]string{"CA": c.CA, "OTHER_CA": c.OtherCA, "CERT": c.Client.Cert, "KEY": c.Client.Key} {
		ts.Setenv(name, value)
	}
}

func startSentinel(t *testing.T, ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: sentinel")
	}
	tb := scriptTB{t, ts}
	s := redistest.StartSentinel(tb, "mymaster", redistest.Start(tb))
	ts.Setenv("URL", "redis+sentinel://"+s.Addr+"/mymaster")
}

func holdOthers(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: others N")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	s := connect(ts)
	ts.Defer(func() { s.Close() })
	for range n {
		c, err := s.Target.Dial(context.Background())
		ts.Check(err)
		ts.Defer(func() { c.Close() })
	}
}

// connect connects to the script's server.
func connect(ts *testscript.TestScript) *probe.Server {
	t, err := probe.ParseTarget(ts.Getenv("URL"))
	ts.Check(err)
	t.Password = probe.NewSecret(ts.Getenv("PASSWORD"))
	s, err := probe.Connect(context.Background(), t)
	ts.Check(err)
	return s
}

func killServer(ts *testscript.TestScript, neg bool, args []string) {
	s := connect(ts)
	defer s.Close()
	p, err := os.FindProcess(s.Identity.PID)
	ts.Check(err)
	ts.Check(p.Kill())
}

func countKeys(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: keys N")
	}
	s := connect(ts)
	defer s.Close()
	var keys []string
	it := s.Client.Scan(context.Background(), 0, "*", 0).Iterator()
	for it.Next(context.Background()) {
		keys = append(keys, it.Val())
	}
	ts.Check(it.Err())
	if strconv.Itoa(len(keys)) != args[0] {
		ts.Fatalf("the server holds %d keys %v, want %s", len(keys), keys, args[0])
	}
}

func checkSetting(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: setting NAME VALUE")
	}
	s := connect(ts)
	defer s.Close()
	got, err := s.Client.ConfigGet(context.Background(), args[0]).Result()
	ts.Check(err)
	if got[args[0]] != args[1] {
		ts.Fatalf("%s is %q, want %q", args[0], got[args[0]], args[1])
	}
}

func waitForLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines FILE N")
	}
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		text, _ := os.ReadFile(ts.MkAbs(args[0]))
		if n := bytes.Count(text, []byte("\n")); n >= want {
			return
		} else if time.Now().After(deadline) {
			ts.Fatalf("%s has %d lines after a minute, want %d", args[0], n, want)
		}
	}
}

func unseen(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: unseen TEXT")
	}
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		text, _ := os.ReadFile(path) // the process may be gone
		if bytes.Contains(text, []byte(args[0])) {
			ts.Fatalf("%s shows %s: %q", path, args[0], text)
		}
	}
	if len(paths) == 0 {
		ts.Logf("no /proc here: nothing was looked at")
	}
}
