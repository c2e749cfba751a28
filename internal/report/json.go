package report

import (
	"encoding/json"
	"io"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/sweep"
)

// jsonDocument is the form of --format json. A list without entries is [] and
// never null.
type jsonDocument struct {
	Header   *sweep.Header           `json:"header"` // null for other tools' results
	Remarks  []string                `json:"remarks"`
	Analyses []*analyze.Analysis     `json:"analyses"`
	Surfaces []analyze.Surface       `json:"surfaces"`
	Rates    []*analyze.RateAnalysis `json:"rates"`
}

func jsonReport(w io.Writer, d *Document) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(jsonDocument{
		Header:   d.Header,
		Remarks:  append([]string{}, d.remarks()...),
		Analyses: append([]*analyze.Analysis{}, d.Analyses...),
		Surfaces: analyze.Surfaces(d.Analyses),
		Rates:    append([]*analyze.RateAnalysis{}, d.Rates...),
	})
}
