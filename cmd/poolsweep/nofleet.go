//go:build nofleet

package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/poolsweep/poolsweep/sweep"
)

// A build with the tag nofleet has no agents and none of their flags. It leaves
// nats-server out, which is a sixth of what is compiled: make demo is done
// within its two minutes on a fresh machine.

type fleetFlags struct{ agents int }

func (*fleetFlags) add(*[]flagGroup)           {}
func (*fleetFlags) check(*pflag.FlagSet) error { return nil }
func (*fleetFlags) gather(context.Context, *sweep.Config) (*agents, error) {
	return nil, nil
}

type agents struct{}

func (*agents) Close() error { return nil }

func agentCommand() *cobra.Command {
	return &cobra.Command{
		Use: "agent", Hidden: true, DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("starting an agent: this build has no fleet (tag nofleet); make build has it")
		},
	}
}
