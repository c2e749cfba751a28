package report

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/poolsweep/poolsweep/analyze"
)

// openMetrics writes OpenMetrics 1.0 text. It keeps to what is Prometheus text
// as well: gauges only, without timestamps and exemplars; UNIT and EOF are
// comments there. So a node exporter's textfile collector and a Pushgateway
// take it, too. What is not known has no sample, and a family without samples
// is left out.
//
// See https://prometheus.io/docs/specs/om/open_metrics_spec/ and
// https://prometheus.io/docs/instrumenting/exposition_formats/.
func openMetrics(w io.Writer, d *Document) error {
	b := bufio.NewWriter(w)
	for _, f := range runFamilies(d) {
		f.write(b)
	}
	for _, g := range sweepGauges {
		f := family{name: g.name, unit: g.unit, help: g.help}
		for _, a := range d.Analyses {
			f.add(g.value(a), sweepLabels(a)...)
		}
		f.write(b)
	}
	f := family{name: "poolsweep_verdict_info", help: "What stopped the throughput and how sure the knee is; always 1."}
	for _, a := range d.Analyses {
		f.add(1, append(sweepLabels(a), "cause", string(a.Bottleneck.Cause), "confidence", string(a.Knee.Confidence))...)
	}
	f.write(b)
	for _, g := range stepGauges {
		f := family{name: g.name, unit: g.unit, help: g.help}
		for _, a := range d.Analyses {
			for _, s := range a.Steps {
				f.add(g.value(s), append(sweepLabels(a), "clients", strconv.Itoa(s.Clients))...)
			}
		}
		f.write(b)
	}
	fmt.Fprintln(b, "# EOF")
	return b.Flush()
}

// sweepGauges have a sample a sweep.
var sweepGauges = []struct {
	name, unit, help string
	value            func(*analyze.Analysis) analyze.Quantity
}{
	{"poolsweep_answer", "", "1 when a knee is named that may be acted on, else 0.", func(a *analyze.Analysis) analyze.Quantity {
		if a.Answer {
			return 1
		}
		return 0
	}},
	{"poolsweep_knee_clients", "clients", "Fewest connections that give the throughput of the plateau.",
		func(a *analyze.Analysis) analyze.Quantity { return known(a.Knee.Clients) }},
	{"poolsweep_knee_low_clients", "clients", "Lower end of the 95 % range of the knee.",
		func(a *analyze.Analysis) analyze.Quantity { return known(a.Knee.Low) }},
	{"poolsweep_knee_high_clients", "clients", "Upper end of the 95 % range of the knee.",
		func(a *analyze.Analysis) analyze.Quantity { return known(a.Knee.High) }},
	{"poolsweep_knee_requests_per_second", "requests_per_second", "Throughput at the knee, adjusted for changes of the machine's speed.",
		func(a *analyze.Analysis) analyze.Quantity {
			if a.Knee.Clients == 0 {
				return analyze.Unknown()
			}
			return a.Knee.QPS
		}},
	{"poolsweep_peak_clients", "clients", "Connections with the highest throughput.",
		func(a *analyze.Analysis) analyze.Quantity { return known(a.Knee.Peak) }},
	{"poolsweep_peak_requests_per_second", "requests_per_second", "Highest throughput, adjusted for changes of the machine's speed.",
		func(a *analyze.Analysis) analyze.Quantity { return a.Knee.PeakQPS }},
	{"poolsweep_pool_connections", "connections", "Recommended connections in all.",
		func(a *analyze.Analysis) analyze.Quantity { return known(a.Recommendation.Pool) }},
	{"poolsweep_pool_per_process_connections", "connections", "Recommended connections of each process.",
		func(a *analyze.Analysis) analyze.Quantity { return known(a.Recommendation.PerProcess) }},
}

// stepGauges have a sample a step.
var stepGauges = []struct {
	name, unit, help string
	value            func(analyze.Step) analyze.Quantity
}{
	{"poolsweep_throughput_requests_per_second", "requests_per_second", "Throughput of the median trial, as measured.",
		func(s analyze.Step) analyze.Quantity { return analyze.Quantity(s.QPS) }},
	{"poolsweep_latency_mean_seconds", "seconds", "Mean latency of the median trial.",
		func(s analyze.Step) analyze.Quantity { return s.Mean }},
	{"poolsweep_latency_p50_seconds", "seconds", "Median latency of the median trial.",
		func(s analyze.Step) analyze.Quantity { return s.P50 }},
	{"poolsweep_latency_p99_seconds", "seconds", "99th percentile of the latency of the median trial.",
		func(s analyze.Step) analyze.Quantity { return s.P99 }},
	{"poolsweep_latency_p999_seconds", "seconds", "99.9th percentile of the latency of the median trial.",
		func(s analyze.Step) analyze.Quantity { return s.P999 }},
	{"poolsweep_server_cpu_cores", "cores", "CPU of the server process during the median trial.",
		func(s analyze.Step) analyze.Quantity { return s.ServerCPU }},
	{"poolsweep_server_main_thread_cores", "cores", "CPU of the server's main thread during the median trial.",
		func(s analyze.Step) analyze.Quantity { return s.ServerMain }},
}

// runFamilies say which run it was.
func runFamilies(d *Document) []family {
	h := d.Header
	if h == nil {
		return nil
	}
	info := family{name: "poolsweep_run_info", help: "Version of poolsweep and the server that was swept; always 1."}
	info.add(1, "version", h.Build, "server", h.Server.Kind, "server_version", h.Server.Version)
	start := family{name: "poolsweep_run_start_time_seconds", unit: "seconds", help: "When the run began, in Unix time."}
	start.add(analyze.Quantity(float64(h.Started.UnixMilli()) / 1000))
	return []family{info, start}
}

// known returns a number of connections, of which 0 means none.
func known(n int) analyze.Quantity {
	if n == 0 {
		return analyze.Unknown()
	}
	return analyze.Quantity(n)
}

func sweepLabels(a *analyze.Analysis) []string {
	return []string{"test", a.Test, "depth", strconv.Itoa(a.Depth)}
}

// A family is a metric family of gauges; its unit, if it has one, ends its
// name.
type family struct {
	name, unit, help string
	samples          []string // lines
}

// add adds a sample with labels, names and values by turns, if its value is
// known.
func (f *family) add(value analyze.Quantity, labels ...string) {
	if !value.Known() {
		return
	}
	var pairs []string
	for i := 0; i < len(labels); i += 2 {
		pairs = append(pairs, labels[i]+`="`+labelEscaper.Replace(strings.ToValidUTF8(labels[i+1], "\uFFFD"))+`"`)
	}
	text := f.name
	if len(pairs) > 0 {
		text += "{" + strings.Join(pairs, ",") + "}"
	}
	f.samples = append(f.samples, text+" "+number(float64(value)))
}

// labelEscaper escapes what both formats want escaped in a label's value.
var labelEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// write writes the family; nothing without samples.
func (f *family) write(w io.Writer) {
	if len(f.samples) == 0 {
		return
	}
	fmt.Fprintf(w, "# TYPE %s gauge\n", f.name)
	if f.unit != "" {
		fmt.Fprintf(w, "# UNIT %s %s\n", f.name, f.unit)
	}
	fmt.Fprintf(w, "# HELP %s %s\n", f.name, f.help)
	for _, s := range f.samples {
		fmt.Fprintln(w, s)
	}
}
