package workload

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The titles are those that redis-benchmark 7.0.15 and, from MGET on,
// valkey-benchmark 9 print; see also ../../internal/importer/testdata.
func TestTitles(t *testing.T) {
	want := []string{"PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "LPUSH", "RPUSH", "LPOP", "RPOP", "SADD", "HSET", "SPOP", "ZADD", "ZPOPMIN",
		"LRANGE_100 (first 100 elements)", "LRANGE_300 (first 300 elements)", "LRANGE_500 (first 500 elements)", "LRANGE_600 (first 600 elements)",
		"MSET (10 keys)", "MGET (10 keys)", "XADD", "FUNCTION LOAD", "FCALL"}
	specs, err := Tests("all")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range specs {
		got = append(got, s.Name)
		if s.Commands[0].Name != s.Name {
			t.Errorf("%s: its command is %s", s.Name, s.Commands[0].Name)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTests(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want string // titles, or a part of the error after "!"
	}{
		{"set,get", "SET GET"},
		{" GET , set", "GET SET"},
		{"set,set", "SET"},
		{"ping", "PING_INLINE PING_MBULK"},
		{"lrange_500,lrange", "LRANGE_500 LRANGE_100 LRANGE_300 LRANGE_600"},
		{"setx", "!unknown test \"setx\""},
		{"", "!the tests are ping_inline, ping_mbulk, set, get"},
		{"set,", "!unknown test \"\""},
	} {
		specs, err := Tests(tt.in)
		if msg, bad := strings.CutPrefix(tt.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), msg) {
				t.Errorf("%q: error %v, want one with %q", tt.in, err, msg)
			}
			continue
		}
		var got []string
		for _, s := range specs {
			got = append(got, strings.Fields(s.Name)[0])
		}
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("%q: %v, %v; want %s", tt.in, got, err, tt.want)
		}
	}
	if specs, err := Tests("all"); err != nil || len(specs) != len(Names()) {
		t.Errorf("all: %d tests of %d, %v", len(specs), len(Names()), err)
	}
}

func TestMix(t *testing.T) {
	for _, tt := range []struct {
		in    string
		want  string // names, or a part of the error after "!"
		fills int    // commands that fill
	}{
		{"get=80,set=15,incr=5", "GET SET INCR", 1},
		{"get=0.5, MGET=0.5", "GET MGET (10 keys)", 1}, // both read the same keys
		{"set=1", "SET", 0},
		{"lrange_100=1,lrange_300=1", "LRANGE_100 (first 100 elements) LRANGE_300 (first 300 elements)", 2},
		{"", "!no part of a mix", 0},
		{"get", "!no part of a mix", 0},
		{"get=", "!no part of a mix", 0},
		{"get=0", "!no part of a mix", 0},
		{"get=-1", "!no part of a mix", 0},
		{"get=NaN", "!no part of a mix", 0},
		{"get=Inf", "!no part of a mix", 0},
		{"getx=1", "!unknown test", 0},
		{"get=1,get=2", "!twice", 0},
		{"ping_inline=1,ping_mbulk=1", "PING_INLINE PING_MBULK", 0},
	} {
		s, err := Mix(tt.in)
		if msg, bad := strings.CutPrefix(tt.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), msg) {
				t.Errorf("%q: error %v, want one with %q", tt.in, err, msg)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%q: %v", tt.in, err)
		}
		if got := strings.Join(mustNew(t, finish(s, 10)).Commands(), " "); got != tt.want || len(s.Fill) != tt.fills || s.Name != tt.in {
			t.Errorf("%q: %s with %d fills, want %s with %d", tt.in, got, len(s.Fill), tt.want, tt.fills)
		}
	}
	// The library is loaded and removed once.
	if s, err := Mix("fcall=1,function_load=1"); err != nil || len(s.Setup) != 1 || len(s.Undo) != 1 {
		t.Errorf("%v before, %v after, %v", s.Setup, s.Undo, err)
	}
}

func FuzzMix(f *testing.F) {
	for _, s := range []string{"get=80,set=20", "mset=1", "get=1e9,set=1e-300", "1:10"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, parse := range map[string]func(string) (Spec, error){"Mix": Mix, "Ratio": Ratio} {
			spec, err := parse(s)
			if err != nil {
				continue
			}
			w, err := New(finish(spec, 10))
			if err != nil {
				t.Fatalf("%s(%q) makes a spec that is refused: %v", name, s, err)
			}
			w.Source(1, 0).Append(nil, 3)
		}
	})
}

func TestRatio(t *testing.T) {
	for _, tt := range []struct {
		in       string
		set, get float64 // both 0: an error
	}{
		{"1:10", 1, 10}, {"0:1", 0, 1}, {"3:0", 3, 0},
		{"0:0", 0, 0}, {"1", 0, 0}, {"1:", 0, 0}, {"-1:1", 0, 0}, {"1:1:1", 0, 0}, {"1.5:1", 0, 0}, {"", 0, 0},
	} {
		s, err := Ratio(tt.in)
		got := make(map[string]float64)
		for _, c := range s.Commands {
			got[c.Name] = c.Weight
		}
		if (err != nil) != (tt.set+tt.get == 0) || got["SET"] != tt.set || got["GET"] != tt.get {
			t.Errorf("%q: %v, %v", tt.in, got, err)
		}
		if err == nil && s.Name != "SET:GET "+tt.in {
			t.Errorf("%q is called %q", tt.in, s.Name)
		}
	}
}

// The shares are those of YCSB's files workloada to workloadf.
func TestYCSB(t *testing.T) {
	for _, tt := range []struct {
		name                 string
		read, update, insert float64
		dist                 Dist
	}{
		{"a", .5, .5, 0, Zipfian},
		{"B", .95, .05, 0, Zipfian},
		{"c", 1, 0, 0, Zipfian},
		{"d", .95, 0, .05, Latest},
		// 0.5 reads and 0.5 read-modify-writes, which are a read and an update.
		{"f", 1 / 1.5, .5 / 1.5, 0, Zipfian},
	} {
		s, err := YCSB(tt.name)
		if err != nil {
			t.Fatal(err)
		}
		s = finish(s, 0)
		if s.Keys.Space != 1000 || s.Keys.Dist != tt.dist || len(s.Fill) != 1 {
			t.Errorf("%s: keys %+v, fill %v", tt.name, s.Keys, s.Fill)
		}
		const n = 20_000
		got := make(map[string]float64)
		for _, args := range commandsIn(t, mustNew(t, s).Source(1, 0).Append(nil, n)) {
			switch {
			case args[0] == "HGETALL" && len(args) == 2:
				got["read"]++
			case args[0] == "HMSET" && len(args) == 4 && len(args[3]) == 100:
				got["update"]++
			case args[0] == "HMSET" && len(args) == 22 && len(args[21]) == 100:
				got["insert"]++
			default:
				t.Fatalf("%s sends %q", tt.name, args)
			}
		}
		for kind, p := range map[string]float64{"read": tt.read, "update": tt.update, "insert": tt.insert} {
			if abs(got[kind]-n*p) > 5*sqrt(n*p*(1-p)) {
				t.Errorf("%s: %v of %d are %s, want %v", tt.name, got[kind], n, kind, n*p)
			}
		}
	}
	for name, want := range map[string]string{"e": "scans", "g": "unknown", "": "unknown"} {
		if _, err := YCSB(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", name, err, want)
		}
	}
}

// Inserted keys follow those there are, none is inserted twice, whatever the
// number of sources.
func TestYCSBInserts(t *testing.T) {
	s, err := YCSB("d")
	if err != nil {
		t.Fatal(err)
	}
	w := mustNew(t, finish(s, 0))
	inserted := make(map[string]bool)
	for stream := range uint64(4) {
		for _, args := range commandsIn(t, w.Source(stream, 0).Append(nil, 1000)) {
			if len(args) == 22 {
				if inserted[args[1]] {
					t.Fatalf("%s is inserted twice", args[1])
				}
				inserted[args[1]] = true
			}
		}
	}
	for i := range len(inserted) {
		if k := w.Key(0, "user", 1000+i); !inserted[k] {
			t.Errorf("%s was not inserted", k)
		}
	}
}

func TestCustom(t *testing.T) {
	s, err := Custom([]string{"hgetall", keyArg})
	if err != nil || s.Name != "hgetall "+keyArg || s.Commands[0].Name != "HGETALL" {
		t.Errorf("%+v, %v", s, err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "no command"},
		{[]string{""}, "no command"},
		{[]string{"SET", "__rand_1st__", "x"}, "unknown placeholder"},
		{[]string{"SET", "x", "__field:a__"}, "unknown placeholder"},
	} {
		if _, err := Custom(tt.args); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want one with %q", tt.args, err, tt.want)
		}
	}
}

// What a result file keeps of a spec leads to the same requests, but for what
// is said to be left out.
func TestSpecJSON(t *testing.T) {
	for _, spec := range allSpecs(t, 100) {
		text, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		var again Spec
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatal(err)
		}
		w, v := mustNew(t, spec), mustNew(t, again)
		if a, b := w.Source(1, 0).Append(nil, 50), v.Source(1, 0).Append(nil, 50); !reflect.DeepEqual(a, b) {
			t.Errorf("%s: other requests after JSON: %s", spec.Name, text)
		}
	}
}
