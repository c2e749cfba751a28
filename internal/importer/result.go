package importer

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/poolsweep/poolsweep/analyze"
)

// newTrial returns a Trial of which nothing but the throughput, in requests
// per second, is known.
func newTrial(qps float64) analyze.Trial {
	u := analyze.Unknown()
	return analyze.Trial{
		QPS:  qps,
		Mean: u, P50: u, P99: u, P999: u, LatencyMin: u,
		Load: analyze.UnknownLoad(),
	}
}

// A curveKey names a curve.
type curveKey struct {
	test  string
	depth int
}

// curves sorts results into curves by test and depth, points by clients; the
// trials of a point keep the order of the results.
func curves(results []result) []analyze.Curve {
	trials := make(map[curveKey]map[int][]analyze.Trial)
	for _, r := range results {
		k := curveKey{r.test, max(r.depth, 1)}
		if trials[k] == nil {
			trials[k] = make(map[int][]analyze.Trial)
		}
		trials[k][r.clients] = append(trials[k][r.clients], r.trial)
	}
	keys := slices.SortedFunc(maps.Keys(trials), func(a, b curveKey) int {
		return cmp.Or(cmp.Compare(a.test, b.test), cmp.Compare(a.depth, b.depth))
	})
	var cs []analyze.Curve
	for _, k := range keys {
		c := analyze.Curve{Test: k.test, Depth: k.depth}
		for _, n := range slices.Sorted(maps.Keys(trials[k])) {
			c.Points = append(c.Points, analyze.Point{Clients: n, Trials: trials[k][n]})
		}
		cs = append(cs, c)
	}
	return cs
}

// Units in which files state times, as their number in a second.
const (
	perSecondMS = 1e3
	perSecondUS = 1e6
)

// quantity returns the number written in s, divided by perUnit, such as
// perSecondMS for a latency in ms or 100 for a percentage. Anything but a
// number above 0 is unknown: no request takes no time, and a 0 is a missing
// value or one below the resolution of the file.
func quantity(s string, perUnit float64) analyze.Quantity {
	v, ok := positive(s)
	if !ok {
		return analyze.Unknown()
	}
	return analyze.Quantity(v / perUnit)
}

// positive returns the number above 0 that is written in s.
func positive(s string) (v float64, ok bool) {
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return v, err == nil && v > 0 && !math.IsInf(v, 0)
}

// count returns the number of clients, or of something alike, that is
// written in s: a whole number from 1 to maxClients.
func count(s string) (n int, ok bool) {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	return n, err == nil && n >= 1 && n <= maxClients
}
