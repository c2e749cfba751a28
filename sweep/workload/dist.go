package workload

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// A Dist is how keys are drawn from the keyspace.
type Dist string

const (
	Uniform    Dist = "uniform"    // all alike; the zero value means this
	Zipfian    Dist = "zipfian"    // key k (from 0) with a probability proportional to 1/(k+1)^Exponent
	Gaussian   Dist = "gaussian"   // normal around the middle, with StdDev, cut off at the ends
	Sequential Dist = "sequential" // one after the other, round and round, from a random start
	Latest     Dist = "latest"     // zipfian, the key inserted last being the most frequent; it may still be on its way
	HotSpot    Dist = "hotspot"    // HotRequests of the requests go to HotKeys of the keys
)

// Keys says which keys are drawn. Its JSON form is part of the result file.
type Keys struct {
	// Space is the number of keys, as -r of redis-benchmark; 0 and 1 mean one
	// key. On a cluster each master has that many keys of its own.
	Space int `json:"space"`

	Dist     Dist    `json:"dist,omitempty"`
	Exponent float64 `json:"exponent,omitempty"` // of Zipfian and Latest, above 0; 0 means 0.99, as in YCSB
	StdDev   float64 `json:"stddev,omitempty"`   // of Gaussian, in keys; 0 means a sixth of the keyspace, as in memtier

	// HotKeys and HotRequests are shares, above 0 and below 1; 0 means 0.2
	// and 0.8, as in YCSB.
	HotKeys     float64 `json:"hot_keys_ratio,omitempty"`
	HotRequests float64 `json:"hot_requests_ratio,omitempty"`
}

// maxKeyspace is what a key's digits can count, with room for what is inserted.
const maxKeyspace = 100_000_000_000

// space returns the number of keys, at least 1.
func (k Keys) space() int { return max(1, k.Space) }

func (k Keys) check() error {
	share := func(x float64) bool { return x >= 0 && x < 1 }
	switch {
	case k.Space < 0 || k.Space > maxKeyspace:
		return fmt.Errorf("a keyspace of %d keys; it must have 0 to %d", k.Space, maxKeyspace)
	case !(k.Exponent >= 0 && k.Exponent <= 100):
		return fmt.Errorf("a zipfian exponent of %v; want more than 0, at most 100", k.Exponent)
	case !(k.StdDev >= 0 && k.StdDev <= maxKeyspace):
		return fmt.Errorf("a standard deviation of %v keys; want more than 0", k.StdDev)
	case !share(k.HotKeys) || !share(k.HotRequests):
		return fmt.Errorf("a hot spot of %v of the keys and %v of the requests; want shares between 0 and 1", k.HotKeys, k.HotRequests)
	}
	switch k.Dist {
	case "", Uniform, Zipfian, Gaussian, Sequential, Latest, HotSpot:
		return nil
	}
	return fmt.Errorf("unknown distribution of keys %q; want uniform, zipfian, gaussian, sequential, latest or hotspot", k.Dist)
}

// ParseDist reads how keys are drawn: "uniform", "zipfian:1.1" (exponent),
// "gaussian:1000" (standard deviation in keys), "sequential", "latest:0.99",
// "hotspot:0.2:0.8" (shares of keys and of requests); the numbers may be left
// out. The keyspace is left to the caller.
func ParseDist(s string) (Keys, error) {
	fields := strings.Split(strings.ToLower(s), ":")
	k := Keys{Dist: Dist(fields[0])}
	into := k.parameters()
	if err := k.check(); err != nil {
		return Keys{}, err
	}
	numbers := fields[1:]
	if len(numbers) > 0 && len(numbers) != len(into) {
		return Keys{}, fmt.Errorf("distribution of keys %q: %s takes %d numbers", s, k.Dist, len(into))
	}
	for i, n := range numbers {
		x, err := strconv.ParseFloat(n, 64)
		if err != nil || !(x > 0) {
			return Keys{}, fmt.Errorf("distribution of keys %q: %q is not a number above 0", s, n)
		}
		*into[i] = x
	}
	if err := k.check(); err != nil {
		return Keys{}, err
	}
	return k, nil
}

// parameters returns the numbers that the distribution has.
func (k *Keys) parameters() []*float64 {
	switch k.Dist {
	case Zipfian, Latest:
		return []*float64{&k.Exponent}
	case Gaussian:
		return []*float64{&k.StdDev}
	case HotSpot:
		return []*float64{&k.HotKeys, &k.HotRequests}
	}
	return nil
}

// String returns what ParseDist reads.
func (k Keys) String() string {
	s := cmp.Or(string(k.Dist), string(Uniform))
	if k.HotKeys != 0 || k.HotRequests != 0 { // both or none
		k.HotKeys, k.HotRequests = cmp.Or(k.HotKeys, hotKeys), cmp.Or(k.HotRequests, hotRequests)
	}
	for _, x := range k.parameters() {
		if *x != 0 {
			s += ":" + strconv.FormatFloat(*x, 'g', -1, 64)
		}
	}
	return s
}

// The numbers of distributions that are left out.
const (
	zipfExponent = 0.99 // YCSB's constant
	hotKeys      = 0.2  // YCSB's hotspotdatafraction
	hotRequests  = 0.8  // YCSB's hotspotopnfraction
)

// A drawer draws numbers of keys.
type drawer interface{ draw() uint64 }

// drawer returns what draws from the keyspace with r. inserted counts the keys
// that were added to it.
func (k Keys) drawer(r *rand.Rand, inserted *insertions) drawer {
	n := uint64(k.space())
	if n == 1 && k.Dist != Latest {
		return single{}
	}
	switch k.Dist {
	case Zipfian:
		return newZipf(r, n, cmp.Or(k.Exponent, zipfExponent))
	case Latest:
		return &latest{newZipf(r, n, cmp.Or(k.Exponent, zipfExponent)), inserted}
	case Gaussian:
		// Beyond ten keyspaces what is left of the bell within one is flat to
		// 0.1 %, and nearly every draw would have to be drawn again.
		if sd := cmp.Or(k.StdDev, float64(n)/6); sd < 10*float64(n) {
			return &gaussian{r, float64(n), sd}
		}
	case Sequential:
		return &sequential{r.Uint64N(n), n}
	case HotSpot:
		hot := uint64(math.Ceil(cmp.Or(k.HotKeys, hotKeys) * float64(n)))
		return &hotSpot{r, n, min(hot, n-1), cmp.Or(k.HotRequests, hotRequests)}
	}
	return &uniform{r, n}
}

// single draws the only key.
type single struct{}

func (single) draw() uint64 { return 0 }

type uniform struct {
	r *rand.Rand
	n uint64
}

func (u *uniform) draw() uint64 { return u.r.Uint64N(u.n) }

type sequential struct{ next, n uint64 }

func (s *sequential) draw() uint64 {
	i := s.next
	if s.next++; s.next == s.n {
		s.next = 0
	}
	return i
}

type gaussian struct {
	r     *rand.Rand
	n, sd float64
}

// draw draws again what falls outside the keyspace.
func (g *gaussian) draw() uint64 {
	for {
		if x := math.Floor(g.n/2 + g.sd*g.r.NormFloat64()); x >= 0 && x < g.n {
			return uint64(x)
		}
	}
}

type hotSpot struct {
	r        *rand.Rand
	n, hot   uint64
	requests float64
}

func (h *hotSpot) draw() uint64 {
	if h.r.Float64() < h.requests {
		return h.r.Uint64N(h.hot)
	}
	return h.hot + h.r.Uint64N(h.n-h.hot)
}

type latest struct {
	*zipf
	inserted *insertions
}

func (l *latest) draw() uint64 {
	return uint64(l.n) + uint64(l.inserted.span()) - 1 - l.zipf.draw()
}

// zipf draws 0 ≤ k < n with a probability proportional to 1/(k+1)^e, for any
// e > 0, without a table and in constant time, by rejection-inversion.
//
// See Hörmann and Derflinger (1996), "Rejection-inversion to generate variates
// from monotone discrete distributions", ACM TOMACS 6(3); the names are theirs.
type zipf struct {
	r            *rand.Rand
	n, e         float64
	hx1, hn, cut float64
}

func newZipf(r *rand.Rand, n uint64, e float64) *zipf {
	z := &zipf{r: r, n: float64(n), e: e}
	z.hx1 = z.integral(1.5) - 1
	z.hn = z.integral(z.n + 0.5)
	z.cut = 2 - z.inverse(z.integral(2.5)-z.h(2))
	return z
}

func (z *zipf) draw() uint64 {
	for {
		u := z.hn + z.r.Float64()*(z.hx1-z.hn)
		x := z.inverse(u)
		k := min(max(math.Floor(x+0.5), 1), z.n)
		if k-x <= z.cut || u >= z.integral(k+0.5)-z.h(k) {
			return uint64(k) - 1
		}
	}
}

// h is the density x^-e, integral its integral from 1 and inverse the inverse
// of that.
func (z *zipf) h(x float64) float64 { return math.Exp(-z.e * math.Log(x)) }

func (z *zipf) integral(x float64) float64 {
	l := math.Log(x)
	return expm1Ratio((1-z.e)*l) * l
}

func (z *zipf) inverse(x float64) float64 {
	// Rounding must not carry the argument out of the logarithm's domain.
	return math.Exp(log1pRatio(max(x*(1-z.e), -1)) * x)
}

// expm1Ratio is (exp(x)−1)/x and log1pRatio log(1+x)/x, both 1 at 0.
func expm1Ratio(x float64) float64 {
	if math.Abs(x) < 1e-8 {
		return 1 + x/2
	}
	return math.Expm1(x) / x
}

func log1pRatio(x float64) float64 {
	if math.Abs(x) < 1e-8 {
		return 1 - x/2
	}
	return math.Log1p(x) / x
}
