package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/poolsweep/poolsweep/analyze"
)

// benchfmt writes the Go benchmark format, a line a trial, so that benchstat
// compares two runs as it is. ns/op is the time of a request as package testing
// counts it for a parallel benchmark, 1/throughput; latencies have units of
// their own.
//
// benchstat compares only what has the same configuration lines. Hence only
// what makes a comparison void stands in one; server, version and time, which
// one compares across, stand in comments.
//
// See https://go.dev/design/14313-benchmark-format.
func benchfmt(w io.Writer, d *Document) error {
	b := bufio.NewWriter(w)
	if h := d.Header; h != nil {
		fmt.Fprintf(b, "# poolsweep %s, %s, %s\n", h.Build, h.Started.UTC().Format("2006-01-02 15:04:05 MST"), h.Server.Title())
		configuration(b, "goos", h.Host.OS)
		configuration(b, "goarch", h.Host.Arch)
	}
	configuration(b, "pkg", "poolsweep")
	fmt.Fprintln(b, "Unit requests/s better=higher")
	for _, t := range d.trials() {
		// A benchmark without a number of iterations would not be one.
		fmt.Fprintf(b, "Benchmark%s %d %s ns/op %s requests/s",
			capital(stepName(t.test, t.clients, t.depth)), max(1, t.requests), number(1e9/t.QPS), number(t.QPS))
		for _, l := range []struct {
			unit  string
			value analyze.Quantity
		}{{"p50-ns/op", t.P50}, {"p99-ns/op", t.P99}, {"p99.9-ns/op", t.P999}} {
			if l.value.Known() {
				fmt.Fprintf(b, " %s %s", number(1e9*float64(l.value)), l.unit)
			}
		}
		fmt.Fprintln(b)
	}
	return b.Flush()
}

// configuration writes a configuration line, if there is a value.
func configuration(w io.Writer, key, value string) {
	if value = strings.TrimSpace(value); value != "" {
		fmt.Fprintf(w, "%s: %s\n", key, value)
	}
}

// capital returns name as it may follow "Benchmark": not with a small letter.
func capital(name string) string {
	r, n := utf8.DecodeRuneInString(name)
	return string(unicode.ToUpper(r)) + name[n:]
}
