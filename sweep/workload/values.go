package workload

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// A Content is what values are made of.
type Content string

const (
	// Same is the letter x, as in redis-benchmark; the zero value means it.
	Same Content = "same"
	// Random is bytes that no compression shortens.
	Random Content = "random"
	// Compressible is half random and half x, in turns of 32 bytes: about
	// two to one for any compression.
	Compressible Content = "compressible"
)

// Values says what values are written. Its JSON form is part of the result
// file.
type Values struct {
	// Sizes are drawn by weight; at least one.
	Sizes   []Size  `json:"sizes"`
	Content Content `json:"content,omitempty"`
}

// A Size is a range of sizes in bytes, both ends included and all alike.
type Size struct {
	Min    int     `json:"min_bytes"` // at least 1
	Max    int     `json:"max_bytes"`
	Weight float64 `json:"weight,omitempty"` // 0 means 1
}

func (s Size) weight() float64 {
	if s.Weight == 0 {
		return 1
	}
	return s.Weight
}

// maxValueBytes is Redis' own limit of a string.
const maxValueBytes = 512 << 20

func (v Values) check() error {
	if len(v.Sizes) == 0 {
		return fmt.Errorf("no size of values")
	}
	for _, s := range v.Sizes {
		switch {
		case s.Min < 1 || s.Max > maxValueBytes:
			return fmt.Errorf("a value of %d to %d bytes; it must have 1 to %d", s.Min, s.Max, maxValueBytes)
		case s.Max < s.Min:
			return fmt.Errorf("a value of %d to %d bytes; the range ends before it starts", s.Min, s.Max)
		case !(s.Weight >= 0 && s.Weight <= 1e9):
			return fmt.Errorf("values of %d to %d bytes have the weight %v; want more than 0", s.Min, s.Max, s.Weight)
		}
	}
	switch v.Content {
	case "", Same, Random, Compressible:
		return nil
	}
	return fmt.Errorf("unknown content %q; want %s, %s or %s", v.Content, Same, Random, Compressible)
}

// ParseSizes reads the sizes of values: "100" bytes, a range "32-512", or a
// list with weights "32:70,1024-2048:30".
func ParseSizes(s string) ([]Size, error) {
	var sizes []Size
	for part := range strings.SplitSeq(s, ",") {
		var z Size
		bounds, weight, weighted := strings.Cut(strings.TrimSpace(part), ":")
		low, high, isRange := strings.Cut(bounds, "-")
		if !isRange {
			high = low
		}
		var err1, err2, err3 error
		z.Min, err1 = strconv.Atoi(low)
		z.Max, err2 = strconv.Atoi(high)
		if weighted {
			z.Weight, err3 = strconv.ParseFloat(weight, 64)
		}
		if err1 != nil || err2 != nil || err3 != nil || weighted && !(z.Weight > 0) {
			return nil, fmt.Errorf("%q is no size of values; want bytes (100), a range (32-512) or a list with weights (32:70,1024:30)", s)
		}
		sizes = append(sizes, z)
	}
	if err := (Values{Sizes: sizes}).check(); err != nil {
		return nil, err
	}
	return sizes, nil
}

// values makes values.
type values struct {
	Values
	limits []float64 // rising; the share of draws up to each size
	pool   []byte    // what values are cut from
	starts int       // at how many places
}

// poolStarts is at how many places of the pool a value may start, so that
// equal values are rare.
const poolStarts = 1 << 16

func newValues(v Values, seed uint64) *values {
	m := &values{Values: v, starts: 1}
	sum, largest := 0.0, 0
	for _, s := range v.Sizes {
		sum += s.weight()
		m.limits = append(m.limits, sum)
		largest = max(largest, s.Max)
	}
	for i := range m.limits {
		m.limits[i] /= sum
	}
	if v.Content == Random || v.Content == Compressible {
		m.starts = poolStarts
	}
	m.pool = make([]byte, largest+m.starts-1)
	r := rand.New(rand.NewPCG(seed, poolStream))
	for i := range m.pool {
		switch {
		case v.Content == Random, v.Content == Compressible && i/32%2 == 0:
			m.pool[i] = byte(r.Uint32())
		default:
			m.pool[i] = 'x'
		}
	}
	return m
}

// poolStream is the stream of the pool's bytes, which no Source has.
const poolStream = 1 << 63

// fixed returns the value when all are the same.
func (m *values) fixed() (string, bool) {
	s := m.Sizes[0]
	if len(m.Sizes) > 1 || s.Min != s.Max || m.starts > 1 {
		return "", false
	}
	return string(m.pool), true
}

// next draws a value; it is valid for ever and must not be changed.
func (m *values) next(r *rand.Rand) []byte {
	s := m.Sizes[0]
	if len(m.Sizes) > 1 {
		x := r.Float64()
		for i, limit := range m.limits {
			if s = m.Sizes[i]; x < limit {
				break
			}
		}
	}
	n, at := s.Min, 0
	if s.Max > s.Min {
		n += r.IntN(s.Max - s.Min + 1)
	}
	if m.starts > 1 {
		at = r.IntN(m.starts)
	}
	return m.pool[at : at+n]
}

// appendBulk appends a value as a bulk string.
func (m *values) appendBulk(dst []byte, r *rand.Rand) []byte {
	v := m.next(r)
	dst = strconv.AppendInt(append(dst, '$'), int64(len(v)), 10)
	dst = append(dst, "\r\n"...)
	return append(append(dst, v...), "\r\n"...)
}

// mean returns the mean size in bytes.
func (m *values) mean() float64 {
	mean, before := 0.0, 0.0
	for i, s := range m.Sizes {
		mean += (m.limits[i] - before) * float64(s.Min+s.Max) / 2
		before = m.limits[i]
	}
	return mean
}

// typical returns a value of about the mean size.
func (m *values) typical() string { return string(m.pool[:int(m.mean())]) }
