package arrivals

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Rate is how many requests a second arrive: so many, or a share of what
// somebody carries.
type Rate struct {
	QPS   float64 `json:"qps,omitempty"`         // requests/s; 0: as Share says
	Share float64 `json:"share_ratio,omitempty"` // of what is carried; 0: as QPS says
}

const (
	maxRate  = 1e7 // requests/s
	maxShare = 2
	maxRates = 100
)

// ParseRates reads a list of rates and of ranges FROM:TO:STEP:
// "20000,30000" and "20000:50000:10000" are requests/s, "50%,80%" and
// "20%:100%:10%" shares. A range includes its end when a step meets it.
func ParseRates(text string) ([]Rate, error) {
	var all []Rate
	for part := range strings.SplitSeq(text, ",") {
		var ends []Rate
		for field := range strings.SplitSeq(part, ":") {
			r, err := parseRate(field)
			if err != nil {
				return nil, err
			}
			ends = append(ends, r)
		}
		if len(ends) == 1 {
			all = append(all, ends[0])
			continue
		}
		r, err := between(part, ends)
		if err != nil {
			return nil, err
		}
		all = append(all, r...)
	}
	if len(all) > maxRates {
		return nil, fmt.Errorf("%q has more than %d rates", text, maxRates)
	}
	return all, nil
}

func parseRate(text string) (Rate, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	x, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil || !(x > 0):
		return Rate{}, fmt.Errorf("%q is no rate; want requests/s or a percentage, as in 20000 or 80%%", text)
	case percent && x > 100*maxShare:
		return Rate{}, fmt.Errorf("%q is more than twice what can be carried", text)
	case percent:
		return Rate{Share: x / 100}, nil
	case x > maxRate:
		return Rate{}, fmt.Errorf("a rate of %s requests/s; want %.0f at most", number, maxRate)
	}
	return Rate{QPS: x}, nil
}

// between returns the rates of a range, whose text is for messages.
func between(text string, ends []Rate) ([]Rate, error) {
	if len(ends) != 3 {
		return nil, fmt.Errorf("%q is no range of rates; want FROM:TO:STEP, as in 20%%:100%%:10%%", text)
	}
	from, to, step := ends[0], ends[1], ends[2]
	shares := from.QPS == 0
	if shares != (to.QPS == 0) || shares != (step.QPS == 0) {
		return nil, fmt.Errorf("%q has both requests/s and percent; want one of them", text)
	}
	a, b, d := from.QPS+from.Share, to.QPS+to.Share, step.QPS+step.Share
	if b < a {
		return nil, fmt.Errorf("the range %q ends before it starts", text)
	}
	steps := (b - a) / d * (1 + 1e-9) // an end that rounding has missed is met
	if steps >= maxRates {
		return nil, fmt.Errorf("%q has more than %d rates", text, maxRates)
	}
	var all []Rate
	for i := range int(steps) + 1 {
		x := a + float64(i)*d
		if shares {
			all = append(all, Rate{Share: x})
		} else {
			all = append(all, Rate{QPS: x})
		}
	}
	return all, nil
}

// QPS returns the rates in requests/s, rising and each once; carried is what
// they may be shares of.
func QPS(all []Rate, carried float64) []float64 {
	var qps []float64
	for _, r := range all {
		qps = append(qps, cmp.Or(r.QPS, r.Share*carried))
	}
	slices.Sort(qps)
	return slices.Compact(qps)
}
