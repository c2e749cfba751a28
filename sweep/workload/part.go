package workload

import (
	"errors"
	"fmt"
	"sync"
)

// A Part is one node of a cluster, as far as keys are concerned: the hash
// slots that it owns.
type Part struct {
	Slots []SlotRange
}

// A SlotRange is the hash slots First to Last, both included.
type SlotRange struct {
	First, Last int
}

// Slots is the number of hash slots of a cluster.
const Slots = 16384

// A part is the keyspace of one node: Keys.Space keys of its own, spread over
// the slots that it owned when the workload was made. The zero value is that
// of a server without a cluster.
type part struct {
	slots    []uint16
	inserted *insertions // keys that were added to the keyspace
	recorded []int32     // of a recording on a cluster: numbers of its commands
}

func newPart(p Part) (*part, error) {
	out := &part{slots: []uint16{}}
	for _, r := range p.Slots {
		if r.First < 0 || r.Last >= Slots || r.First > r.Last {
			return nil, fmt.Errorf("hash slots %d to %d; want 0 to %d", r.First, r.Last, Slots-1)
		}
		for s := r.First; s <= r.Last; s++ {
			out.slots = append(out.slots, uint16(s))
		}
	}
	if len(out.slots) == 0 {
		return nil, errors.New("a node of the cluster without a hash slot; leave it out")
	}
	return out, nil
}

const (
	// groupBits: this many low bits of a key's number do not change its slot,
	// so that a command of several keys finds them in one slot.
	groupBits = 4
	group     = 1 << groupBits
)

// slot returns the slot of a key of the part.
func (p *part) slot(number uint64) int {
	// Fibonacci hashing: neighbours fall far apart, and every node has hot
	// and cold keys in many slots.
	h := (number>>groupBits + 1) * 0x9e3779b97f4a7c15
	return int(p.slots[(h>>32)%uint64(len(p.slots))])
}

// tagBytes is the length of a hash tag, and noTag stands where one will be
// written.
const (
	tagBytes = 3
	noTag    = "000"
)

// tags has a hash tag for every slot: CRC16 of the tag modulo Slots is the
// slot's number.
var tags = sync.OnceValue(func() *[Slots]string {
	const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	var all [Slots]string
	var tag [tagBytes]byte
	for i := range len(letters) * len(letters) * len(letters) {
		tag[0], tag[1], tag[2] = letters[i/len(letters)/len(letters)], letters[i/len(letters)%len(letters)], letters[i%len(letters)]
		if s := Slot(string(tag[:])); all[s] == "" {
			all[s] = string(tag[:])
		}
	}
	return &all
})

// Slot returns the hash slot of a key: CRC16 (XMODEM) of its hash tag, or of
// all of it when it has none, modulo Slots. See the Redis cluster
// specification, "Key distribution model" and "Hash tags".
func Slot(key string) int {
	for i := 0; i < len(key); i++ {
		if key[i] != '{' {
			continue
		}
		for j := i + 1; j < len(key); j++ {
			if key[j] == '}' {
				if j > i+1 {
					key = key[i+1 : j]
				}
				break
			}
		}
		break
	}
	var crc uint16
	for i := 0; i < len(key); i++ {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % Slots
}

// A draw is what the requests of a command have in common: the number of the
// first key and the slot of all.
type draw struct {
	number uint64
	tag    string
	more   bool // the first key has been written
}

// maxRedraws bounds the search for a key whose slot the node still owns.
const maxRedraws = 64

// draw draws the key and the slot of a request.
func (s *Source) draw(t *template) draw {
	if !s.w.cluster() {
		if t.keys == 0 {
			return draw{}
		}
		return draw{number: s.number(t)}
	}
	for range maxRedraws {
		d := draw{number: s.number(t)}
		slot := s.part.slot(d.number)
		if t.keys == 0 { // any slot of the node will do
			slot = int(s.part.slots[s.rng.IntN(len(s.part.slots))])
		}
		d.tag = tags()[slot]
		if !s.moved[slot] {
			return d
		}
	}
	// All that it may draw has moved: the request is sent, and redirected.
	d := draw{number: s.number(t)}
	d.tag = tags()[s.part.slot(d.number)]
	return d
}

// number draws the number of a key.
func (s *Source) number(t *template) uint64 {
	switch {
	case t.keys == 0, t.one:
		return 0
	case t.insert:
		return uint64(s.w.spec.Keys.space()) + uint64(s.part.inserted.next())
	}
	return s.keys.draw()
}

// nextKey returns the number of the next key of a request. On a cluster all
// of them are of one group, and so of one slot.
func (s *Source) nextKey(d *draw, t *template) uint64 {
	switch {
	case !d.more:
		d.more = true
		return d.number
	case t.one:
		return d.number
	case !s.w.cluster():
		return s.keys.draw()
	}
	first := d.number &^ (group - 1)
	total := uint64(s.w.spec.Keys.space()) + uint64(s.part.inserted.span())
	return first + s.rng.Uint64N(min(group, total-first))
}

// Moved tells the source that its node no longer owns a slot: keys in it are
// not drawn any more.
func (s *Source) Moved(slot int) {
	if s.moved == nil {
		s.moved = make(map[int]bool)
	}
	s.moved[slot] = true
}
