package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/poolsweep/poolsweep/probe"
)

// targetFlags say where the server is, as redis-cli's do.
type targetFlags struct {
	host, socket, user, password, passwordFile string
	port, db                                   int
	embedded                                   bool
}

func (t *targetFlags) add(f *pflag.FlagSet) {
	f.StringVarP(&t.host, "host", "h", "127.0.0.1", "host name or address of the server")
	f.IntVarP(&t.port, "port", "p", 6379, "its port")
	f.StringVarP(&t.socket, "socket", "s", "", "its unix socket, instead of host and port")
	f.StringVar(&t.user, "user", "", "ACL user")
	f.StringVarP(&t.password, "pass", "a", "", "password; better in REDISCLI_AUTH or --password-file")
	f.StringVar(&t.passwordFile, "password-file", "", "file with the password in its first line")
	f.IntVar(&t.db, "dbnum", 0, "database number")
	f.BoolVar(&t.embedded, "embedded", false, "start a throwaway server for this run and sweep that")
}

// target makes a Target of the flags and the URL, "" for none.
func (t *targetFlags) target(f *pflag.FlagSet, url string) (probe.Target, error) {
	located := f.Changed("host") || f.Changed("port") || f.Changed("socket")
	switch {
	case url != "" && located:
		return probe.Target{}, usage(errors.New("give a URL or -h, -p and -s, not both"))
	case f.Changed("socket") && (f.Changed("host") || f.Changed("port")):
		return probe.Target{}, usage(errors.New("give -s or -h and -p, not both"))
	case t.embedded && (url != "" || located || t.user != "" || t.password != "" || t.passwordFile != ""):
		return probe.Target{}, usage(errors.New("--embedded starts a server of its own; give no other target"))
	}
	hideArguments(t.password)
	var out probe.Target
	var err error
	switch {
	case url != "":
		if out, err = probe.ParseTarget(url); err != nil {
			return out, usage(err)
		}
	case t.socket != "":
		out = probe.Target{Network: "unix", Socket: t.socket}
	default:
		out = probe.Target{Network: "tcp", Host: t.host, Port: t.port}
	}
	if t.user != "" {
		out.User = t.user
	}
	if f.Changed("dbnum") {
		out.DB = t.db
	}
	if err := out.Check(); err != nil {
		return out, usage(err)
	}
	return out, t.addPassword(&out)
}

// addPassword takes the password from where it was given. The environment
// comes last, so that it need not be cleared for one call.
func (t *targetFlags) addPassword(out *probe.Target) error {
	environment := probe.PasswordFromEnvironment()
	switch {
	case t.password != "" && t.passwordFile != "":
		return usage(errors.New("give -a or --password-file, not both"))
	case t.password != "":
		fmt.Fprintln(os.Stderr, "poolsweep: warning: a password in the command line is kept in the shell's history; use REDISCLI_AUTH or --password-file")
		out.Password = probe.NewSecret(t.password)
	case t.passwordFile != "":
		s, err := probe.PasswordFromFile(t.passwordFile)
		if err != nil {
			return err
		}
		out.Password = s
	case out.Password.Reveal() == "":
		out.Password = environment
	}
	return nil
}
