package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/poolsweep/poolsweep/internal/importer"
	"github.com/poolsweep/poolsweep/internal/report"
	"github.com/poolsweep/poolsweep/sweep"
)

func analyzeCommand() *cobra.Command {
	var answer answerFlags
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
  poolsweep analyze results/ --format json`,
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			format, err := answer.check()
			if err != nil {
				return usage(err)
			}
			return analyzeFiles(args, answer, format)
		},
	}
	var groups []flagGroup
	answer.add(group(&groups, "Answer"))
	answer.addFormat(group(&groups, "Output"))
	useGroups(c, groups)
	return c
}

// analyzeFiles prints a document for each of our result files and one for
// what came from other tools.
func analyzeFiles(args []string, answer answerFlags, format report.Format) error {
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
		docs = append(docs, answer.document(&res.Header, res.Curves()))
	}
	if len(foreign) > 0 {
		imported, err := importer.Read(foreign)
		if err != nil {
			return err
		}
		for _, p := range imported.Problems {
			fmt.Fprintf(os.Stderr, "poolsweep: %s\n", p)
		}
		if len(imported.Curves) > 0 {
			docs = append(docs, answer.document(nil, imported.Curves))
		}
	}
	return printAll(docs, format)
}

func printAll(docs []*report.Document, format report.Format) error {
	if len(docs) == 0 {
		return errors.New("analyzing: no file holds a throughput at a known number of clients")
	}
	out := bufio.NewWriter(os.Stdout)
	var answer error
	for i, d := range docs {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := format(out, d); err != nil {
			return fmt.Errorf("printing the report: %w", err)
		}
		answer = errors.Join(answer, answered(d.Analyses))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return answer
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
			return nil, fmt.Errorf("analyzing %s: %w", arg, err)
		}
		for _, name := range names {
			if err := add(name, clients); err != nil {
				return nil, fmt.Errorf("analyzing: %w", err)
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
