package main

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"github.com/poolsweep/poolsweep/sweep/workload"
)

// workloadFlags say what to send, as redis-benchmark's and memtier's do.
type workloadFlags struct {
	tests, ratio, mix, ycsb, replay string
	script, function                string
	keepKeys                        bool

	sizes, content, expiry string
	keyspace               int
	keys, load             string
}

func (w *workloadFlags) add(f *pflag.FlagSet) {
	f.StringVarP(&w.tests, "tests", "t", "set,get", "tests, each a sweep of its own: all, "+strings.Join(workload.Names(), ", "))
	f.StringVar(&w.ratio, "ratio", "", "instead of tests: a mix of SETS:GETS, as memtier_benchmark's 1:10")
	f.StringVar(&w.mix, "mix", "", "instead of tests: a mix of tests by share: get=80,set=15,incr=5")
	f.StringVar(&w.ycsb, "ycsb", "", "instead of tests: a core workload of YCSB: a, b, c, d or f")
	f.StringVar(&w.replay, "replay", "", "instead of tests: commands from a file: a MONITOR capture, an AOF, or a command a line")
	f.BoolVar(&w.keepKeys, "keep-keys", false, "replay with the keys as recorded, not under our prefix: they are not removed afterwards")
	f.StringVar(&w.script, "script", "", "load this Lua script before; __sha__ in the command stands for it")
	f.StringVar(&w.function, "function", "", "load this function library before")
	f.IntVarP(&w.keyspace, "keyspace", "r", 0, "draw keys at random from this many; 0 is one key")
	f.StringVar(&w.keys, "keys", "uniform", "how keys are drawn: uniform, zipfian[:EXPONENT], gaussian[:STDDEV], sequential, latest, hotspot[:KEYS:REQUESTS]")
	f.StringVarP(&w.sizes, "data-size", "d", "3", "size of values in bytes: one, a range 32-512, or a list with weights 32:70,1024:30")
	f.StringVar(&w.content, "content", string(workload.Same), "of values: same, random or compressible")
	f.StringVar(&w.expiry, "expiry", "", "seconds that the keys of SET live, or a range 10-60")
	f.StringVar(&w.load, "load", "auto", "write the keys before the sweep: auto (those that are read), yes or no")
	f.Lookup("load").NoOptDefVal = "yes"
}

// specs returns what to send. command is what stands behind -- on the command
// line, nil when there is no --.
func (w *workloadFlags) specs(f *pflag.FlagSet, command []string, seed uint64) ([]workload.Spec, error) {
	specs, err := w.chosen(f, command)
	if err != nil {
		return nil, err
	}
	keys, err := workload.ParseDist(w.keys)
	if err != nil {
		return nil, fmt.Errorf("--keys: %w", err)
	}
	sizes, err := workload.ParseSizes(w.sizes)
	if err != nil {
		return nil, fmt.Errorf("-d: %w", err)
	}
	for i := range specs {
		s := &specs[i]
		s.Seed = seed
		// A YCSB workload has keys and values of its own, which flags change.
		if space := s.Keys.Space; s.Keys.Dist == "" || f.Changed("keys") {
			s.Keys = keys
			s.Keys.Space = space
		}
		if s.Keys.Space == 0 || f.Changed("keyspace") {
			s.Keys.Space = w.keyspace
		}
		if len(s.Values.Sizes) == 0 || f.Changed("data-size") {
			s.Values.Sizes = sizes
		}
		s.Values.Content = workload.Content(w.content)
		if err := w.complete(s); err != nil {
			return nil, err
		}
	}
	return specs, nil
}

// complete adds to a spec what concerns its commands: expiry, preload, script
// and library.
func (w *workloadFlags) complete(s *workload.Spec) error {
	if w.expiry != "" {
		e, err := workload.ParseExpiry(w.expiry)
		if err != nil {
			return fmt.Errorf("--expiry: %w", err)
		}
		if *s, err = s.WithExpiry(e); err != nil {
			return fmt.Errorf("--expiry: %w", err)
		}
	}
	switch w.load {
	case "auto":
	case "no":
		s.Fill = nil
	case "yes":
		if !s.FillWritten() {
			return fmt.Errorf("--load: %s writes no strings that could be written before", s.Name)
		}
	default:
		return fmt.Errorf("--load %q; want auto, yes or no", w.load)
	}
	if err := w.addScript(s); err != nil {
		return err
	}
	return w.addFunction(s)
}

// chosen returns the specs of the one flag that says what to send.
func (w *workloadFlags) chosen(f *pflag.FlagSet, command []string) ([]workload.Spec, error) {
	var given []string
	for _, name := range []string{"tests", "ratio", "mix", "ycsb", "replay"} {
		if f.Changed(name) {
			given = append(given, "--"+name)
		}
	}
	if command != nil {
		given = append(given, "a command behind --")
	}
	if len(given) > 1 {
		return nil, fmt.Errorf("%s: give one of them", strings.Join(given, " and "))
	}
	one := func(s workload.Spec, err error) ([]workload.Spec, error) { return []workload.Spec{s}, err }
	switch {
	case command != nil:
		return one(workload.Custom(command))
	case w.ratio != "":
		return one(workload.Ratio(w.ratio))
	case w.mix != "":
		return one(workload.Mix(w.mix))
	case w.ycsb != "":
		return one(workload.YCSB(w.ycsb))
	case w.replay != "":
		return one(w.recording())
	case w.keepKeys:
		return nil, errors.New("--keep-keys is for --replay")
	}
	specs, err := workload.Tests(w.tests)
	if err != nil {
		return nil, fmt.Errorf("-t: %w", err)
	}
	return specs, nil
}

func (w *workloadFlags) recording() (workload.Spec, error) {
	in, err := os.Open(w.replay)
	if err != nil {
		return workload.Spec{}, fmt.Errorf("--replay: %w", err)
	}
	defer in.Close()
	r, err := workload.ParseReplay(in)
	if err != nil {
		return workload.Spec{}, fmt.Errorf("--replay %s: %w", w.replay, err)
	}
	return workload.Spec{Name: "replay of " + filepath.Base(w.replay), Replay: r, KeepKeys: w.keepKeys}, nil
}

// shaArg stands in a command for the SHA1 of the script.
const shaArg = "__sha__"

// addScript has the script loaded and puts its digest into the commands. The
// server's own digest is the same: SHA1 of the text.
func (w *workloadFlags) addScript(s *workload.Spec) error {
	if w.script == "" {
		return nil
	}
	text, err := os.ReadFile(w.script)
	if err != nil {
		return fmt.Errorf("--script: %w", err)
	}
	sum := sha1.Sum(text)
	used := false
	for _, c := range s.Commands {
		for i, a := range c.Args {
			used = used || strings.Contains(a, shaArg)
			c.Args[i] = strings.ReplaceAll(a, shaArg, hex.EncodeToString(sum[:]))
		}
	}
	if !used {
		return fmt.Errorf("--script: no %s in the command; want -- EVALSHA %s 1 __key__", shaArg, shaArg)
	}
	s.Setup = append(s.Setup, []string{"SCRIPT", "LOAD", string(text)})
	return nil
}

// libraryName is how a function library names itself in its first line.
var libraryName = regexp.MustCompile(`^#!\S+.*\bname=([A-Za-z0-9_]+)`)

// addFunction has the function library loaded.
func (w *workloadFlags) addFunction(s *workload.Spec) error {
	if w.function == "" {
		return nil
	}
	text, err := os.ReadFile(w.function)
	if err != nil {
		return fmt.Errorf("--function: %w", err)
	}
	name := libraryName.FindSubmatch(text)
	if name == nil {
		return fmt.Errorf("--function %s: its first line does not name the library; want #!lua name=NAME", w.function)
	}
	s.Setup = append(s.Setup, []string{"FUNCTION", "LOAD", "REPLACE", string(text)})
	s.Undo = append(s.Undo, []string{"FUNCTION", "DELETE", string(name[1])})
	return nil
}
