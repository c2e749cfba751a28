package sweep

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/faultproxy"
	"github.com/poolsweep/poolsweep/internal/redistest"
)

// A bench is a server with a proxy before it and a client beside the proxy.
type bench struct {
	t      *testing.T
	server *redistest.Server
	proxy  *faultproxy.Proxy
	client *redis.Client
}

// do sends a command to the server that must succeed.
func (b *bench) do(args ...any) {
	if err := b.client.Do(context.Background(), args...).Err(); err != nil {
		b.t.Errorf("%v: %v", args, err)
	}
}

// Faults of networks and servers in the middle of the third slice: a slice is
// repeated and marked, or the run ends with one line that says what happened.
// What was measured is kept and no key is left. docs/reliability.md has this
// table for readers.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		inject func(b *bench)

		// Of an error; "": the run completes.
		want string

		// A gate of one slice at least; "": whatever the machine does.
		gate string

		// The server is gone or takes no writes: the error says which keys are
		// left.
		left bool
	}{
		{name: "reset", inject: func(b *bench) { b.proxy.Reset() }, gate: analyze.GateLost},
		{name: "clients killed", inject: func(b *bench) { b.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") }, gate: analyze.GateLost},
		{name: "stall of 200 ms", inject: func(b *bench) { b.proxy.Stall(200 * time.Millisecond) }},
		{name: "stall of 2 s", inject: func(b *bench) { b.proxy.Stall(2 * time.Second) }},
		{name: "silence", inject: func(b *bench) { b.proxy.Silence() }, want: "no reply", left: true},
		{name: "server paused", inject: func(b *bench) { b.do("CLIENT", "PAUSE", 1000) }},
		{name: "server ends", inject: func(b *bench) { b.server.Kill() }, want: "has not come back", left: true},
		{name: "server restarts", inject: func(b *bench) { b.server.Restart(b.t) }, want: "was started anew"},
		{name: "OOM", inject: func(b *bench) { b.do("CONFIG", "SET", "maxmemory", 1) }, want: "OOM command not allowed"},
		{name: "READONLY", inject: func(b *bench) { b.do("REPLICAOF", "127.0.0.1", 1) }, want: "READONLY", left: true},
		{name: "NOREPLICAS", inject: func(b *bench) { b.do("CONFIG", "SET", "min-replicas-to-write", 1) }, want: "NOREPLICAS", left: true},
		{name: "NOPERM", inject: func(b *bench) { b.do("ACL", "SETUSER", "default", "-set") }, want: "NOPERM"},
		{name: "NOAUTH", inject: func(b *bench) {
			b.do("CONFIG", "SET", "requirepass", "s3cret")
			b.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		}, want: "NOAUTH", left: true},
		{name: "maxclients", inject: func(b *bench) {
			b.do("CONFIG", "SET", "maxclients", 1)
			b.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		}, want: "maxclients", left: true},
		{name: "LOADING", inject: reload},
		{name: "MISCONF", inject: failSave, want: "MISCONF", left: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, "--enable-debug-command", "yes", "--loading-process-events-interval-bytes", "1024")
			proxy, err := faultproxy.Start(server.Addr)
			if err != nil {
				t.Fatal(err)
			}
			defer proxy.Close()
			b := &bench{t, server, proxy, server.Client(t)}

			p := DefaultPlan()
			p.Workloads, p.Clients, p.Fixed = specs("set", 100), []int{2, 4}, true
			p.Slices, p.Trials, p.Duration, p.MinRequests, p.Warmup, p.Budget = 1, 2, 300*time.Millisecond, 1, 10*time.Millisecond, 0
			slices := 0
			injected := make(chan struct{})
			res, err := Run(t.Context(), Config{Plan: p, Server: connect(t, proxy.Addr), Progress: func(e Event) {
				if e.Clients > 0 {
					if slices++; slices == 2 {
						go func() {
							defer close(injected)
							b.inject(tt.inject)
						}()
					}
				}
			}})
			<-injected
			b.check(res, err, tt.want, tt.gate)
			if !tt.left {
				b.empty()
			} else if err != nil && !strings.Contains(err.Error(), "--pattern '"+res.Header.Prefix+"*'") {
				t.Errorf("got error %v, want one that says how to remove what is left of %s", err, res.Header.Prefix)
			}
		})
	}
}

// inject does it when the next slice is under way.
func (b *bench) inject(fault func(*bench)) {
	calls := func() int64 {
		n, err := b.client.Do(b.t.Context(), "EVAL", setCalls, 0).Int64()
		if err != nil {
			b.t.Error(err)
		}
		return n
	}
	for before := calls(); calls() < before+50; {
		time.Sleep(time.Millisecond) // between two looks
	}
	fault(b)
}

// setCalls is a script that returns how many SET the server has processed.
const setCalls = `return tonumber(string.match(redis.call('INFO', 'commandstats'), 'cmdstat_set:calls=(%d+)') or 0)`

// reload makes the server load its keys from the disk, 5 ms each.
func reload(b *bench) {
	b.do("CONFIG", "SET", "key-load-delay", 5_000)
	go b.client.Do(context.Background(), "DEBUG", "RELOAD") // answers when it is done
}

// failSave makes the last snapshot one that failed, so that the server takes no
// more writes.
func failSave(b *bench) {
	dir, err := b.client.ConfigGet(b.t.Context(), "dir").Result()
	if err != nil {
		b.t.Error(err)
		return
	}
	if err := os.RemoveAll(dir["dir"]); err != nil {
		b.t.Error(err)
	}
	b.do("CONFIG", "SET", "save", "3600 1")
	b.do("BGSAVE")
	for !strings.Contains(b.client.Info(b.t.Context(), "persistence").Val(), "rdb_last_bgsave_status:err") {
		time.Sleep(time.Millisecond) // between two looks
	}
}

// check holds a run against what is wanted of it.
func (b *bench) check(res *Result, err error, want, gate string) {
	b.t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		b.t.Errorf("got error %v, want %q", err, want)
	}
	if err != nil && strings.Contains(strings.ReplaceAll(err.Error(), "\nremoving our keys: ", ""), "\n") {
		b.t.Errorf("more than one line for what happened: %v", err)
	}
	counted := 0
	var gates []string
	for _, s := range res.Slices {
		if !s.Superseded {
			counted++
		}
		gates = append(gates, s.Invalid...)
	}
	if want == "" && counted != 4 || counted < 2 {
		b.t.Errorf("%d slices are kept, want 2 of those before the fault, and 4 when the run completes", counted)
	}
	if gate != "" && !slices.Contains(gates, gate) {
		b.t.Errorf("the gates are %v, want %s", gates, gate)
	}
	b.t.Logf("error %v; gates %v", err, gates)
}

// empty checks that no key is left.
func (b *bench) empty() {
	b.t.Helper()
	if n, err := b.client.DBSize(context.Background()).Result(); err != nil || n != 0 {
		b.t.Errorf("%d keys are left, error %v", n, err)
	}
}
