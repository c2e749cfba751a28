package compare

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/poolsweep/poolsweep/analyze"
)

func TestParseConditions(t *testing.T) {
	tests := []struct {
		text string
		want []Condition // nil: an error
	}{
		{"qps<-5%", []Condition{{"qps", '<', -.05, "qps<-5%"}}},
		{" qps < -2.5 % ", []Condition{{"qps", '<', -.025, "qps < -2.5 %"}}},
		{"p99>10%,knee!=", []Condition{{"p99", '>', .1, "p99>10%"}, {"knee", '!', 0, "knee!="}}},
		{"p99>+0%", []Condition{{"p99", '>', 0, "p99>+0%"}}},
		{"qps>300%", []Condition{{"qps", '>', 3, "qps>300%"}}},
		{"qps<0%", []Condition{{"qps", '<', 0, "qps<0%"}}},
		{"", nil},
		{"qps<-5%,", nil},
		{"qps", nil},
		{"qps<-5", nil},      // of what?
		{"qps<5%", nil},      // holds for no change at all
		{"p99>-1%", nil},     // the same
		{"qps<-100%", nil},   // never holds
		{"qps=-5%", nil},     // nothing is equal
		{"qps<=-5%", nil},    // no such operator
		{"qps!=", nil},       // with noise everything differs
		{"knee!=10", nil},    // it is compared with the old one
		{"knee>10%", nil},    // levels are not of that kind
		{"p50>10%", nil},     // not compared
		{"QPS<-5%", nil},     // one way to write it
		{"qps<NaN%", nil},    //
		{"qps>Inf%", nil},    //
		{"qps<-5%%", nil},    //
		{"<-5%", nil},        //
		{"qps<-5% p99", nil}, // no comma
	}
	for _, test := range tests {
		got, err := ParseConditions(test.text)
		if (err == nil) != (test.want != nil) {
			t.Errorf("%q: error %v", test.text, err)
		}
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(Condition{})); diff != "" {
			t.Errorf("%q, -want +got:\n%s", test.text, diff)
		}
		if err != nil && (strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "; want ")) {
			t.Errorf("%q: error %q", test.text, err)
		}
	}
}

// FuzzParseConditions: what is accepted prints as something that means the same,
// and its limit is one that a change can be beyond.
func FuzzParseConditions(f *testing.F) {
	for _, s := range []string{"qps<-5%", "p99>10%,knee!=", " qps < -2.5 % ", "knee!=", "qps<", ",", "p99>1e3%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		all, err := ParseConditions(s)
		if err != nil {
			return
		}
		var texts []string
		for _, c := range all {
			texts = append(texts, c.String())
			if !(c.limit > -1) || c.op == '<' && c.limit > 0 || c.op == '>' && c.limit < 0 {
				t.Errorf("%q: limit %v of %c", s, c.limit, c.op)
			}
		}
		again, err := ParseConditions(strings.Join(texts, ","))
		if err != nil {
			t.Fatalf("%q prints as %q: %v", s, texts, err)
		}
		if diff := cmp.Diff(all, again, cmp.AllowUnexported(Condition{})); diff != "" {
			t.Errorf("%q prints as %q:\n%s", s, texts, diff)
		}
	})
}

// changed is a change of that ratio.
func changed(ratio float64, significant bool) Change {
	r := analyze.Quantity(ratio)
	return Change{Ratio: r, Low: r - .01, High: r + .01, Significant: significant}
}

// knee is a verdict with a knee and its range.
func knee(clients, low, high int) Verdict { return Verdict{Knee: clients, Low: low, High: high} }

func TestConditions(t *testing.T) {
	sure, unsure := true, false
	blind := Change{Ratio: .5, Low: analyze.Unknown(), High: analyze.Unknown()}
	tests := []struct {
		name       string
		condition  string
		sweep      Sweep
		held, open string // parts of what is said; "" for nothing
	}{
		{"beyond", "qps<-5%", Sweep{QPS: changed(-.06, sure)}, "SET, pipeline depth 1: -6.0 % over all steps", ""},
		{"within", "qps<-5%", Sweep{QPS: changed(-.04, sure)}, "", ""},
		{"the other way", "qps<-5%", Sweep{QPS: changed(.06, sure)}, "", ""},
		{"noise", "qps<-5%", Sweep{QPS: changed(-.06, unsure)}, "", ""},
		{"a gain", "qps>5%", Sweep{QPS: changed(.06, sure)}, "+6.0 %", ""},
		{"one step", "p99>10%", Sweep{
			QPS: changed(-.5, sure), P99: changed(0, unsure),
			Steps: []Step{{Clients: 4, P99: changed(.05, sure)}, {Clients: 8, P99: changed(.2, sure)}, {Clients: 16, P99: changed(.3, unsure)}},
		}, "depth 1: +20.0 % at 8 clients", ""},
		{"noise unknown", "qps<-5%", Sweep{QPS: blind}, "", "qps cannot be judged"},
		{"knees apart", "knee!=", Sweep{Old: knee(10, 10, 20), New: knee(30, 25, 40)}, "knee 10 (10 to 20) became 30 (25 to 40)", ""},
		{"knees apart, down", "knee!=", Sweep{Old: knee(30, 25, 40), New: knee(10, 10, 20)}, "knee 30", ""},
		{"ranges meet", "knee!=", Sweep{Old: knee(10, 10, 20), New: knee(30, 20, 40)}, "", ""},
		{"no knee", "knee!=", Sweep{Old: knee(10, 10, 20), New: Verdict{Reason: "still rising at 40 clients"}}, "", "names no knee: still rising at 40 clients"},
		{"no range", "knee!=", Sweep{Old: knee(10, 10, 20), New: knee(30, 0, 0)}, "", "has no range"},
	}
	for _, test := range tests {
		all, err := ParseConditions(test.condition)
		if err != nil {
			t.Fatal(err)
		}
		test.sweep.Test, test.sweep.Depth = "SET", 1
		o := all[0].Test(&Comparison{Pairs: []Pair{{Sweeps: []Sweep{test.sweep}}}})
		check := func(what string, got []string, want string) {
			if text := strings.Join(got, "|"); (text == "") != (want == "") || !strings.Contains(text, want) {
				t.Errorf("%s: %s %q, want %q", test.name, what, text, want)
			}
		}
		check("held", o.Held, test.held)
		check("open", o.Open, test.open)
	}
}

// TestNothingInCommon: a condition on two runs of different things is open.
func TestNothingInCommon(t *testing.T) {
	all, _ := ParseConditions("qps<-5%")
	get := curve([]float64{1, 2})
	get.Test = "GET"
	o := all[0].Test(Runs([]Run{run("a", curve([]float64{1, 2})), run("b", get)}))
	if len(o.Held) != 0 || len(o.Open) != 1 || o.Open[0] != "a and b have no test and depth in common" {
		t.Errorf("%+v", o)
	}
}
