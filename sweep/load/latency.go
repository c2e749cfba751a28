package load

import (
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
type Latency struct {
	hist *hdrhistogram.Histogram
	sum  time.Duration
	over int64
}

// record adds n values of v. It allocates only for the first value.
func (l *Latency) record(v time.Duration, n int64) {
	if l.hist == nil {
		l.hist = newHistogram()
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
	if o == nil || o.hist == nil {
		return
	}
	if l.hist == nil {
		l.hist = newHistogram()
	}
	l.hist.Merge(o.hist)
	l.sum += o.sum
	l.over += o.over
}

// Count returns the number of values.
func (l *Latency) Count() int64 {
	if l == nil || l.hist == nil {
		return 0
	}
	return l.hist.TotalCount()
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
// do not exceed; 0 when there is no value.
func (l *Latency) Quantile(q float64) time.Duration {
	if l.Count() == 0 {
		return 0
	}
	return time.Duration(l.hist.ValueAtPercentile(q * 100))
}

// Min returns the smallest value, 0 when there is none.
func (l *Latency) Min() time.Duration {
	if l.Count() == 0 {
		return 0
	}
	return time.Duration(l.hist.Min())
}

// Max returns the largest value, 0 when there is none.
func (l *Latency) Max() time.Duration {
	if l.Count() == 0 {
		return 0
	}
	return time.Duration(l.hist.Max())
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
	if l.hist != nil {
		b, err := l.hist.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
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
