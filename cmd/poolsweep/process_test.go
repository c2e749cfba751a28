//go:build unix

package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A command is a poolsweep process whose output is kept.
type command struct {
	*exec.Cmd
	gone chan struct{}

	mu     sync.Mutex
	output bytes.Buffer // both streams
}

// launch starts a command line with an environment. It ends with the test.
func launch(t *testing.T, env []string, line string) *command {
	t.Helper()
	c := &command{Cmd: exec.Command("sh", "-c", "exec env "+line), gone: make(chan struct{})}
	c.Env = append(os.Environ(), env...)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout, c.Stderr = w, w
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	go func() {
		for scan := bufio.NewScanner(r); scan.Scan(); {
			c.mu.Lock()
			c.output.WriteString(scan.Text() + "\n")
			c.mu.Unlock()
		}
		c.Wait()
		close(c.gone)
	}()
	t.Cleanup(func() {
		c.Process.Signal(syscall.SIGCONT)
		c.Process.Kill()
		<-c.gone
		if t.Failed() {
			t.Logf("%s:\n%s", line, c.text())
		}
	})
	return c
}

func (c *command) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.output.String()
}

// finds waits until the output has a match, and returns its first group.
func (c *command) finds(t *testing.T, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if m := re.FindStringSubmatch(c.text()); m != nil {
			return m[len(m)-1]
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %q within 30 s", pattern)
		}
	}
}

// ends waits for the end of the process, with one of these exit codes.
func (c *command) ends(t *testing.T, codes ...int) {
	t.Helper()
	select {
	case <-c.gone:
	case <-time.After(30 * time.Second):
		t.Fatal("the process does not end within 30 s")
	}
	for _, code := range codes {
		if c.ProcessState.ExitCode() == code {
			return
		}
	}
	t.Errorf("exit code %d, want one of %v", c.ProcessState.ExitCode(), codes)
}
