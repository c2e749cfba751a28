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

	tls                                bool
	cacert, cert, key, sni, source     string
	insecure                           bool
	resp3, tracking                    bool
	sentinelUser, sentinelPasswordFile string
}

func (t *targetFlags) add(f *pflag.FlagSet) {
	f.StringVarP(&t.host, "host", "h", "127.0.0.1", "host name or address of the server")
	f.IntVarP(&t.port, "port", "p", 6379, "its port")
	f.StringVarP(&t.socket, "socket", "s", "", "its unix socket, instead of host and port")
	f.StringVar(&t.user, "user", "", "ACL user")
	f.StringVarP(&t.password, "pass", "a", "", "password; better in REDISCLI_AUTH or --password-file")
	f.StringVar(&t.passwordFile, "password-file", "", "file with the password in its first line")
	f.IntVar(&t.db, "dbnum", 0, "database number")
	f.BoolVar(&t.tls, "tls", false, "encrypt, as the scheme rediss does")
	f.StringVar(&t.cacert, "cacert", "", "file with the certificates of the authorities to trust (default: the system's)")
	f.StringVar(&t.cert, "cert", "", "file with the client certificate")
	f.StringVar(&t.key, "key", "", "file with its private key")
	f.StringVar(&t.sni, "sni", "", "server name to ask for and to find in its certificate (default: the host)")
	f.BoolVar(&t.insecure, "insecure", false, "do not check the server's certificate")
	f.BoolVarP(&t.resp3, "resp3", "3", false, "speak RESP3")
	f.BoolVar(&t.tracking, "enable-tracking", false, "turn client tracking on for the connections of the load")
	f.StringVar(&t.sentinelUser, "sentinel-user", "", "ACL user on the sentinels of a redis+sentinel URL")
	f.StringVar(&t.sentinelPasswordFile, "sentinel-password-file", "", "file with the sentinels' password in its first line")
	f.StringVar(&t.source, "source", "", "addresses of this machine to connect from in turn, where one has too few ports")
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
	if err := t.addTransport(&out); err != nil {
		return out, err
	}
	if err := out.Check(); err != nil {
		return out, usage(err)
	}
	return out, t.addPassword(&out)
}

// addTransport takes how to speak to the server, and to the sentinels.
func (t *targetFlags) addTransport(out *probe.Target) error {
	out.RESP3, out.Tracking = t.resp3, t.tracking
	if t.source != "" {
		var err error
		if out.Sources, err = probe.ParseSources(t.source); err != nil {
			return usage(fmt.Errorf("--source: %w", err))
		}
	}
	details := probe.TLS{CACert: t.cacert, Cert: t.cert, Key: t.key, SNI: t.sni, Insecure: t.insecure}
	switch {
	case t.tls && out.TLS == nil:
		out.TLS = new(probe.TLS)
	case out.TLS == nil && details != (probe.TLS{}):
		return usage(errors.New("--cacert, --cert, --key, --sni and --insecure need --tls or a rediss:// URL"))
	}
	if out.TLS != nil {
		*out.TLS = details
	}
	if out.Sentinel == nil {
		if t.sentinelUser != "" || t.sentinelPasswordFile != "" {
			return usage(errors.New("--sentinel-user and --sentinel-password-file need a redis+sentinel:// URL"))
		}
		return nil
	}
	if out.Sentinel.TLS != nil {
		*out.Sentinel.TLS = details
	}
	out.Sentinel.User = t.sentinelUser
	if t.sentinelPasswordFile == "" {
		return nil
	}
	var err error
	out.Sentinel.Password, err = probe.SecretFromFile("the password of the sentinels", t.sentinelPasswordFile)
	return err
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
		s, err := probe.SecretFromFile("the password", t.passwordFile)
		if err != nil {
			return err
		}
		out.Password = s
	case out.Password.Reveal() == "":
		out.Password = environment
	}
	return nil
}
