//go:build !nofleet

package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/poolsweep/poolsweep/internal/fleet"
	"github.com/poolsweep/poolsweep/probe"
)

// agentOptions are the flags of poolsweep agent.
type agentOptions struct {
	link         linkFlags
	join, name   string
	threads      int
	once         bool
	wait         time.Duration
	passwordFile string
	tls          probe.TLS
}

func agentCommand() *cobra.Command {
	o := new(agentOptions)
	c := &cobra.Command{
		Use:   "agent --join URL",
		Short: "Be one load generator of a fleet",
		Long: `Agent waits for a poolsweep run --agents N on this or another machine and does
its share of the load, until Ctrl-C. It stops the load by itself within two
seconds when it no longer hears of that run.

The run prints what to type here. The agents connect to the Redis server by
themselves, under the address that the run was given: 127.0.0.1 is then each
agent's own machine. Its password comes from REDISCLI_AUTH or --password-file
here; over an encrypted connection to NATS the run sends its own to agents that
have none. The token of NATS comes from POOLSWEEP_TOKEN or --token-file.`,
		Example: `  poolsweep agent --join nats://127.0.0.1:4222
  POOLSWEEP_TOKEN=… poolsweep agent --join tls://10.0.0.1:4222 --fingerprint 5e…
  poolsweep agent --join nats://nats:4222 --nats-plaintext --once --wait 10m`,
		Args: arguments(cobra.NoArgs),
	}
	var groups []flagGroup
	f := group(&groups, "Fleet")
	f.StringVar(&o.join, "join", "", "URL of NATS, as the run prints it")
	f.StringVar(&o.name, "name", "", "name in the run's tables (default: that of this machine)")
	f.IntVar(&o.threads, "threads", 0, "event loops (default: all cores but one)")
	f.BoolVar(&o.once, "once", false, "end when the first run is done")
	f.DurationVar(&o.wait, "wait", 0, "end when no run has come for this long (default: wait for ever)")
	o.link.add(f)
	f = group(&groups, "Target")
	f.StringVar(&o.passwordFile, "password-file", "", "file with the Redis password in its first line (default: REDISCLI_AUTH)")
	f.StringVar(&o.tls.CACert, "cacert", "", "file with the certificates of the authorities to trust (default: the system's)")
	f.StringVar(&o.tls.Cert, "cert", "", "file with the client certificate")
	f.StringVar(&o.tls.Key, "key", "", "file with its private key")
	useGroups(c, groups)
	c.RunE = func(c *cobra.Command, _ []string) error { return o.run(c) }
	return c
}

func (o *agentOptions) run(c *cobra.Command) error {
	switch {
	case o.join == "":
		return usage(errors.New("--join is missing; give the URL that poolsweep run --agents has printed"))
	case o.threads < 0 || o.threads > 1024:
		return usage(fmt.Errorf("--threads %d; want 1 to 1024", o.threads))
	case o.wait < 0:
		return usage(fmt.Errorf("--wait %v; want more than 0", o.wait))
	}
	link, err := o.link.link(o.join)
	if err != nil {
		return err
	}
	a := fleet.Agent{
		Name: o.name, Build: version(), Threads: o.threads, Once: o.once, Wait: o.wait,
		Password: probe.PasswordFromEnvironment(),
		Say:      func(text string) { fmt.Fprintln(os.Stderr, "poolsweep: agent:", text) },
	}
	if o.tls != (probe.TLS{}) {
		a.TLS = &o.tls
	}
	if o.passwordFile != "" {
		if a.Password, err = probe.SecretFromFile("the password", o.passwordFile); err != nil {
			return err
		}
	}
	if a.Name == "" {
		if a.Name, err = os.Hostname(); err != nil || a.Name == "" {
			a.Name = "agent"
		}
	}
	if err := a.Run(c.Context(), link); c.Context().Err() == nil {
		return err
	}
	return nil // a signal is how an agent is ended
}
