package load

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Merging shards gives what one shard would have given, and the result file
// keeps all of it.
func TestLatencyShardsAndFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, int64(2*maxLatency)), 0, 200).Draw(t, "values")
		cut := rapid.IntRange(0, len(values)).Draw(t, "cut")
		var whole, a, b Latency
		for i, v := range values {
			whole.record(time.Duration(v), 1)
			if i < cut {
				a.record(time.Duration(v), 1)
			} else {
				b.record(time.Duration(v), 1)
			}
		}
		// Whatever is packed on the way.
		for _, l := range []*Latency{&a, &b} {
			if rapid.Bool().Draw(t, "packed") {
				l.pack()
			}
		}
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		a.Merge(&b)
		data, err := json.Marshal(&a)
		if err != nil {
			t.Fatal(err)
		}
		var read Latency
		if err := json.Unmarshal(data, &read); err != nil {
			t.Fatal(err)
		}
		for name, l := range map[string]*Latency{"merged": &a, "read": &read} {
			if l.Count() != whole.Count() || l.Mean() != whole.Mean() || l.over != whole.over ||
				l.Min() != whole.Min() || l.Max() != whole.Max() || l.Quantile(q) != whole.Quantile(q) {
				t.Fatalf("%s: %+v is not the whole %+v", name, l, whole)
			}
		}
	})
}

// Three significant digits: a quantile is off by at most 0.1 %. Of the values
// 1…1000 µs the quantile q is 1000·q µs.
func TestLatencyQuantile(t *testing.T) {
	var l Latency
	for i := 1; i <= 1000; i++ {
		l.record(time.Duration(i)*time.Microsecond, 1)
	}
	for _, q := range []float64{0.5, 0.9, 0.99, 0.999} {
		want := q * 1000
		if got := float64(l.Quantile(q)) / 1e3; math.Abs(got/want-1) > 0.001 {
			t.Errorf("quantile %v is %v µs, want %v", q, got, want)
		}
	}
	if want := 500500 * time.Nanosecond; l.Mean() != want {
		t.Errorf("mean %v, want %v", l.Mean(), want)
	}
	if l := new(Latency); l.Count() != 0 || l.Quantile(0.5) != 0 || l.Mean() != 0 || l.Min() != 0 || l.Max() != 0 {
		t.Error("an empty distribution is not all 0")
	}
}

func TestMeasurementMergeAndClone(t *testing.T) {
	one := func(n int64) *Measurement {
		m := &Measurement{Step: Step{4, 2}, Elapsed: time.Second, Requests: n, Sent: n + 2, Received: n, Failed: 2,
			BatchTime: 4 * time.Second, Latency: new(Latency), Intervals: []int64{n}, Loops: 1}
		m.addError("OOM", ErrorClass{2, "OOM x"})
		m.Latency.record(time.Millisecond, n)
		return m
	}
	a := one(10)
	c := a.Clone()
	if err := a.Merge(one(20)); err != nil {
		t.Fatal(err)
	}
	// 30 requests in two windows of 1 s, all connections busy all the time.
	if a.Throughput() != 15 || a.Utilisation() != 1 || a.ErrorCount() != 4 || a.Latency.Count() != 30 || a.Sent != 34 {
		t.Errorf("merged: %+v", a)
	}
	if !reflect.DeepEqual(c, one(10)) {
		t.Errorf("the clone has changed with its original: %+v", c)
	}
	if err := a.Merge(&Measurement{Step: Step{5, 2}}); err == nil {
		t.Error("measurements of different steps were merged")
	}
}

// FuzzLatencyJSON: a damaged histogram gives an error, never a panic.
func FuzzLatencyJSON(f *testing.F) {
	var l Latency
	l.record(time.Millisecond, 5)
	data, _ := json.Marshal(&l)
	f.Add(data)
	f.Add([]byte(`{"hdr":"HISTFAAAABh42pJpmSzMwMDAxAABzFCaEUoz2X+AMQEAAAD//wEA","sum_ns":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var l Latency
		if err := json.Unmarshal(data, &l); err == nil {
			l.Quantile(0.5)
		}
	})
}
