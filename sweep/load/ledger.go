package load

import (
	"sync"
	"time"
)

// An entry is some requests of one command that one node answered at a time.
type entry struct {
	outcome
	latency time.Duration
	node    uint16
	kind    uint8
}

// A tally is what became of the requests of one command, or of one node.
type tally struct {
	requests, failed, nulls int64 // see Part
	latency                 Latency
}

func (t *tally) add(e *entry) {
	t.requests += int64(e.ok)
	t.failed += int64(e.failed)
	t.nulls += int64(e.nulls)
	t.latency.record(e.latency, int64(e.ok+e.failed))
}

func (t *tally) part(name string) Part {
	return Part{Name: name, Requests: t.requests, Failed: t.failed, Nulls: t.nulls, Latency: &t.latency}
}

// A book holds the latencies of the window and the counts by command and by
// node, where there are several. The latency of all is not kept beside them,
// but added up at the end: a request costs one histogram and not two.
type book struct {
	mu       sync.Mutex // where shards share it
	all      Latency    // where there are neither commands nor nodes
	commands []tally
	nodes    []tally
}

// newBook returns a book that is complete: nothing is allocated in a window.
func newBook(commands, nodes int) *book {
	b := new(book)
	if commands > 1 {
		b.commands = make([]tally, commands)
	}
	if nodes > 1 {
		b.nodes = make([]tally, nodes)
	}
	for i := range b.commands {
		b.commands[i].latency.hist = newHistogram()
	}
	for i := range b.nodes {
		b.nodes[i].latency.hist = newHistogram()
	}
	if b.commands == nil && b.nodes == nil {
		b.all.hist = newHistogram()
	}
	return b
}

func (b *book) add(e *entry) {
	if b.commands == nil && b.nodes == nil {
		b.all.record(e.latency, int64(e.ok+e.failed))
		return
	}
	if b.commands != nil {
		b.commands[e.kind].add(e)
	}
	if b.nodes != nil {
		b.nodes[e.node].add(e)
	}
}

// addTo adds what the book holds to a measurement, by these names.
func (b *book) addTo(m *Measurement, commands, nodes []string) {
	m.Latency.Merge(&b.all)
	parts := func(tallies []tally, names []string) (all []Part) {
		for i := range tallies {
			all = append(all, tallies[i].part(names[i]))
		}
		return all
	}
	c, n := parts(b.commands, commands), parts(b.nodes, nodes)
	m.Commands, m.Nodes = mergeParts(m.Commands, c), mergeParts(m.Nodes, n)
	if n == nil {
		n = c
	}
	for _, p := range n {
		m.Latency.Merge(p.Latency)
	}
}

// entriesHeld is how many entries a shard holds back for a book that it
// shares: enough to make the lock cheap, in 8 KB a connection.
const entriesHeld = 256

// A ledger takes the entries of one shard. It writes them into a book of its
// own at once, into one that is shared in blocks.
type ledger struct {
	book *book
	held []entry // of capacity 0 when the book is the shard's own
}

func (l *ledger) enter(e entry) {
	if cap(l.held) == 0 {
		l.book.add(&e)
		return
	}
	if l.held = append(l.held, e); len(l.held) == cap(l.held) {
		l.flush()
	}
}

// flush writes what was held back.
func (l *ledger) flush() {
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	for i := range l.held {
		l.book.add(&l.held[i])
	}
	l.held = l.held[:0]
}
