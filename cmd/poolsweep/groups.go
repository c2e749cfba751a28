package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A flagGroup is a set of flags that stand together in a help text.
type flagGroup struct {
	title string
	flags *pflag.FlagSet
}

// group adds a group of flags to a command.
func group(groups *[]flagGroup, title string) *pflag.FlagSet {
	f := pflag.NewFlagSet(title, pflag.ContinueOnError)
	f.SortFlags = false
	*groups = append(*groups, flagGroup{title, f})
	return f
}

// useGroups gives the command the flags of the groups and a help text that
// prints them by group.
func useGroups(c *cobra.Command, groups []flagGroup) {
	c.Flags().SortFlags = false
	for _, g := range groups {
		c.Flags().AddFlagSet(g.flags)
	}
	c.SetHelpFunc(func(c *cobra.Command, _ []string) {
		out := c.OutOrStdout()
		fmt.Fprintf(out, "%s\n\nUsage:\n  %s\n\nExamples:\n%s\n", strings.TrimSpace(c.Long), c.UseLine(), c.Example)
		for _, g := range groups {
			fmt.Fprintf(out, "\n%s:\n%s", g.title, g.flags.FlagUsages())
		}
	})
}
