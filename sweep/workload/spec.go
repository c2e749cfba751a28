package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// A Spec says what to send. Its JSON form is part of the result file.
type Spec struct {
	// Name stands for the workload in tables and files: "set", "ycsb-a".
	Name string `json:"name"`

	// Commands are the kinds of request; each request is one of them, drawn
	// by weight.
	Commands []Command `json:"commands,omitempty"`

	// Fill are commands that write what Commands read. Each runs once for
	// every key of its kind before the sweep; see Preload.
	Fill []Command `json:"fill,omitempty"`

	// Replay is a recording that is sent instead of Commands; nil for none.
	Replay *Replay `json:"replay,omitempty"`

	// KeepKeys sends the recording with the keys as they are, not under
	// Prefix: they are not ours, and not removed.
	KeepKeys bool `json:"keep_keys,omitempty"`

	Keys   Keys   `json:"keys"`
	Values Values `json:"values"` // not of a Replay, which has its own

	// Expiry is how long the keys of SET live; zero for ever.
	Expiry Expiry `json:"expiry,omitzero"`

	// Setup and Undo are sent to every node before and after the sweep:
	// scripts and functions.
	Setup [][]string `json:"setup,omitempty"`
	Undo  [][]string `json:"undo,omitempty"`

	// Seed makes the draws repeatable.
	Seed uint64 `json:"seed"`

	// Prefix stands before every key. It must not be empty: it is how our
	// keys are told from those of others.
	Prefix string `json:"prefix,omitempty"`
}

// A Command is one kind of request. In its arguments stand for something that
// is drawn anew for each request:
//
//	__key__       a key of ours: prefix, kind and number
//	__rand_int__  twelve digits, uniform over the keyspace
//	__data__      a value
//	{tag}         on a cluster the hash tag of the command's slot; else itself
//
// They may stand anywhere in an argument and several times; only __data__ must
// be all of it when values differ. Each stands for a draw of its own, but on a
// cluster the keys of a command share a slot.
type Command struct {
	Name string   `json:"name"` // in results: "SET", "LRANGE_100"
	Args []string `json:"args"`

	// Weight is its share among the commands; 0 means 1.
	Weight float64 `json:"weight,omitempty"`

	// Kind stands between prefix and number in __key__; "" means "key".
	Kind string `json:"kind,omitempty"`

	// One makes __key__ a single key, whatever the keyspace.
	One bool `json:"one,omitempty"`

	// Insert makes __key__ a key that no request has had before: the
	// keyspace grows by one.
	Insert bool `json:"insert,omitempty"`

	// Inline sends the arguments as a line, without the protocol's framing.
	Inline bool `json:"inline,omitempty"`

	// Reply is what a server typically answers, for the calibration; ""
	// means a value, and Reply's own choice when nothing is known.
	Reply string `json:"reply,omitempty"`
}

// The placeholders in the arguments of a Command.
const (
	keyArg  = "__key__"
	randArg = "__rand_int__"
	dataArg = "__data__"
	tagArg  = "{tag}"

	expiryArg = "__expiry__" // see Expiry
)

// kind returns what stands between prefix and number.
func (c Command) kind() string {
	if c.Kind == "" {
		return "key"
	}
	return c.Kind
}

// weight returns the command's share.
func (c Command) weight() float64 {
	if c.Weight == 0 {
		return 1
	}
	return c.Weight
}

// keys returns how many times __key__ stands in the arguments.
func (c Command) keys() int {
	n := 0
	for _, a := range c.Args {
		n += strings.Count(a, keyArg)
	}
	return n
}

// check reports the first thing that is wrong with the spec.
func (s Spec) check() error {
	switch {
	case s.Prefix == "":
		return fmt.Errorf("an empty key prefix; our keys could not be told from others")
	case len(s.Commands) == 0 && s.Replay == nil:
		return fmt.Errorf("workload %s has no command", s.Name)
	case len(s.Commands) > maxCommands:
		return fmt.Errorf("workload %s has %d commands; it must have %d at most", s.Name, len(s.Commands), maxCommands)
	}
	if s.Replay != nil {
		if len(s.Commands) > 0 || len(s.Fill) > 0 {
			return fmt.Errorf("workload %s has commands and a recording; want one of them", s.Name)
		}
		return nil // nothing is drawn
	}
	for _, c := range slices.Concat(s.Commands, s.Fill) {
		switch {
		case len(c.Args) == 0:
			return fmt.Errorf("workload %s has an empty command", s.Name)
		case !(c.Weight >= 0 && c.Weight <= 1e9):
			return fmt.Errorf("workload %s: %s has the weight %v; want more than 0", s.Name, c.Name, c.Weight)
		}
	}
	if err := s.Keys.check(); err != nil {
		return err
	}
	if err := s.Expiry.check(); err != nil {
		return err
	}
	return s.Values.check()
}

// maxCommands is what the record of a batch can tell apart.
const maxCommands = 64

// Expiry is a range of seconds, both ends included and all alike. Zero is none.
type Expiry struct {
	Min int64 `json:"min_s"`
	Max int64 `json:"max_s"`
}

// draw draws evenly from the range.
func (e Expiry) draw(r *rand.Rand) int64 { return e.Min + r.Int64N(e.Max-e.Min+1) }

// maxExpiry is ten years.
const maxExpiry = 10 * 365 * 24 * 3600

func (e Expiry) check() error {
	if e != (Expiry{}) && (e.Min < 1 || e.Max < e.Min || e.Max > maxExpiry) {
		return fmt.Errorf("an expiry of %d to %d s; want 1 to %d, rising", e.Min, e.Max, maxExpiry)
	}
	return nil
}

// ParseExpiry reads how many seconds keys live: "60", or a range "10-60".
func ParseExpiry(s string) (Expiry, error) {
	low, high, isRange := strings.Cut(s, "-")
	if !isRange {
		high = low
	}
	least, err1 := strconv.ParseUint(low, 10, 63)
	most, err2 := strconv.ParseUint(high, 10, 63)
	e := Expiry{int64(least), int64(most)}
	if err1 != nil || err2 != nil || e == (Expiry{}) {
		return Expiry{}, fmt.Errorf("%q is no expiry; want seconds (60) or a range of them (10-60)", s)
	}
	if err := e.check(); err != nil {
		return Expiry{}, err
	}
	return e, nil
}

// String returns what ParseExpiry reads, "" for none.
func (e Expiry) String() string {
	switch {
	case e == Expiry{}:
		return ""
	case e.Min == e.Max:
		return strconv.FormatInt(e.Min, 10)
	}
	return fmt.Sprintf("%d-%d", e.Min, e.Max)
}

// WithExpiry returns the spec with keys that live that long. It is an error
// when none of its commands is a SET.
func (s Spec) WithExpiry(e Expiry) (Spec, error) {
	s.Expiry = e
	s.Commands = slices.Clone(s.Commands)
	found := false
	for i, c := range s.Commands {
		if len(c.Args) > 2 && strings.EqualFold(c.Args[0], "SET") {
			s.Commands[i].Args = append(slices.Clone(c.Args), "EX", expiryArg)
			found = true
		}
	}
	if !found {
		return s, fmt.Errorf("workload %s has no SET that could take an expiry", s.Name)
	}
	return s, e.check()
}
