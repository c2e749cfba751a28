package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// manCommand writes the man pages, made of the commands themselves.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man FOLDER",
		Short: "Write the man pages, a file a command",
		Long: `Man writes the man pages of poolsweep and of each of its commands into a folder,
which is made if it is not there.`,
		Example: "  poolsweep man share/man/man1 && man share/man/man1/poolsweep-run.1",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := writeManPages(c.Root(), args[0]); err != nil {
				return fmt.Errorf("writing the man pages: %w", err)
			}
			return nil
		},
	}
}

func writeManPages(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	day := time.Unix(0, 0).UTC() // pages of one version are the same whenever they are made
	header := &doc.GenManHeader{Section: "1", Source: "poolsweep " + version(), Manual: "poolsweep", Date: &day}
	root.DisableAutoGenTag = true
	escape(root)
	if err := doc.GenManTree(root, header, dir); err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(dir, "poolsweep*.1"))
	if err == nil {
		fmt.Fprintf(os.Stderr, "poolsweep: %d man pages in %s\n", len(pages), dir)
	}
	return err
}

// escape keeps the underscores of placeholders, which mean bold where man pages
// are made.
func escape(c *cobra.Command) {
	keep := func(s string) string { return strings.ReplaceAll(s, "__", `\_\_`) }
	c.Long = keep(c.Long)
	c.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = keep(f.Usage) })
	for _, sub := range c.Commands() {
		escape(sub)
	}
}
