package workload

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// NewPrefix returns a key prefix that no other run has.
func NewPrefix() string {
	return "poolsweep:" + rand.Text()[:6] + ":"
}

// batch is how many keys are written or removed at a time: enough to make the
// round trips cheap, few enough not to hold up the server's other clients.
const batch = 500

// Key returns the number-th key of a kind in a part.
func (w *Workload) Key(part int, kind string, number int) string {
	tag := ""
	if w.cluster() {
		tag = "{" + tags()[w.parts[part].slot(uint64(number))] + "}:"
	}
	return fmt.Sprintf("%s%s:%s%0*d", w.spec.Prefix, kind, tag, digitsOfKey, number)
}

// A family is the keys of one kind.
type family struct {
	kind string
	one  bool
}

// families returns the kinds of key that the commands name.
func families(commands []Command) []family {
	var all []family
	seen := make(map[family]bool)
	for _, c := range commands {
		f := family{c.kind(), c.One}
		if c.keys() > 0 && !seen[f] {
			seen[f] = true
			all = append(all, f)
		}
	}
	return all
}

// keysOf returns how many keys a family has in a part.
func (w *Workload) keysOf(f family, part int) int {
	if f.one {
		return 1
	}
	return w.spec.Keys.space() + int(w.parts[part].inserted.span())
}

// FillKeys returns how many keys Preload writes, and about how many bytes
// they take in the server's memory.
func (w *Workload) FillKeys() (keys, bytes int64) {
	for _, c := range w.spec.Fill {
		n := int64(len(w.parts))
		if !c.One {
			n *= int64(w.spec.Keys.space())
		}
		keys += n
		size := keyOverhead + len(w.Key(0, c.kind(), 0))
		value := int(w.values.mean())
		overhead := valueOverhead
		if strings.HasPrefix(c.Args[0], "H") && value > packedBytes {
			overhead = fieldOverhead
		}
		for _, a := range c.Args[1:] {
			if strings.Contains(a, dataArg) {
				size += value + overhead
			}
		}
		bytes += n * int64(size)
	}
	return keys, bytes
}

// What a server takes in memory beside the text of keys and values, for
// headers, dictionary entries and rounding up. Measured: used_memory of Redis
// 7.0.15 with jemalloc, 10,000 keys of 33 bytes. Strings of 3, 100 and 1,000
// bytes took 89, 95 and 100 bytes beside their text, hashes of ten fields 11
// a field with values of 20 bytes and 76 with 100, lists of 600 elements 3 to 5 an
// element.
const (
	keyOverhead   = 90
	valueOverhead = 10
	fieldOverhead = 76 // of a hash that is a hash table: packedBytes
	packedBytes   = 64 // hash-max-listpack-value
)

// Preload writes the keys that the commands read. db reaches all parts: of a
// cluster it is a cluster client. progress, which may be nil, is told how many
// keys of how many are written.
func (w *Workload) Preload(ctx context.Context, db redis.UniversalClient, progress func(done, total int64)) error {
	total, _ := w.FillKeys()
	var done int64
	fill := w.Source(fillStream, 0) // for the values
	for _, c := range w.spec.Fill {
		f := family{c.kind(), c.One}
		// Large values are sent a few at a time: the batch is held in memory.
		n := max(1, min(batch, (4<<20)/max(1, int(w.values.mean())*len(c.Args))))
		for p := range w.parts {
			keys := w.keysOf(f, p)
			for first := 0; first < keys; first += n {
				last := min(first+n, keys)
				_, err := db.Pipelined(ctx, func(pipe redis.Pipeliner) error {
					for i := first; i < last; i++ {
						pipe.Do(ctx, fill.fillArgs(c, p, i)...)
					}
					return nil
				})
				if err != nil {
					return fmt.Errorf("preloading %d keys: %w", total, err)
				}
				done += int64(last - first)
				if progress != nil {
					progress(done, total)
				}
			}
		}
	}
	return nil
}

// fillStream is the source of what is preloaded; those of the load count from 1.
const fillStream = 0

// fillArgs returns the arguments that write one key.
func (s *Source) fillArgs(c Command, part, number int) []any {
	args := make([]any, len(c.Args))
	for i, a := range c.Args {
		a = strings.ReplaceAll(a, keyArg, s.w.Key(part, c.kind(), number))
		a = strings.ReplaceAll(a, randArg, fmt.Sprintf("%0*d", digitsOfKey, number))
		if strings.Contains(a, dataArg) {
			a = strings.ReplaceAll(a, dataArg, string(s.w.values.next(s.rng)))
		}
		args[i] = a
	}
	return args
}

// Remove removes every key that the workload can have written, by name and in
// batches, with UNLINK where the server has it and DEL where not. It touches
// no other key. What one master of a cluster does not remove is an error, and
// the others' keys are removed all the same.
func (w *Workload) Remove(ctx context.Context, db redis.UniversalClient) error {
	r := remover{db, "UNLINK"}
	var failed error
	if w.ready != nil {
		for keys := range slices.Chunk(w.ready.keys, batch) {
			if err := r.remove(ctx, keys); err != nil && failed == nil {
				failed = fmt.Errorf("removing the keys of the recording: %w", err)
			}
		}
	}
	for _, f := range families(slices.Concat(w.spec.Commands, w.spec.Fill)) {
		for p := range w.parts {
			n := w.keysOf(f, p)
			for first, gone := 0, false; first < n && !gone; first += batch {
				keys := make([]string, 0, batch)
				for i := first; i < min(first+batch, n); i++ {
					keys = append(keys, w.Key(p, f.kind, i))
				}
				if err := r.remove(ctx, keys); err != nil {
					gone = true
					failed = fmt.Errorf("removing our keys: %w; they are left: redis-cli --scan --pattern '%s*' | xargs redis-cli del", err, w.spec.Prefix)
				}
			}
		}
	}
	return failed
}

// A remover removes keys by name.
type remover struct {
	db      redis.UniversalClient
	command string
}

func (r *remover) remove(ctx context.Context, keys []string) error {
	err := r.try(ctx, keys)
	var refused redis.Error
	if errors.As(err, &refused) && r.command == "UNLINK" && ctx.Err() == nil {
		// Servers before 4.0 and emulators have no UNLINK.
		r.command = "DEL"
		err = r.try(ctx, keys)
	}
	return err
}

// try sends a command a key, so that a cluster's keys need not share a slot.
func (r *remover) try(ctx context.Context, keys []string) error {
	_, err := r.db.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, k := range keys {
			p.Do(ctx, r.command, k)
		}
		return nil
	})
	return err
}
