package probe

import (
	"maps"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/poolsweep/poolsweep/internal/redistest"
)

// monitorReal starts a real server and a monitor of it.
func monitorReal(t testing.TB, args ...string) (*redistest.Server, *Monitor) {
	t.Helper()
	s := redistest.Start(t, args...)
	target, err := ParseTarget(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewMonitor(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return s, m
}

// A real server says what it was made to do.
func TestMonitorOfRealServer(t *testing.T) {
	s, m := monitorReal(t, "--maxmemory-policy", "allkeys-lru")
	ctx, client := t.Context(), s.Client(t)
	const gets = 2000
	client.Set(ctx, "m:a", "x", 0)
	if _, err := m.Next(ctx); err != nil { // what comes before does not count
		t.Fatal(err)
	}
	client.Set(ctx, "m:b", "x", time.Millisecond)
	for range gets {
		client.Get(ctx, "m:a")
	}
	for client.Exists(ctx, "m:b").Val() > 0 { // expires when it is looked at
	}
	for range gets {
		client.Get(ctx, "m:none")
	}
	a, err := m.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	total := func(rate *float64) float64 {
		if rate == nil {
			return math.NaN()
		}
		return math.Round(*rate * a.Elapsed.Seconds())
	}
	// The server's clock and ours differ by a little.
	near := func(name string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) <= 0.1*want+1) {
			t.Errorf("%s: %v, want about %v", name, got, want)
		}
	}
	if got := total(a.Commands); !(got > 2*gets*0.9) {
		t.Errorf("%v commands, want %d GET and more", got, 2*gets)
	}
	near("expired", total(a.Expired), 1)
	near("evicted", total(a.Evicted), 0)
	near("hit ratio in percent", 100**a.HitRatio, 50)
	near("clients", float64(*a.Clients), 2) // the test's and the monitor's
	near("keys", float64(*a.Keys), 1)
	// A GET of m:a is "*2\r\n$3\r\nget\r\n$3\r\nm:a\r\n", 22 bytes.
	if got := total(a.BytesReceived); !(got >= 2*gets*22*0.9) {
		t.Errorf("%v bytes received, too little for %d GET", got, 2*gets)
	}
	if got := total(a.InterfacePacketsSent); !(got >= 4*gets*0.9) {
		t.Errorf("%v packets for %d round trips", got, 2*gets)
	}
	if *a.Saving || *a.Rewriting || *a.BlockedClients != 0 || *a.UsedMemoryBytes == 0 || *a.RSSBytes == 0 {
		t.Errorf("%+v", a)
	}
	// No thread uses more CPU than there is time; the process has others.
	if main := *a.MainUser + *a.MainSystem; !(main > 0 && main < 1.1 && main <= *a.ServerUser+*a.ServerSystem+0.01) {
		t.Errorf("main thread: %v cores, process: %v", main, *a.ServerUser+*a.ServerSystem)
	}
	if host := *a.HostUser + *a.HostSystem + *a.HostSoftirq + *a.HostSteal; !(host > 0 && host <= 1.01) {
		t.Errorf("the host was busy for %v of the time", host)
	}
}

// A save is seen though it is over before the second reading.
func TestMonitorSeesSave(t *testing.T) {
	s, m := monitorReal(t)
	if err := s.Client(t).Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	a, err := m.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if a.Saving == nil || !*a.Saving || a.Rewriting == nil || *a.Rewriting {
		t.Errorf("save %v, rewrite %v", a.Saving, a.Rewriting)
	}
}

// A server that has gone is an error and not the end; the host is still seen.
func TestMonitorOfServerThatEnds(t *testing.T) {
	s, m := monitorReal(t)
	s.Kill()
	a, err := m.Next(t.Context())
	wantLine(t, err, "connecting to "+s.Addr)
	if a.Clients != nil || a.Commands != nil || a.Keys != nil {
		t.Errorf("it is gone, but: %+v", a)
	}
	if a.InterfacePacketsSent == nil {
		t.Error("the network is not seen")
	}
}

func TestMonitorOfReplica(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	target, err := ParseTarget(redistest.StartReplica(t, master).Addr)
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewMonitor(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
}

func TestMonitorRefuses(t *testing.T) {
	_, err := NewMonitor(t.Context(), withPassword(fake(t, func(command string) string {
		if command == "INFO" {
			return "-NOPERM this user has no permissions to run the 'info' command\r\n"
		}
		return ""
	})))
	wantLine(t, err, "INFO: NOPERM this user has no permissions to run the 'info' command; give a user that may run it")
}

// What is not known is nil, and never 0.
func TestBetween(t *testing.T) {
	at := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	read := func(seconds int, fields info) *monitorRead {
		when := at.Add(time.Duration(seconds) * time.Second)
		return &monitorRead{at: when, info: fields, infoAt: when}
	}
	base := info{
		"run_id": "a", "total_commands_processed": "100", "keyspace_hits": "10", "keyspace_misses": "10",
		"expired_keys": "5", "used_cpu_user": "1.5", "used_cpu_sys": "0.5", "rdb_bgsave_in_progress": "0", "rdb_saves": "3",
	}
	with := func(fields info) info {
		in := maps.Clone(base)
		maps.Copy(in, fields)
		return in
	}
	yes, no := true, false
	zero := known(0)
	still := Activity{ // nothing happened in two seconds
		At: at.Add(2 * time.Second), Elapsed: 2 * time.Second, Saving: &no,
		Commands: zero, Expired: zero, ServerUser: zero, ServerSystem: zero,
	}
	changed := func(f func(*Activity)) Activity {
		a := still
		f(&a)
		return a
	}
	for _, tt := range []struct {
		name string
		a, b info
		want Activity
	}{
		{"nothing but our INFO", base, with(info{"total_commands_processed": "101"}), still},
		{"work", base, with(info{
			"total_commands_processed": "201", "keyspace_hits": "13", "keyspace_misses": "11", "used_cpu_user": "2.5", "rdb_saves": "4",
		}), changed(func(a *Activity) {
			// 100 commands besides ours, 3 of 4 lookups hit, 1 s of CPU.
			a.Commands, a.HitRatio, a.ServerUser, a.Saving = known(50), known(0.75), known(0.5), &yes
		})},
		{"counters reset", base, with(info{"total_commands_processed": "1", "expired_keys": "0"}), changed(func(a *Activity) {
			a.Commands, a.Expired = nil, nil
		})},
		{"started anew", base, with(info{"run_id": "b"}), Activity{At: still.At, Elapsed: still.Elapsed, Saving: &no}},
		{"gone", base, nil, Activity{At: still.At, Elapsed: still.Elapsed}},
		{"back", nil, base, Activity{At: still.At, Elapsed: still.Elapsed, Saving: &no}},
		{"metrics off", with(info{"total_commands_processed": "0"}), with(info{"total_commands_processed": "0"}),
			changed(func(a *Activity) { a.Commands = nil })},
		{"not numbers", with(info{"expired_keys": "x"}), with(info{"expired_keys": "NaN"}), changed(func(a *Activity) { a.Expired = nil })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := between(read(0, tt.a), read(2, tt.b))
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// CPU that only the system tells stands in for what INFO lacks.
func TestBetweenProcess(t *testing.T) {
	at := time.Unix(0, 0)
	a := &monitorRead{at: at, infoAt: at, info: info{"used_cpu_user": "0", "used_cpu_sys": "0"}, hasProcess: true}
	b := &monitorRead{
		at: at.Add(time.Second), infoAt: at.Add(time.Second), info: info{"used_cpu_user": "0.5", "used_cpu_sys": "0.25"},
		hasProcess: true, process: processTimes{all: 9, system: 9, main: 0.75, mainSystem: 0.25},
	}
	x := between(a, b)
	if *x.ServerUser != 0.5 || *x.ServerSystem != 0.25 || *x.MainUser != 0.5 || *x.MainSystem != 0.25 {
		t.Errorf("server %v, %v, main %v, %v", *x.ServerUser, *x.ServerSystem, *x.MainUser, *x.MainSystem)
	}
}

// The texts are those of redis-server 7.0.
func TestKeys(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   info
		told bool
		want *int64
	}{
		{"no section", info{}, false, nil},
		{"empty", info{}, true, new(int64)},
		{"two databases", info{"db0": "keys=3,expires=1,avg_ttl=0", "db15": "keys=4,expires=0,avg_ttl=0"}, true, ptr(int64(7))},
		{"others", info{"db0": "keys=x", "dbsize": "keys=5,", "db": "keys=5,"}, false, nil},
	} {
		if d := cmp.Diff(tt.want, tt.in.keys(tt.told)); d != "" {
			t.Errorf("%s: -want +got:\n%s", tt.name, d)
		}
	}
}

func ptr[T any](x T) *T { return &x }

// No text of INFO makes a quantity that is none.
func FuzzBetween(f *testing.F) {
	f.Add("total_commands_processed:1\r\nused_cpu_user:0.5\r\n", "total_commands_processed:5\r\nused_cpu_user:1e999\r\ndb0:keys=1\r\n", int64(1e9))
	f.Fuzz(func(t *testing.T, first, second string, elapsed int64) {
		at := time.Unix(0, 0)
		read := func(text string, at time.Time) *monitorRead {
			in := parseInfo(text)
			return &monitorRead{at: at, info: in, infoAt: at, keys: in.keys(false)}
		}
		x := between(read(first, at), read(second, at.Add(time.Duration(elapsed))))
		for _, v := range []*float64{x.ServerUser, x.MainSystem, x.Commands, x.Expired, x.Evicted, x.HitRatio, x.BytesSent, x.DelayedFsyncs} {
			if v != nil && (!(*v >= 0) || math.IsInf(*v, 0)) {
				t.Fatalf("%v in %+v", *v, x)
			}
		}
	})
}

// BenchmarkMonitor is what a line costs.
func BenchmarkMonitor(b *testing.B) {
	_, m := monitorReal(b)
	for b.Loop() {
		if _, err := m.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
