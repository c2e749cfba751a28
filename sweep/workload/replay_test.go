package workload

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// emulated returns a client of an emulator, which knows COMMAND as of Redis 5.
func emulated(t testing.TB) *redis.Client {
	m := miniredis.RunT(t)
	db := redis.NewClient(&redis.Options{Addr: m.Addr(), DisableIdentity: true})
	t.Cleanup(func() { db.Close() })
	return db
}

func resolve(t testing.TB, text, prefix string, keep bool) *Replay {
	t.Helper()
	return resolveAt(t, emulated(t), text, prefix, keep)
}

func resolveAt(t testing.TB, db redis.UniversalClient, text, prefix string, keep bool) *Replay {
	t.Helper()
	r, err := ParseReplay(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Resolve(t.Context(), db, prefix, keep); err != nil {
		t.Fatal(err)
	}
	return r
}

// sent returns the commands that are sent, as text.
func (r *Replay) sent() []string {
	var all []string
	for i := range r.ready.len() {
		all = append(all, strings.Join(r.ready.args(i), " "))
	}
	return all
}

// noCommand is a server that refuses COMMAND.
func noCommand(t testing.TB) *redis.Client {
	db := emulated(t)
	db.AddHook(without("COMMAND"))
	return db
}

// Where the keys are follows from the commands' documentation. All servers
// lead to the same, as far as they know the command: a real one, an older one,
// one that does not tell.
func TestResolve(t *testing.T) {
	servers := map[string]redis.UniversalClient{"redis-server": realServer(t), "emulator": emulated(t), "without COMMAND": noCommand(t)}
	for _, tt := range []struct {
		in   string
		want string // "" when it must not be sent
		only string // the servers that know it; "" for all
	}{
		{in: "GET a", want: "GET p:a"},
		{in: "get a", want: "get p:a"},
		{in: "SET a a", want: "SET p:a a"},
		{in: "SET {u}:a 1 EX 10", want: "SET p:{u}:a 1 EX 10"},
		{in: "MSET a 1 b 2", want: "MSET p:a 1 p:b 2"},
		{in: "MGET a b a", want: "MGET p:a p:b p:a"},
		{in: "DEL a b", want: "DEL p:a p:b"},
		{in: "RENAME a b", want: "RENAME p:a p:b"},
		{in: "SMOVE a b m", want: "SMOVE p:a p:b m"},
		{in: "BITOP AND d a b", want: "BITOP AND p:d p:a p:b"},
		{in: "SINTERSTORE d a b", want: "SINTERSTORE p:d p:a p:b"},
		{in: "ZUNIONSTORE d 2 a b WEIGHTS 1 2", want: "ZUNIONSTORE p:d 2 p:a p:b WEIGHTS 1 2"},
		{in: "ZUNIONSTORE 2 2 2 a", want: "ZUNIONSTORE p:2 2 p:2 p:a"}, // names that look like the number
		{in: "EVAL k 2 k l k", want: "EVAL k 2 p:k p:l k"},
		{in: "SORT a BY w_* GET # STORE d", want: "SORT p:a BY w_* GET # STORE p:d"},
		{in: "XREAD COUNT 2 STREAMS a b 0 0", want: "XREAD COUNT 2 STREAMS p:a p:b 0 0"},
		{in: "XREADGROUP GROUP g c STREAMS a >", want: "XREADGROUP GROUP g c STREAMS p:a >"},
		{in: "GEORADIUS a 1 2 3 m STORE d", want: "GEORADIUS p:a 1 2 3 m STORE p:d"},
		{in: "OBJECT ENCODING a", want: "OBJECT ENCODING p:a"},
		{in: "PING", want: "PING"},
		{in: "ECHO x", want: "ECHO x"},
		{in: "KEYS x*", want: "KEYS x*"},
		{in: "DBSIZE", want: "DBSIZE"},
		{in: "LMPOP 2 a b LEFT", want: "LMPOP 2 p:a p:b LEFT", only: "redis-server without COMMAND"},
		{in: "ZINTER 1 a", want: "ZINTER 1 p:a", only: "redis-server without COMMAND"},
		{in: "MEMORY USAGE a", want: "MEMORY USAGE p:a", only: "redis-server"},
		{in: "COPY a b", want: "COPY p:a p:b", only: "redis-server without COMMAND"},

		// What must not be sent.
		{in: "COPY a b DB 1"}, {in: "MOVE a 1"}, {in: "MIGRATE h 1 a 0 100"}, {in: "SWAPDB 0 1"},
		{in: "MULTI"}, {in: "EXEC"}, {in: "DISCARD"}, {in: "WATCH a"}, {in: "UNWATCH"},
		{in: "SELECT 1"}, {in: "AUTH secret"}, {in: "HELLO 3"}, {in: "CLIENT SETNAME a"}, {in: "QUIT"}, {in: "RESET"}, {in: "READONLY"}, {in: "ASKING"},
		{in: "MONITOR"}, {in: "SUBSCRIBE a"}, {in: "PSUBSCRIBE a"}, {in: "PUBLISH a b"},
		{in: "SHUTDOWN"}, {in: "FLUSHALL"}, {in: "FLUSHDB"}, {in: "CONFIG SET save 1"}, {in: "CONFIG GET save"}, {in: "REPLICAOF a 1"}, {in: "SLAVEOF a 1"},
		{in: "DEBUG SLEEP 1"}, {in: "DEBUG OBJECT a"}, {in: "CLUSTER RESET"}, {in: "SCRIPT FLUSH"}, {in: "SCRIPT LOAD x"}, {in: "FUNCTION FLUSH"},
		{in: "ACL WHOAMI"}, {in: "SAVE"}, {in: "BGSAVE"}, {in: "SLOWLOG RESET"}, {in: "LATENCY RESET"}, {in: "SYNC"}, {in: "PSYNC a 1"}, {in: "FAILOVER"},
		{in: "BLPOP a 0"}, {in: "BRPOPLPUSH a b 0"}, {in: "BZPOPMIN a 0"}, {in: "WAIT 1 0"},
		{in: "XREAD BLOCK 0 STREAMS a 0"}, {in: "xreadgroup group g c block 0 streams a >"},
		{in: "EVAL script 0"}, {in: "EVAL script x a"}, {in: "EVAL script 5 a"}, {in: "EVAL script -1 a"},
		{in: "GET"}, {in: "NOSUCHCOMMAND a"}, {in: "OBJECT NOSUCH a"}, {in: `"secret word" a`},
	} {
		for name, db := range servers {
			if tt.only != "" && !strings.Contains(tt.only, name) || name != "redis-server" && (tt.in == "GET" || tt.in == "OBJECT NOSUCH a") {
				continue // only a server of today knows the number of arguments of all
			}
			r := resolveAt(t, db, "TIME\n"+tt.in, "p:", false)
			got := strings.Join(r.sent()[1:], "\n")
			if got != tt.want {
				t.Errorf("%s: %s: %q is sent, want %q", name, tt.in, got, tt.want)
			}
			if skipped := slices.Collect(maps.Values(r.Skipped)); (len(skipped) == 1) != (tt.want == "") {
				t.Errorf("%s: %s: skipped %v", name, tt.in, r.Skipped)
			}
		}
	}
}

// A command whose keys only the server knows is asked for, and skipped when a
// name stands elsewhere, too.
func TestPlacesOf(t *testing.T) {
	for _, tt := range []struct {
		names, args []string
		want        finding
	}{
		{[]string{"a"}, []string{"X", "1", "a"}, finding{keys: []int{2}}},
		{[]string{"b", "a"}, []string{"X", "a", "b"}, finding{keys: []int{1, 2}}},
		{[]string{"a", "a"}, []string{"X", "a", "a"}, finding{keys: []int{1, 2}}},
		{[]string{"a"}, []string{"X", "a", "a"}, finding{skip: true}},
		{[]string{"X"}, []string{"X", "a"}, finding{skip: true}},
	} {
		if got := placesOf(tt.names, tt.args); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%q of %q: %+v, want %+v", tt.names, tt.args, got, tt.want)
		}
	}
}

// COMMAND GETKEYS of a real server.
func TestAskKeys(t *testing.T) {
	var all commands
	all.add([]string{"EVAL", "return 1", "2", "a", "b", "c"})
	all.add([]string{"PING"})
	all.add([]string{"NOSUCH", "a"})
	all.add([]string{"MSET", "a", "1", "b", "2"})
	out := make([]finding, all.len())
	if err := askKeys(t.Context(), realServer(t), &all, []int{0, 1, 2, 3}, out); err != nil {
		t.Fatal(err)
	}
	want := []finding{{keys: []int{3, 4}}, {skip: true}, {skip: true}, {keys: []int{1, 3}}}
	if !reflect.DeepEqual(out, want) {
		t.Errorf("got %+v, want %+v", out, want)
	}
}

// Our own table and the server's say the same of every command that is in it.
func TestUsualCommandsAreTheServers(t *testing.T) {
	var all commands
	for name := range usual() {
		all.add([]string{name})
	}
	server, err := commandTable(t.Context(), realServer(t), &all)
	if err != nil {
		t.Fatal(err)
	}
	for name, ours := range usual() {
		theirs, ok := server[name]
		if !ok {
			t.Errorf("%s: the server does not know it", name)
			continue
		}
		for _, sub := range theirs.parts { // "object encoding"; help has none
			if sub.first > 0 {
				theirs.first, theirs.last, theirs.step = sub.first, sub.last, sub.step
				theirs.flags = append(theirs.flags, "readonly", "write")
			}
		}
		moves := func(i commandInfo) bool { _, known := movableKeys(name, []string{name, "1", "2"}); return known }
		if !moves(ours) && (ours.first != theirs.first || ours.last != theirs.last || ours.first > 0 && ours.step != theirs.step) {
			t.Errorf("%s: keys %d to %d by %d, the server says %d to %d by %d", name, ours.first, ours.last, ours.step, theirs.first, theirs.last, theirs.step)
		}
		if ours.is("readonly") && !theirs.is("readonly") {
			t.Errorf("%s: only reads, the server says %v", name, theirs.flags)
		}
		if theirs.is("admin") || theirs.is("pubsub") || theirs.is("blocking") && !strings.HasPrefix(name, "xread") {
			t.Errorf("%s is no command to replay: %v", name, theirs.flags)
		}
	}
}

func TestResolveSummary(t *testing.T) {
	r := resolve(t, "SET a 1\nGET a\nGET b\nSELECT 1\nFLUSHALL\nSELECT 2\n'x", "p:", false)
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"format":"commands","commands":3,"keys":2,"skipped":{"FLUSHALL":1,"SELECT":2},"wrong_lines":1,"first_wrong_line":"line 7: a quote that is not closed"}`
	if string(text) != want {
		t.Errorf("got %s, want %s", text, want)
	}
	// Of the summary a spec can be checked, but nothing sent.
	var again *Replay
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	w := mustNew(t, Spec{Name: "replay", Replay: again, Prefix: "p:"})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a Source of commands that are not there")
			}
		}()
		w.Source(1, 0)
	}()
	if err := again.Resolve(t.Context(), emulated(t), "p:", false); err == nil || !strings.Contains(err.Error(), "read it again") {
		t.Errorf("error %v", err)
	}
	// Another Resolve begins anew.
	if err := r.Resolve(t.Context(), emulated(t), "q:", false); err != nil || !slices.Equal(r.sent(), []string{"SET q:a 1", "GET q:a", "GET q:b"}) {
		t.Errorf("%q, %v", r.sent(), err)
	}
}

// Names of commands that are none may be anything, and are not shown.
func TestResolveShowsNoContents(t *testing.T) {
	r, err := ParseReplay(strings.NewReader("SELECT 1\nhunter2! x\nSELECT 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	err = r.Resolve(t.Context(), emulated(t), "p:", false)
	if err == nil || !strings.Contains(err.Error(), "none of its 3 commands can be replayed (SELECT 2, (not a name) 1)") {
		t.Errorf("error %v", err)
	}
}

func TestResolveWithoutServer(t *testing.T) {
	r, err := ParseReplay(strings.NewReader("GET a"))
	if err != nil {
		t.Fatal(err)
	}
	m := miniredis.RunT(t)
	db := redis.NewClient(&redis.Options{Addr: m.Addr(), DisableIdentity: true, MaxRetries: -1, DialerRetries: 1})
	defer db.Close()
	m.Close()
	if err := r.Resolve(t.Context(), db, "p:", false); err == nil {
		t.Error("no error")
	}
}

// The recording goes round, in its order, from another place in each stream.
func TestReplaySends(t *testing.T) {
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "SET k%d %d\n", i, i)
	}
	r := resolve(t, text.String(), "p:", false)
	w := mustNew(t, Spec{Name: "replay", Replay: r, Prefix: "p:"})
	if w.CommandBytes() != 0 || string(w.Reply()) != "+OK\r\n" {
		t.Errorf("%d bytes a command, reply %q", w.CommandBytes(), w.Reply())
	}
	starts := make(map[string]bool)
	for stream := range uint64(10) {
		s := w.Source(stream, 0)
		var got [][]string
		for range 5 { // in pieces that do not fit
			got = append(got, commandsIn(t, s.Append(nil, 51))...)
		}
		starts[got[0][2]] = true
		var first int
		fmt.Sscan(got[0][2], &first)
		for i, args := range got {
			n := (first + i) % 100
			if want := []string{"SET", fmt.Sprintf("p:k%d", n), fmt.Sprint(n)}; !slices.Equal(args, want) {
				t.Fatalf("command %d is %q, want %q", i, args, want)
			}
		}
	}
	if len(starts) < 8 {
		t.Errorf("10 streams begin at %d places", len(starts))
	}
}

// Results are by command: the most frequent 63 by name, others together.
func TestReplayKinds(t *testing.T) {
	r := resolve(t, "SET a 1\nGET a\nget b\nLPUSH c 1\nGET a\nLPUSH c 2", "p:", false)
	w := mustNew(t, Spec{Name: "replay", Replay: r, Prefix: "p:"})
	if got := w.Commands(); !slices.Equal(got, []string{"GET", "LPUSH", "SET"}) {
		t.Errorf("commands %q", got)
	}
	s := w.Source(1, 0)
	for i, args := range commandsIn(t, s.Append(nil, 20)) {
		if name := w.Commands()[s.Kinds()[i]]; name != strings.ToUpper(args[0]) {
			t.Errorf("request %d is %q, its kind says %s", i, args, name)
		}
	}
	for _, tt := range []struct{ different, names int }{{1, 1}, {64, 64}, {65, 64}, {1000, 64}} {
		var all []string
		for i := range tt.different {
			all = append(all, fmt.Sprintf("C%03d", i))
		}
		names, kinds := kindsOf(append(all, "C000"))
		if len(names) != tt.names || names[0] != "C000" || (names[len(names)-1] == otherName) != (tt.different > 64) {
			t.Errorf("%d names: %q", tt.different, names)
		}
		if last := int(kinds[tt.different-1]); last != tt.names-1 {
			t.Errorf("%d names: the last has kind %d", tt.different, last)
		}
	}
}

// Remove removes exactly what was rewritten; with keep nothing.
func TestReplayRemove(t *testing.T) {
	const text = "SET a 1\nMSET a 1 b 2\nGET c\nEVAL s 1 d x\nPING"
	w := mustNew(t, Spec{Name: "replay", Replay: resolve(t, text, "p:", false), Prefix: "p:"})
	if got := slices.Sorted(maps.Keys(removedKeys(t, w))); !slices.Equal(got, []string{"p:a", "p:b", "p:c", "p:d"}) {
		t.Errorf("removed: %q", got)
	}
	kept := resolve(t, text, "p:", true)
	if got := kept.sent(); got[0] != "SET a 1" || kept.Keys != 4 {
		t.Errorf("kept: %q, %d keys", got, kept.Keys)
	}
	w = mustNew(t, Spec{Name: "replay", Replay: kept, Prefix: "p:"})
	if got := removedKeys(t, w); len(got) != 0 {
		t.Errorf("removed though kept: %v", got)
	}
}

// On a real server the recording runs under our prefix and leaves nothing.
func TestReplayOnRealServer(t *testing.T) {
	db := realServer(t)
	ctx := t.Context()
	if err := db.Set(ctx, "a", "theirs", 0).Err(); err != nil {
		t.Fatal(err)
	}
	r := resolveAt(t, db, "SET a 1\nLPUSH l 1 2 3\nSORT l STORE d\nEVAL \"return redis.call('INCR', KEYS[1])\" 1 n\nXADD x * f v\nFLUSHALL\nDEL d", "p:", false)
	w := mustNew(t, Spec{Name: "replay", Replay: r, Prefix: "p:"})
	for _, args := range commandsIn(t, w.Source(1, 0).Append(nil, 30)) {
		if err := db.Do(ctx, anys(args)...).Err(); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
	if n := db.DBSize(ctx).Val(); n < 4 {
		t.Errorf("%d keys", n)
	}
	if err := w.Remove(ctx, db); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(db.Keys(ctx, "*").Val(), db.Get(ctx, "a").Val()); got != "[a]theirs" {
		t.Errorf("left: %s", got)
	}
}

// A node of a cluster gets the commands of its slots, those without a key go
// to all, those of several slots to none.
func TestReplayOnCluster(t *testing.T) {
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "SET k%d %d\nMSET {t%d}a 1 {t%d}b 2\n", i, i, i, i)
	}
	text.WriteString("MGET k1 k2 k3\nPING\n")
	r := resolve(t, text.String(), "p:", false)
	w := mustNew(t, Spec{Name: "replay", Replay: r, Prefix: "p:"}, three...)
	seen := make(map[string]int)
	for p, part := range three {
		s := w.Source(1, p)
		round := commandsIn(t, s.Append(nil, len(w.parts[p].recorded)))
		for _, args := range round {
			seen[args[0]]++
			if args[0] != "PING" && !part.owns(Slot(args[1])) {
				t.Errorf("%q is sent to node %d", args, p)
			}
		}
		// After a move its commands are passed over.
		var moved int
		for _, args := range round {
			if args[0] == "SET" {
				moved = Slot(args[1])
				s.Moved(moved)
				break
			}
		}
		for _, args := range commandsIn(t, s.Append(nil, 500)) {
			if args[0] != "PING" && Slot(args[1]) == moved {
				t.Errorf("%q is sent, whose slot has moved", args)
			}
		}
	}
	if want := map[string]int{"SET": 100, "MSET": 100, "PING": 3}; !maps.Equal(seen, want) {
		t.Errorf("a round has %v, want %v", seen, want)
	}
	lonely := resolve(t, "SET k1 1\nPING", "p:", false)
	if _, err := New(Spec{Name: "replay", Replay: lonely, Prefix: "p:"}, three...); err == nil || !strings.Contains(err.Error(), "names no key of the node") {
		t.Errorf("error %v", err)
	}
}

// With the client of a cluster, commands of several slots are counted.
func TestResolveOnCluster(t *testing.T) {
	m := miniredis.RunT(t)
	db := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{m.Addr()}, DisableIdentity: true})
	defer db.Close()
	r := resolveAt(t, db, "MGET a b\nMGET {a}1 {a}2\nGET a", "p:", false)
	if r.Skipped["MGET"] != 1 || r.Commands != 2 {
		t.Errorf("skipped %v, %d left", r.Skipped, r.Commands)
	}
}
