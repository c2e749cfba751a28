package workload

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// Remove names every key that Append can have written, and each only once: for
// all workloads, on one server and on a cluster.
func TestRemoveFindsEveryKey(t *testing.T) {
	for _, spec := range allSpecs(t, 40) {
		for _, parts := range [][]Part{nil, three} {
			w := mustNew(t, spec, parts...)
			written := make(map[string]bool)
			for p := range w.Parts() {
				for stream := range uint64(2) {
					wire := w.Source(stream, p).Append(nil, 300)
					if spec.Commands[0].Inline {
						continue
					}
					for _, keys := range keysOfWire(t, wire) {
						for _, k := range keys {
							written[k] = true
						}
					}
				}
			}
			removed := removedKeys(t, w)
			for k := range written {
				if !removed[k] {
					t.Errorf("%s, %d parts: %q is not removed", spec.Name, len(parts), k)
				}
			}
			if spec.Keys.Dist == Latest && len(written) <= 40*w.Parts() {
				t.Errorf("%s: nothing was inserted", spec.Name)
			}
		}
	}
}

// removedKeys returns what Remove removes.
func removedKeys(t *testing.T, w *Workload) map[string]bool {
	t.Helper()
	db, rec := recording()
	if err := w.Remove(context.Background(), db); err != nil {
		t.Fatal(err)
	}
	keys := make(map[string]bool)
	for _, args := range rec.commands {
		if len(args) != 2 || args[0] != "UNLINK" || keys[args[1]] {
			t.Fatalf("%s: removed with %q", w.spec.Name, args)
		}
		keys[args[1]] = true
	}
	return keys
}

// What is preloaded is exactly what the commands can read: as many keys as
// FillKeys says, all of them removed at the end.
func TestPreloadWritesWhatIsRead(t *testing.T) {
	for _, spec := range allSpecs(t, 40) {
		for _, parts := range [][]Part{nil, three} {
			w := mustNew(t, spec, parts...)
			db, rec := recording()
			var last, total int64
			err := w.Preload(t.Context(), db, func(done, of int64) {
				if done < last || done > of {
					t.Errorf("%s: progress %d of %d after %d", spec.Name, done, of, last)
				}
				last, total = done, of
			})
			if err != nil {
				t.Fatal(err)
			}
			filled := make(map[string]bool)
			for _, args := range rec.commands {
				filled[args[1]] = true
			}
			want, size := w.FillKeys()
			if int64(len(filled)) != want || last != total || total != want || (size > 0) != (want > 0) {
				t.Errorf("%s: %d keys are filled, progress ends with %d of %d, FillKeys is %d, %d bytes", spec.Name, len(filled), last, total, want, size)
			}
			removed := removedKeys(t, w)
			for k := range filled {
				if !removed[k] {
					t.Errorf("%s: %q is not removed", spec.Name, k)
				}
			}
			if len(spec.Fill) == 0 || spec.Keys.Dist == Latest {
				continue
			}
			wire := w.Source(1, 0).Append(nil, 200)
			for _, args := range commandsIn(t, wire) {
				if reads := regexp.MustCompile(`GET|LRANGE`); reads.MatchString(args[0]) && !filled[args[1]] {
					t.Errorf("%s: %q reads what is not filled", spec.Name, args)
				}
			}
		}
	}
}

func TestPreloadAndRemove(t *testing.T) {
	emulator := miniredis.RunT(t)
	emulated := redis.NewClient(&redis.Options{Addr: emulator.Addr(), DisableIdentity: true})
	defer emulated.Close()
	for name, db := range map[string]*redis.Client{"miniredis": emulated, "redis-server": realServer(t)} {
		ctx := t.Context()
		if err := db.Set(ctx, "p:key:other", "of another", 0).Err(); err != nil {
			t.Fatal(err)
		}
		spec := testSpec(t, "get", 1234)
		spec.Values.Sizes = []Size{{7, 7, 0}}
		w := mustNew(t, spec)
		if err := w.Preload(ctx, db, nil); err != nil {
			t.Fatal(err)
		}
		if got := db.DBSize(ctx).Val(); got != 1235 {
			t.Fatalf("%s: %d keys after preload, want 1235", name, got)
		}
		if got := db.Get(ctx, w.Key(0, "key", 1233)).Val(); got != "xxxxxxx" {
			t.Errorf("%s: the last key holds %q, want 7 x", name, got)
		}
		if err := w.Remove(ctx, db); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(db.Keys(ctx, "*").Val()); got != "[p:key:other]" {
			t.Errorf("%s: keys left: %s, want only the other's", name, got)
		}
	}
}

// A server that has no UNLINK gets DEL.
func TestRemoveWithoutUnlink(t *testing.T) {
	m := miniredis.RunT(t)
	db := redis.NewClient(&redis.Options{Addr: m.Addr(), DisableIdentity: true})
	defer db.Close()
	db.AddHook(without("UNLINK"))
	w := mustNew(t, testSpec(t, "get", 700))
	if err := w.Preload(t.Context(), db, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Remove(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if n := len(m.Keys()); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// without is a hook that makes of one command another that no server has.
type without string

func (w without) change(c redis.Cmder) {
	if c.Args()[0] == string(w) {
		c.Args()[0] = "NOSUCHCOMMAND"
	}
}

func (w without) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w without) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error { w.change(c); return next(ctx, c) }
}

func (w without) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error {
		for _, c := range all {
			w.change(c)
		}
		return next(ctx, all)
	}
}

func TestPreloadOnlyForReads(t *testing.T) {
	for _, name := range []string{"set", "incr", "lpush", "mset", "ping_mbulk"} {
		db, rec := recording()
		if err := mustNew(t, testSpec(t, name, 10)).Preload(t.Context(), db, nil); err != nil {
			t.Fatal(err)
		}
		if len(rec.commands) != 0 {
			t.Errorf("%s: %d commands of preload, want 0", name, len(rec.commands))
		}
	}
}

// Preload and Remove stop with ctx.
func TestPreloadEndsWithContext(t *testing.T) {
	m := miniredis.RunT(t)
	db := redis.NewClient(&redis.Options{Addr: m.Addr(), DisableIdentity: true})
	defer db.Close()
	ctx, cancel := context.WithCancel(t.Context())
	w := mustNew(t, testSpec(t, "get", 10*batch))
	err := w.Preload(ctx, db, func(done, _ int64) {
		if done == 2*batch {
			cancel()
		}
	})
	if err == nil || len(m.Keys()) != 2*batch {
		t.Errorf("error %v with %d keys", err, len(m.Keys()))
	}
	if err := w.Remove(ctx, db); err == nil {
		t.Error("Remove with an ended context: no error")
	}
}

// FillKeys says within a quarter what a server takes.
func TestFillKeysBytes(t *testing.T) {
	db := realServer(t)
	ctx := t.Context()
	used := func() int64 {
		for line := range strings.Lines(db.Info(ctx, "memory").Val()) {
			if v, ok := strings.CutPrefix(line, "used_memory:"); ok {
				n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
		}
		t.Fatal("no used_memory in INFO")
		return 0
	}
	ycsb, err := YCSB("a")
	if err != nil {
		t.Fatal(err)
	}
	ycsb = finish(ycsb, 0)
	ycsb.Keys.Space = 10_000
	small := ycsb
	small.Values.Sizes = []Size{{20, 20, 0}}
	hundred := testSpec(t, "get", 10_000)
	hundred.Values.Sizes = []Size{{100, 100, 0}}
	mixed := testSpec(t, "get", 10_000)
	mixed.Values = Values{Sizes: []Size{{1, 1000, 0}}, Content: Random}
	for name, spec := range map[string]Spec{"100 bytes": hundred, "3 bytes": testSpec(t, "get", 10_000), "1 to 1000 bytes": mixed, "YCSB": ycsb, "YCSB with 20 bytes": small} {
		spec.Prefix = NewPrefix()
		w := mustNew(t, spec)
		before := used()
		if err := w.Preload(ctx, db, nil); err != nil {
			t.Fatal(err)
		}
		grown := float64(used() - before)
		keys, bytes := w.FillKeys()
		if ratio := float64(bytes) / grown; keys != 10_000 || ratio < 0.75 || ratio > 1.25 {
			t.Errorf("%s: FillKeys says %d bytes, the server took %.0f for %d keys", name, bytes, grown, keys)
		}
		if err := db.FlushAll(ctx).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNewPrefix(t *testing.T) {
	a, b := NewPrefix(), NewPrefix()
	if a == b || !regexp.MustCompile(`^poolsweep:[A-Z2-7]{6}:$`).MatchString(a) {
		t.Errorf("prefixes %q and %q", a, b)
	}
}

// Key is what Append writes.
func TestKeyIsWhatAppendWrites(t *testing.T) {
	for _, parts := range [][]Part{nil, three} {
		w := mustNew(t, testSpec(t, "get", 1), parts...)
		if wire := w.Source(1, 0).Append(nil, 1); !bytes.Contains(wire, []byte("\r\n"+w.Key(0, "key", 0)+"\r\n")) {
			t.Errorf("%q in %q", w.Key(0, "key", 0), wire)
		}
	}
}
