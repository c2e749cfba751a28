package workload

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

func mustNew(t testing.TB, spec Spec) *Workload {
	t.Helper()
	w, err := New(spec)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// The wanted bytes follow from the protocol specification.
func TestSourceAppend(t *testing.T) {
	const k = "$18\r\np:key:000000000000\r\n"
	for _, tt := range []struct {
		test string
		want string
	}{
		{"ping", "*1\r\n$4\r\nPING\r\n"},
		{"set", "*3\r\n$3\r\nSET\r\n" + k + "$3\r\nxxx\r\n"},
		{"get", "*2\r\n$3\r\nGET\r\n" + k},
		{"incr", "*2\r\n$4\r\nINCR\r\n$22\r\np:counter:000000000000\r\n"},
	} {
		w := mustNew(t, Spec{Test: tt.test, ValueBytes: 3, Prefix: "p:"})
		if got := w.Source(0).Append(nil, 2); string(got) != tt.want+tt.want {
			t.Errorf("%s: got %q, want twice %q", tt.test, got, tt.want)
		}
		if w.CommandBytes() != len(tt.want) {
			t.Errorf("%s: CommandBytes is %d, want %d", tt.test, w.CommandBytes(), len(tt.want))
		}
	}
}

func TestNewRefuses(t *testing.T) {
	good := Spec{Test: "set", ValueBytes: 3, Prefix: "p:"}
	for _, tt := range []struct {
		change func(*Spec)
		want   string
	}{
		{func(s *Spec) { s.Test = "setx" }, "ping, set, get, incr"},
		{func(s *Spec) { s.ValueBytes = 0 }, "0 bytes"},
		{func(s *Spec) { s.ValueBytes = 1 << 30 }, "1073741824 bytes"},
		{func(s *Spec) { s.Keyspace = -1 }, "-1 keys"},
		{func(s *Spec) { s.Prefix = "" }, "prefix"},
	} {
		spec := good
		tt.change(&spec)
		if _, err := New(spec); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got error %v, want one with %q", spec, err, tt.want)
		}
	}
}

// Uniform draws: with n draws over k keys, each key is drawn n/k times on
// average with a standard deviation of √(n/k·(1−1/k)); five of these hold all
// ten keys with a probability above 1 − 10⁻⁵, and the seed is fixed.
func TestSourceDrawsUniformly(t *testing.T) {
	const keys, draws = 10, 20000
	w := mustNew(t, Spec{Test: "get", ValueBytes: 3, Keyspace: keys, Seed: 1, Prefix: "p:"})
	got := w.Source(3).Append(nil, draws)
	mean := float64(draws) / keys
	sd := math.Sqrt(mean * (1 - 1.0/keys))
	for i := range keys {
		n := float64(bytes.Count(got, []byte(w.Key(i)+"\r\n")))
		if math.Abs(n-mean) > 5*sd {
			t.Errorf("key %d is drawn %v times, want %v ± %v", i, n, mean, 5*sd)
		}
	}
	if again := w.Source(3).Append(nil, draws); !bytes.Equal(got, again) {
		t.Error("the same seed and stream give other draws")
	}
	if other := w.Source(4).Append(nil, draws); bytes.Equal(got, other) {
		t.Error("another stream gives the same draws")
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	for _, name := range Names() {
		s := mustNew(t, Spec{Test: name, ValueBytes: 3, Keyspace: 1000, Prefix: "p:"}).Source(0)
		buf := s.Append(nil, 16)
		if n := testing.AllocsPerRun(100, func() { buf = s.Append(buf[:0], 16) }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}

func TestPreloadAndRemove(t *testing.T) {
	m := miniredis.RunT(t)
	db := redis.NewClient(&redis.Options{Addr: m.Addr(), DisableIdentity: true})
	defer db.Close()
	ctx := context.Background()
	m.Set("p:key:other", "of another")

	w := mustNew(t, Spec{Test: "get", ValueBytes: 7, Keyspace: 1234, Prefix: "p:"})
	if err := w.Preload(ctx, db); err != nil {
		t.Fatal(err)
	}
	if got := len(m.Keys()); got != 1235 {
		t.Fatalf("%d keys after preload, want 1235", got)
	}
	if got, _ := m.Get(w.Key(1233)); got != "xxxxxxx" {
		t.Errorf("the last key holds %q, want 7 x", got)
	}
	if err := w.Remove(ctx, db); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(m.Keys()); got != "[p:key:other]" {
		t.Errorf("keys left: %s, want only the other's", got)
	}
}

func TestPreloadOnlyForReads(t *testing.T) {
	m := miniredis.RunT(t)
	db := redis.NewClient(&redis.Options{Addr: m.Addr(), DisableIdentity: true})
	defer db.Close()
	w := mustNew(t, Spec{Test: "set", ValueBytes: 3, Prefix: "p:"})
	if err := w.Preload(context.Background(), db); err != nil {
		t.Fatal(err)
	}
	if n := len(m.Keys()); n != 0 {
		t.Errorf("%d keys after the preload of set, want 0", n)
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, keyspace := range []int{1, 1_000_000} {
		b.Run(fmt.Sprintf("set/keyspace=%d", keyspace), func(b *testing.B) {
			b.ReportAllocs()
			s := mustNew(b, Spec{Test: "set", ValueBytes: 3, Keyspace: keyspace, Prefix: "p:"}).Source(0)
			var buf []byte
			for b.Loop() {
				buf = s.Append(buf[:0], 1)
			}
		})
	}
}
