package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/chart"
	"github.com/poolsweep/poolsweep/internal/compare"
	"github.com/poolsweep/poolsweep/sweep/load"
)

// sweepCharts are the charts of the i-th sweep of a document.
func sweepCharts(d *Document, i int) []*chart.Chart {
	a := d.Analyses[i]
	charts := chart.Sweep(d.Curves[i], a)
	if c := chart.Percentiles(a, distributions(d, i)); c != nil {
		charts = append(charts, c)
	}
	return charts
}

// distributions are the latencies of the rows of the knee and of the peak, as
// far as the result file is there.
func distributions(d *Document, i int) []chart.Distribution {
	a := d.Analyses[i]
	measured := d.measured(d.Curves[i])
	var all []chart.Distribution
	add := func(name string, clients int) {
		row := medianTrial(a, clients)
		if trials := measured[clients]; clients > 0 && row >= 0 && row < len(trials) {
			all = append(all, distribution(fmt.Sprintf("%s, %d clients", name, clients), trials[row].Measurement.Latency))
		}
	}
	if a.Knee.Clients == a.Knee.Peak {
		add("knee and peak", a.Knee.Peak)
		return all
	}
	add("knee", a.Knee.Clients)
	add("peak", a.Knee.Peak)
	return all
}

func distribution(name string, l *load.Latency) chart.Distribution {
	return chart.Distribution{Name: name, Count: l.Count(), Quantile: l.Quantile}
}

// surfaceChart is the chart of a surface.
func surfaceChart(d *Document, s analyze.Surface) *chart.Chart {
	var sweeps []*analyze.Analysis
	for _, k := range s.Depths {
		for _, a := range d.Analyses {
			if a.Test == s.Test && a.Depth == k.Depth {
				sweeps = append(sweeps, a)
				break
			}
		}
	}
	return chart.Surface(s.Test, sweeps)
}

// Plot writes each chart of the document into a folder, as SVG and as PNG, and
// returns the names of the files. The folder is made when it is not there;
// files of the same names are written over.
func Plot(folder string, d *Document) ([]string, error) {
	out := &plotter{folder: folder, used: make(map[string]bool)}
	for i, a := range d.Analyses {
		for _, c := range sweepCharts(d, i) {
			out.add(fmt.Sprintf("%s-depth-%d", fileName(a.Test), max(1, a.Depth)), c)
		}
	}
	for _, s := range analyze.Surfaces(d.Analyses) {
		out.add(fileName(s.Test), surfaceChart(d, s))
	}
	return out.names, out.err
}

// PlotComparison writes a chart for each test and depth that the first of the
// runs has, with the curves of all runs in it, as Plot does.
func PlotComparison(folder string, runs []compare.Run) ([]string, error) {
	out := &plotter{folder: folder, used: make(map[string]bool)}
	for _, first := range runs[0].Analyses {
		var all []chart.Member
		for _, r := range runs {
			for _, a := range r.Analyses {
				if a.Test == first.Test && a.Depth == first.Depth {
					all = append(all, chart.Member{Name: filepath.Base(r.Name), Analysis: a})
				}
			}
		}
		out.add(fmt.Sprintf("%s-depth-%d", fileName(first.Test), max(1, first.Depth)), chart.Overlay(first.Test, all))
	}
	return out.names, out.err
}

// A plotter writes charts into a folder and keeps the first error.
type plotter struct {
	folder string
	used   map[string]bool // names without extension
	names  []string
	err    error
}

// add writes a chart; nil is none.
func (p *plotter) add(prefix string, c *chart.Chart) {
	if c == nil || p.err != nil {
		return
	}
	if p.err = os.MkdirAll(p.folder, 0o755); p.err != nil {
		p.err = fmt.Errorf("plotting: %w", p.err)
		return
	}
	base := prefix + "-" + c.Name
	for n := 2; p.used[base]; n++ {
		base = fmt.Sprintf("%s-%s-%d", prefix, c.Name, n)
	}
	p.used[base] = true
	for extension, write := range map[string]func(io.Writer) error{".svg": c.WriteSVG, ".png": c.WritePNG} {
		if err := writeFile(filepath.Join(p.folder, base+extension), write); err != nil {
			p.err = fmt.Errorf("plotting: %w", err)
			return
		}
	}
	p.names = append(p.names, filepath.Join(p.folder, base+".png"), filepath.Join(p.folder, base+".svg"))
}

// WritePage writes the page of the document to a file, over one of that name.
func WritePage(path string, d *Document) error {
	if err := writeFile(path, func(w io.Writer) error { return htmlReport(w, d) }); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// maxFileName bounds the part of a file's name that a command of the user's
// own would make as long as itself.
const maxFileName = 40

// fileName returns the name of a test as part of a file's name: lower case,
// with a hyphen for whatever is no letter or digit.
func fileName(test string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(test) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= maxFileName {
			break
		}
	}
	if name := strings.Trim(b.String(), "-"); name != "" {
		return name
	}
	return "test"
}
