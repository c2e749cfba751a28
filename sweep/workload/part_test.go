package workload

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// The wanted slots are those of the cluster specification and of CLUSTER
// KEYSLOT of Redis 7.0.15.
func TestSlot(t *testing.T) {
	for key, want := range map[string]int{
		"":              0,
		"123456789":     0x31C3, // "Appendix A. CRC16 reference implementation"
		"foo":           12182,
		"bar":           5061,
		"somekey":       11058,
		"foo{hash_tag}": 2515,
		"hash_tag":      2515,
		// "Hash tags": {user1000} is hashed, an empty tag is none, the first
		// "{" and the first "}" after it count.
		"{user1000}.following": Slot("user1000"),
		"{user1000}.followers": Slot("user1000"),
		"foo{bar}{zap}":        Slot("bar"),
		"foo{{bar}}zap":        Slot("{bar"),
		"foo{}{bar}":           8363,
		"foo{bar":              15278,
		"}{":                   12793,
		"{}":                   15257,
	} {
		if got := Slot(key); got != want {
			t.Errorf("%q: slot %d, want %d", key, got, want)
		}
	}
}

func TestTagsAreComplete(t *testing.T) {
	for s, tag := range tags() {
		if len(tag) != tagBytes || Slot(tag) != s || Slot("a:{"+tag+"}:b") != s {
			t.Fatalf("slot %d has the tag %q", s, tag)
		}
	}
}

// three are the nodes of a cluster, with slots in pieces as after a move.
var three = []Part{
	{Slots: []SlotRange{{0, 5460}, {16000, 16000}}},
	{Slots: []SlotRange{{5461, 10922}}},
	{Slots: []SlotRange{{10923, 15999}, {16001, 16383}}},
}

func (p Part) owns(slot int) bool {
	return slices.ContainsFunc(p.Slots, func(r SlotRange) bool { return r.First <= slot && slot <= r.Last })
}

// keysOfWire returns the keys of each command: what begins with our prefix.
func keysOfWire(t *testing.T, wire []byte) [][]string {
	var all [][]string
	for _, args := range commandsIn(t, wire) {
		var keys []string
		for _, a := range args {
			// The custom command with a key within an argument: not ours then.
			if strings.HasPrefix(a, "p:") {
				keys = append(keys, a)
			}
		}
		all = append(all, keys)
	}
	return all
}

// Every key falls into a slot of its node, and the keys of a command into one.
func TestClusterKeys(t *testing.T) {
	for _, spec := range allSpecs(t, 1000) {
		w := mustNew(t, spec, three...)
		for p, part := range three {
			hit := make(map[int]bool)
			wire := w.Source(7, p).Append(nil, 500)
			if spec.Commands[0].Inline {
				continue
			}
			for _, keys := range keysOfWire(t, wire) {
				for _, k := range keys {
					slot := Slot(k)
					hit[slot] = true
					if !part.owns(slot) || slot != Slot(keys[0]) {
						t.Fatalf("%s: key %q of slot %d on node %d beside %q", spec.Name, k, slot, p, keys)
					}
				}
			}
			if c := spec.Commands[0]; len(spec.Commands) == 1 && c.keys() > 0 && !c.One && len(hit) < 50 {
				t.Errorf("%s: the keys of node %d lie in %d slots only", spec.Name, p, len(hit))
			}
		}
	}
}

// The tag is that of the key, or of any slot of the node when there is none.
func TestTagPlaceholder(t *testing.T) {
	for _, args := range [][]string{{"GET", "x:{tag}"}, {"COPY", keyArg, "y:{tag}:z"}, {"MGET", "{tag}a", "{tag}b"}} {
		spec, err := Custom(args)
		if err != nil {
			t.Fatal(err)
		}
		w := mustNew(t, finish(spec, 100), three...)
		for p, part := range three {
			slots := make(map[int]bool)
			for _, got := range commandsIn(t, w.Source(1, p).Append(nil, 500)) {
				slot := Slot(got[1])
				slots[slot] = true
				for _, a := range got[1:] {
					if !part.owns(Slot(a)) || Slot(a) != slot {
						t.Fatalf("%q on node %d: %q", args, p, got)
					}
				}
			}
			if len(slots) < 5 {
				t.Errorf("%q on node %d: %d slots only", args, p, len(slots))
			}
		}
	}
}

// All ten keys of MSET are of the keyspace though it is no multiple of the
// group that shares a slot, and all of the keyspace is drawn.
func TestKeysOfACommandStayInTheKeyspace(t *testing.T) {
	for _, space := range []int{1, 2, 15, 16, 17, 100} {
		w := mustNew(t, testSpec(t, "mset", space), three...)
		list := make(map[string]bool)
		for i := range space {
			list[w.Key(1, "key", i)] = true
		}
		drawn := make(map[string]bool)
		for _, keys := range keysOfWire(t, w.Source(1, 1).Append(nil, 2000)) {
			for _, k := range keys {
				if drawn[k] = true; !list[k] {
					t.Fatalf("%d keys: %q is none of them", space, k)
				}
			}
		}
		if len(drawn) != space {
			t.Errorf("%d of %d keys are drawn", len(drawn), space)
		}
	}
}

// After Moved no key of that slot is drawn, while another can be.
func TestMoved(t *testing.T) {
	for _, name := range []string{"get", "mset", "ping_mbulk"} {
		s := mustNew(t, testSpec(t, name, 1000), three...).Source(1, 0)
		count := make(map[int]int)
		for _, keys := range keysOfWire(t, s.Append(nil, 2000)) {
			for _, k := range keys {
				count[Slot(k)]++
			}
		}
		slots := slices.Sorted(maps.Keys(count))
		for _, slot := range slots[:len(slots)/2] {
			s.Moved(slot)
		}
		for _, keys := range keysOfWire(t, s.Append(nil, 5000)) {
			for _, k := range keys {
				if s.moved[Slot(k)] {
					t.Fatalf("%s: %q is drawn, whose slot has moved", name, k)
				}
			}
		}
		// When all have moved, requests are sent all the same.
		for _, slot := range slots {
			s.Moved(slot)
		}
		if got := len(commandsIn(t, s.Append(nil, 10))); got != 10 {
			t.Errorf("%s: %d requests of 10", name, got)
		}
	}
}

func TestNewRefusesParts(t *testing.T) {
	for _, tt := range []struct {
		part Part
		want string
	}{
		{Part{}, "without a hash slot"},
		{Part{Slots: []SlotRange{{-1, 5}}}, "-1 to 5"},
		{Part{Slots: []SlotRange{{0, 16384}}}, "0 to 16384"},
		{Part{Slots: []SlotRange{{5, 4}}}, "5 to 4"},
	} {
		if _, err := New(testSpec(t, "set", 1), tt.part); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: error %v, want one with %q", tt.part, err, tt.want)
		}
	}
}
