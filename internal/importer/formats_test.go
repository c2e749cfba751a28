package importer

import (
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A textCase is a file that is no sample: the wanted lines, of render, can be
// read in its text.
type textCase struct {
	name string
	file string // name of the source, or N=NAME
	text string
	want []string
}

func checkTexts(t *testing.T, cases []textCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			checkRender(t, readText(t, c.file, c.text), c.want...)
		})
	}
}

func TestRedisBenchmark(t *testing.T) {
	checkTexts(t, []textCase{
		{"depth and clients from the command, CPU of one command only", "x.txt", `
# server CPU: 50%
$ redis-benchmark -c 8 -P 16 -q -t set
SET: 100.00 requests per second, p50=0.100 msec
$ redis-benchmark -q -t set
SET: 200.00 requests per second
`, []string{"SET P1 50: 200", "SET P16 8: 100 p50=0.1 cpu=0.5"}},

		{"CSV behind set -x", "x.txt", `
+ redis-benchmark -c 1 --csv
"SET","100.00"
+ ./valkey-benchmark -c 2 --csv
"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
"SET","200.00","0.024","0.000","0.023","0.047","0.079","2.159"
`, []string{"SET P1 1: 100", "SET P1 2: 200 mean=0.024 p50=0.023 p99=0.079"}},

		{"CSV of 4.0 has two columns", "5=x.csv", "\"PING_INLINE\",\"87719.30\"\n\"MSET (10 keys)\",\"50000.00\"\n",
			[]string{"MSET (10 keys) P1 5: 50000", "PING_INLINE P1 5: 87719.3"}},

		{"a shell variable is no client count", "x.txt", "for c in 1 2; do redis-benchmark -c $c -q; done\nSET: 5.00 requests per second\n",
			[]string{"x.txt:2: 1 result: the file does not state its number of clients; if it was 20, give it as 20=x.txt"}},

		// 4.0: 98 % were below 14 ms, so the 99th percentile is in [14, 15);
		// half were below 2 ms, where whole ms say little.
		{"histogram of 4.0", "x.txt", `
====== GET ======
  10 parallel clients

50.00% <= 2 milliseconds
60.00% <= 3 milliseconds
98.00% <= 14 milliseconds
99.50% <= 16 milliseconds
100.00% <= 16 milliseconds
500.00 requests per second
`, []string{"GET P1 10: 500 p99=15 p999=17"}},

		{"wrong numbers and an interrupted run", "x.txt", `
====== SET ======
  10 parallel clients
inf requests per second
====== GET ======
  ten parallel clients
  throughput summary: 0.00 requests per second
====== INCR ======
  10 parallel clients
99.00 requests per second
Error: Connection reset by peer
====== LPUSH ======
  10 parallel clients
`, []string{"INCR P1 10: 99",
			`x.txt:4: throughput "inf" is not a number above 0`,
			`x.txt:6: "ten" is not a number of clients`,
			`x.txt:7: throughput "0.00" is not a number above 0`,
			"x.txt:11: redis-benchmark reports: Error: Connection reset by peer",
			"x.txt:12: LPUSH has no throughput; was the run interrupted?"}},

		{"only progress", "x.txt", "SET: rps=0.0 (overall: -nan) avg_msec=-nan (overall: -nan)\r",
			[]string{"x.txt: redis-benchmark output without a result; was the run interrupted?"}},

		{"broken rows of redis-benchmark --csv", "1=x.csv", "\"test\",\"rps\",\"avg_latency_ms\"\n\"SET\",\"1.0\"\n\"GET\",\"nan\",\"1\"\n\"INCR\",\"5\",\"1\"\n",
			[]string{"INCR P1 1: 5 mean=1",
				"x.csv:2: 2 columns under a header of 3",
				`x.csv:3: throughput "nan" of "GET" is not a number above 0`}},
	})
}

func TestMemtier(t *testing.T) {
	checkTexts(t, []textCase{
		{"each run is a trial, not the best and the average", "x.txt", memtierText("RUN #1 RESULTS", 10) +
			memtierTable("RUN #2 RESULTS", 12) + memtierTable("BEST RUN RESULTS", 12) + memtierTable("AGGREGATED AVERAGE RESULTS (2 runs)", 11),
			[]string{"memtier GET P1 6: 10 mean=1", "memtier GET P1 6: 12 mean=1"}},

		{"the average where there is nothing else", "x.txt", memtierText("BEST RUN RESULTS", 12) +
			memtierTable("WORST RUN RESULTS", 10) + memtierTable("AGGREGATED AVERAGE RESULTS (2 runs)", 11),
			[]string{"memtier GET P1 6: 11 mean=1",
				"x.txt:23: only the average of several runs is in the file; --print-all-runs would give a trial for each"}},

		{"pipeline from the command, two calls in a file", "x.txt",
			"$ memtier_benchmark --pipeline=4\n" + memtierText("ALL STATS", 10) + "$ memtier_benchmark\n" + memtierText("ALL STATS", 5),
			[]string{"memtier GET P1 6: 5 mean=1", "memtier GET P4 6: 10 mean=1"}},

		{"JSON with broken parts", "x.json", `
{"configuration": {"threads": 2, "clients": 3, "pipeline": 8},
 "ALL STATS": {"Runtime": {"Total duration": 5}, "Gets": {"Ops/sec": 7}, "GET": [{"<=msec": 1}],
  "Totals": {"Ops/sec": 7, "Latency": 2, "Percentile Latencies": {"Histogram log format": {"Compressed Histogram": "HISTFAAA"}}}}}
{"ALL STATS": {"Totals": {"Ops/sec": nan}}}
`, []string{"memtier GET P8 6: 7 mean=2",
			"x.json:2: histogram of the totals: encoded histogram too short: got 6 bytes, need at least 8",
			"x.json:5: not the JSON of memtier_benchmark: invalid character 'a' in literal null (expecting 'u')"}},
	})
}

func TestYCSB(t *testing.T) {
	checkTexts(t, []textCase{
		{"status lines of one client are one trial", "x.txt", `
Command line: -db site.ycsb.db.RedisClient -threads 8 -t
2025-03-19 00:00:00:000 0 sec: 0 operations; est completion in 0 second
2025-03-19 00:00:10:000 10 sec: 1000 operations; 100.0 current ops/sec; [READ: Count=1000, Max=9, Min=2, Avg=5, 90=6, 99=8, 99.9=9]
2025-03-19 00:00:20:000 20 sec: 2200 operations; 120.0 current ops/sec; [READ: Count=1200, Max=9, Min=1, Avg=5, 90=6, 99=8, 99.9=9]
`, []string{"YCSB READ P1 8: 120 mean=0.005 min=0.001"}},

		{"clients one after another are trials", "4=x.txt", `
2025-03-19 00:00:10:000 10 sec: 1000 operations; 100.0 current ops/sec; [READ: Count=1000, Max=9, Min=2, Avg=5, 99=8]
2025-03-19 00:00:30:000 10 sec: 1100 operations; 110.0 current ops/sec; [READ: Count=1100, Max=9, Min=2, Avg=5, 99=8]
`, []string{"YCSB READ P1 4: 100 mean=0.005 min=0.002 p99=0.008", "YCSB READ P1 4: 110 mean=0.005 min=0.002 p99=0.008"}},

		// Mean over both kinds: (300·10 + 100·30) / 400 = 15 µs.
		{"a summary", "x.txt", `
[OVERALL], RunTime(ms), 4000
[OVERALL], Throughput(ops/sec), 100.0
[TOTAL_GCs], Count, 2
[READ], Operations, 300
[READ], AverageLatency(us), 10
[READ], 99thPercentileLatency(us), 20
[READ], Return=OK, 300
[CLEANUP], Operations, 5
[CLEANUP], AverageLatency(us), 1000
[UPDATE], Operations, 100
[UPDATE], AverageLatency(us), 30
[UPDATE], Return=ERROR, 3
`, []string{"YCSB READ+UPDATE P1 5: 100 mean=0.015",
			"x.txt:13: 3 operations of UPDATE ended with ERROR; they count in the throughput"}},

		{"summaries without times add up, and that is said", "x.txt", `
[OVERALL], RunTime(ms), 4000
[OVERALL], Throughput(ops/sec), 100.0
[READ], Operations, 400
[READ], AverageLatency(us), 10
[READ], 99thPercentileLatency(us), 20
[CLEANUP], Operations, 5
[OVERALL], RunTime(ms), 4000
[OVERALL], Throughput(ops/sec), 110.5
[READ], Operations, 400
[READ], AverageLatency(us), 20
[CLEANUP], Operations, 5
`, []string{"YCSB READ P1 10: 210.5 mean=0.015",
			"x.txt:2: 2 clients are taken for running side by side, their throughputs added; if they ran one after another, give each a file of its own"}},
	})
}

func TestJMH(t *testing.T) {
	checkTexts(t, []textCase{
		{"threads of the log, parameters, units, modes", "x.txt", `
# JMH version: 1.37
# Threads: 4 threads, will synchronize iterations
# Run complete. Total time: 00:00:10

Benchmark       (clients)  (size)   Mode  Cnt  Score   Error   Units
Redis.get               8      64  thrpt       2.500          ops/ms
Redis.get               8      64   avgt       0.500           ms/op
Redis.get:·gc           8      64  thrpt    2  3.000 ± 1.000  MB/sec
Redis.get               8      65  thrpt    3  0.100 ± 9.000  ops/ms
Redis.get               8      66  thrpt    x  0.100 ± 9.000  ops/ms
Benchmark   Mode  Cnt  Score   Error   Units
Redis.set  thrpt    1  1.000          ops/ms
`, []string{"Redis.get 64 P1 8: 2500", "Redis.get 65 P1 8: 100", "Redis.set P1 4: 1000",
			"x.txt:8: mode avgt of Redis.get is not a throughput; run it with -bm thrpt",
			"x.txt:10: the spread of 3 iterations of Redis.get cannot be told from this error: they count as one trial",
			`x.txt:11: "x" is not a plausible count of iterations`}},
	})
}

func TestJMeter(t *testing.T) {
	checkTexts(t, []textCase{
		// Ramp-up (4 active) is left out: (3000 + 3300) / 60 s.
		{"intervals at all threads", "x.txt", `
Created the tree successfully
summary +   1000 in 00:00:30 =   33.3/s Avg:    20 Min:     0 Max:    26 Err:     0 (0.00%) Active: 4 Started: 4 Finished: 0
summary +   3000 in 00:00:30 =  100.0/s Avg:    20 Min:     0 Max:    26 Err:     0 (0.00%) Active: 10 Started: 10 Finished: 0
summary =   4000 in 00:01:00 =   66.7/s Avg:    20 Min:     0 Max:    26 Err:     0 (0.00%)
summary +   3300 in 00:00:30 =  110.0/s Avg:    20 Min:     0 Max:    26 Err:     3 (0.09%) Active: 10 Started: 10 Finished: 0
summary =   7300 in 00:01:30 =   81.1/s Avg:    20 Min:     0 Max:    26 Err:     3 (0.04%)
summary +    100 in 00:00:01 =  100.0/s Avg:    20 Min:     0 Max:    26 Err:     0 (0.00%) Active: 0 Started: 10 Finished: 10
summary =   7400 in 00:01:31 =   81.3/s Avg:    20 Min:     0 Max:    26 Err:     3 (0.04%)
`, []string{"JMeter P1 10: 105 mean=20",
			"x.txt:4: 3 of 6300 samples were errors; they count in the throughput"}},

		{"totals of one run", "3=x.txt", `
summary =   1000 in 00:00:10 =  100.0/s Avg:    20 Min:     0 Max:    26 Err:     0 (0.00%)
summary =   2000 in 00:00:20 =  100.0/s Avg:    20 Min:     0 Max:    26 Err:     0 (0.00%)
summary = what
`, []string{"JMeter P1 3: 100 mean=20", "x.txt:4: not a summary line of JMeter: summary = what"}},
	})
}

func TestPlainCSV(t *testing.T) {
	checkTexts(t, []textCase{
		{"columns in any order, blank cells, other units", "x.csv", "Depth;test;Throughput;Connections;p99_us;mean_s;p50_ms\n4;GET;10.5;3;2000;0.001;\n;GET;1;3;1;1;1\n",
			[]string{"GET P4 3: 10.5 mean=1 p99=2", `x.csv:3: column 1: "" is not a pipeline depth, 1 or more`}},

		{"trials and latencies do not go together", "x.csv", "clients,qps1,qps2,p99_ms,foo,p99\n1,10,,3,4,5\n2,20,21,3,4,5\n3,0,1,1,1,1\n4,,,1,1,1\n",
			[]string{"x P1 1: 10 p99=3", "x P1 2: 20", "x P1 2: 21",
				`x.csv:1: column "foo" is not known and not used; latencies need their unit, as in p99_ms`,
				`x.csv:1: column "p99" is not known and not used; latencies need their unit, as in p99_ms`,
				"x.csv:1: the latencies are not used: which of the 2 trials they belong to is not stated",
				`x.csv:4: column 2: "0" is not a throughput above 0`,
				"x.csv:5: no throughput"}},

		{"without a header", "x.csv", "# comment\n1,10\n2,20,21\n3\n4,40,41\n",
			[]string{"x P1 1: 10", "x P1 2: 20", "x P1 4: 40",
				"x.csv:3: without a header only the first two columns are used, as clients and throughput; name them, as in clients,qps1,qps2 or clients,qps,p99_ms",
				"x.csv:4: not a row of two or more columns: 3"}},

		{"with quotes is not redis-benchmark's", "x.csv", "\"test\",\"clients\",\"qps\"\n\"GET\",\"10\",\"35000\"\n",
			[]string{"GET P1 10: 35000"}},
	})
}

// memtierText is the output of memtier with two threads of three connections
// and one table.
func memtierText(title string, qps int) string {
	return "2         Threads\n3         Connections per thread\n100       Requests per client\n\n\n" + memtierTable(title, qps)
}

func memtierTable(title string, qps int) string {
	return strings.ReplaceAll(title+`
==========================================
Type         Ops/sec   Avg. Latency     KB/sec
------------------------------------------
Gets         QPS.00      1.00000       5.00
Totals       QPS.00      1.00000       5.00
`, "QPS", strconv.Itoa(qps))
}

// The percentiles that memtier printed are those of its histogram: without
// them the file reads the same.
func TestMemtierHistogram(t *testing.T) {
	const name = "memtier-2.3-c110.json"
	want, err := Read([]Source{source(t, name)})
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(source(t, name).R)
	if err != nil {
		t.Fatal(err)
	}
	bare := regexp.MustCompile(`"p\d\d\.\d\d"`).ReplaceAllString(string(text), `"no"`)
	checkRender(t, readText(t, name, bare), strings.Split(strings.TrimSpace(render(want)), "\n")...)
}

// Mean, standard deviation and JMH's error of the trials that stand for a row
// are those of the row.
func TestJMHTrials(t *testing.T) {
	for _, n := range []int{2, 3, 4, 5, 10, 25} {
		const mean, halfWidth = 147567.633, 23428.804
		trials := jmhTrials(mean, halfWidth, n)
		if len(trials) != n {
			t.Fatalf("%d trials, want %d", len(trials), n)
		}
		sum, squares := 0.0, 0.0
		for _, x := range trials {
			sum += x
		}
		for _, x := range trials {
			squares += (x - sum/float64(n)) * (x - sum/float64(n))
		}
		s := math.Sqrt(squares / float64(n-1))
		got := studentT(0.999, n-1) * s / math.Sqrt(float64(n))
		if math.Abs(sum/float64(n)/mean-1) > 1e-12 || math.Abs(got/halfWidth-1) > 1e-9 {
			t.Errorf("n %d: mean %v ± %v, want %v ± %v", n, sum/float64(n), got, mean, halfWidth)
		}
	}
	for _, c := range []struct {
		halfWidth float64
		n         int
	}{{1, 1}, {math.NaN(), 3}, {0, 3}, {-1, 3}, {1e9, 3}, {math.Inf(1), 3}} {
		if trials := jmhTrials(100, c.halfWidth, c.n); len(trials) != 1 || trials[0] != 100 {
			t.Errorf("100 ± %v of %d: %v, want the mean alone", c.halfWidth, c.n, trials)
		}
	}
}

// Values of any table of Student's t, two-sided 99.9 % and 95 %.
func TestStudentT(t *testing.T) {
	tests := []struct {
		probability float64
		df          int
		want        float64
	}{
		{0.999, 1, 636.619}, {0.999, 2, 31.599}, {0.999, 3, 12.924}, {0.999, 4, 8.610},
		{0.999, 9, 4.781}, {0.999, 24, 3.745}, {0.95, 5, 2.571}, {0.95, 10, 2.228}, {0.95, 30, 2.042},
	}
	for _, test := range tests {
		if got := studentT(test.probability, test.df); math.Abs(got-test.want) > 6e-4 {
			t.Errorf("t(%v, %d) = %.4f, want %v", test.probability, test.df, got, test.want)
		}
	}
}
