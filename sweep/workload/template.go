package workload

import (
	"fmt"
	"strconv"
	"strings"
)

// A template is a command ready to be sent: pieces of bytes in which only
// digits and tags are written anew, and between them values where their size
// changes from request to request.
type template struct {
	pieces []piece
	index  int // of the command in the spec
	keys   int // how many keys are drawn
	one    bool
	insert bool
	bytes  int // size on the wire; 0 when it changes
}

type piece struct {
	bytes   []byte
	patches []patch
	follow  what // what follows as a bulk string of varying size; 0: nothing
}

// A patch is a place in a piece that is written anew for each request.
type patch struct {
	at   int
	what what
}

type what uint8

const (
	keyDigits  what = iota + 1 // number of a key
	randDigits                 // number drawn from the keyspace
	slotTag                    // hash tag
	value                      // value
	expiry                     // seconds to live
)

const (
	// digitsOfKey is the width of the number in a key, as in redis-benchmark.
	digitsOfKey = 12
	zeros       = "000000000000"
)

// compile makes a template of a command. cluster says that keys carry a tag.
func (w *Workload) compile(c Command, index int) (*template, error) {
	t := &template{index: index, keys: c.keys(), one: c.One, insert: c.Insert}
	if c.Inline {
		t.pieces, t.bytes = inline(c)
		return t, nil
	}
	fixed, isFixed := w.values.fixed()
	key := w.spec.Prefix + c.kind() + ":"
	if w.cluster() {
		key += "{" + noTag + "}:"
	}
	key += zeros
	p := piece{bytes: append(strconv.AppendInt([]byte{'*'}, int64(len(c.Args)), 10), "\r\n"...)}
	for _, arg := range c.Args {
		if follow := w.varying(arg, isFixed); follow != 0 {
			p.follow = follow
			t.pieces = append(t.pieces, p)
			p = piece{}
			continue
		}
		if strings.Contains(arg, expiryArg) {
			return nil, fmt.Errorf("command %s: the argument %q; an expiry of SET comes with --expiry", c.Name, arg)
		}
		if strings.Contains(arg, dataArg) && !isFixed {
			return nil, fmt.Errorf("command %s: %s is only part of the argument %q; with values that differ it must be all of it",
				c.Name, dataArg, arg)
		}
		text, patches := w.expand(arg, key, fixed)
		p.bytes = strconv.AppendInt(append(p.bytes, '$'), int64(len(text)), 10)
		p.bytes = append(p.bytes, "\r\n"...)
		for _, x := range patches {
			p.patches = append(p.patches, patch{len(p.bytes) + x.at, x.what})
		}
		p.bytes = append(append(p.bytes, text...), "\r\n"...)
	}
	if len(p.bytes) > 0 {
		t.pieces = append(t.pieces, p)
	}
	for _, p := range t.pieces {
		if t.bytes += len(p.bytes); p.follow != 0 {
			t.bytes = 0
			break
		}
	}
	return t, nil
}

// inline returns a command as a person types it.
func inline(c Command) ([]piece, int) {
	text := strings.Join(c.Args, " ") + "\r\n"
	return []piece{{bytes: []byte(text)}}, len(text)
}

// varying returns what an argument is that is as a whole written anew for each
// request, 0 for any other.
func (w *Workload) varying(arg string, valuesAreFixed bool) what {
	switch {
	case arg == dataArg && !valuesAreFixed:
		return value
	case arg == expiryArg && w.spec.Expiry != Expiry{}:
		return expiry
	}
	return 0
}

// appendBulkInt appends n as a bulk string.
func appendBulkInt(dst []byte, n int64) []byte {
	var digits [20]byte
	text := strconv.AppendInt(digits[:0], n, 10)
	dst = strconv.AppendInt(append(dst, '$'), int64(len(text)), 10)
	dst = append(dst, "\r\n"...)
	return append(append(dst, text...), "\r\n"...)
}

// expand puts what is known into an argument and returns the places that are
// not.
func (w *Workload) expand(arg, key, value string) (string, []patch) {
	var out strings.Builder
	var patches []patch
	for len(arg) > 0 {
		switch {
		case strings.HasPrefix(arg, keyArg):
			if w.cluster() {
				patches = append(patches, patch{out.Len() + strings.Index(key, "{"+noTag) + 1, slotTag})
			}
			patches = append(patches, patch{out.Len() + len(key) - digitsOfKey, keyDigits})
			out.WriteString(key)
			arg = arg[len(keyArg):]
		case strings.HasPrefix(arg, randArg):
			patches = append(patches, patch{out.Len(), randDigits})
			out.WriteString(zeros)
			arg = arg[len(randArg):]
		case strings.HasPrefix(arg, dataArg):
			out.WriteString(value)
			arg = arg[len(dataArg):]
		case strings.HasPrefix(arg, tagArg) && w.cluster():
			patches = append(patches, patch{out.Len() + 1, slotTag})
			out.WriteString("{" + noTag + "}")
			arg = arg[len(tagArg):]
		default:
			out.WriteByte(arg[0])
			arg = arg[1:]
		}
	}
	return out.String(), patches
}

// append appends the command with what is drawn for it.
func (t *template) append(dst []byte, s *Source) []byte {
	d := s.draw(t)
	for i := range t.pieces {
		p := &t.pieces[i]
		at := len(dst)
		dst = append(dst, p.bytes...)
		for _, x := range p.patches {
			place := dst[at+x.at:]
			switch x.what {
			case keyDigits:
				putDigits(place[:digitsOfKey], s.nextKey(&d, t))
			case randDigits:
				putDigits(place[:digitsOfKey], s.uniform())
			case slotTag:
				copy(place, d.tag)
			}
		}
		switch p.follow {
		case value:
			dst = s.w.values.appendBulk(dst, s.rng)
		case expiry:
			dst = appendBulkInt(dst, s.w.spec.Expiry.draw(s.rng))
		}
	}
	return dst
}

// putDigits writes v into b with leading zeros.
func putDigits(b []byte, v uint64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + v%10)
		v /= 10
	}
}

// uniform draws from the keyspace evenly.
func (s *Source) uniform() uint64 {
	if s.w.spec.Keys.Space <= 1 {
		return 0
	}
	return s.rng.Uint64N(uint64(s.w.spec.Keys.Space))
}
