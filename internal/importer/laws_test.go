package importer

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/poolsweep/poolsweep/analyze"
)

// writeCSV writes curves as plain CSV, a row for each trial.
func writeCSV(curves []analyze.Curve) string {
	var b strings.Builder
	b.WriteString("# comment\ntest,depth,clients,qps,mean_ms,min_ms,p50_ms,p99_ms,p999_ms,server_cpu_percent\n")
	cell := func(q analyze.Quantity, perUnit float64) string {
		if !q.Known() {
			return ""
		}
		// Twelve digits are enough for what was drawn, and take off the error
		// of the multiplication.
		return strconv.FormatFloat(float64(q)*perUnit, 'g', 12, 64)
	}
	for _, c := range curves {
		for _, p := range c.Points {
			for _, t := range p.Trials {
				fmt.Fprintf(&b, "%s,%d,%d,%v,%s,%s,%s,%s,%s,%s\n", c.Test, c.Depth, p.Clients, t.QPS,
					cell(t.Mean, 1e3), cell(t.LatencyMin, 1e3), cell(t.P50, 1e3), cell(t.P99, 1e3), cell(t.P999, 1e3), cell(t.Load.ServerCPU, 100))
			}
		}
	}
	return b.String()
}

// drawCurves draws curves as Read returns them: sorted, each level once.
func drawCurves(t *rapid.T) []analyze.Curve {
	// Microseconds, and 0.01 % of CPU.
	quantity := func(perUnit float64) analyze.Quantity {
		n := rapid.IntRange(0, 10_000_000).Draw(t, "quantity")
		if n == 0 {
			return analyze.Unknown()
		}
		return analyze.Quantity(float64(n) / 1000 / perUnit)
	}
	var curves []analyze.Curve
	for i := range rapid.IntRange(1, 3).Draw(t, "curves") {
		c := analyze.Curve{Test: fmt.Sprintf("TEST_%d", i), Depth: rapid.IntRange(1, 64).Draw(t, "depth")}
		clients := 0
		for range rapid.IntRange(1, 5).Draw(t, "points") {
			clients += rapid.IntRange(1, 100).Draw(t, "step")
			p := analyze.Point{Clients: clients}
			for range rapid.IntRange(1, 4).Draw(t, "trials") {
				trial := newTrial(rapid.Float64Range(1e-3, 1e9).Draw(t, "qps"))
				trial.Mean, trial.LatencyMin = quantity(1e3), quantity(1e3)
				trial.P50, trial.P99, trial.P999 = quantity(1e3), quantity(1e3), quantity(1e3)
				trial.Load.ServerCPU = quantity(100)
				p.Trials = append(p.Trials, trial)
			}
			c.Points = append(c.Points, p)
		}
		curves = append(curves, c)
	}
	return curves
}

// decode∘encode = identity.
func TestCSVRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawCurves(t)
		imp, err := Read([]Source{{"x.csv", 0, strings.NewReader(writeCSV(want))}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, imp.Curves, equateUnknown); diff != "" || len(imp.Problems) > 0 {
			t.Fatalf("problems %v, -want +got:\n%s", imp.Problems, diff)
		}
	})
}

// The fuzz targets hold each parser to the same laws; seeds are the files of
// testdata that it detects.

func FuzzMemtierJSON(f *testing.F)    { fuzzFormat(f, "memtier_benchmark JSON") }
func FuzzMemtier(f *testing.F)        { fuzzFormat(f, "memtier_benchmark") }
func FuzzYCSB(f *testing.F)           { fuzzFormat(f, "YCSB") }
func FuzzJMH(f *testing.F)            { fuzzFormat(f, "JMH") }
func FuzzJMeter(f *testing.F)         { fuzzFormat(f, "JMeter") }
func FuzzPlainCSV(f *testing.F)       { fuzzFormat(f, "CSV") }
func FuzzRedisBenchmark(f *testing.F) { fuzzFormat(f, "redis-benchmark") }

// FuzzRead is fed with all files, and finds the format by itself.
func FuzzRead(f *testing.F) {
	for _, name := range testdata(f) {
		f.Add(content(f, name))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		read := func() *Import {
			imp, err := Read([]Source{{"x", 7, bytes.NewReader(data)}})
			if err != nil {
				return new(Import)
			}
			return imp
		}
		imp := read()
		checkCurves(t, imp.Curves)
		if diff := cmp.Diff(imp, read(), equateUnknown); diff != "" {
			t.Errorf("read again:\n%s", diff)
		}
	})
}

// content returns a file of testdata.
func content(t testing.TB, name string) []byte {
	b := new(bytes.Buffer)
	if _, err := b.ReadFrom(source(t, name).R); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func fuzzFormat(f *testing.F, name string) {
	var parse parseFunc
	for _, format := range formats {
		if format.name == name {
			parse = format.parse
		}
	}
	for _, file := range testdata(f) {
		data := content(f, file)
		for _, format := range formats {
			if format.detect(string(data)) {
				if format.name == name {
					f.Add(data, uint8(0))
					f.Add(data, uint8(7))
				}
				break
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, clients uint8) {
		read := func() *input {
			in := newInput(Source{Name: "x", Clients: int(clients)}, bufio.NewReader(bytes.NewReader(data)))
			parse(in)
			in.finish(name)
			return in
		}
		in := read()
		if in.err != nil {
			t.Fatalf("error %v of a reader that has none", in.err)
		}
		if len(in.results) == 0 && len(in.problems) == 0 {
			t.Error("neither a result nor a problem")
		}
		cs := curves(in.results)
		checkCurves(t, cs)
		again := read()
		if diff := cmp.Diff(cs, curves(again.results), equateUnknown); diff != "" {
			t.Errorf("read again:\n%s", diff)
		}
		if diff := cmp.Diff(in.problems, again.problems); diff != "" {
			t.Errorf("read again, problems:\n%s", diff)
		}
	})
}

// checkCurves fails when a curve breaks what analyze says of its types.
func checkCurves(t *testing.T, curves []analyze.Curve) {
	t.Helper()
	for _, c := range curves {
		if c.Depth < 1 || len(c.Points) == 0 {
			t.Errorf("%q: depth %d, %d points", c.Test, c.Depth, len(c.Points))
		}
		for i, p := range c.Points {
			if p.Clients < 1 || i > 0 && p.Clients <= c.Points[i-1].Clients || len(p.Trials) == 0 {
				t.Errorf("%q: point %+v", c.Test, p)
			}
			for _, trial := range p.Trials {
				if !(trial.QPS > 0) || !analyze.Quantity(trial.QPS).Known() {
					t.Errorf("%q at %d: throughput %v", c.Test, p.Clients, trial.QPS)
				}
				for _, q := range []analyze.Quantity{trial.Mean, trial.LatencyMin, trial.P50, trial.P99, trial.P999, trial.Load.ServerCPU} {
					if q.Known() && q <= 0 {
						t.Errorf("%q at %d: quantity %v", c.Test, p.Clients, q)
					}
				}
			}
		}
	}
}
