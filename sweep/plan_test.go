package sweep

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseLevels(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []int // nil wants an error
		err  string
	}{
		{in: "10:110:10", want: []int{10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110}},
		{in: "10:35:10", want: []int{10, 20, 30}},
		{in: "3:5", want: []int{3, 4, 5}},
		{in: "50", want: []int{50}},
		{in: "5,1,2,2", want: []int{1, 2, 5}},
		{in: "1,2,10:30:10", want: []int{1, 2, 10, 20, 30}},
		{in: "", err: "not a number"},
		{in: "0", err: "from 1 to"},
		{in: "10:1", err: "ends before it starts"},
		{in: "1:10:0", err: "from 1 to"},
		{in: "1:2:3:4", err: "no range"},
		{in: "1:1000000", err: "more than 1000 levels"},
		{in: "ten", err: `"ten" is not a number`},
	} {
		got, err := ParseLevels(tt.in)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%q: got error %v, want one with %q", tt.in, err, tt.err)
			}
		} else if err != nil || !slices.Equal(got.Values, tt.want) || got.Auto {
			t.Errorf("%q: got %v, %v, want %v", tt.in, got, err, tt.want)
		}
	}
	if got, err := ParseLevels("auto"); err != nil || !got.Auto || len(got.Values) == 0 {
		t.Errorf("auto: got %v, %v", got, err)
	}
}

func TestPlanCheck(t *testing.T) {
	if err := planned().Check(); err != nil {
		t.Fatalf("the default plan: %v", err)
	}
	for _, tt := range []struct {
		change func(*Plan)
		want   string
	}{
		{func(p *Plan) { p.Workloads = nil }, "nothing to send"},
		{func(p *Plan) { p.Workloads[0].Commands = nil }, "no command"},
		{func(p *Plan) { p.Clients = []int{2, 1} }, "must rise"},
		{func(p *Plan) { p.Clients = []int{1, 2000} }, "--max-clients 1000"},
		{func(p *Plan) { p.Depths = nil }, "no pipeline depths"},
		{func(p *Plan) { p.Trials = 0 }, "0 trials"},
		{func(p *Plan) { p.Slices = 0 }, "0 slices"},
		{func(p *Plan) { p.Requests = 3 }, "cannot be split into 4"},
		{func(p *Plan) { p.Requests = -3 }, "-3 requests"},
		{func(p *Plan) { p.Duration = 20 * time.Millisecond }, "slice of 5ms"},
		{func(p *Plan) { p.Duration = 20 * time.Hour }, "an hour"},
		{func(p *Plan) { p.Warmup = -1 }, "warm-up"},
		{func(p *Plan) { p.Order = "random" }, "shuffled or ascending"},
		{func(p *Plan) { p.Tolerance = 0 }, "tolerance"},
		{func(p *Plan) { p.Threads = -1 }, "-1 threads"},
		{func(p *Plan) { p.Budget = -1 }, "budget"},
		{func(p *Plan) { p.MinRequests = 0 }, "requests a slice"},
		{func(p *Plan) { p.Workloads[0].Values.Sizes[0].Min = 0 }, "0 to 3 bytes"},
		{func(p *Plan) { p.Workloads[0].Keys.Space = -1 }, "-1 keys"},
	} {
		p := planned()
		tt.change(&p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got error %v, want one with %q", err, tt.want)
		}
	}
}

// FuzzParseLevels: what is accepted rises from 1 or more, and written as a
// list is read as the same.
func FuzzParseLevels(f *testing.F) {
	for _, s := range []string{"10:110:10", "1,2,5", "auto", "1:1", ",", "1:2:"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := ParseLevels(s)
		if err != nil || l.Auto {
			return
		}
		if err := checkLevels("clients", l.Values); err != nil || len(l.Values) > maxLevels {
			t.Fatalf("%q gives %v: %v", s, l.Values, err)
		}
		list := strings.Trim(strings.ReplaceAll(fmt.Sprint(l.Values), " ", ","), "[]")
		if again, err := ParseLevels(list); err != nil || !slices.Equal(again.Values, l.Values) {
			t.Fatalf("%q gives %v, which gives %v, %v", s, l.Values, again.Values, err)
		}
	})
}
