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
