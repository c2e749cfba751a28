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
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("plotting: %w", err)
	}
	var names []string
	used := make(map[string]bool)
	add := func(prefix string, c *chart.Chart) error {
		base := prefix + "-" + c.Name
		for n := 2; used[base]; n++ {
			base = fmt.Sprintf("%s-%s-%d", prefix, c.Name, n)
		}
		used[base] = true
		for extension, write := range map[string]func(io.Writer) error{".svg": c.WriteSVG, ".png": c.WritePNG} {
			if err := writeFile(filepath.Join(folder, base+extension), write); err != nil {
				return fmt.Errorf("plotting: %w", err)
			}
		}
		names = append(names, filepath.Join(folder, base+".png"), filepath.Join(folder, base+".svg"))
		return nil
	}
	for i, a := range d.Analyses {
		for _, c := range sweepCharts(d, i) {
			if err := add(fmt.Sprintf("%s-depth-%d", fileName(a.Test), max(1, a.Depth)), c); err != nil {
				return names, err
			}
		}
	}
	for _, s := range analyze.Surfaces(d.Analyses) {
		if c := surfaceChart(d, s); c != nil {
			if err := add(fileName(s.Test), c); err != nil {
				return names, err
			}
		}
	}
	return names, nil
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
