//go:build unix

package main

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/poolsweep/poolsweep/internal/redistest"
	"github.com/poolsweep/poolsweep/sweep"
)

// Each of these ends a run as Ctrl-C does; a second one ends it at once.
func TestSignals(t *testing.T) {
	s := redistest.Start(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		file := filepath.Join(t.TempDir(), sig.String()+".jsonl")
		c := launch(t, nil, "poolsweep run redis://"+s.Addr+" -t set -r 100 -c 1,2,4 --fixed -o "+strconv.Quote(file))
		c.finds(t, `[2-9] of [0-9]+ slices`)
		c.Process.Signal(sig)
		c.ends(t, exitFailed)
		c.finds(t, `sweeping SET at pipeline depth 1: .*ended by signal: `+sig.String())
		c.finds(t, `(?m)^SET, pipeline depth 1$`)
		if n := s.Client(t).DBSize(t.Context()).Val(); n != 0 {
			t.Errorf("%v: %d keys are left", sig, n)
		}
	}
	// The first has no effect while the server says nothing.
	c := launch(t, nil, "poolsweep run redis://"+s.Addr+" -t set -c 1,2,4 --fixed -o "+filepath.Join(t.TempDir(), "twice.jsonl"))
	c.finds(t, `[2-9] of [0-9]+ slices`)
	if err := s.Client(t).Do(t.Context(), "CLIENT", "PAUSE", 60_000).Err(); err != nil {
		t.Fatal(err)
	}
	c.Process.Signal(syscall.SIGINT)
	for range 100 { // it is not known when the first has been taken
		select {
		case <-c.gone:
		case <-time.After(20 * time.Millisecond):
			c.Process.Signal(syscall.SIGINT)
		}
	}
	if w, ok := c.ProcessState.Sys().(syscall.WaitStatus); !ok || !w.Signaled() {
		t.Errorf("%v, want an end by the second signal", c.ProcessState)
	}
}

var kills = flag.Int("kills", 3, "runs that TestKilledAtAnyMoment kills")

// Whenever a run is killed, its file can be read, holds every slice that had
// been written, is completed by --resume, and no key is left after that.
func TestKilledAtAnyMoment(t *testing.T) {
	s := redistest.Start(t)
	db := s.Client(t)
	const line = "poolsweep run redis://%s -q -t set,get -r 100 -c 1,2,4 --fixed --trials 2 --slices 1 --duration 100ms --warmup 10ms -o %s"
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	empty := 0
	for i := range *kills {
		file := filepath.Join(t.TempDir(), fmt.Sprintf("%d.jsonl", i))
		c := launch(t, nil, fmt.Sprintf(line, s.Addr, file))
		// Not a wait for anything: the moment is the point.
		select {
		case <-c.gone:
		case <-time.After(time.Duration(rng.Int64N(int64(3 * time.Second)))):
		}
		c.Process.Kill()
		<-c.gone
		before, err := os.ReadFile(file)
		if err != nil || len(before) == 0 {
			empty++ // killed before it had begun
			if n := db.DBSize(t.Context()).Val(); n != 0 {
				t.Errorf("kill %d: %d keys are left of a run without a file", i, n)
			}
			continue
		}
		cut, err := sweep.Read(bytes.NewReader(before))
		if err != nil {
			t.Errorf("kill %d: %v", i, err)
			continue
		}
		launch(t, nil, "poolsweep run -q --resume "+file).ends(t, 0, exitNoAnswer)
		after, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := sweep.Read(bytes.NewReader(after))
		if err != nil {
			t.Errorf("kill %d: resumed: %v", i, err)
			continue
		}
		for j, x := range cut.Slices {
			if y := whole.Slices[j]; !x.Measurement.Start.Equal(y.Measurement.Start) || x.Measurement.Requests != y.Measurement.Requests {
				t.Errorf("kill %d: slice %d is another one now", i, j)
			}
		}
		counted := 0
		for _, x := range whole.Slices {
			if !x.Superseded {
				counted++
			}
		}
		if counted != 12 {
			t.Errorf("kill %d: %d slices in all, want 12 of 2 tests, 3 levels and 2 trials", i, counted)
		}
		if n := db.DBSize(t.Context()).Val(); n != 0 {
			t.Errorf("kill %d: %d keys are left", i, n)
		}
	}
	t.Logf("%d runs killed, %d of them before there was a file", *kills, empty)
}
