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
	"test", "depth", "clients", "qps", "mean_ms", "min_ms", "p50_ms", "p99_ms", "p999_ms", "server_cpu_percent",
}

// csvReport writes one row a trial. A quantity that is not known is empty.
func csvReport(w io.Writer, d *Document) error {
	c := csv.NewWriter(w)
	if err := c.Write(csvColumns); err != nil {
		return err
	}
	for _, curve := range d.Curves {
		for _, p := range curve.Points {
			for _, t := range p.Trials {
				if err := c.Write(csvRow(curve, p.Clients, t)); err != nil {
					return err
				}
			}
		}
	}
	c.Flush()
	return c.Error()
}

func csvRow(c analyze.Curve, clients int, t analyze.Trial) []string {
	number := func(q analyze.Quantity, unit float64) string {
		if !q.Known() {
			return ""
		}
		return strconv.FormatFloat(float64(q)*unit, 'g', 12, 64)
	}
	const ms, percent = 1e3, 100
	return []string{
		c.Test, strconv.Itoa(max(1, c.Depth)), strconv.Itoa(clients),
		strconv.FormatFloat(t.QPS, 'g', -1, 64),
		number(t.Mean, ms), number(t.LatencyMin, ms), number(t.P50, ms), number(t.P99, ms), number(t.P999, ms),
		number(t.Load.ServerCPU, percent),
	}
}
