package analyze

import (
	"slices"
	"testing"
)

// The thresholds are those of docs/method.md, "Validity".
func TestGates(t *testing.T) {
	good := Facts{Requests: 10_000, Utilisation: 1, Steal: 0, Commands: 10_000}
	for _, tt := range []struct {
		name   string
		change func(*Facts)
		want   []string
	}{
		{"in order", func(*Facts) {}, nil},
		{"nothing known", func(f *Facts) { f.Utilisation, f.Steal, f.Commands = Unknown(), Unknown(), 0 }, nil},
		{"0.1 % errors", func(f *Facts) { f.Requests, f.Errors = 9990, 10 }, nil},
		{"more errors", func(f *Facts) { f.Requests, f.Errors = 9989, 11 }, []string{GateErrors}},
		{"only errors", func(f *Facts) { f.Requests, f.Errors = 0, 5 }, []string{GateErrors}},
		{"idle clients", func(f *Facts) { f.Utilisation = 0.94 }, []string{GateNotInFlight}},
		{"too many in flight", func(f *Facts) { f.Utilisation = 1.06 }, []string{GateNotInFlight}},
		{"steal", func(f *Facts) { f.Steal = 0.011 }, []string{GateSteal}},
		{"throttled", func(f *Facts) { f.Throttled = 1 }, []string{GateThrottled}},
		{"evictions and a save", func(f *Facts) { f.Evictions, f.ChildAtWork = 1, true }, []string{GateEvictions, GateFork}},
		{"others", func(f *Facts) { f.Others = 101 }, []string{GateOtherClients}},
	} {
		f := good
		tt.change(&f)
		if got := Gates(f); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A share of reads is a hit ratio only where the reads can be ours.
func TestHitRatio(t *testing.T) {
	for _, tt := range []struct {
		name                   string
		hits, misses, commands int64
		want                   Quantity
	}{
		{"no reads", 0, 0, 10_000, Unknown()},
		{"nothing at all", 0, 0, 0, Unknown()},
		{"reads of others", 50, 49, 10_000, Unknown()},
		{"1 % reads", 75, 25, 10_000, .75},
		{"all hit", 10_000, 0, 10_000, 1},
		{"none hit", 0, 10_000, 10_000, 0},
		{"commands of several keys", 90_000, 10_000, 10_000, .9},
	} {
		if got := HitRatio(tt.hits, tt.misses, tt.commands); got.Known() != tt.want.Known() || got.Known() && got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// The threshold is that of docs/method.md: one point from the other steps, for
// which their median stands.
func TestHitRatiosDiffer(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []Quantity
		want []bool
	}{
		{"no trial", nil, []bool{}},
		{"no reads", []Quantity{Unknown(), Unknown()}, []bool{false, false}},
		{"alike", []Quantity{1, .995, .99}, []bool{false, false, false}},
		{"one differs", []Quantity{1, 1, .98, 1}, []bool{false, false, true, false}},
		{"both sides of the median", []Quantity{.5, .52, .48}, []bool{false, true, true}},
		{"unknown ones pass", []Quantity{1, Unknown(), 1, .9}, []bool{false, false, false, true}},
	} {
		if got := HitRatiosDiffer(tt.in); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
