package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/importer"
	"github.com/poolsweep/poolsweep/internal/report"
	"github.com/poolsweep/poolsweep/sweep"
)

func analyzeCommand() *cobra.Command {
	var answer answerFlags
	var sweeps selection
	c := &cobra.Command{
		Use:   "analyze FILE...",
		Short: "Conclude again from result files, ours or another tool's",
		Long: `Analyze prints the verdict and the report for any results: those of poolsweep run,
and the output of redis-benchmark, valkey-benchmark, memtier_benchmark, YCSB, JMH
and JMeter, or a CSV file with the columns clients and qps. The format is found
by what is in the file. A folder stands for all files in it.

Where a file does not say how many clients it was measured with, as CSV output of
redis-benchmark, say it with N=FILE.`,
		Example: `  poolsweep analyze poolsweep-20261201-120000.jsonl --goal peak
  poolsweep analyze 10=c10.csv 20=c20.csv 40=c40.csv
  poolsweep analyze results/ --format json
  poolsweep analyze old.jsonl --html report.html --plot charts
  poolsweep analyze old.jsonl --format benchfmt
  poolsweep analyze old.jsonl --format hgrm --test GET --depth 1`,
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			format, err := answer.check()
			if err != nil {
				return usage(err)
			}
			return analyzeFiles(args, answer, sweeps, format)
		},
	}
	var groups []flagGroup
	answer.add(group(&groups, "Answer"))
	f := group(&groups, "Output")
	answer.output.add(f)
	f.StringVar(&sweeps.test, "test", "", "only the sweeps of this test, named as in the report")
	f.IntVar(&sweeps.depth, "depth", 0, "only the sweeps at this pipeline depth")
	useGroups(c, groups)
	return c
}

// analyzeFiles prints a document for each of our result files and one for
// what came from other tools.
func analyzeFiles(args []string, answer answerFlags, sweeps selection, format report.Format) error {
	sources, err := openFiles(args)
	if err != nil {
		return err
	}
	var docs []*report.Document
	var foreign []importer.Source
	for _, s := range sources {
		text := s.R.(*bytes.Reader)
		if !isResult(text) {
			foreign = append(foreign, s)
			continue
		}
		res, err := sweep.Read(text)
		if err != nil {
			// What stands before the damage is still good.
			fmt.Fprintf(os.Stderr, "poolsweep: %s: %v\n", s.Name, err)
		}
		if res == nil || len(res.Slices) == 0 {
			return fmt.Errorf("analyzing %s: it holds no measurement", s.Name)
		}
		if curves := sweeps.of(res.Curves()); len(curves) > 0 {
			docs = append(docs, answer.document(res, curves))
		}
	}
	if len(foreign) > 0 {
		imported, err := importer.Read(foreign)
		if err != nil {
			return err
		}
		for _, p := range imported.Problems {
			fmt.Fprintf(os.Stderr, "poolsweep: %s\n", p)
		}
		if curves := sweeps.of(imported.Curves); len(curves) > 0 {
			docs = append(docs, answer.document(nil, curves))
		}
	}
	switch {
	case len(docs) == 0 && sweeps != (selection{}):
		return fmt.Errorf("analyzing: no file holds a sweep of %s", sweeps)
	case len(docs) == 0:
		return errors.New("analyzing: no file holds a throughput at a known number of clients")
	case len(docs) > 1 && answer.output.alone() != "":
		return fmt.Errorf("analyzing: %s is of one result, and the files hold %d; give one at a time", answer.output.alone(), len(docs))
	}
	rated := slices.ContainsFunc(docs, func(d *report.Document) bool { return len(d.Rates) > 0 })
	if err := answer.checkSLO(rated); err != nil {
		return usage(err)
	}
	if err := answer.output.print(os.Stdout, format, docs); err != nil {
		return err
	}
	for _, d := range docs {
		if err := answered(d.Analyses); err != nil {
			return err
		}
	}
	return nil
}

// A selection is which sweeps to conclude from; the zero value is all.
type selection struct {
	test  string // "" is any
	depth int    // 0 is any
}

// of returns the curves of the sweeps that are selected.
func (s selection) of(curves []analyze.Curve) []analyze.Curve {
	var chosen []analyze.Curve
	for _, c := range curves {
		if (s.test == "" || strings.EqualFold(s.test, c.Test)) && (s.depth == 0 || s.depth == max(1, c.Depth)) {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

func (s selection) String() string {
	var parts []string
	if s.test != "" {
		parts = append(parts, "--test "+s.test)
	}
	if s.depth != 0 {
		parts = append(parts, fmt.Sprintf("--depth %d", s.depth))
	}
	return strings.Join(parts, " ")
}

// isResult reports whether the text is one of our result files.
func isResult(r *bytes.Reader) bool {
	head := make([]byte, 64)
	n, _ := r.ReadAt(head, 0)
	return bytes.HasPrefix(head[:n], []byte(`{"header":`))
}

// maxFileBytes bounds a file: a sweep of a thousand steps has 100 MB.
const maxFileBytes = 512 << 20

// openFiles reads the files that the arguments name.
func openFiles(args []string) ([]importer.Source, error) {
	var sources []importer.Source
	add := func(name string, clients int) error {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		if info.Size() > maxFileBytes {
			return fmt.Errorf("%s has %d bytes, more than any result file", name, info.Size())
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		sources = append(sources, importer.Source{Name: name, Clients: clients, R: bytes.NewReader(text)})
		return nil
	}
	for _, arg := range args {
		pattern, clients := importer.ParseName(arg)
		names, err := expand(pattern)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", arg, err)
		}
		for _, name := range names {
			if err := add(name, clients); err != nil {
				return nil, fmt.Errorf("reading: %w", err)
			}
		}
	}
	return sources, nil
}

// expand returns the files that an argument names: itself, those of a folder,
// those that match a pattern that the shell has left alone.
func expand(arg string) ([]string, error) {
	info, err := os.Stat(arg)
	switch {
	case err == nil && !info.IsDir():
		return []string{arg}, nil
	case err == nil:
		entries, err := os.ReadDir(arg)
		if err != nil {
			return nil, err
		}
		var names []string
		for _, e := range entries {
			if e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
				names = append(names, filepath.Join(arg, e.Name()))
			}
		}
		if len(names) == 0 {
			return nil, errors.New("the folder holds no file")
		}
		return names, nil
	case errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(arg, "*?["):
		names, gerr := filepath.Glob(arg)
		if gerr == nil && len(names) > 0 {
			return names, nil
		}
	}
	return nil, err
}
