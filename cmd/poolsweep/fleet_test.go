//go:build unix && !nofleet

package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/poolsweep/poolsweep/internal/redistest"
	"github.com/poolsweep/poolsweep/sweep"
)

const fleetRun = " -q -t set -c 2,4,8 --fixed --trials 1 --slices 2 --duration 200ms --warmup 50ms -o "

// launchFleet starts a run with two agents on host, and the agents by what the
// run prints.
func launchFleet(t *testing.T, url, host, flags, file string, runEnv, agentEnv []string) (run *command, agents []*command) {
	t.Helper()
	run = launch(t, runEnv, "poolsweep run "+url+" --agents 2 --listen "+net.JoinHostPort(host, "0")+flags+file)
	join := run.finds(t, `start 2 agents with: (.+)\n`)
	for _, name := range []string{"one", "two"} {
		agents = append(agents, launch(t, agentEnv, join+" --threads 1 --once --name "+name))
	}
	return run, agents
}

func readResult(t *testing.T, path string) *sweep.Result {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	res, err := sweep.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// One command, one table: what the run prints is typed on the other machines.
// Over loopback the agents have their own password, over TLS that of the run.
func TestFleet(t *testing.T) {
	s := redistest.Start(t, "--requirepass", "pa55word", "--bind", "0.0.0.0", "--protected-mode", "no")
	password := []string{"REDISCLI_AUTH=pa55word"}
	for _, tt := range []struct {
		name, host string
		agents     []string
	}{
		{"loopback", "127.0.0.1", password},
		{"TLS", "0.0.0.0", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "r.jsonl")
			run, agents := launchFleet(t, "redis://"+s.Addr, tt.host, fleetRun, file, password, tt.agents)
			run.ends(t, 0, 3)
			for _, a := range agents {
				a.ends(t, 0)
			}
			res := readResult(t, file)
			if len(res.Slices) < 6 || len(res.Calibrations) == 0 {
				t.Fatalf("%d slices, %d calibrations", len(res.Slices), len(res.Calibrations))
			}
			for _, x := range res.Slices {
				if m := x.Measurement; len(m.Agents) != 2 || m.Sent != m.Received || m.Requests == 0 {
					t.Errorf("%d clients: %+v", m.Clients, m.Agents)
				}
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all := string(text) + run.text() + agents[0].text() + agents[1].text()
			if strings.Contains(all, "pa55word") {
				t.Error("the password is shown")
			}
			if tt.name == "TLS" {
				token := run.finds(t, `POOLSWEEP_TOKEN=(\S+)`)
				if n := strings.Count(all, token); n != 1 {
					t.Errorf("the token is shown %d times, want once", n)
				}
			}
		})
	}
}

// commands returns how many commands a server has processed.
func commands(t *testing.T, c *redis.Client) int {
	t.Helper()
	text, err := c.Info(context.Background(), "stats").Result()
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`total_commands_processed:(\d+)`).FindStringSubmatch(text)
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// When the run is killed, or frozen, its agents stop the load within two
// seconds. What a frozen one was measuring is void when it wakes, and it goes
// on.
func TestFleetControllerFails(t *testing.T) {
	for _, tt := range []struct {
		name   string
		signal syscall.Signal
	}{{"killed", syscall.SIGKILL}, {"frozen", syscall.SIGSTOP}} {
		t.Run(tt.name, func(t *testing.T) {
			s := redistest.Start(t)
			db := s.Client(t)
			file := filepath.Join(t.TempDir(), "r.jsonl")
			flags := " -q -t set -c 2,4 --fixed --trials 1 --slices 1 --duration 2s --warmup 50ms -o "
			run, agents := launchFleet(t, "redis://"+s.Addr, "127.0.0.1", flags, file, nil, nil)
			busy := func() bool { // more than INFO in 50 ms
				n := commands(t, db)
				time.Sleep(50 * time.Millisecond)
				return commands(t, db) > n+20
			}
			for deadline := time.Now().Add(30 * time.Second); !busy() || !slicesBegun(file); {
				if time.Now().After(deadline) {
					t.Fatal("there is no load within 30 s")
				}
			}
			run.Process.Signal(tt.signal)
			from := time.Now()
			for busy() {
				if time.Since(from) > 10*time.Second {
					t.Fatal("the load goes on")
				}
			}
			took := time.Since(from)
			t.Logf("the load has stopped %v after the run was %s", took.Round(10*time.Millisecond), tt.name)
			if took > 2200*time.Millisecond { // two readings of the count included
				t.Errorf("the load went on for %v", took)
			}
			if tt.signal == syscall.SIGKILL {
				for _, a := range agents {
					a.Process.Signal(syscall.SIGTERM)
					a.ends(t, 0)
				}
				return
			}
			run.Process.Signal(syscall.SIGCONT)
			run.ends(t, 0, 3)
			for _, a := range agents {
				a.ends(t, 0)
			}
			if res := readResult(t, file); len(res.Slices) < 2 {
				t.Errorf("%d slices", len(res.Slices))
			}
		})
	}
}

// slicesBegun reports whether the preparations of a run are over: its
// calibration stands in the file.
func slicesBegun(file string) bool {
	text, _ := os.ReadFile(file)
	return bytes.Contains(text, []byte(`"calibration"`))
}
