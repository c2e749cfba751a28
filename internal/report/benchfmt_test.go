package report

import (
	"strings"
	"testing"

	benchparse "golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchproc"
)

// readBench reads what benchstat would read, to the last line.
func readBench(t *testing.T, text string) []*benchparse.Result {
	t.Helper()
	var results []*benchparse.Result
	r := benchparse.NewReader(strings.NewReader(text), "test")
	for r.Scan() {
		switch rec := r.Result().(type) {
		case *benchparse.Result:
			results = append(results, rec.Clone())
		case *benchparse.SyntaxError:
			t.Fatal(rec)
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	if meta := r.Units().GetBetter("requests/s"); meta != 1 {
		t.Errorf("more requests/s count as %+d, want better", meta)
	}
	return results
}

// benchValue returns a value in the units that the reader makes of ours.
func benchValue(t *testing.T, r *benchparse.Result, unit string) float64 {
	t.Helper()
	v, ok := r.Value(unit)
	if !ok {
		t.Fatalf("%s has no %s: %v", r.Name, unit, r.Values)
	}
	return v
}

// TestBenchfmtCompares: benchstat puts runs of different servers, versions and
// times into one table, by its own projections, and trials of a step into one
// row of it; runs on another kind of machine stand apart.
func TestBenchfmtCompares(t *testing.T) {
	before, after, other := manyResults(t), manyResults(t), manyResults(t)
	after.Header.Server.Version, after.Header.Build = "8.2.1", "v9.9.9"
	after.Header.Started = after.Header.Started.AddDate(0, 1, 0)
	other.Header.Host.Arch = "arm64"

	var parser benchproc.ProjectionParser
	filter, err := benchproc.NewFilter("*")
	if err != nil {
		t.Fatal(err)
	}
	table, err := parser.Parse(".config", filter)
	if err != nil {
		t.Fatal(err)
	}
	row, err := parser.Parse(".fullname", filter)
	if err != nil {
		t.Fatal(err)
	}
	keys := func(d *Document) (tables map[benchproc.Key]int, rows map[benchproc.Key]int) {
		tables, rows = map[benchproc.Key]int{}, map[benchproc.Key]int{}
		for _, r := range readBench(t, write(t, "benchfmt", d)) {
			tables[table.Project(r)]++
			rows[row.Project(r)]++
		}
		return tables, rows
	}
	oldTables, oldRows := keys(before)
	newTables, newRows := keys(after)
	if len(oldTables) != 1 || len(newTables) != 1 {
		t.Errorf("%d and %d tables, want one", len(oldTables), len(newTables))
	}
	for k := range oldTables {
		if newTables[k] == 0 {
			t.Errorf("the second run has no table %s: %v", k, newTables)
		}
		if apart, _ := keys(other); apart[k] != 0 {
			t.Errorf("another machine shares the table %s", k)
		}
	}
	// 2 tests, 2 depths, 7 steps.
	if len(oldRows) != 28 {
		t.Errorf("%d rows, want 28", len(oldRows))
	}
	for k, n := range oldRows {
		if n != resultTrials || newRows[k] != resultTrials {
			t.Errorf("row %s has %d and %d trials, want %d", k, n, newRows[k], resultTrials)
		}
	}
}

// TestBenchfmtForeign: another tool's trials have no number of iterations, but
// a benchmark must.
func TestBenchfmtForeign(t *testing.T) {
	results := readBench(t, write(t, "benchfmt", twoDepths()))
	if len(results) != 6 {
		t.Fatalf("%d results, want 6", len(results))
	}
	first := results[0]
	if name := string(first.Name); name != capital(stepName(twoDepths().Curves[0].Test, 10, 1)) || first.Iters != 1 {
		t.Errorf("%s with %d iterations", name, first.Iters)
	}
	if got := benchValue(t, first, "sec/op"); got != 1e-4 { // 10000/s
		t.Errorf("%v s/op, want 0.0001", got)
	}
	if len(first.Values) != 2 {
		t.Errorf("values %v, want no latency", first.Values)
	}
}

func TestStepName(t *testing.T) {
	tests := []struct{ test, want string }{
		{"SET", "SET/clients=10/depth=16"},
		{"MSET (10 keys)", "MSET_(10_keys)/clients=10/depth=16"},
		{"a/b,c\td\ne", "a_b_c_d_e/clients=10/depth=16"},
		{"größe", "größe/clients=10/depth=16"},
		{"", "/clients=10/depth=16"},
	}
	for _, test := range tests {
		if got := stepName(test.test, 10, 16); got != test.want {
			t.Errorf("%q: %q, want %q", test.test, got, test.want)
		}
	}
	for in, want := range map[string]string{"get/clients=1": "Get/clients=1", "ü": "Ü", "SET": "SET"} {
		if got := capital(in); got != want {
			t.Errorf("capital %q: %q, want %q", in, got, want)
		}
	}
}
