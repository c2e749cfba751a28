package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A Replay is a recording of commands that is sent in a loop. ParseReplay
// reads one, Resolve makes it ready. Its JSON form is a summary without the
// commands; what is read from that can no more be sent.
type Replay struct {
	Format Format `json:"format"`

	// Commands is how many commands a round of the loop has: after Resolve
	// without those that were skipped.
	Commands int `json:"commands"`

	// Keys is how many different keys they name, known after Resolve.
	Keys int `json:"keys"`

	// Skipped counts by name the commands that are not sent; see Resolve.
	Skipped map[string]int `json:"skipped,omitempty"`

	// Wrong is how many lines of the recording were no command, FirstWrong
	// what was wrong with the first of them and where.
	Wrong      int    `json:"wrong_lines,omitempty"`
	FirstWrong string `json:"first_wrong_line,omitempty"`

	raw   commands
	ready *resolved // nil before Resolve
}

// resolved is what is sent of a recording. It does not change any more.
type resolved struct {
	commands
	slots []int16  // of each command's keys, or anySlot or severalSlots
	kinds []uint8  // of each command, an index into names
	names []string // at most maxCommands
	keys  []string // to remove
}

// The slots of a command that are not one slot.
const (
	anySlot      = -1 // it has no key
	severalSlots = -2
)

// Resolve finds the keys of the recording's commands, with the help of the
// server on which they will run, and puts prefix before each, unless keep is
// set: then they are sent as recorded, and write to keys that are not ours.
//
// Left out, and counted in Skipped, are commands that
//   - name no key and are no mere reads: what changes the connection
//     (SELECT, MULTI), the server (CONFIG, FLUSHALL) or who knows what (an
//     EVAL without keys);
//   - would wait (BLPOP, XREAD with BLOCK), publish, administrate, or reach
//     another database or server (MOVE, MIGRATE);
//   - the server does not know or has other arguments for;
//   - on a cluster name keys of several hash slots.
//
// What a script names by itself and a pattern stands for cannot be known:
// there no prefix is put. It is an error when nothing is left.
func (r *Replay) Resolve(ctx context.Context, db redis.UniversalClient, prefix string, keep bool) error {
	if r.raw.len() == 0 {
		return errors.New("resolving a recording: its commands are not kept in a result file; read it again")
	}
	if keep {
		prefix = ""
	}
	found, err := findKeys(ctx, db, &r.raw)
	if err != nil {
		return fmt.Errorf("finding the keys of a recording: %w", err)
	}
	_, cluster := db.(*redis.ClusterClient)
	out := new(resolved)
	skipped := make(map[string]int)
	seen := make(map[string]bool)
	var names []string // of each command that is sent
	for i, f := range found {
		args := r.raw.args(i)
		name := strings.ToUpper(args[0])
		slot := anySlot
		for _, at := range f.keys {
			args[at] = prefix + args[at]
			switch s := Slot(args[at]); slot {
			case anySlot:
				slot = s
			case s, severalSlots:
			default:
				slot = severalSlots
			}
		}
		if f.skip || cluster && slot == severalSlots {
			skipped[printable(name)]++
			continue
		}
		for _, at := range f.keys {
			if !keep && !seen[args[at]] {
				out.keys = append(out.keys, args[at])
			}
			seen[args[at]] = true
		}
		out.add(args)
		out.slots = append(out.slots, int16(slot))
		names = append(names, printable(name))
	}
	if out.len() == 0 {
		return fmt.Errorf("resolving a recording: none of its %d commands can be replayed (%s); see --help about --replay", r.raw.len(), summary(skipped))
	}
	out.names, out.kinds = kindsOf(names)
	r.Commands, r.Keys, r.Skipped, r.ready = out.len(), len(seen), skipped, out
	return nil
}

// printable returns the name of a command as it may be shown: what is no name
// at all may be a password that slipped into the wrong place.
func printable(name string) string {
	for i := range len(name) {
		if c := name[i]; len(name) > 32 || c != '.' && c != '-' && c != '_' && !isDigit(c) && (c < 'A' || c > 'Z') {
			return "(not a name)"
		}
	}
	return name
}

// summary lists counts, the largest first, at most five of them.
func summary(counts map[string]int) string {
	var parts []string
	for _, name := range byCount(counts) {
		if len(parts) == 5 {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}

// byCount returns names, the most frequent first.
func byCount(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
}

// otherName stands for all commands beyond those that can be told apart.
const otherName = "OTHER"

// kindsOf numbers the names, the most frequent first.
func kindsOf(all []string) (names []string, kinds []uint8) {
	counts := make(map[string]int)
	for _, n := range all {
		counts[n]++
	}
	names = byCount(counts)
	number := make(map[string]uint8, len(names))
	for i, n := range names {
		number[n] = uint8(min(i, maxCommands-1))
	}
	if len(names) > maxCommands {
		names = append(names[:maxCommands-1], otherName)
	}
	kinds = make([]uint8, len(all))
	for i, n := range all {
		kinds[i] = number[n]
	}
	return names, kinds
}

// recordedFor returns the numbers of the commands of a recording that a part
// is sent, in their order.
func (r *resolved) recordedFor(p *part) ([]int32, error) {
	owned := make([]bool, Slots)
	for _, s := range p.slots {
		owned[s] = true
	}
	var all []int32
	keyed := false
	for i, s := range r.slots {
		switch {
		case s == anySlot:
			all = append(all, int32(i))
		case s >= 0 && owned[s]:
			all = append(all, int32(i))
			keyed = true
		}
	}
	if !keyed {
		return nil, fmt.Errorf("the recording names no key of the node with the hash slot %d; a node without load would be measured: record longer, or sweep a single node", p.slots[0])
	}
	return all, nil
}

// appendRecorded appends the next n commands of the recording.
func (s *Source) appendRecorded(dst []byte, n int) []byte {
	r := s.w.ready
	for range n {
		i := s.nextRecorded(r)
		dst = append(dst, r.at(i)...)
		if len(r.names) > 1 {
			s.kinds = append(s.kinds, r.kinds[i])
		}
	}
	return dst
}

// nextRecorded returns the number of the next command. Those whose slot
// another node has now are passed over, unless that is all there is for long.
func (s *Source) nextRecorded(r *resolved) int {
	var i int
	for range maxRedraws {
		i = s.next
		total := r.len()
		if s.part.recorded != nil {
			i, total = int(s.part.recorded[s.next]), len(s.part.recorded)
		}
		if s.next++; s.next == total {
			s.next = 0
		}
		if len(s.moved) == 0 || r.slots[i] < 0 || !s.moved[int(r.slots[i])] {
			break
		}
	}
	return i
}
