package arrivals

import (
	"math"
	"slices"
	"testing"
)

func TestParseRates(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []Rate // nil: an error
	}{
		{"50%,70%, 80%", []Rate{{Share: .5}, {Share: .7}, {Share: .8}}},
		{"20000", []Rate{{QPS: 20000}}},
		{"1e3,12.5%", []Rate{{QPS: 1000}, {Share: .125}}},
		{"20%:100%:40%", []Rate{{Share: .2}, {Share: .6}, {Share: 1}}}, // .2 + 2·.4 ≠ 1 in binary
		{"100:250:100,5%", []Rate{{QPS: 100}, {QPS: 200}, {Share: .05}}},
		{"", nil},
		{"fast", nil},
		{"0", nil},
		{"-5%", nil},
		{"NaN", nil},
		{"201%", nil},
		{"2e7", nil},
		{"100,", nil},
		{"10%:20%", nil},
		{"20%:100:10%", nil},
		{"100%:20%:10%", nil},
		{"1:1000:1", nil},
	} {
		got, err := ParseRates(tt.in)
		same := slices.EqualFunc(got, tt.want, func(a, b Rate) bool {
			return math.Abs(a.QPS-b.QPS) < 1e-6 && math.Abs(a.Share-b.Share) < 1e-9
		})
		if (err != nil) != (tt.want == nil) || !same {
			t.Errorf("ParseRates(%q) = %v, %v; want %v", tt.in, got, err, tt.want)
		}
	}
}

// What is accepted is a rate that arrivals can have.
func FuzzParseRates(f *testing.F) {
	f.Add("50%,20000")
	f.Add("20%:100%:10%")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := ParseRates(text)
		if err == nil && (len(all) == 0 || len(all) > maxRates) {
			t.Errorf("%q has %d rates", text, len(all))
		}
		for _, r := range all {
			if r.QPS < 0 || r.QPS > maxRate || r.Share < 0 || r.Share > maxShare*(1+1e-9) || (r.QPS > 0) == (r.Share > 0) {
				t.Errorf("%q gives %v", text, r)
			}
		}
	})
}
