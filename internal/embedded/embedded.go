// Package embedded runs a throwaway server for a demonstration and for tests:
// redis-server or valkey-server from PATH without persistence, on a free
// loopback port with a password of its own, else an emulator (miniredis) in a
// process of its own, whose speed says nothing about a real server.
//
// The server is not a child of the process that wants it but of a guard: this
// same program, started again, which ends the server as soon as its standard
// input is closed. So it is removed whatever happens to its user, SIGKILL
// included. Main must be called first thing in main and in TestMain.
package embedded

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/poolsweep/poolsweep/probe"
)

// guardVariable marks, in the environment, a process that is to be a guard.
const guardVariable = "POOLSWEEP_EMBEDDED_GUARD"

// A Server is a throwaway server that runs.
type Server struct {
	Target probe.Target

	// Program is what runs: "redis-server", "valkey-server" or "miniredis".
	Program string

	guard *exec.Cmd
	input io.Closer // closing it ends the guard and with it the server
}

// Emulator is the Program of a server that is no real one.
const Emulator = "miniredis"

// A greeting is the line with which a guard tells that its server is ready.
type greeting struct {
	Program  string `json:"program"`
	Port     int    `json:"port"`
	Password string `json:"password"` // it passes through a pipe only
	Error    string `json:"error"`
}

// Start starts a server and returns when it answers. program names what to
// run, "" the best there is: redis-server, valkey-server, the emulator.
func Start(ctx context.Context, program string) (*Server, error) {
	s, err := start(ctx, program)
	if err != nil {
		return nil, fmt.Errorf("starting an embedded server: %w", err)
	}
	return s, nil
}

func start(ctx context.Context, program string) (*Server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	guard := exec.Command(self)
	guard.Env = append(os.Environ(), guardVariable+"="+guardValue(program))
	detach(guard)
	input, err := guard.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := guard.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := guard.Start(); err != nil {
		return nil, err
	}
	s := &Server{guard: guard, input: input}
	stop := context.AfterFunc(ctx, func() { input.Close() })
	defer stop()
	line, err := bufio.NewReader(output).ReadBytes('\n')
	var g greeting
	if err == nil {
		err = json.Unmarshal(line, &g)
	}
	if err == nil && g.Error != "" {
		err = errors.New(g.Error)
	}
	if err != nil {
		s.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	s.Program = g.Program
	s.Target = probe.Target{Port: g.Port, Password: probe.NewSecret(g.Password)}.Normal()
	return s, nil
}

// Close ends the server and waits until it is gone. It may be called again.
func (s *Server) Close() error {
	s.input.Close()
	if err := s.guard.Wait(); err != nil && s.guard.ProcessState == nil {
		return fmt.Errorf("ending the embedded server: %w", err)
	}
	return nil
}
