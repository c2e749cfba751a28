package report

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// openMetricsSamples reads text as OpenMetrics: samples by name and labels, as
// Prometheus names a series. It holds every family to its rules.
func openMetricsSamples(t *testing.T, text string) map[string]float64 {
	t.Helper()
	samples := make(map[string]float64)
	decoder := expfmt.NewDecoder(strings.NewReader(text), expfmt.NewFormat(expfmt.TypeOpenMetrics))
	for {
		f := new(dto.MetricFamily)
		err := decoder.Decode(f)
		if errors.Is(err, io.EOF) {
			return samples
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if f.GetUnit() != "" && !strings.HasSuffix(f.GetName(), "_"+f.GetUnit()) {
			t.Errorf("%s does not end in its unit %s", f.GetName(), f.GetUnit())
		}
		addSamples(t, samples, f)
	}
}

// addSamples adds those of a family, which must be gauges without timestamps:
// a textfile collector takes no others.
func addSamples(t *testing.T, samples map[string]float64, f *dto.MetricFamily) {
	t.Helper()
	if f.GetType() != dto.MetricType_GAUGE || f.GetHelp() == "" {
		t.Errorf("%s is a %s with the help %q", f.GetName(), f.GetType(), f.GetHelp())
	}
	for _, m := range f.GetMetric() {
		if m.TimestampMs != nil {
			t.Errorf("%s has a timestamp", f.GetName())
		}
		labels := model.Metric{model.MetricNameLabel: model.LabelValue(f.GetName())}
		for _, l := range m.GetLabel() {
			labels[model.LabelName(l.GetName())] = model.LabelValue(l.GetValue())
		}
		series := labels.String()
		if _, ok := samples[series]; ok {
			t.Errorf("%s stands there twice", series)
		}
		samples[series] = m.GetGauge().GetValue()
	}
}

// TestOpenMetrics: an OpenMetrics parser and the one of a node exporter's
// textfile collector read the same from each document.
func TestOpenMetrics(t *testing.T) {
	awkward := oneResult(t)
	awkward.Analyses[0].Test = "EVAL \"a\\b\"\n\xff"
	for name, d := range map[string]*Document{
		"one sweep": oneSweep(), "another tool's": twoDepths(), "result file": oneResult(t), "awkward names": awkward, "empty": {},
	} {
		text := write(t, "openmetrics", d)
		if !strings.HasSuffix(text, "# EOF\n") || strings.Contains(text, "\n\n") {
			t.Errorf("%s: does not end in EOF, or has an empty line", name)
		}
		open := openMetricsSamples(t, text)
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(text))
		if err != nil {
			t.Fatalf("%s as Prometheus text: %v", name, err)
		}
		plain := make(map[string]float64)
		for _, f := range families {
			addSamples(t, plain, f)
		}
		if diff := cmp.Diff(open, plain); diff != "" {
			t.Errorf("%s: -OpenMetrics +Prometheus text:\n%s", name, diff)
		}
	}
}

// TestOpenMetricsUnknown: there is no sample of what is not known.
func TestOpenMetricsUnknown(t *testing.T) {
	got := slices.Sorted(maps.Keys(openMetricsSamples(t, write(t, "openmetrics", twoDepths()))))
	for _, series := range got {
		if strings.Contains(series, "latency") || strings.Contains(series, "cpu") || strings.Contains(series, "run_") {
			t.Errorf("%s of another tool's throughput", series)
		}
	}
	test := twoDepths().Analyses[1].Test // still rises: no knee, no pool
	for _, family := range []string{"poolsweep_knee_clients", "poolsweep_knee_requests_per_second", "poolsweep_pool_connections"} {
		series := family + `{depth="16", test="` + test + `"}`
		if slices.Contains(got, series) {
			t.Errorf("%s without an answer", series)
		}
	}
}
