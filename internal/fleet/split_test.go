package fleet

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestSplit(t *testing.T) {
	for _, tt := range []struct {
		name           string
		clients, least int
		limits         []int
		want           []int
	}{
		// The issue's own example.
		{"remainder", 10, 1, []int{99, 99, 99}, []int{4, 3, 3}},
		{"fewer than agents", 2, 1, []int{99, 99, 99}, []int{1, 1, 0}},
		// Three masters: four clients cannot serve two agents.
		{"cluster", 4, 3, []int{99, 99}, []int{4, 0}},
		{"cluster of two", 6, 3, []int{99, 99}, []int{3, 3}},
		{"limit", 10, 1, []int{2, 99, 99}, []int{2, 4, 4}},
		{"no room for the least", 6, 3, []int{2, 99}, nil},
		{"too many", 10, 1, []int{4, 5}, nil},
		{"all of it", 9, 1, []int{4, 5}, []int{4, 5}},
	} {
		if got := split(tt.clients, tt.least, tt.limits); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// Shares and quotas add up, none is above its limit, and without limits they
// differ by one at most.
func TestSplitLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := rapid.SliceOfN(rapid.IntRange(0, 50), 1, 20).Draw(t, "limits")
		clients := rapid.IntRange(1, 500).Draw(t, "clients")
		requests := rapid.Int64Range(0, 1<<50).Draw(t, "requests")
		room := 0
		for _, l := range limits {
			room += l
		}
		shares := split(clients, 1, limits)
		if shares == nil {
			if clients <= room && clients >= len(limits) && !slices.Contains(limits, 0) {
				t.Fatalf("%d clients do not fit into %v", clients, limits)
			}
			return
		}
		sum, quotas := 0, int64(0)
		for i, s := range shares {
			if s < 0 || s > limits[i] {
				t.Fatalf("%v for %v", shares, limits)
			}
			quotas += quota(requests, sum, s, clients)
			sum += s
		}
		if sum != clients || quotas != requests {
			t.Fatalf("%d of %d clients, %d of %d requests", sum, clients, quotas, requests)
		}
	})
}
