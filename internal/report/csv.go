package report

import (
	"encoding/csv"
	"io"
	"strconv"

	"github.com/poolsweep/poolsweep/analyze"
)

// csvColumns are the columns of --format csv, units in their names. Package
// importer reads them back.
var csvColumns = []string{
	"test", "depth", "clients", "trial", "median", "qps", "mean_ms", "min_ms", "p50_ms", "p99_ms", "p999_ms",
	"server_cpu_percent",
}

// csvReport writes one row a trial. A quantity that is not known is empty.
func csvReport(w io.Writer, d *Document) error {
	c := csv.NewWriter(w)
	if err := c.Write(csvColumns); err != nil {
		return err
	}
	for _, t := range d.trials() {
		if err := c.Write(csvRow(t)); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

func csvRow(t trialRow) []string {
	scaled := func(q analyze.Quantity, unit float64) string {
		if !q.Known() {
			return ""
		}
		return number(float64(q) * unit)
	}
	const ms, percent = 1e3, 100
	return []string{
		t.test, strconv.Itoa(t.depth), strconv.Itoa(t.clients),
		strconv.Itoa(t.index + 1), map[bool]string{true: "yes", false: "no"}[t.median],
		strconv.FormatFloat(t.QPS, 'g', -1, 64),
		scaled(t.Mean, ms), scaled(t.LatencyMin, ms), scaled(t.P50, ms), scaled(t.P99, ms), scaled(t.P999, ms),
		scaled(t.Load.ServerCPU, percent),
	}
}

// number prints x with the digits that survive a change of its unit.
func number(x float64) string { return strconv.FormatFloat(x, 'g', 12, 64) }
