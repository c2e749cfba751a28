package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/poolsweep/poolsweep/internal/compare"
	"github.com/poolsweep/poolsweep/internal/report"
)

// compareValues prints how the sweeps differ that --vary has made of each
// workload: each value is a run of its own, compared with the first.
func compareValues(w io.Writer, d *report.Document) error {
	v := d.Header.Plan.Vary
	var runs []compare.Run
	for _, value := range v.Values {
		run := compare.Run{Name: v.Setting + " " + value, Header: d.Header}
		for i, c := range d.Curves {
			name, ok := strings.CutSuffix(c.Test, ", "+run.Name)
			if !ok {
				continue
			}
			a := *d.Analyses[i]
			c.Test, a.Test = name, name
			run.Curves, run.Analyses = append(run.Curves, c), append(run.Analyses, &a)
		}
		if len(run.Curves) > 0 {
			runs = append(runs, run)
		}
	}
	if len(runs) < 2 {
		return nil // it was interrupted before
	}
	print, err := report.ComparisonNamed("table")
	if err == nil {
		_, err = fmt.Fprintln(w)
	}
	if err == nil {
		err = print(w, compare.Runs(runs))
	}
	if err != nil {
		return fmt.Errorf("printing the comparison: %w", err)
	}
	return nil
}
