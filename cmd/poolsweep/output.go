package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/poolsweep/poolsweep/internal/report"
)

// outputFlags say in which forms a document is given.
type outputFlags struct {
	format, html, plot string
}

func (o *outputFlags) add(f *pflag.FlagSet) {
	f.StringVar(&o.format, "format", "table", "of standard output: "+strings.Join(report.Formats(), ", "))
	f.StringVar(&o.html, "html", "", "write the report as a page to this file as well")
	f.StringVar(&o.plot, "plot", "", "write each chart as SVG and PNG into this folder")
}

// alone names a form that was asked for and is of one result only, "" for none.
func (o *outputFlags) alone() string {
	switch {
	case !report.Joinable(o.format):
		return "--format " + o.format
	case o.html != "":
		return "--html"
	case o.plot != "":
		return "--plot"
	}
	return ""
}

// print prints the documents, with charts behind a table on a terminal, and
// writes the page and the charts that were asked for.
func (o *outputFlags) print(w *os.File, format report.Format, docs []*report.Document) error {
	out := bufio.NewWriter(w)
	for i, d := range docs {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := format(out, d); err != nil {
			return fmt.Errorf("printing the report: %w", err)
		}
		if width, _, err := term.GetSize(int(w.Fd())); err == nil && o.format == "table" {
			if err := report.TerminalCharts(out, d, width); err != nil {
				return fmt.Errorf("printing the charts: %w", err)
			}
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	for _, d := range docs {
		if err := o.write(d); err != nil {
			return err
		}
	}
	return nil
}

// write writes the page and the charts.
func (o *outputFlags) write(d *report.Document) error {
	if o.html != "" {
		if err := report.WritePage(o.html, d); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "poolsweep: page: %s\n", o.html)
	}
	if o.plot != "" {
		names, err := report.Plot(o.plot, d)
		if err != nil {
			return fmt.Errorf("writing the charts: %w", err)
		}
		fmt.Fprintf(os.Stderr, "poolsweep: %d charts in %s\n", len(names), o.plot)
	}
	return nil
}
