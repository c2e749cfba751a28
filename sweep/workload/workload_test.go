package workload

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/poolsweep/poolsweep/internal/embedded"
)

func TestMain(m *testing.M) {
	embedded.Main()
	logging.Disable() // what goes wrong comes back as an error
	os.Exit(m.Run())
}

// realServer returns a client of a redis-server of its own.
func realServer(t testing.TB) *redis.Client {
	t.Helper()
	e, err := embedded.Start(t.Context(), "redis-server")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	db := redis.NewClient(&redis.Options{Addr: e.Target.Addr(), Password: e.Target.Password.Reveal(), DisableIdentity: true})
	t.Cleanup(func() { db.Close() })
	return db
}

// finish fills in what a caller of Tests, Mix and the like adds.
func finish(s Spec, keyspace int) Spec {
	s.Prefix, s.Seed = "p:", 1
	if s.Keys == (Keys{}) {
		s.Keys.Space = keyspace
	}
	if s.Values.Sizes == nil {
		s.Values.Sizes = []Size{{Min: 3, Max: 3}}
	}
	return s
}

func testSpec(t testing.TB, name string, keyspace int) Spec {
	t.Helper()
	specs, err := Tests(name)
	if err != nil {
		t.Fatal(err)
	}
	if len(specs) != 1 {
		t.Fatalf("%s stands for %d tests", name, len(specs))
	}
	return finish(specs[0], keyspace)
}

func mustNew(t testing.TB, spec Spec, parts ...Part) *Workload {
	t.Helper()
	w, err := New(spec, parts...)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// allSpecs returns a spec of each kind that there is.
func allSpecs(t testing.TB, keyspace int) []Spec {
	t.Helper()
	specs, err := Tests("all")
	if err != nil {
		t.Fatal(err)
	}
	add := func(s Spec, err error) {
		if err != nil {
			t.Fatal(err)
		}
		specs = append(specs, s)
	}
	add(Mix("get=80,set=15,incr=5,lpush=1,zadd=2,mset=1"))
	add(Ratio("1:10"))
	for _, name := range []string{"a", "b", "c", "d", "f"} {
		add(YCSB(name))
	}
	add(Custom([]string{"HSET", keyArg, "f{tag}", dataArg}))
	add(Custom([]string{"EVAL", "return 1", "2", keyArg, "x" + keyArg + "y", randArg}))
	set, err := Custom([]string{"SET", keyArg, dataArg})
	if err != nil {
		t.Fatal(err)
	}
	add(set.WithExpiry(Expiry{10, 1000}))
	set.Values = Values{Sizes: []Size{{Min: 1, Max: 9}, {Min: 100, Max: 100, Weight: 2}}, Content: Random}
	specs = append(specs, set)
	for i := range specs {
		specs[i] = finish(specs[i], keyspace)
	}
	return specs
}

// commandsIn returns the commands that bytes for the wire consist of.
func commandsIn(t testing.TB, wire []byte) [][]string {
	t.Helper()
	r, err := ParseReplay(bytes.NewReader(wire))
	if err != nil {
		t.Fatalf("%v: %q", err, wire)
	}
	all := make([][]string, r.raw.len())
	for i := range all {
		all[i] = r.raw.args(i)
	}
	return all
}

// The wanted bytes follow from the protocol specification and, for the
// commands, from what redis-benchmark 7.0.15 sent to MONITOR.
func TestSourceAppend(t *testing.T) {
	const k = "$18\r\np:key:000000000000\r\n"
	for _, tt := range []struct {
		test string
		want string
	}{
		{"ping_inline", "PING\r\n"},
		{"ping_mbulk", "*1\r\n$4\r\nPING\r\n"},
		{"set", "*3\r\n$3\r\nSET\r\n" + k + "$3\r\nxxx\r\n"},
		{"get", "*2\r\n$3\r\nGET\r\n" + k},
		{"incr", "*2\r\n$4\r\nINCR\r\n$22\r\np:counter:000000000000\r\n"},
		{"sadd", "*3\r\n$4\r\nSADD\r\n$20\r\np:myset:000000000000\r\n$20\r\nelement:000000000000\r\n"},
		{"mget", "*11\r\n$4\r\nMGET\r\n" + strings.Repeat(k, 10)},
		{"mset", "*21\r\n$4\r\nMSET\r\n" + strings.Repeat(k+"$3\r\nxxx\r\n", 10)},
	} {
		w := mustNew(t, testSpec(t, tt.test, 0))
		s := w.Source(0, 0)
		if got := s.Append(nil, 2); string(got) != tt.want+tt.want {
			t.Errorf("%s: got %q, want twice %q", tt.test, got, tt.want)
		}
		if w.CommandBytes() != len(tt.want) {
			t.Errorf("%s: CommandBytes is %d, want %d", tt.test, w.CommandBytes(), len(tt.want))
		}
		if len(s.Kinds()) != 0 {
			t.Errorf("%s: kinds %v of a single command, want none", tt.test, s.Kinds())
		}
	}
}

// Placeholders stand for the same whether alone, within text or several times.
func TestPlaceholders(t *testing.T) {
	const key = "p:key:000000000000"
	ranges := Spec{Values: Values{Sizes: []Size{{Min: 2, Max: 5}}}}
	for _, tt := range []struct {
		args []string
		want []string // a value of varying size is "*"
		base Spec
	}{
		{[]string{"GET", "a" + keyArg + "b"}, []string{"GET", "a" + key + "b"}, Spec{}},
		{[]string{"SET", keyArg + keyArg, "<" + dataArg + dataArg + ">"}, []string{"SET", key + key, "<xxxxxx>"}, Spec{}},
		{[]string{"ZADD", keyArg, randArg, randArg + "-" + randArg}, []string{"ZADD", key, zeros, zeros + "-" + zeros}, Spec{}},
		{[]string{"GET", "x:{tag}"}, []string{"GET", "x:{tag}"}, Spec{}},
		{[]string{"SET", keyArg, dataArg, "x", dataArg}, []string{"SET", key, "*", "x", "*"}, ranges},
		{[]string{"SET", "\x00\r\n", "$1\r\n"}, []string{"SET", "\x00\r\n", "$1\r\n"}, Spec{}},
		{[]string{"SET", "__key_", "_data__"}, []string{"SET", "__key_", "_data__"}, Spec{}},
	} {
		spec, err := Custom(tt.args)
		if err != nil {
			t.Fatal(err)
		}
		spec.Values = tt.base.Values
		w := mustNew(t, finish(spec, 1))
		for _, got := range commandsIn(t, w.Source(1, 0).Append(nil, 10)) {
			for i, want := range tt.want {
				if want == "*" && len(got) > i && len(got[i]) >= 2 && len(got[i]) <= 5 {
					got[i] = want
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%q: got %q, want %q", tt.args, got, tt.want)
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	good := testSpec(t, "set", 10)
	for _, tt := range []struct {
		change func(*Spec)
		want   string
	}{
		{func(s *Spec) { s.Commands = nil }, "no command"},
		{func(s *Spec) { s.Commands = make([]Command, 65) }, "64 at most"},
		{func(s *Spec) { s.Commands = []Command{{Name: "X"}} }, "empty command"},
		{func(s *Spec) { s.Commands = []Command{{Name: "X", Args: []string{"X"}, Weight: -1}} }, "weight -1"},
		{func(s *Spec) { s.Replay = new(Replay) }, "one of them"},
		{func(s *Spec) { s.Values.Sizes = nil }, "no size"},
		{func(s *Spec) { s.Values.Sizes = []Size{{0, 0, 0}} }, "0 to 0 bytes"},
		{func(s *Spec) { s.Values.Sizes = []Size{{1 << 30, 1 << 30, 0}} }, "1073741824 bytes"},
		{func(s *Spec) { s.Values.Sizes = []Size{{5, 3, 0}} }, "ends before"},
		{func(s *Spec) { s.Values.Content = "lorem" }, "lorem"},
		{func(s *Spec) { s.Keys.Space = -1 }, "-1 keys"},
		{func(s *Spec) { s.Keys.Dist = "pareto" }, "pareto"},
		{func(s *Spec) { s.Keys.Exponent = -1 }, "exponent"},
		{func(s *Spec) { s.Keys.HotKeys = 1 }, "hot spot"},
		{func(s *Spec) { s.Expiry = Expiry{5, 1} }, "expiry"},
		{func(s *Spec) { s.Prefix = "" }, "prefix"},
		{func(s *Spec) { s.Commands[0].Args = []string{"SET", keyArg, expiryArg} }, "--expiry"},
		{func(s *Spec) {
			s.Values.Sizes = []Size{{1, 2, 0}}
			s.Commands[0].Args = []string{"SET", keyArg, "a" + dataArg}
		}, "must be all of it"},
	} {
		spec := good
		spec.Commands = slices.Clone(good.Commands)
		tt.change(&spec)
		if _, err := New(spec); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got error %v, want one with %q", spec, err, tt.want)
		}
	}
}

// The same seed and stream give the same requests, another stream others.
func TestSourceIsRepeatable(t *testing.T) {
	for _, spec := range allSpecs(t, 1000) {
		if spec.Name == "YCSB-D" {
			continue // a source sees the keys that others have inserted
		}
		w := mustNew(t, spec)
		first, again := w.Source(3, 0).Append(nil, 500), w.Source(3, 0).Append(nil, 500)
		if !bytes.Equal(first, again) {
			t.Errorf("%s: the same seed and stream give other draws", spec.Name)
		}
		other := w.Source(4, 0).Append(nil, 500)
		fixed := !strings.Contains(string(first), "00000000")
		single := len(spec.Commands) == 1 && spec.Commands[0].One && !slices.ContainsFunc(spec.Commands[0].Args, func(a string) bool { return strings.Contains(a, randArg) })
		if bytes.Equal(first, other) && !fixed && !single {
			t.Errorf("%s: another stream gives the same draws", spec.Name)
		}
	}
}

// Each command of a mix comes with its share: of n draws with p, n·p ± five
// standard deviations √(n·p·(1−p)); the seed is fixed. Kinds says which.
func TestMixShares(t *testing.T) {
	spec, err := Mix("get=80,set=15,incr=5")
	if err != nil {
		t.Fatal(err)
	}
	w := mustNew(t, finish(spec, 100))
	s := w.Source(1, 0)
	const n = 100_000
	wire := s.Append(nil, n)
	counts := make(map[string]float64)
	for i, args := range commandsIn(t, wire) {
		counts[args[0]]++
		if name := w.Commands()[s.Kinds()[i]]; name != args[0] {
			t.Fatalf("request %d is %s, its kind says %s", i, args[0], name)
		}
	}
	for name, p := range map[string]float64{"GET": .8, "SET": .15, "INCR": .05} {
		if sd := sqrt(n * p * (1 - p)); abs(counts[name]-n*p) > 5*sd {
			t.Errorf("%s comes %v times of %d, want %v ± %.0f", name, counts[name], n, n*p, 5*sd)
		}
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	parts := []Part{{Slots: []SlotRange{{0, 8191}}}, {Slots: []SlotRange{{8192, 16383}}}}
	check := func(name string, w *Workload) {
		s := w.Source(1, 0)
		buf := make([]byte, 0, 1<<20)
		s.Append(buf, 64) // room for the kinds
		if n := testing.AllocsPerRun(100, func() { buf = s.Append(buf[:0], 16) }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
	for _, spec := range allSpecs(t, 1000) {
		check(spec.Name, mustNew(t, spec))
		check(spec.Name+" on a cluster", mustNew(t, spec, parts...))
	}
	r := resolve(t, "SET a b\nGET a\nLPUSH c d\nPING", "p:", false)
	check("replay", mustNew(t, Spec{Name: "replay", Replay: r, Prefix: "p:"}))
}

// Every test works on a server as it is: no request of it is refused, and
// nothing of it is left behind.
func TestOnRealServer(t *testing.T) {
	db := realServer(t)
	ctx := t.Context()
	for _, spec := range allSpecs(t, 50) {
		run := func(commands [][]string) {
			for _, args := range commands {
				if err := db.Do(ctx, anys(args)...).Err(); err != nil && err != redis.Nil {
					t.Errorf("%s: %q: %v", spec.Name, args, err)
				}
			}
		}
		w := mustNew(t, spec)
		run(spec.Setup)
		if err := w.Preload(ctx, db, nil); err != nil {
			t.Errorf("%s: %v", spec.Name, err)
		}
		if spec.Commands[0].Inline {
			continue
		}
		run(commandsIn(t, w.Source(1, 0).Append(nil, 100)))
		run(spec.Undo)
		if err := w.Remove(ctx, db); err != nil {
			t.Errorf("%s: %v", spec.Name, err)
		}
		// The custom command with a key within text has keys that are not ours.
		if keys := db.Keys(ctx, "*").Val(); len(keys) > 0 && !strings.HasPrefix(spec.Name, "EVAL") {
			t.Errorf("%s: %d keys are left, the first is %q", spec.Name, len(keys), keys[0])
		}
	}
	if left := db.FunctionList(ctx, redis.FunctionListQuery{}).Val(); len(left) != 0 {
		t.Errorf("%d function libraries are left", len(left))
	}
}

// The reply for the calibration is a whole reply.
func TestReply(t *testing.T) {
	for _, spec := range allSpecs(t, 10) {
		reply := string(mustNew(t, spec).Reply())
		if reply == "" || !strings.HasSuffix(reply, "\r\n") || !strings.ContainsAny(reply[:1], "+:$*") {
			t.Errorf("%s: reply %.40q", spec.Name, reply)
		}
	}
}

func anys(args []string) []any {
	out := make([]any, len(args))
	for i, a := range args {
		out[i] = a
	}
	return out
}

// A recorder is a hook that keeps the commands and sends nothing.
type recorder struct{ commands [][]string }

func (r *recorder) DialHook(next redis.DialHook) redis.DialHook {
	return func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }
}

func (r *recorder) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, c redis.Cmder) error { r.keep(c); return nil }
}

func (r *recorder) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, all []redis.Cmder) error {
		for _, c := range all {
			r.keep(c)
		}
		return nil
	}
}

func (r *recorder) keep(c redis.Cmder) {
	var args []string
	for _, a := range c.Args() {
		args = append(args, fmt.Sprint(a))
	}
	r.commands = append(r.commands, args)
}

// recording returns a client that keeps commands and sends nothing.
func recording() (redis.UniversalClient, *recorder) {
	db, r := redis.NewClient(&redis.Options{}), new(recorder)
	db.AddHook(r)
	return db, r
}

func BenchmarkAppend(b *testing.B) {
	bench := func(name string, spec Spec, parts ...Part) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			s := mustNew(b, spec, parts...).Source(1, 0)
			var buf []byte
			for b.Loop() {
				buf = s.Append(buf[:0], 1)
			}
		})
	}
	bench("one-key", testSpec(b, "set", 1))
	for _, d := range []Dist{Uniform, Zipfian, Gaussian, Sequential, Latest, HotSpot} {
		spec := testSpec(b, "set", 1_000_000)
		spec.Keys.Dist = d
		bench(string(d), spec)
	}
	bench("cluster", testSpec(b, "set", 1_000_000), Part{Slots: []SlotRange{{0, Slots - 1}}})
	random := testSpec(b, "set", 1_000_000)
	random.Values = Values{Sizes: []Size{{Min: 50, Max: 150}}, Content: Random}
	bench("random-values", random)
	mix, _ := Mix("get=80,set=15,incr=5")
	bench("mix", finish(mix, 1_000_000))
}
