package compare

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/poolsweep/poolsweep/analyze"
)

// A Condition is what must not hold between two runs: "qps<-5%", "p99>10%" or
// "knee!=".
type Condition struct {
	metric string // qps, p99 or knee
	op     byte   // '<' or '>', '!' for knee
	limit  float64
	text   string
}

// String returns the condition as it was written.
func (c Condition) String() string { return c.text }

// ParseConditions reads conditions that commas divide. Each is qps or p99,
// followed by < and a loss or > and a gain in percent, or knee!=.
func ParseConditions(s string) ([]Condition, error) {
	var all []Condition
	for part := range strings.SplitSeq(s, ",") {
		c, err := parseCondition(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func parseCondition(s string) (Condition, error) {
	wrong := func(why string) (Condition, error) {
		return Condition{}, fmt.Errorf("the condition %q %s; want qps<-5%%, p99>10%% or knee!=", s, why)
	}
	i := strings.IndexAny(s, "<>!=")
	if i < 0 {
		return wrong("has no <, > or !=")
	}
	c := Condition{metric: strings.TrimSpace(s[:i]), op: s[i], text: s}
	value := strings.TrimSpace(s[i+1:])
	switch c.metric {
	case "knee":
		if c.op != '!' || value != "=" {
			return wrong("compares the knee in another way than !=")
		}
		return c, nil
	case "qps", "p99":
	default:
		return wrong("is about something unknown")
	}
	if c.op != '<' && c.op != '>' {
		return wrong("compares a change in another way than < or >")
	}
	number, ok := strings.CutSuffix(value, "%")
	if !ok {
		return wrong("does not end in %")
	}
	percent, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || math.IsNaN(percent) || math.IsInf(percent, 0) {
		return wrong("has no number")
	}
	switch {
	case c.op == '<' && (percent > 0 || percent <= -100):
		return wrong("holds for no change at all, or never: < takes a loss, from -100% to 0%")
	case c.op == '>' && percent < 0:
		return wrong("holds for no change at all: > takes a gain, 0% or more")
	}
	c.limit = percent / 100
	return c, nil
}

// An Outcome says where a condition holds.
type Outcome struct {
	// Held has a clause for each sweep in which it does.
	Held []string

	// Open has a clause for each sweep in which that cannot be said, and for
	// each pair without a common one.
	Open []string
}

// Test asks the condition of each sweep. It holds where a significant change
// of a step, or of all steps together, is beyond the limit; knee!= where the
// 95 % ranges of the two knees have no level in common.
func (c Condition) Test(all *Comparison) Outcome {
	var o Outcome
	for _, p := range all.Pairs {
		if len(p.Sweeps) == 0 {
			o.Open = append(o.Open, fmt.Sprintf("%s and %s have no test and depth in common", p.Old.Name, p.New.Name))
		}
		for _, s := range p.Sweeps {
			where := fmt.Sprintf("%s, pipeline depth %d", s.Test, s.Depth)
			if len(all.Pairs) > 1 {
				where = p.New.Name + ": " + where
			}
			held, open := c.test(s)
			if held != "" {
				o.Held = append(o.Held, where+": "+held)
			}
			if open != "" {
				o.Open = append(o.Open, where+": "+open)
			}
		}
	}
	return o
}

func (c Condition) test(s Sweep) (held, open string) {
	if c.metric == "knee" {
		return c.testKnee(s)
	}
	m := metrics[slices.IndexFunc(metrics, func(m metric) bool { return m.name == c.metric })]
	whole := *m.all(&s)
	if !whole.Low.Known() {
		return "", c.metric + " cannot be judged: it is not known in both runs, or with one trial a step only, or the machine changed its speed too much"
	}
	var where []string
	if c.beyond(whole) {
		where = append(where, percent(whole.Ratio)+" over all steps")
	}
	var steps []string
	for _, step := range s.Steps {
		if ch := *m.step(&step); c.beyond(ch) {
			steps = append(steps, fmt.Sprintf("%s at %d", percent(ch.Ratio), step.Clients))
		}
	}
	if len(steps) > 0 {
		where = append(where, strings.Join(steps, ", ")+" clients")
	}
	if len(where) == 0 {
		return "", ""
	}
	return strings.Join(where, "; "), ""
}

// beyond reports whether a change is significant and beyond the limit.
func (c Condition) beyond(ch Change) bool {
	if !ch.Significant {
		return false
	}
	if c.op == '<' {
		return float64(ch.Ratio) < c.limit
	}
	return float64(ch.Ratio) > c.limit
}

func (c Condition) testKnee(s Sweep) (held, open string) {
	a, b := s.Old, s.New
	switch {
	case a.Knee == 0 || b.Knee == 0:
		return "", "a run names no knee: " + strings.Join(slices.DeleteFunc([]string{a.Reason, b.Reason},
			func(r string) bool { return r == "" }), "; ")
	case a.Low == 0 || b.Low == 0:
		return "", "the knee of a run has no range, as its noise is unknown"
	case a.High < b.Low || b.High < a.Low:
		return fmt.Sprintf("knee %d (%d to %d) became %d (%d to %d)", a.Knee, a.Low, a.High, b.Knee, b.Low, b.High), ""
	}
	return "", ""
}

// percent prints a change with its sign: "-12.3 %".
func percent(q analyze.Quantity) string { return fmt.Sprintf("%+.1f %%", 100*float64(q)) }
