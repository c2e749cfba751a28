package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/sweep"
	"github.com/poolsweep/poolsweep/sweep/load"
)

// hlog writes the histograms of all trials as a log in HdrHistogram's format
// 1.3, a line a trial, by their time, latencies in nanoseconds. The tag of a
// line is the step's name. A line begins when the trial's first slice did; its
// interval is the time measured, so that count over interval is the throughput
// although the slices of a trial are spread over the run.
func hlog(w io.Writer, d *Document) error {
	if d.Result == nil {
		return errors.New("hlog needs the latency histograms of a poolsweep result file")
	}
	intervals, err := d.intervals()
	if err != nil {
		return err
	}
	h := d.Result.Header
	// The log's own start has whole seconds, and its lines count from there.
	base := h.Started.Truncate(time.Second).UnixMilli()
	var text bytes.Buffer // takes everything, so that the first errors can be passed over
	out := hdrhistogram.NewHistogramLogWriter(&text)
	out.SetBaseTime(base)
	_ = out.OutputComment(fmt.Sprintf("[poolsweep %s: %s]", h.Build, h.Server.Title()))
	_ = out.OutputLogFormatVersion()
	_ = out.OutputBaseTime(base)
	_ = out.OutputStartTime(base)
	_ = out.OutputLegend()
	for _, interval := range intervals {
		if err := out.OutputIntervalHistogram(interval); err != nil {
			return fmt.Errorf("hlog: %w", err)
		}
	}
	_, err = text.WriteTo(w)
	return err
}

// intervals returns the histogram of each trial with its tag and time, in the
// order of time that readers of a log rely on.
func (d *Document) intervals() ([]*hdrhistogram.Histogram, error) {
	var all []*hdrhistogram.Histogram
	for _, c := range d.Curves {
		steps := d.measured(c)
		for _, p := range c.Points {
			for _, t := range steps[p.Clients] {
				h, err := histogram(t.Measurement.Latency)
				if err != nil {
					return nil, err
				}
				start := t.Slices[0].Measurement.Start
				h.SetTag(stepName(c.Test, p.Clients, max(1, c.Depth)))
				h.SetStartTimeMs(start.UnixMilli())
				h.SetEndTimeMs(start.UnixMilli() + t.Measurement.Elapsed.Milliseconds())
				all = append(all, h)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *hdrhistogram.Histogram) int {
		return cmp.Compare(a.StartTimeMs(), b.StartTimeMs())
	})
	return all, nil
}

const (
	hgrmUnit  = 1e6 // ns in the milliseconds that HdrHistogram's plotter expects
	hgrmTicks = 5   // per half distance to 100 %, as HistogramLogProcessor writes
)

// hgrm writes the percentile distribution of one trial in milliseconds, as
// HdrHistogram's plotters take it: a file is a line of the plot. It is that of
// the median trial of the step that the goal asks for, the knee or the peak.
func hgrm(w io.Writer, d *Document) error {
	if d.Result == nil {
		return errors.New("hgrm needs the latency histograms of a poolsweep result file")
	}
	if len(d.Analyses) != 1 {
		return fmt.Errorf("hgrm holds one distribution and there are %d sweeps (%s); choose one with analyze --test and --depth, or take hlog",
			len(d.Analyses), sweepNames(d.Analyses))
	}
	a := d.Analyses[0]
	clients, what := a.Knee.Clients, "knee"
	if a.Goal == analyze.GoalPeak {
		clients, what = a.Knee.Peak, "peak"
	}
	if clients == 0 {
		return fmt.Errorf("hgrm needs a knee, and none can be named (%s); --goal peak writes the distribution at the peak", a.Reason)
	}
	t, n, err := d.medianOf(d.Curves[0], a, clients)
	if err != nil {
		return err
	}
	h, err := histogram(t.Measurement.Latency)
	if err != nil {
		return err
	}
	// The library tests only the first of its writes to the end.
	var text bytes.Buffer
	if _, err := h.PercentilesPrint(&text, hgrmTicks, hgrmUnit); err != nil {
		return err
	}
	// Behind the distribution, as some readers take the first line for its
	// header.
	fmt.Fprintf(&text, "#[%s: the %s, trial %d, latency in milliseconds]\n", stepName(a.Test, clients, a.Depth), what, n+1)
	_, err = text.WriteTo(w)
	return err
}

// medianOf returns the trial that stands for a step, and its index.
func (d *Document) medianOf(c analyze.Curve, a *analyze.Analysis, clients int) (sweep.Trial, int, error) {
	trials, n := d.measured(c)[clients], medianTrial(a, clients)
	if n < 0 || n >= len(trials) {
		return sweep.Trial{}, 0, fmt.Errorf("hgrm: the result file has no trial of %d clients", clients)
	}
	return trials[n], n, nil
}

func sweepNames(all []*analyze.Analysis) string {
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = fmt.Sprintf("%s at depth %d", a.Test, a.Depth)
	}
	return strings.Join(names, ", ")
}

// histogram returns a copy of a distribution, values in nanoseconds. It takes
// the way through the result file's form, the only one in which package load
// gives a histogram out.
func histogram(l *load.Latency) (*hdrhistogram.Histogram, error) {
	text, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	var form struct {
		HDR string `json:"hdr"`
	}
	if err := json.Unmarshal(text, &form); err != nil {
		return nil, fmt.Errorf("reading a histogram: %w", err)
	}
	if form.HDR == "" { // no request was answered
		return hdrhistogram.New(1, int64(time.Minute), 3), nil
	}
	h, err := hdrhistogram.Decode([]byte(form.HDR))
	if err != nil {
		return nil, fmt.Errorf("reading a histogram: %w", err)
	}
	return h, nil
}
