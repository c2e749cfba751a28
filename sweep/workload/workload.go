// Package workload says what is sent: commands, keys and values, the preload
// before a sweep and the removal of our keys after it. It holds no connection
// of its own for the load: package load asks a Source for bytes and sends
// them; preload and removal go over the control connection.
//
// A Spec is data: which commands by which weights, how keys are drawn and what
// values are made of. Tests, Mix, Ratio, YCSB and Custom make specs, with a
// Replay one sends a recording. New checks a Spec and makes a Workload of it,
// whose Sources append requests to a buffer. A Source draws by itself, from
// the Spec's seed and its own stream number, so that many of them need no
// lock; it allocates nothing.
//
//	Spec ── New ──► Workload ── Source ──► bytes, and which command each is
//	                   │
//	                   └── Preload, Remove (keys by name, never by pattern)
//
// A key is the Spec's prefix, a kind and twelve digits:
//
//	poolsweep:X4TQ2B:key:000000000042
//	poolsweep:X4TQ2B:mylist:{3fT}:000000000000    on a cluster
//
// The kind tells apart keys of different types, as redis-benchmark's names
// do: key, counter, mylist. The number is drawn from the keyspace; some
// commands have one key of their kind, as in redis-benchmark, some insert keys
// beyond the keyspace, as in YCSB.
//
// A Part is a node of a cluster, which has a keyspace of its own: the hash
// tag of a key follows from its number, so that it falls into a slot that the
// node owns and the same key is always the same. Keys whose numbers differ in
// the last four bits only share a slot, for commands of several keys.
package workload

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/poolsweep/poolsweep/internal/resp"
)

// A Workload is a checked Spec, ready to make Sources. Only the count of
// inserted keys changes after New.
type Workload struct {
	spec      Spec
	parts     []*part
	values    *values
	templates []*template
	limits    []float64 // rising; the share of draws up to each command
	ready     *resolved // recording that is sent instead; nil for none
}

// New checks spec and prepares its commands. parts are the nodes of a cluster
// over which the keys are spread; none means one server, whose keys need no
// hash tag. A Replay that was not resolved is checked only: such a Workload
// has no Source.
func New(spec Spec, parts ...Part) (*Workload, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	w := &Workload{spec: spec}
	if len(spec.Values.Sizes) > 0 { // a recording has its own
		w.values = newValues(spec.Values, spec.Seed)
	}
	if spec.Replay != nil {
		w.ready = spec.Replay.ready
	}
	for _, p := range parts {
		made, err := newPart(p)
		if err != nil {
			return nil, err
		}
		w.parts = append(w.parts, made)
	}
	if len(parts) == 0 {
		w.parts = []*part{new(part)}
	}
	for _, p := range w.parts {
		p.inserted = new(insertions)
		if w.ready != nil && w.cluster() {
			var err error
			if p.recorded, err = w.ready.recordedFor(p); err != nil {
				return nil, err
			}
		}
	}
	if spec.Replay != nil {
		return w, nil
	}
	sum := 0.0
	for i, c := range spec.Commands {
		t, err := w.compile(c, i)
		if err != nil {
			return nil, err
		}
		w.templates = append(w.templates, t)
		sum += c.weight()
		w.limits = append(w.limits, sum)
	}
	for i := range w.limits {
		w.limits[i] /= sum
	}
	return w, nil
}

// Spec returns what the workload was made of.
func (w *Workload) Spec() Spec { return w.spec }

// Commands returns the names of the commands, in the order of the numbers
// that Source.Kinds gives.
func (w *Workload) Commands() []string {
	if w.ready != nil {
		return slices.Clone(w.ready.names)
	}
	var names []string
	for _, c := range w.spec.Commands {
		names = append(names, c.Name)
	}
	return names
}

// Parts returns over how many nodes the keys are spread, 1 for a single server.
func (w *Workload) Parts() int { return len(w.parts) }

func (w *Workload) cluster() bool { return w.parts[0].slots != nil }

// CommandBytes returns the size of one command on the wire, 0 when it changes
// from request to request.
func (w *Workload) CommandBytes() int {
	if len(w.templates) != 1 {
		return 0
	}
	return w.templates[0].bytes
}

// Reply returns the bytes with which a server typically answers the most
// frequent command.
func (w *Workload) Reply() []byte {
	if w.spec.Replay != nil {
		return []byte("+OK\r\n")
	}
	c := slices.MaxFunc(w.spec.Commands, func(a, b Command) int { return cmp.Compare(a.weight(), b.weight()) })
	switch c.Reply {
	case "":
		return []byte("+OK\r\n")
	case dataArg:
		return resp.AppendBulk(nil, w.values.typical())
	}
	return []byte(c.Reply)
}

// A Source makes the bytes to send to one part. It must not be used by two
// goroutines at once; several Sources of one Workload may.
type Source struct {
	w     *Workload
	part  *part
	rng   *rand.Rand
	keys  drawer
	kinds []uint8
	moved map[int]bool // slots of the part that another node has now
	next  int          // of a recording: number of the next command of the part
}

// Source returns the stream-th source of requests for a part. Sources of
// different streams draw independently, and begin a recording at different
// places.
func (w *Workload) Source(stream uint64, part int) *Source {
	s := &Source{w: w, part: w.parts[part], rng: rand.New(rand.NewPCG(w.spec.Seed, stream))}
	if w.spec.Replay != nil {
		if w.ready == nil {
			panic("workload: a Source of a recording that was not resolved")
		}
		s.next = s.rng.IntN(cmp.Or(len(s.part.recorded), w.ready.len()))
		return s
	}
	s.keys = w.spec.Keys.drawer(s.rng, s.part.inserted)
	return s
}

// Append appends n commands to dst and returns it. It allocates nothing once
// dst has the room.
func (s *Source) Append(dst []byte, n int) []byte {
	s.kinds = s.kinds[:0]
	if s.w.ready != nil {
		return s.appendRecorded(dst, n)
	}
	for range n {
		t := s.w.templates[0]
		if len(s.w.templates) > 1 {
			t = s.w.templates[s.choose()]
			s.kinds = append(s.kinds, uint8(t.index))
		}
		dst = t.append(dst, s)
	}
	return dst
}

// Kinds returns which command each request of the last Append is, as an index
// into Workload.Commands, valid until the next one; empty when there is but one.
func (s *Source) Kinds() []uint8 { return s.kinds }

// choose draws a command by weight.
func (s *Source) choose() int {
	x := s.rng.Float64()
	for i, limit := range s.w.limits {
		if x < limit {
			return i
		}
	}
	return len(s.w.limits) - 1
}
