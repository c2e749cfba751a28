package analyze

import (
	"go/format"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/poolsweep/poolsweep/internal/golden"
)

// fleet is a recommendation for four instances with a pool each: 48
// connections, busy with 5 each.
var fleet = Recommendation{
	Pool: 48, Need: 48, PerInstance: 12, PerProcess: 12, Instances: 4, Procs: 1, MinIdle: 5, WaitTimeout: .25, Feasible: true, Shards: 1,
}

// TestSnippets holds every snippet to its golden file.
func TestSnippets(t *testing.T) {
	for _, name := range ClientNames() {
		t.Run(name, func(t *testing.T) {
			got, err := Snippet(name, fleet)
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, filepath.Join("clients", name+".golden"), got)
			if strings.Contains(got, "{pool}") || strings.Contains(got, "{wait") || strings.Contains(got, "{connections}") {
				t.Error("a placeholder was left")
			}
		})
	}
}

// TestGoSnippets: Go code is as gofmt wants it, whatever the width of its
// numbers.
func TestGoSnippets(t *testing.T) {
	wide := fleet
	wide.PerProcess, wide.MinIdle, wide.WaitTimeout = 1200, 1, 12.5
	for _, name := range []string{"go-redis", "rueidis", "redigo"} {
		for _, r := range []Recommendation{fleet, wide} {
			text, err := Snippet(name, r)
			if err != nil {
				t.Fatal(err)
			}
			want, err := format.Source([]byte(text))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if diff := cmp.Diff(string(want), text); diff != "" {
				t.Errorf("%s: -gofmt +got:\n%s", name, diff)
			}
		}
	}
}

// TestClientNames: the names of the --client flag, no more and no less.
func TestClientNames(t *testing.T) {
	want := strings.Split("go-redis|jedis|lettuce|spring|redisson|redis-py|node-redis|ioredis|rueidis|redigo|"+
		"stackexchange|glide|redis-plus-plus|r2d2|bb8|deadpool|php-fpm|ruby", "|")
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(ClientNames()))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestConnections: 1, 2 or 4 multiplexed connections, 32 requests in flight
// each, and how rueidis writes them.
func TestConnections(t *testing.T) {
	for _, test := range []struct {
		pool, want int
		rueidis    string
	}{
		{1, 1, "-1"}, {32, 1, "-1"}, {33, 2, "1"}, {64, 2, "1"}, {65, 4, "2"}, {5000, 4, "2"},
	} {
		r := Recommendation{PerProcess: test.pool, PerInstance: test.pool, Pool: test.pool, Instances: 1, Procs: 1}
		text, err := Snippet("rueidis", r)
		if err != nil {
			t.Fatal(err)
		}
		if got := connections(r); got != test.want || !strings.Contains(text, " "+test.rueidis+", ") {
			t.Errorf("%d in flight: %d connections, want %d, as %s in\n%s", test.pool, got, test.want, test.rueidis, text)
		}
	}
}

func TestSnippetErrors(t *testing.T) {
	if _, err := Snippet("predis", fleet); err == nil || !strings.Contains(err.Error(), `"predis"`) || !strings.Contains(err.Error(), "go-redis, ") {
		t.Errorf("unknown name: %v", err)
	}
	none := recommend(Curve{}, unknownKnee(), Options{})
	if _, err := Snippet("jedis", none); err == nil || !strings.Contains(err.Error(), "no knee is named") {
		t.Errorf("no pool: %v", err)
	}
	all, err := Snippet("all", fleet)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range ClientNames() {
		if text, _ := Snippet(name, fleet); !strings.Contains(all, text) {
			t.Errorf("all lacks %s", name)
		}
	}
}
