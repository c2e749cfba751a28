// Command poolsweep finds how many connections a Redis or Valkey server is
// worth: it sweeps the number of clients, finds the knee of the throughput
// curve, says who stopped it and how sure that is, and recommends a pool.
//
// Data goes to standard output, talk and progress to standard error. The exit
// code is 0 for an answer, 1 when something failed, 2 for wrong usage and 3
// when the run finished without an answer that can be trusted.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/poolsweep/poolsweep/internal/embedded"
)

func main() {
	embedded.Main()
	os.Exit(run())
}

const (
	exitFailed   = 1
	exitUsage    = 2
	exitNoAnswer = 3
)

// errNoAnswer says that a run has finished and printed why it has no answer.
var errNoAnswer = errors.New("no answer that can be trusted")

// A usageError is a mistake in what was typed.
type usageError struct{ error }

func usage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// run executes the command line and returns the exit code.
func run() int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		s := <-signals
		// The second one ends the process at once.
		signal.Stop(signals)
		cancel(fmt.Errorf("ended by signal: %v", s))
	}()
	// The flags get copies, as hideArguments overwrites those of os.Args.
	args := []string{}
	for _, a := range os.Args[1:] {
		args = append(args, strings.Clone(a))
	}
	c := root()
	c.SetArgs(args)
	err := c.ExecuteContext(ctx)
	var wrong usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errNoAnswer):
		return exitNoAnswer
	case errors.As(err, &wrong):
		fmt.Fprintf(os.Stderr, "poolsweep: %v\nsee 'poolsweep --help'\n", err)
		return exitUsage
	}
	fmt.Fprintf(os.Stderr, "poolsweep: %v\n", err)
	return exitFailed
}

func root() *cobra.Command {
	c := &cobra.Command{
		Use:   "poolsweep",
		Short: "How many connections should my Redis pool have?",
		Long: `poolsweep sweeps the number of clients of a Redis or Valkey server, finds the
knee where throughput stops rising, says who stopped it and how sure that is,
and recommends a pool size.`,
		Example:       "  poolsweep run --embedded -t get\n  poolsweep run redis://127.0.0.1:6379\n  poolsweep analyze poolsweep-*.jsonl",
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          arguments(cobra.NoArgs),
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	c.AddCommand(runCommand(), analyzeCommand(), compareCommand(), verifyCommand())
	c.AddCommand(latencyCommand(), monitorCommand(), agentCommand(), manCommand())
	// -h is the host, as every Redis user's fingers know.
	c.PersistentFlags().Bool("help", false, "print this help")
	c.SetHelpCommand(&cobra.Command{Hidden: true})
	return c
}

// version returns the version that the binary was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// arguments is check with our kind of error.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error { return usage(check(c, args)) }
}
