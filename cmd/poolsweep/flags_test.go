package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// Each flag of run is in a script that runs it. The other commands have some of
// the same flags, by the same code, and those may be in a script of any command.
func TestEveryFlagIsInAScript(t *testing.T) {
	lines := scriptLines(t)
	for _, c := range root().Commands() {
		mine := regexp.MustCompile(`poolsweep [a-z]+ `)
		if c.Name() == "run" {
			mine = regexp.MustCompile(`poolsweep run `)
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			name := `--` + f.Name
			if f.Shorthand != "" {
				name = `(--` + f.Name + `|-` + f.Shorthand + `)`
			}
			flag := regexp.MustCompile(` ` + name + `([ =0-9\n]|$)`)
			for _, l := range lines {
				if mine.MatchString(l) && flag.MatchString(l) {
					return
				}
			}
			t.Errorf("no script runs poolsweep %s with --%s", c.Name(), f.Name)
		})
	}
}

// scriptLines returns the lines of all scripts.
func scriptLines(t *testing.T) (all []string) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.Split(string(text), "\n")...)
	}
	return all
}

// Each example of each help can be pasted: its command exists, takes these
// arguments and has these flags.
func TestExamplesParse(t *testing.T) {
	count := 0
	for _, of := range append(root().Commands(), root()) {
		for _, line := range strings.FieldsFunc(of.Example, func(r rune) bool { return r == '\n' || r == '>' || r == '&' }) {
			_, line, ok := strings.Cut(line, "poolsweep ")
			if !ok {
				continue
			}
			count++
			c, args, err := root().Find(strings.Fields(strings.ReplaceAll(line, "'", "")))
			if err == nil {
				err = c.ParseFlags(args)
			}
			if err == nil {
				err = c.ValidateArgs(c.Flags().Args())
			}
			if err != nil || !c.Runnable() {
				t.Errorf("%s: poolsweep %s: %v", of.Name(), line, err)
			}
		}
	}
	if count < 20 {
		t.Errorf("%d examples, want 20 or more", count)
	}
}
