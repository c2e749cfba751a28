package load

import (
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// A latency is recorded from 1 ns to one minute with three significant
	// digits, so that a quantile is at most 0.1 % off.
	maxLatency     = time.Minute
	latencyDigits  = 3
	minLatencyUnit = 1
)

// Latency is a distribution of latencies. Beside the histogram it keeps the
// exact sum and the number of values beyond the histogram's range, which are
// counted at its end. The zero value is empty and ready to use.
//
// A histogram takes 225 KB, most of it zeros. A latency that is not recorded
// any more is packed: it keeps the counters that are not zero, in some KB, and
// becomes a histogram again when something is added.
type Latency struct {
	hist   *hdrhistogram.Histogram // nil: empty, or packed
	packed []hdrhistogram.Bar      // from low to high
	sum    time.Duration
	over   int64
}

// pack gives up the histogram.
func (l *Latency) pack() {
	if l == nil || l.hist == nil {
		return
	}
	for _, b := range l.hist.Distribution() {
		if b.Count > 0 {
			l.packed = append(l.packed, b)
		}
	}
	l.packed = slices.Clip(l.packed)
	l.hist = nil
}

// histogram returns the histogram, made of the counters when l is packed; nil
// when l is empty. It is not to be changed.
func (l *Latency) histogram() *hdrhistogram.Histogram {
	switch {
	case l == nil:
		return nil
	case l.packed == nil:
		return l.hist
	}
	h := newHistogram()
	for _, b := range l.packed {
		_ = h.RecordValues(b.From, b.Count) // it was in range before
	}
	return h
}

// unpack makes l one to add to.
func (l *Latency) unpack() {
	l.hist = l.histogram()
	l.packed = nil
	if l.hist == nil {
		l.hist = newHistogram()
	}
}

// record adds n values of v. It allocates only for the first value.
func (l *Latency) record(v time.Duration, n int64) {
	if l.hist == nil {
		l.unpack()
	}
	l.sum += v * time.Duration(n)
	if v > maxLatency {
		l.over += n
		v = maxLatency
	}
	// The only error is a value out of range, which v now cannot be.
	_ = l.hist.RecordValues(max(int64(v), minLatencyUnit), n)
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(minLatencyUnit, int64(maxLatency), latencyDigits)
}

// Merge adds the values of o.
func (l *Latency) Merge(o *Latency) {
	if o.Count() == 0 {
		return
	}
	switch {
	case l.hist == nil && o.hist == nil:
		l.packed = mergeBars(l.packed, o.packed)
	case o.hist == nil:
		for _, b := range o.packed {
			_ = l.hist.RecordValues(b.From, b.Count)
		}
	default:
		if l.hist == nil {
			l.unpack()
		}
		l.hist.Merge(o.hist)
	}
	l.sum += o.sum
	l.over += o.over
}

// mergeBars returns the counters of both, from low to high.
func mergeBars(a, b []hdrhistogram.Bar) []hdrhistogram.Bar {
	all := make([]hdrhistogram.Bar, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].From < b[0].From:
			all, a = append(all, a[0]), a[1:]
		case a[0].From > b[0].From:
			all, b = append(all, b[0]), b[1:]
		default:
			both := a[0]
			both.Count += b[0].Count
			all, a, b = append(all, both), a[1:], b[1:]
		}
	}
	return append(append(all, a...), b...)
}

// Count returns the number of values.
func (l *Latency) Count() (n int64) {
	switch {
	case l == nil:
	case l.hist != nil:
		n = l.hist.TotalCount()
	default:
		for _, b := range l.packed {
			n += b.Count
		}
	}
	return n
}

// Mean returns the exact mean; 0 when there is no value.
func (l *Latency) Mean() time.Duration {
	n := l.Count()
	if n == 0 {
		return 0
	}
	return l.sum / time.Duration(n)
}

// Quantile returns the latency that the share q of the values, from 0 to 1,
// do not exceed; 0 when there is no value. q is rounded to whole values as
// HdrHistogram does.
func (l *Latency) Quantile(q float64) time.Duration {
	n := l.Count()
	switch {
	case n == 0:
		return 0
	case l.hist != nil:
		return time.Duration(l.hist.ValueAtPercentile(q * 100))
	case q <= 0:
		return l.Min()
	}
	rank := min(n, max(1, int64(q*100/100*float64(n)+.5)))
	for _, b := range l.packed {
		if rank -= b.Count; rank <= 0 {
			return time.Duration(b.To)
		}
	}
	return l.Max()
}

// Min returns the smallest value, 0 when there is none.
func (l *Latency) Min() time.Duration {
	switch {
	case l.Count() == 0:
		return 0
	case l.hist != nil:
		return time.Duration(l.hist.Min())
	}
	return time.Duration(l.packed[0].From)
}

// Max returns the largest value, 0 when there is none.
func (l *Latency) Max() time.Duration {
	switch {
	case l.Count() == 0:
		return 0
	case l.hist != nil:
		return time.Duration(l.hist.Max())
	}
	return time.Duration(l.packed[len(l.packed)-1].To)
}

// latencyJSON is the form in the result file.
type latencyJSON struct {
	// HDR is the histogram in HdrHistogram's V2 compressed form, base64,
	// values in nanoseconds.
	HDR  string        `json:"hdr,omitempty"`
	Sum  time.Duration `json:"sum_ns"`
	Over int64         `json:"over_range,omitempty"`
}

// MarshalJSON writes the histogram whole, so that any quantile can be had
// from the file.
func (l *Latency) MarshalJSON() ([]byte, error) {
	j := latencyJSON{Sum: l.sum, Over: l.over}
	if h := l.histogram(); h != nil {
		b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			return nil, fmt.Errorf("encoding a histogram: %w", err)
		}
		j.HDR = string(b)
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON has written. A histogram of another
// range is taken over value by value.
func (l *Latency) UnmarshalJSON(b []byte) (err error) {
	var j latencyJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*l = Latency{sum: j.Sum, over: j.Over}
	if j.HDR == "" {
		return nil
	}
	if err := checkEncoded(j.HDR); err != nil {
		return fmt.Errorf("decoding a histogram: %w", err)
	}
	defer func() {
		// The library indexes by what the bytes say; damaged ones panic.
		if r := recover(); r != nil {
			err = fmt.Errorf("decoding a histogram: damaged: %v", r)
		}
	}()
	h, err := hdrhistogram.Decode([]byte(j.HDR))
	if err != nil {
		return fmt.Errorf("decoding a histogram: %w", err)
	}
	l.hist = newHistogram()
	if dropped := l.hist.Merge(h); dropped > 0 {
		return fmt.Errorf("decoding a histogram: %d values are out of range", dropped)
	}
	l.pack()
	return nil
}

const (
	// encodedHeader is what stands before the compressed counters: a cookie
	// and a length of four bytes each.
	encodedHeader = 8
	// maxEncoded bounds the counters: a histogram of our range has 28 k of
	// them, of at most 9 bytes.
	maxEncoded = 512 << 10
)

// checkEncoded inflates a histogram without keeping it: a damaged or made-up
// file must not be able to fill the memory.
func checkEncoded(text string) error {
	r := base64.NewDecoder(base64.StdEncoding, strings.NewReader(text))
	if _, err := io.CopyN(io.Discard, r, encodedHeader); err != nil {
		return err
	}
	z, err := zlib.NewReader(r)
	if err != nil {
		return err
	}
	defer z.Close()
	n, err := io.Copy(io.Discard, io.LimitReader(z, maxEncoded+1))
	if err == nil && n > maxEncoded {
		err = errors.New("it is larger than any of ours")
	}
	return err
}
