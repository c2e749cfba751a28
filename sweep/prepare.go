package sweep

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep/load"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// prepared is a workload whose scripts are loaded and whose keys are written.
type prepared struct {
	*workload.Workload
	server *probe.Server
	undo   [][]string
}

// prepare makes the server ready for a sweep of spec. What it returns must be
// cleaned even when there is an error; it is nil when nothing was done.
func prepare(ctx context.Context, s *probe.Server, spec workload.Spec, progress func(done, total int64)) (*prepared, error) {
	w, err := workload.New(spec, parts(s)...)
	if err != nil {
		return nil, err
	}
	if err := fits(s.Identity, w); err != nil {
		return nil, err
	}
	p := &prepared{Workload: w, server: s}
	if err := p.setUp(ctx); err != nil {
		return p, err
	}
	return p, w.Preload(ctx, s.Keys, progress)
}

// parts returns the hash slots of each master, none for a single server.
func parts(s *probe.Server) []workload.Part {
	var all []workload.Part
	for _, n := range s.Nodes {
		var p workload.Part
		for _, r := range n.Slots {
			p.Slots = append(p.Slots, workload.SlotRange{First: r.First, Last: r.Last})
		}
		all = append(all, p)
	}
	return all
}

// endpoints returns where the connections go.
func endpoints(s *probe.Server) []load.Endpoint {
	var all []load.Endpoint
	for _, n := range masters(s) {
		all = append(all, load.Endpoint{Addr: n.Target.Addr(), Dial: n.Target.Dial})
	}
	return all
}

// masters returns the servers that are loaded: s itself when it is no cluster.
func masters(s *probe.Server) []*probe.Server {
	if len(s.Nodes) > 0 {
		return s.Nodes
	}
	return []*probe.Server{s}
}

// fillable is the share of the free memory that the keys written before a
// sweep may take.
const fillable = 0.8

// fits refuses keys that the server's memory has no room for.
func fits(id probe.Identity, w *workload.Workload) error {
	keys, bytes := w.FillKeys()
	room, of := id.MaxMemoryBytes, "maxmemory"
	if room == 0 {
		room, of = id.SystemMemoryBytes, "memory of its host"
	}
	free := room - id.UsedMemoryBytes
	if room == 0 || float64(bytes) <= fillable*float64(free) {
		return nil
	}
	return fmt.Errorf("preloading %d keys takes about %s, more than %.0f %% of what is free of the server's %s (%s); "+
		"give a smaller -r or -d, or --load=no", keys, megabytes(bytes), 100*fillable, of, megabytes(max(0, free)))
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// setUp loads scripts and libraries on every master and notes what is to be
// undone: a library that was there before stays.
func (p *prepared) setUp(ctx context.Context) error {
	spec := p.Spec()
	for _, u := range spec.Undo {
		known, err := masters(p.server)[0].Client.Do(ctx, "FUNCTION", "LIST", "LIBRARYNAME", u[len(u)-1]).Slice()
		if err != nil || len(known) == 0 {
			p.undo = append(p.undo, u)
		}
	}
	for _, n := range masters(p.server) {
		for _, command := range spec.Setup {
			if err := n.Client.Do(ctx, anys(command)...).Err(); err != nil {
				return fmt.Errorf("%s on %s: %w", strings.Join(command[:2], " "), n.Target.Addr(), err)
			}
		}
	}
	return nil
}

// removeTimeout bounds the removal of our keys at the end.
const removeTimeout = 30 * time.Second

// clean removes our keys and libraries, even when ctx is over. Keys that a
// later workload reads stay, as redis-benchmark's LPOP reads what its LPUSH
// has written.
func (p *prepared) clean(ctx context.Context, later []workload.Spec) error {
	if p == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	var errs []error
	for _, n := range masters(p.server) {
		for _, command := range p.undo {
			// What was never loaded need not be deleted.
			if err := n.Client.Do(ctx, anys(command)...).Err(); err != nil && !strings.Contains(err.Error(), "not found") {
				errs = append(errs, fmt.Errorf("%s: %w", strings.Join(command, " "), err))
			}
		}
	}
	for _, spec := range later {
		if p.SharesKeys(spec) {
			return errors.Join(errs...)
		}
	}
	return errors.Join(append(errs, p.Remove(ctx, p.server.Keys))...)
}

func anys(s []string) []any {
	out := make([]any, len(s))
	for i, a := range s {
		out[i] = a
	}
	return out
}
