// Package report prints what was measured and concluded: one document, one
// file a format. It judges nothing and changes no number but to round it for
// print; what is said in words comes from package analyze.
package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/sweep"
)

// A Document is what a report is made of. The same document gives the same
// bytes.
type Document struct {
	// Header is that of the result file; nil when the curves come from
	// another tool.
	Header *sweep.Header

	// Curves and Analyses belong together, one for each sweep.
	Curves   []analyze.Curve
	Analyses []*analyze.Analysis

	// Client is the library whose settings stand under each recommendation,
	// "all" for each of them; empty for none. Only the table prints them.
	Client string

	// Remarks are sentences that concern all sweeps.
	Remarks []string
}

// A Format writes a document.
type Format func(io.Writer, *Document) error

var formats = map[string]Format{
	"table": table,
	"json":  jsonReport,
	"csv":   csvReport,
}

// Formats returns the names of the formats, sorted.
func Formats() []string { return slices.Sorted(maps.Keys(formats)) }

// Named returns the format of that name.
func Named(name string) (Format, error) {
	f, ok := formats[name]
	if !ok {
		return nil, fmt.Errorf("unknown format %q; the formats are %s", name, strings.Join(Formats(), ", "))
	}
	return f, nil
}
