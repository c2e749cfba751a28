package sweep

import (
	"strings"
	"testing"
)

func TestParseVary(t *testing.T) {
	for _, tt := range []struct {
		text, want string // the setting and its values, or part of the error
	}{
		{"appendonly=no,yes", "appendonly: no|yes"},
		{"save=,60 1", "save: |60 1"},
		{" APPENDFSYNC=always,no", "appendfsync: always|no"},
		{"appendonly", "want SETTING=VALUE,VALUE"},
		{"appendonly=yes", "want SETTING=VALUE,VALUE"},
		{"=a,b", "want SETTING=VALUE,VALUE"},
		{"appendonly=yes,yes", "twice"},
		{"requirepass=a,b", "secret"},
		{"port=1,2", "secret, or what we connect to"},
	} {
		v, err := ParseVary(tt.text)
		got := v.Setting + ": " + strings.Join(v.Values, "|")
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%q gives %q, want %q", tt.text, got, tt.want)
		}
	}
}

// FuzzParseVary: what is accepted has a name and different values, and is read
// from what it says.
func FuzzParseVary(f *testing.F) {
	for _, s := range []string{"appendonly=no,yes", "save=,60 1", "=", "a=b", "a=,,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := ParseVary(s)
		if err != nil {
			return
		}
		again, err := ParseVary(v.Setting + "=" + strings.Join(v.Values, ","))
		if err != nil || again.Setting != v.Setting || len(again.Values) != len(v.Values) {
			t.Fatalf("%q gives %+v, which gives %+v, %v", s, v, again, err)
		}
	})
}
