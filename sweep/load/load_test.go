package load

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawn returns a measurement of a mix of two commands on two nodes, as a book
// records it.
func drawn(t *rapid.T) *Measurement {
	names, nodes := []string{"GET", "SET"}, []string{"a:1", "b:1"}
	m := &Measurement{Step: Step{4, 1}, Latency: new(Latency)}
	l := ledger{book: newBook(len(names), len(nodes)), held: make([]entry, 0, rapid.IntRange(0, 3).Draw(t, "held"))}
	for range rapid.IntRange(0, 50).Draw(t, "entries") {
		o := outcome{ok: rapid.Int32Range(0, 9).Draw(t, "ok"), failed: rapid.Int32Range(0, 3).Draw(t, "failed")}
		o.nulls = rapid.Int32Range(0, o.ok).Draw(t, "nulls")
		e := entry{
			outcome: o,
			latency: time.Duration(rapid.Int64Range(1, int64(time.Second)).Draw(t, "latency")),
			node:    uint16(rapid.IntRange(0, 1).Draw(t, "node")), kind: uint8(rapid.IntRange(0, 1).Draw(t, "kind")),
		}
		l.enter(e)
		m.Requests += int64(o.ok)
		m.Nulls += int64(o.nulls)
		m.Sent += int64(o.ok + o.failed)
		m.Received += int64(o.ok)
		m.Failed += int64(o.failed)
	}
	l.flush()
	l.book.addTo(m, names, nodes)
	for i := range m.Nodes {
		m.Nodes[i].Clients = 2
	}
	return m
}

func asJSON(t *rapid.T, m *Measurement) string {
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The parts add up to the whole, in a book and merged; merging keeps them by
// name, a clone shares nothing, and the file gives back what it was given.
func TestParts(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a, b := drawn(r), drawn(r)
		conserved(t, a)
		before := asJSON(r, b)
		merged := a.Clone()
		if err := merged.Merge(b); err != nil {
			r.Fatal(err)
		}
		conserved(t, merged)
		if len(merged.Commands) != 2 || len(merged.Nodes) != 2 {
			r.Fatalf("%d commands and %d nodes, want 2 and 2", len(merged.Commands), len(merged.Nodes))
		}
		if got, want := merged.Commands[0].Requests, a.Commands[0].Requests+b.Commands[0].Requests; got != want {
			r.Errorf("%d requests of the first command, want %d", got, want)
		}
		if after := asJSON(r, b); after != before {
			r.Errorf("merging has changed what was merged: %s", cmp.Diff(before, after))
		}
		var back Measurement
		if err := json.Unmarshal([]byte(before), &back); err != nil {
			r.Fatal(err)
		}
		if after := asJSON(r, &back); after != before {
			r.Errorf("read back: %s", cmp.Diff(before, after))
		}
	})
}
