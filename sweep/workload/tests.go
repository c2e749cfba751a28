package workload

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A test is a workload that has a name in redis-benchmark or valkey-benchmark,
// with their commands and their titles.
type test struct {
	name  string // for -t
	title string // in results
	args  string // of the command, split at spaces
	kind  string // of its key
	one   bool   // it has a single key, whatever the keyspace
	reply string
	fill  []Command
	setup [][]string
	undo  [][]string
}

const lists, sets, hashes, zsets = "mylist", "myset", "myhash", "myzset"

// libraryName is that of our function library, and how the names of its
// functions begin: both must not be another's on the server.
const libraryName = "poolsweep"

// library returns a library of n functions like valkey-benchmark's: they
// return a key that is not there.
func library(n int) string {
	text := "#!lua name=" + libraryName + "\n"
	for i := n; i > 0; i-- {
		text += fmt.Sprintf("local function foo%d(keys, args)\nreturn keys[0]\nend\nredis.register_function('%s_foo%d', foo%d)\n", i, libraryName, i, i)
	}
	return text
}

// Of valkey-benchmark: how many functions function_load loads.
const loadedFunctions = 10

// The tests are those of valkey-benchmark 9 in its order; redis-benchmark 7.0
// has those up to MSET, the same. Names, titles and commands are theirs, but
// for
//   - keys, which begin with our prefix and end in a number;
//   - LRANGE, whose lists are filled with just as many elements and before the
//     measurement, not by a test of their own;
//   - functions, whose names begin with ours.
//
// LRANGE_500 of redis-benchmark before 7 read 450 elements, as its title said.
// The replies are those of a single key of three bytes.
var tests = []test{
	{name: "ping_inline", title: "PING_INLINE", args: "PING", reply: "+PONG\r\n"},
	{name: "ping_mbulk", title: "PING_MBULK", args: "PING", reply: "+PONG\r\n"},
	{name: "set", title: "SET", args: "SET __key__ __data__", reply: "+OK\r\n"},
	{name: "get", title: "GET", args: "GET __key__", reply: dataArg, fill: filled("")},
	{name: "incr", title: "INCR", args: "INCR __key__", kind: "counter", reply: ":1\r\n"},
	{name: "lpush", title: "LPUSH", args: "LPUSH __key__ __data__", kind: lists, one: true, reply: ":1\r\n"},
	{name: "rpush", title: "RPUSH", args: "RPUSH __key__ __data__", kind: lists, one: true, reply: ":1\r\n"},
	{name: "lpop", title: "LPOP", args: "LPOP __key__", kind: lists, one: true, reply: dataArg},
	{name: "rpop", title: "RPOP", args: "RPOP __key__", kind: lists, one: true, reply: dataArg},
	{name: "sadd", title: "SADD", args: "SADD __key__ element:__rand_int__", kind: sets, one: true, reply: ":1\r\n"},
	{name: "hset", title: "HSET", args: "HSET __key__ element:__rand_int__ __data__", kind: hashes, one: true, reply: ":1\r\n"},
	{name: "spop", title: "SPOP", args: "SPOP __key__", kind: sets, one: true, reply: dataArg},
	{name: "zadd", title: "ZADD", args: "ZADD __key__ __rand_int__ element:__rand_int__", kind: zsets, one: true, reply: ":1\r\n"},
	{name: "zpopmin", title: "ZPOPMIN", args: "ZPOPMIN __key__", kind: zsets, one: true, reply: "*0\r\n"},
	lrange(100), lrange(300), lrange(500), lrange(600),
	{name: "mset", title: "MSET (10 keys)", args: "MSET" + strings.Repeat(" __key__ __data__", 10), reply: "+OK\r\n"},
	{name: "mget", title: "MGET (10 keys)", args: "MGET" + strings.Repeat(" __key__", 10), reply: "*10\r\n" + strings.Repeat("$3\r\nxxx\r\n", 10), fill: filled("")},
	{name: "xadd", title: "XADD", args: "XADD __key__ * myfield __data__", kind: "mystream", one: true, reply: "$15\r\n1526919030474-0\r\n"},
	{name: "function_load", title: "FUNCTION LOAD", args: "FUNCTION LOAD REPLACE __library__", reply: "$9\r\npoolsweep\r\n",
		undo: [][]string{{"FUNCTION", "DELETE", libraryName}}},
	{name: "fcall", title: "FCALL", args: "FCALL " + libraryName + "_foo1 1 __key__", one: true, reply: "$-1\r\n",
		setup: [][]string{{"FUNCTION", "LOAD", "REPLACE", library(1)}}, undo: [][]string{{"FUNCTION", "DELETE", libraryName}}},
}

// filled is what writes a string under every key of a kind.
func filled(kind string) []Command {
	return []Command{{Name: "SET", Args: []string{"SET", keyArg, dataArg}, Kind: kind}}
}

// lrange reads the first n elements of a list, which is filled before.
func lrange(n int) test {
	fill := append([]string{"LPUSH", keyArg}, slices.Repeat([]string{dataArg}, n)...)
	return test{
		name:  fmt.Sprintf("lrange_%d", n),
		title: fmt.Sprintf("LRANGE_%d (first %d elements)", n, n),
		args:  fmt.Sprintf("LRANGE __key__ 0 %d", n-1),
		kind:  fmt.Sprintf("mylist%d", n), one: true,
		reply: fmt.Sprintf("*%d\r\n%s", n, strings.Repeat("$3\r\nxxx\r\n", n)),
		fill:  []Command{{Name: "LPUSH", Args: fill, Kind: fmt.Sprintf("mylist%d", n), One: true}},
	}
}

// aliases are names of several tests, as in redis-benchmark.
var aliases = map[string][]string{
	"ping":   {"ping_inline", "ping_mbulk"},
	"lrange": {"lrange_100", "lrange_300", "lrange_500", "lrange_600"},
}

// Names returns the names of the tests, in valkey-benchmark's order.
func Names() []string {
	names := make([]string, len(tests))
	for i, t := range tests {
		names[i] = t.name
	}
	return names
}

// Tests returns the specs of a list of test names as -t takes them: "set,get",
// "lrange" for the four of that name, "all". Keys, values, seed and prefix are
// left to the caller.
func Tests(list string) ([]Spec, error) {
	var specs []Spec
	for name := range strings.SplitSeq(strings.ToLower(list), ",") {
		names := []string{strings.TrimSpace(name)}
		if more, ok := aliases[names[0]]; ok {
			names = more
		}
		if names[0] == "all" {
			names = Names()
		}
		for _, n := range names {
			t, err := named(n)
			if err != nil {
				return nil, err
			}
			if s := t.spec(); !slices.ContainsFunc(specs, func(o Spec) bool { return o.Name == s.Name }) {
				specs = append(specs, s)
			}
		}
	}
	return specs, nil
}

func named(name string) (test, error) {
	i := slices.IndexFunc(tests, func(t test) bool { return t.name == name })
	if i < 0 {
		return test{}, fmt.Errorf("unknown test %q; the tests are %s, and all", name, strings.Join(Names(), ", "))
	}
	return tests[i], nil
}

func (t test) command() Command {
	c := Command{Name: t.title, Args: strings.Fields(t.args), Kind: t.kind, One: t.one, Reply: t.reply}
	c.Inline = t.name == "ping_inline"
	if i := slices.Index(c.Args, "__library__"); i >= 0 {
		c.Args[i] = library(loadedFunctions)
	}
	return c
}

func (t test) spec() Spec {
	return Spec{Name: t.title, Commands: []Command{t.command()}, Fill: t.fill, Setup: t.setup, Undo: t.undo}
}

// Mix returns the spec of several tests drawn by weight: "get=80,set=15,incr=5".
func Mix(list string) (Spec, error) {
	s := Spec{Name: list}
	for part := range strings.SplitSeq(strings.ToLower(list), ",") {
		name, share, ok := strings.Cut(strings.TrimSpace(part), "=")
		weight, err := strconv.ParseFloat(share, 64)
		if !ok || err != nil || !(weight > 0) || weight > 1e9 {
			return Spec{}, fmt.Errorf("%q is no part of a mix; want TEST=SHARE, as in get=80,set=20", part)
		}
		t, err := named(name)
		if err != nil {
			return Spec{}, err
		}
		c := t.command()
		c.Weight = weight
		if slices.ContainsFunc(s.Commands, func(o Command) bool { return o.Name == c.Name }) {
			return Spec{}, fmt.Errorf("the mix %q has %s twice; add its shares up", list, name)
		}
		s.Commands = append(s.Commands, c)
		for _, f := range t.fill {
			if !slices.ContainsFunc(s.Fill, func(o Command) bool { return o.kind() == f.kind() }) {
				s.Fill = append(s.Fill, f)
			}
		}
		s.Setup, s.Undo = union(s.Setup, t.setup), union(s.Undo, t.undo)
	}
	return s, nil
}

// union appends those of b to a that it does not have.
func union(a, b [][]string) [][]string {
	for _, c := range b {
		if !slices.ContainsFunc(a, func(o []string) bool { return slices.Equal(o, c) }) {
			a = append(a, c)
		}
	}
	return a
}

// Ratio returns the spec of memtier's --ratio: "1:10" is one SET for ten GETs.
func Ratio(s string) (Spec, error) {
	a, b, ok := strings.Cut(s, ":")
	set, err1 := strconv.ParseUint(a, 10, 31)
	get, err2 := strconv.ParseUint(b, 10, 31)
	if !ok || err1 != nil || err2 != nil || set+get == 0 {
		return Spec{}, fmt.Errorf("%q is no ratio; want SETS:GETS, as in 1:10", s)
	}
	var parts []string
	if set > 0 {
		parts = append(parts, fmt.Sprintf("set=%d", set))
	}
	if get > 0 {
		parts = append(parts, fmt.Sprintf("get=%d", get))
	}
	spec, err := Mix(strings.Join(parts, ","))
	spec.Name = "SET:GET " + s
	return spec, err
}

// Custom returns the spec of one command with placeholders, see Command. Keys
// that it names otherwise than by __key__ are not known to be keys: they are
// neither under our prefix nor removed.
func Custom(args []string) (Spec, error) {
	if len(args) == 0 || args[0] == "" {
		return Spec{}, fmt.Errorf("no command after --; give one, as in -- HGETALL __key__")
	}
	for _, a := range args {
		// valkey-benchmark's others would go out as they stand.
		if i := strings.Index(a, "__rand_"); i >= 0 && !strings.HasPrefix(a[i:], randArg) || strings.Contains(a, "__field:") {
			return Spec{}, fmt.Errorf("command %s: %q has an unknown placeholder; there are %s, %s, %s and %s", args[0], a, keyArg, randArg, dataArg, tagArg)
		}
	}
	return Spec{
		Name:     strings.Join(args, " "),
		Commands: []Command{{Name: strings.ToUpper(args[0]), Args: slices.Clone(args)}},
	}, nil
}
