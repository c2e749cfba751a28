package importer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/poolsweep/poolsweep/analyze"
)

// equateUnknown makes two unknown quantities equal, which NaNs are not.
var equateUnknown = cmp.Comparer(func(a, b analyze.Quantity) bool {
	return a == b || !a.Known() && !b.Known()
})

// render writes an Import as text, one line a trial, then the Problems:
//
//	test Pdepth clients: qps [mean= min= p50= p99= p999= (ms)] [cpu=(cores)]
func render(imp *Import) string {
	var b strings.Builder
	for _, c := range imp.Curves {
		for _, p := range c.Points {
			for _, t := range p.Trials {
				fmt.Fprintf(&b, "%s P%d %d: %.10g", c.Test, c.Depth, p.Clients, t.QPS)
				for _, l := range []struct {
					name string
					q    analyze.Quantity
				}{{"mean", t.Mean}, {"min", t.LatencyMin}, {"p50", t.P50}, {"p99", t.P99}, {"p999", t.P999}} {
					if l.q.Known() {
						fmt.Fprintf(&b, " %s=%.6g", l.name, 1e3*l.q)
					}
				}
				if t.Load.ServerCPU.Known() {
					fmt.Fprintf(&b, " cpu=%.6g", t.Load.ServerCPU)
				}
				b.WriteString("\n")
			}
		}
	}
	for _, p := range imp.Problems {
		b.WriteString(p.String() + "\n")
	}
	return b.String()
}

// source opens a file of testdata; its Name is the bare file name. arg may
// have the form N=FILE.
func source(t testing.TB, arg string) Source {
	t.Helper()
	name, clients := ParseName(arg)
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return Source{name, clients, bytes.NewReader(data)}
}

// readText reads one source with the given content.
func readText(t testing.TB, name, text string) *Import {
	t.Helper()
	name, clients := ParseName(name)
	imp, err := Read([]Source{{name, clients, strings.NewReader(text)}})
	if err != nil {
		t.Fatal(err)
	}
	return imp
}

// checkRender compares an Import with what is wanted of it, one line a trial
// or Problem.
func checkRender(t *testing.T, imp *Import, want ...string) {
	t.Helper()
	got := strings.Split(strings.TrimSuffix(render(imp), "\n"), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Wanted values were read in the files; the comments say in which lines.
func TestFiles(t *testing.T) {
	tests := []struct {
		file string // or N=FILE
		want []string
	}{
		{"redis-benchmark-6.0-cluster-quiet.txt", []string{
			"redis-benchmark-6.0-cluster-quiet.txt:7: 1 result: the file does not state its number of clients; if it was 20, give it as 20=redis-benchmark-6.0-cluster-quiet.txt"}},
		{"20=redis-benchmark-6.0-cluster-quiet.txt", []string{ // line 7
			"SET P1 20: 372689.31 p50=0.631"}},
		{"redis-benchmark-6.2-c50.txt", []string{ // GET 117–119, 99.902 % 81; SET 56–59, 22
			"GET P1 50: 119760.48 mean=0.351 min=0.104 p50=0.311 p99=1.055 p999=3.367",
			"SET P1 50: 76745.97 mean=0.626 min=0.144 p50=0.719 p99=1.151 p999=2.295"}},
		{"redis-benchmark-7.0-c10.txt", []string{ // GET 96–99, 64; SET 45–48, 20
			"GET P1 10: 60362.17 mean=0.093 min=0.04 p50=0.087 p99=0.215 p999=0.607",
			"SET P1 10: 56127.22 mean=0.099 min=0.032 p50=0.095 p99=0.239 p999=0.591"}},
		{"10=redis-benchmark-7.0-c10-quiet.txt", []string{ // behind the last CR of 2 and 1
			"GET P1 10: 56764.43 p50=0.087",
			"SET P1 10: 59405.94 p50=0.087"}},
		{"110=redis-benchmark-7.0-c110.csv", []string{ // 3, 2
			"GET P1 110: 51369.86 mean=1.102 min=0.696 p50=1.079 p99=1.703",
			"SET P1 110: 49627.79 mean=1.135 min=0.496 p50=1.063 p99=2.007"}},
		{"redis-benchmark-7.0-c110.csv", []string{
			"redis-benchmark-7.0-c110.csv:2: 2 results: the file does not state its number of clients; if it was 20, give it as 20=redis-benchmark-7.0-c110.csv"}},
		{"valkey-benchmark-8-c20.txt", []string{
			"GET P1 20: 51993.07 mean=0.202 min=0.064 p50=0.191 p99=0.319 p999=0.935",
			"SET P1 20: 52724.08 mean=0.2 min=0.064 p50=0.191 p99=0.311 p999=0.887"}},
		{"20=valkey-benchmark-8-c20.csv", []string{
			"GET P1 20: 51150.89 mean=0.206 min=0.064 p50=0.199 p99=0.327",
			"SET P1 20: 51546.39 mean=0.206 min=0.072 p50=0.191 p99=0.343"}},
		{"memtier-1.2-text.txt", []string{ // 4 × 50 connections, line 13; 8258.50 : 82494.28
			"memtier SET+GET 1:10 P1 200: 90752.78 mean=2.198"}},
		{"memtier-2.3-c10.txt", []string{ // line 13
			"memtier SET+GET 1:1 P1 10: 76752.74 mean=0.13027 p50=0.127 p99=0.231 p999=0.383"}},
		{"memtier-2.3-c10.json", []string{ // Totals: 7792 ms / 60000; its "Average Latency" is 0
			"memtier SET+GET 1:1 P1 10: 76752.74 mean=0.129867 min=0.024 p50=0.127 p99=0.231 p999=0.383"}},
		{"20=memtier-2.3-c10.json", []string{
			"memtier SET+GET 1:1 P1 10: 76752.74 mean=0.129867 min=0.024 p50=0.127 p99=0.231 p999=0.383",
			"memtier-2.3-c10.json:1: 20= is not used: the file itself states 10 clients"}},
		// Seven clients of 64 threads. 20909.23 + 21588.96 + 22539.17 +
		// 21207.35 + 22008.39 + 23430.34 + 21307.61 = 152991.05. Mean:
		// Σ Count·Avg / Σ Count = 2885.888 µs, by awk; Min: line 6.
		{"ycsb-status-7-clients.txt", []string{
			"YCSB UPDATE P1 448: 152991.05 mean=2.88589 min=0.078"}},
		{"70=ycsb-status-7-clients.txt", []string{
			"YCSB UPDATE P1 70: 152991.05 mean=2.88589 min=0.078"}},
		// Two runs: the second cannot be the first one's continuation, 9.2
		// million samples in 5 s. "Avg: 1" and "Avg: 0" are unknown.
		{"50=jmeter-summary.txt", []string{
			"JMeter P1 50: 158801.1",
			"JMeter P1 50: 304777.2"}},
		{"sar-n-dev.txt", []string{
			"sar-n-dev.txt: sar -n DEV counts packets, not requests: there is no throughput in it; give the output of the load generator that ran at the time"}},
		{"redis_like_ferricstore_async_a.csv", []string{
			"redis_like_ferricstore_async_a P1 1: 4912 p50=0.74 p99=2.56",
			"redis_like_ferricstore_async_a P1 10: 32389 p50=0.98 p99=6.11",
			"redis_like_ferricstore_async_a P1 50: 41298 p50=4.02 p99=16.77",
			"redis_like_ferricstore_async_a P1 100: 41847 p50=8.77 p99=27.78"}},
	}
	for _, test := range tests {
		t.Run(test.file, func(t *testing.T) {
			imp, err := Read([]Source{source(t, test.file)})
			if err != nil {
				t.Fatal(err)
			}
			checkRender(t, imp, test.want...)
		})
	}
}

// The founding transcript holds what the founding CSV files hold.
func TestFoundingTranscript(t *testing.T) {
	imp, err := Read([]Source{source(t, "founding-example-transcript.txt")})
	if err != nil {
		t.Fatal(err)
	}
	want, err := Read([]Source{source(t, "seed_redis_benchmark_get.csv"), source(t, "seed_redis_benchmark_set.csv")})
	if err != nil {
		t.Fatal(err)
	}
	want.Curves[0].Test, want.Curves[1].Test = "GET", "SET"
	if diff := cmp.Diff(want, imp, equateUnknown); diff != "" {
		t.Errorf("-CSV +transcript:\n%s", diff)
	}
	for _, c := range imp.Curves {
		if len(c.Points) != 11 {
			t.Errorf("%s: %d steps, want 11", c.Test, len(c.Points))
		}
		for _, p := range c.Points {
			if len(p.Trials) != 3 || !p.Trials[0].Load.ServerCPU.Known() {
				t.Errorf("%s at %d clients: %+v, want 3 trials with CPU", c.Test, p.Clients, p.Trials)
			}
		}
	}
}

// Every file of testdata gives a curve or says why not.
func TestEveryFile(t *testing.T) {
	for _, name := range testdata(t) {
		imp, err := Read([]Source{source(t, name)})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if len(imp.Curves) == 0 && len(imp.Problems) == 0 {
			t.Errorf("%s: neither a curve nor a problem", name)
		}
	}
}

// testdata returns the names of the files in testdata.
func testdata(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.*")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range paths {
		names = append(names, filepath.Base(p))
	}
	return names
}

// Files in any order give the same Import, and a file's share of the trials
// does not depend on the others.
func TestOrder(t *testing.T) {
	names := testdata(t)
	for i, n := range names {
		if strings.HasSuffix(n, ".csv") || strings.Contains(n, "quiet") {
			names[i] = "30=" + n
		}
	}
	read := func() *Import {
		var sources []Source
		for _, n := range names {
			sources = append(sources, source(t, n))
		}
		imp, err := Read(sources)
		if err != nil {
			t.Fatal(err)
		}
		return imp
	}
	want := read()
	trials := 0
	for _, c := range want.Curves {
		for _, p := range c.Points {
			trials += len(p.Trials)
		}
	}
	apart := 0
	for _, n := range names {
		imp, err := Read([]Source{source(t, n)})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range imp.Curves {
			for _, p := range c.Points {
				apart += len(p.Trials)
			}
		}
	}
	if trials != apart {
		t.Errorf("%d trials together, %d apart", trials, apart)
	}
	slices.Reverse(names)
	for range 3 {
		names = append(names[7:], names[:7]...)
		if diff := cmp.Diff(want, read(), equateUnknown); diff != "" {
			t.Fatalf("order of files shows:\n%s", diff)
		}
	}
}

func TestRepeatsBecomeTrials(t *testing.T) {
	a := "====== SET ======\n  8 parallel clients\n100.00 requests per second\n"
	b := "====== SET ======\n  8 parallel clients\n110.00 requests per second\n"
	imp, err := Read([]Source{{"run2.txt", 0, strings.NewReader(b)}, {"run1.txt", 0, strings.NewReader(a)}})
	if err != nil {
		t.Fatal(err)
	}
	checkRender(t, imp, "SET P1 8: 100", "SET P1 8: 110")
}

func TestSameFileTwice(t *testing.T) {
	imp, err := Read([]Source{source(t, "5=redis-benchmark-7.0-c5.csv"), source(t, "5=redis-benchmark-7.0-c5.csv")})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(imp.Curves[0].Points[0].Trials); n != 1 {
		t.Errorf("%d trials, want 1", n)
	}
	if len(imp.Problems) != 1 || imp.Problems[0].Text != "given more than once, read once" {
		t.Errorf("problems %v", imp.Problems)
	}
}

func TestUnknownFormat(t *testing.T) {
	for _, text := range []string{"", "\n", "hello\n", "{}", "a,b\n1,2\n", "\x00\x01\x02"} {
		_, err := Read([]Source{{"x.txt", 0, strings.NewReader(text)}})
		if !errors.Is(err, errUnknownFormat) || !strings.HasPrefix(err.Error(), "reading x.txt: no known results") {
			t.Errorf("%q: error %v", text, err)
		}
	}
	// Beside a known one it is a Problem.
	imp, err := Read([]Source{{"x.txt", 0, strings.NewReader("hello\n")}, {"y.csv", 0, strings.NewReader("clients,qps\n5,10\n")}})
	if err != nil {
		t.Fatal(err)
	}
	checkRender(t, imp, "y P1 5: 10", "x.txt: "+errUnknownFormat.Error())
	if _, err := Read(nil); err != nil {
		t.Errorf("no sources: %v", err)
	}
}

func TestReadError(t *testing.T) {
	broken := errors.New("disk on fire")
	for _, head := range []string{"", "clients,qps\n1,2\n", strings.Repeat("1,2\n", maxHead/3)} {
		_, err := Read([]Source{{"x.csv", 0, io.MultiReader(strings.NewReader(head), iotest.ErrReader(broken))}})
		if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "reading x.csv: ") {
			t.Errorf("error %v", err)
		}
	}
}

func TestLimits(t *testing.T) {
	imp := readText(t, "x.csv", "clients,qps\n1,2\n"+strings.Repeat("9", maxLine+1)+",1\n2,3\n")
	checkRender(t, imp, "x P1 1: 2", "x P1 2: 3", "x.csv:3: a line longer than 1 MiB was left out")

	imp = readText(t, "x.csv", "clients,qps\n1,2\n"+strings.Repeat("#23456789\n", maxInput/10)+"2,3\n")
	checkRender(t, imp, "x P1 1: 2", "x.csv:6710887: the file is longer than 64 MiB, the rest was not read")

	imp = readText(t, "x.csv", "clients,qps\n1,2\n"+strings.Repeat("0,1\n", 25))
	if n := len(imp.Problems); n != maxProblems+1 || imp.Problems[n-1].Text != "and 15 more problems like these" {
		t.Errorf("problems %v", imp.Problems)
	}
}

// Windows writes CR LF and a byte order mark; PowerShell UTF-16.
func TestWindows(t *testing.T) {
	imp := readText(t, "x.csv", "\ufeffclients,qps\r\n1,2\r\nx,3\r\n")
	checkRender(t, imp, "x P1 1: 2", `x.csv:3: column 1: "x" is not a whole number of clients, 1 or more`)
	imp = readText(t, "x.csv", "\xff\xfec\x00l\x00")
	checkRender(t, imp, "x.csv: is UTF-16, as PowerShell writes it: save it as UTF-8")
}

func TestParseName(t *testing.T) {
	tests := []struct {
		arg, name string
		clients   int
	}{
		{"20=a.csv", "a.csv", 20},
		{"a.csv", "a.csv", 0},
		{"20=a=b.csv", "a=b.csv", 20},
		{"a=b.csv", "a=b.csv", 0},
		{"./20=a.csv", "./20=a.csv", 0},
		{"0=a.csv", "0=a.csv", 0}, // no number of clients
		{"20=", "20=", 0},         // no file
	}
	for _, test := range tests {
		if name, clients := ParseName(test.arg); name != test.name || clients != test.clients {
			t.Errorf("%s: %s, %d, want %s, %d", test.arg, name, clients, test.name, test.clients)
		}
	}
}
