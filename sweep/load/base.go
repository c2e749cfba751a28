package load

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/poolsweep/poolsweep/sweep/workload"
)

// A base is what the drivers have in common: what is sent, and to whom.
type base struct {
	work      *workload.Workload
	endpoints []Endpoint
	sources   uint64 // how many were made: each draws other keys
}

func newBase(w *workload.Workload, endpoints []Endpoint) (base, error) {
	if len(endpoints) != w.Parts() {
		return base{}, fmt.Errorf("driving %d endpoints: the workload is made for %d", len(endpoints), w.Parts())
	}
	return base{work: w, endpoints: endpoints}, nil
}

// check reports what makes a job impossible.
func (b *base) check(job Job) error {
	if n := len(b.endpoints); job.Clients < n {
		return fmt.Errorf("driving %d clients: the cluster has %d masters; each needs a connection", job.Clients, n)
	}
	if job.Rate > 0 && job.Requests > 0 {
		return errors.New("driving an open loop: it ends after a time, not after a number of requests")
	}
	return nil
}

func (b *base) newBook() *book { return newBook(len(b.work.Commands()), len(b.endpoints)) }

// newShard returns an empty shard that writes into a book.
func (b *base) newShard(r *run, job Job, book *book) *shard {
	sh := &shard{
		run: r, cluster: len(b.endpoints) > 1,
		mixed:  len(b.work.Commands()) > 1,
		ledger: ledger{book: book},
		// What the window needs is allocated before it.
		m: Measurement{Step: job.Step, Intervals: make([]int64, 0, job.Duration/interval+10)},
	}
	if job.Rate > 0 {
		sh.m.Open = &Open{Rate: job.Rate, Arrivals: job.Arrivals, Slip: &Latency{hist: newHistogram()}}
	}
	return sh
}

// newNode returns a node with a source of its own.
func (b *base) newNode(endpoint int) *node {
	b.sources++
	return &node{
		index: endpoint, addr: b.endpoints[endpoint].Addr,
		source: b.work.Source(b.sources, endpoint),
	}
}

// newRun returns the common part of a job.
func newRun(job Job) *run {
	r := &run{depth: job.Depth, over: make(chan struct{})}
	r.quota.Store(job.Requests)
	return r
}

// span returns when the window of a job begins and ends whose connections
// are open; end is 0 when a quota ends it.
func span(job Job, connected time.Duration) (begin, end time.Duration) {
	begin = connected + job.Warmup
	if job.Requests == 0 {
		end = begin + job.Duration
	}
	return begin, end
}

// collect merges shards and books into one measurement.
func (b *base) collect(job Job, shards []*shard, books []*book) *Measurement {
	m := &Measurement{Step: job.Step, Latency: new(Latency)}
	var last time.Duration
	for _, sh := range shards {
		intervals := m.Intervals
		for i, n := range sh.m.Intervals {
			if i < len(intervals) {
				intervals[i] += n
			} else {
				intervals = append(intervals, n)
			}
		}
		// The shards' windows are one and the same: they are not added up.
		sh.m.Elapsed = 0
		sh.m.Start = m.Start
		last = max(last, sh.last)
		_ = m.Merge(&sh.m) // the steps are the same
		m.Intervals = intervals
	}
	m.Elapsed = job.Duration
	if job.Requests > 0 {
		m.Elapsed = max(0, last-shards[0].begin)
	}
	nodes := make([]string, len(b.endpoints))
	for i, e := range b.endpoints {
		nodes[i] = e.Addr
	}
	for _, k := range books {
		k.addTo(m, b.work.Commands(), nodes)
	}
	for i := range m.Nodes {
		m.Nodes[i].Clients = share(job.Clients, i, len(b.endpoints))
	}
	return m
}

// share returns the i-th of n shares of total: as even as can be, the first
// ones one larger when it does not divide.
func share(total, i, n int) int {
	s := total / n
	if i < total%n {
		s++
	}
	return s
}

// ErrLost is wrapped by the error of a job of which no connection is left. The
// server may be as before: a proxy or a firewall can do it.
var ErrLost = errors.New("every connection was lost")

func allLost(job Job, m *Measurement) error {
	return fmt.Errorf("driving %d clients: %w: %s", job.Clients, ErrLost, m.FirstError())
}

// closedText says why a connection ended.
func closedText(err error) string {
	text := "closed by the server"
	var op *net.OpError
	switch {
	case errors.As(err, &op):
		text = op.Err.Error()
	case err != nil:
		text = err.Error()
	}
	return text + "; is the server still running?"
}
