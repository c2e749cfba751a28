// Package workload says what is sent: the tests and their commands, the keys
// and values, the preload before a sweep and the removal of our keys after
// it. It holds no connection of its own for the load: package load asks a
// Source for bytes and sends them; preload and removal go over the control
// connection.
package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/poolsweep/poolsweep/internal/resp"
)

// A Spec says what to send. Its JSON form is part of the result file.
type Spec struct {
	// Test is a name of Names.
	Test string `json:"test"`

	// ValueBytes is the size of a value in bytes, as -d of redis-benchmark;
	// at least 1.
	ValueBytes int `json:"value_bytes"`

	// Keyspace is the number of keys among which each request draws one, as
	// -r of redis-benchmark; 0 and 1 mean one key.
	Keyspace int `json:"keyspace"`

	// Seed makes the draws repeatable.
	Seed uint64 `json:"seed"`

	// Prefix stands before every key. It must not be empty: it is how our
	// keys are told from those of others.
	Prefix string `json:"prefix"`
}

// maxValueBytes is Redis' own limit of a string.
const maxValueBytes = 512 << 20

// maxKeyspace is what the 12 digits of a key can count.
const maxKeyspace = 1_000_000_000_000

// A test is one entry of the list that Names gives.
type test struct {
	name string
	args []string // of the command; see the placeholders below
	key  string   // kind of key: what stands between prefix and number; "" has none
	read bool     // reads keys that must be there before
	// reply is what a server answers, with "" for a bulk string of the value.
	reply string
}

// The placeholders in the arguments of a test.
const (
	keyArg   = "\x00key"
	valueArg = "\x00value"
)

// The names, commands and kinds of key are redis-benchmark's.
var tests = []test{
	{name: "ping", args: []string{"PING"}, reply: "+PONG\r\n"},
	{name: "set", args: []string{"SET", keyArg, valueArg}, key: "key", reply: "+OK\r\n"},
	{name: "get", args: []string{"GET", keyArg}, key: "key", read: true},
	{name: "incr", args: []string{"INCR", keyArg}, key: "counter", reply: ":1\r\n"},
}

// Names returns the names of the tests.
func Names() []string {
	names := make([]string, len(tests))
	for i, t := range tests {
		names[i] = t.name
	}
	return names
}

// A Workload is a checked Spec, ready to make Sources. It is not changed
// after New.
type Workload struct {
	spec     Spec
	test     test
	template []byte // the command, with the digits of key 0
	digits   int    // where the digits of the key begin in template; 0: no key
}

// digitsOfKey is the width of the number in a key, as in redis-benchmark.
const digitsOfKey = 12

// New checks spec and prepares its command.
func New(spec Spec) (*Workload, error) {
	i := slices.IndexFunc(tests, func(t test) bool { return t.name == spec.Test })
	switch {
	case i < 0:
		return nil, fmt.Errorf("unknown test %q; the tests are %s", spec.Test, strings.Join(Names(), ", "))
	case spec.ValueBytes < 1 || spec.ValueBytes > maxValueBytes:
		return nil, fmt.Errorf("a value of %d bytes; it must have 1 to %d", spec.ValueBytes, maxValueBytes)
	case spec.Keyspace < 0 || spec.Keyspace > maxKeyspace:
		return nil, fmt.Errorf("a keyspace of %d keys; it must have 0 to %d", spec.Keyspace, maxKeyspace)
	case spec.Prefix == "":
		return nil, fmt.Errorf("an empty key prefix; our keys could not be told from others")
	}
	w := &Workload{spec: spec, test: tests[i]}
	args := slices.Clone(w.test.args)
	for i, a := range args {
		switch a {
		case keyArg:
			args[i] = w.Key(0)
		case valueArg:
			args[i] = w.value()
		}
	}
	w.template = resp.AppendCommand(nil, args...)
	if w.test.key != "" {
		w.digits = strings.Index(string(w.template), w.Key(0)) + len(w.Key(0)) - digitsOfKey
	}
	return w, nil
}

// Spec returns what the workload was made of.
func (w *Workload) Spec() Spec { return w.spec }

// Key returns the i-th key of the keyspace.
func (w *Workload) Key(i int) string {
	return fmt.Sprintf("%s%s:%0*d", w.spec.Prefix, w.test.key, digitsOfKey, i)
}

// Keys returns how many keys the workload can write or read; 0 when its
// command has no key.
func (w *Workload) Keys() int {
	if w.test.key == "" {
		return 0
	}
	return max(1, w.spec.Keyspace)
}

// CommandBytes returns the size of one command on the wire.
func (w *Workload) CommandBytes() int { return len(w.template) }

// Reply returns the bytes with which a server answers one command.
func (w *Workload) Reply() []byte {
	if w.test.reply == "" {
		return resp.AppendBulk(nil, w.value())
	}
	return []byte(w.test.reply)
}

func (w *Workload) value() string { return strings.Repeat("x", w.spec.ValueBytes) }

// A Source makes the bytes to send. It must not be used by two goroutines at
// once; several Sources of one Workload may.
type Source struct {
	w   *Workload
	rng *rand.Rand
}

// Source returns the stream-th source of the workload. Sources of different
// streams draw their keys independently.
func (w *Workload) Source(stream uint64) *Source {
	return &Source{w: w, rng: rand.New(rand.NewPCG(w.spec.Seed, stream))}
}

// Append appends n commands to dst and returns it. It allocates nothing once
// dst has the room.
func (s *Source) Append(dst []byte, n int) []byte {
	w := s.w
	for range n {
		at := len(dst)
		dst = append(dst, w.template...)
		if w.digits > 0 && w.spec.Keyspace > 1 {
			putDigits(dst[at+w.digits:at+w.digits+digitsOfKey], s.rng.Uint64N(uint64(w.spec.Keyspace)))
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
