package load

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawnMeasurement draws a measurement of one window.
func drawnMeasurement(t *rapid.T, depth int) *Measurement {
	m := &Measurement{
		Step:    Step{Clients: rapid.IntRange(1, 100).Draw(t, "clients"), Depth: depth},
		Elapsed: time.Second, Latency: new(Latency), Loops: 1,
		Nulls: rapid.Int64Range(0, 9).Draw(t, "nulls"),
	}
	part := Part{Name: "node", Clients: m.Clients, Latency: new(Latency)}
	for _, v := range rapid.SliceOfN(rapid.Int64Range(1, int64(time.Second)), 0, 50).Draw(t, "latencies") {
		m.Latency.record(time.Duration(v), 1)
		part.Latency.record(time.Duration(v), 1)
		m.Requests++
		part.Requests++
		m.Sent++
		m.Received++
		m.BatchTime += time.Duration(v)
	}
	m.Intervals = []int64{m.Requests}
	m.Nodes = []Part{part}
	return m
}

// Side by side counts, clients and rates add up, and histograms are merged by
// counts: the quantile of all is that of one histogram of all values.
func TestBeside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []*Measurement
		var whole Latency
		clients, requests, rate := 0, int64(0), 0.0
		for range rapid.IntRange(1, 5).Draw(t, "agents") {
			m := drawnMeasurement(t, 4)
			all = append(all, m)
			whole.Merge(m.Latency)
			clients += m.Clients
			requests += m.Requests
			rate += m.Throughput()
		}
		sum, err := Beside(all...)
		if err != nil {
			t.Fatal(err)
		}
		if sum.Clients != clients || sum.Depth != 4 || sum.Requests != requests || sum.Loops != len(all) || sum.Elapsed != time.Second {
			t.Fatalf("%+v", sum)
		}
		if d := sum.Throughput() - rate; d > 1e-6 || d < -1e-6 {
			t.Fatalf("%v requests/s, want %v", sum.Throughput(), rate)
		}
		if sum.Sent != sum.Received+sum.Failed+sum.Lost || !slices.Equal(sum.Intervals, []int64{requests}) {
			t.Fatalf("%+v", sum)
		}
		for _, q := range []float64{0, 0.5, 0.99, 1} {
			if sum.Latency.Quantile(q) != whole.Quantile(q) {
				t.Fatalf("quantile %v: %v, want %v", q, sum.Latency.Quantile(q), whole.Quantile(q))
			}
		}
		if n := sum.Nodes[0]; n.Clients != clients || n.Requests != requests {
			t.Fatalf("node: %+v", n)
		}
	})
	if _, err := Beside(&Measurement{Step: Step{1, 1}, Latency: new(Latency)}, &Measurement{Step: Step{1, 2}, Latency: new(Latency)}); err == nil {
		t.Error("different depths are merged")
	}
	if _, err := Beside(); err == nil {
		t.Error("nothing is merged")
	}
}

// Windows of one agent, one behind the other, add up to its use in both.
func TestMergeAgents(t *testing.T) {
	a := []Agent{{Name: "a", Clients: 4, Requests: 10, Capacity: 20, Skew: 1, Connect: 5}}
	b := []Agent{{Name: "a", Clients: 4, Requests: 20, Capacity: 20, Skew: 3, Connect: 5}, {Name: "b", Requests: 1}}
	got := mergeAgents(a, b)
	want := []Agent{{Name: "a", Clients: 4, Requests: 30, Capacity: 40, Skew: 3, Connect: 10}, {Name: "b", Requests: 1}}
	if !slices.Equal(got, want) || got[0].Use() != 0.75 || got[1].Use() != 0 || a[0].Requests != 10 {
		t.Errorf("%+v, want %+v", got, want)
	}
}
