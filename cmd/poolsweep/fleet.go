//go:build !nofleet

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/poolsweep/poolsweep/internal/fleet"
	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep"
	"github.com/poolsweep/poolsweep/sweep/load"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// linkFlags say how to reach NATS.
type linkFlags struct {
	tokenFile, creds, ca, fingerprint string
	plaintext                         bool
}

func (l *linkFlags) add(f *pflag.FlagSet) {
	f.StringVar(&l.tokenFile, "token-file", "", "file with the token of NATS in its first line (default: POOLSWEEP_TOKEN)")
	f.StringVar(&l.creds, "nats-creds", "", "file with the credentials of a NATS user")
	f.StringVar(&l.ca, "nats-ca", "", "file with the certificates of the authorities to trust for NATS")
	f.StringVar(&l.fingerprint, "fingerprint", "", "SHA-256 of the certificate of NATS, as the controller prints it")
	f.BoolVar(&l.plaintext, "nats-plaintext", false, "talk to NATS on other machines without encryption")
}

// link makes a Link of the flags and a URL.
func (l *linkFlags) link(url string) (fleet.Link, error) {
	out := fleet.Link{URL: url, Creds: l.creds, CA: l.ca, Fingerprint: l.fingerprint, Plaintext: l.plaintext}
	out.Token = tokenFromEnvironment()
	if l.tokenFile != "" {
		var err error
		if out.Token, err = probe.SecretFromFile("the token", l.tokenFile); err != nil {
			return out, err
		}
	}
	return out, usage(out.Check())
}

// tokenFromEnvironment returns what POOLSWEEP_TOKEN holds, and removes the
// variable, so that no child process inherits it.
func tokenFromEnvironment() probe.Secret {
	const name = "POOLSWEEP_TOKEN"
	s := probe.NewSecret(os.Getenv(name))
	os.Unsetenv(name)
	return s
}

// fleetFlags are the flags of a run on several machines.
type fleetFlags struct {
	link   linkFlags
	agents int
	nats   string
	listen string
	wait   time.Duration
}

func (o *fleetFlags) add(groups *[]flagGroup) {
	f := group(groups, "Fleet")
	f.IntVar(&o.agents, "agents", 0, "have the load come from this many agents instead of this process; see poolsweep agent --help")
	f.StringVar(&o.nats, "nats", "", "URL of the NATS server at which the agents are (default: one within this process)")
	f.StringVar(&o.listen, "listen", "127.0.0.1:4222", "where that one listens; others than loopback get TLS and a token")
	f.DurationVar(&o.wait, "agents-wait", time.Minute, "how long to wait for the agents")
	o.link.add(f)
}

// agents are the fleet of a run; nil for none.
type agents struct {
	fleet  *fleet.Fleet
	broker *fleet.Broker
}

func (a *agents) Close() error {
	if a == nil {
		return nil
	}
	var err error
	if a.fleet != nil {
		err = a.fleet.Close()
	}
	a.broker.Close()
	return err
}

// gather waits for the agents and has them drive the load of a run.
func (o *fleetFlags) gather(ctx context.Context, c *sweep.Config) (*agents, error) {
	if o.agents == 0 {
		return nil, nil
	}
	a := new(agents)
	link, err := o.link.link(o.nats)
	if o.nats == "" {
		if a.broker, err = fleet.Listen(o.listen); err != nil {
			return nil, err
		}
		link = a.broker.Link()
		fmt.Fprintf(os.Stderr, "poolsweep: start %d agents with: %s\n", o.agents, a.broker.JoinCommand())
	} else if err != nil {
		return nil, err
	}
	a.fleet, err = fleet.Gather(ctx, fleet.Config{Link: link, Agents: o.agents, Wait: o.wait, Say: func(text string) {
		fmt.Fprintln(os.Stderr, "poolsweep:", text)
	}})
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	server, perRequest := c.Server, c.Plan.PerRequest
	c.Room = a.fleet.Clients()
	c.NewDriver = func(w *workload.Workload) (load.Driver, error) {
		d, err := a.fleet.Driver(w, server, perRequest)
		if err != nil {
			return nil, err
		}
		return d, nil
	}
	return a, nil
}

// check reports what makes the flags no fleet.
func (o *fleetFlags) check(f *pflag.FlagSet) error {
	switch {
	case o.agents < 0 || o.agents > 10_000:
		return fmt.Errorf("--agents %d; want 1 to 10000", o.agents)
	case o.agents == 0 && (o.nats != "" || f.Changed("listen") || f.Changed("agents-wait")):
		return errors.New("--nats, --listen and --agents-wait are for --agents")
	case o.nats != "" && f.Changed("listen"):
		return errors.New("give --nats or --listen, not both")
	case o.agents > 0 && f.Changed("embedded"):
		return errors.New("give --embedded or --agents, not both: the password of an embedded server is known to nobody else")
	case o.agents > 0 && f.Changed("source"):
		return errors.New("--source is for connections of this process; agents have their own addresses")
	case o.nats == "":
		return nil
	}
	return fleet.Link{URL: o.nats, Creds: o.link.creds, CA: o.link.ca, Fingerprint: o.link.fingerprint}.Check()
}
