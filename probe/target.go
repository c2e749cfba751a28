package probe

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// A Target says where the server is and as whom to connect to it. The zero
// value is 127.0.0.1:6379 as the default user, once Normal has been called.
type Target struct {
	Network  string // "tcp" or "unix"; empty means tcp
	Host     string // empty means 127.0.0.1
	Port     int    // 0 means 6379
	Socket   string // path, for unix
	User     string // empty means the default user
	Password Secret
	DB       int // database number

	TLS *TLS // nil: no TLS

	Sources *Sources // nil: the system chooses where connections come from

	// RESP3 has the connections of Dial switch to version 3 of the protocol
	// with HELLO, which servers know since Redis 6.0.
	RESP3 bool

	// Tracking has the connections of Dial ask for client-side caching
	// (CLIENT TRACKING ON). A server sends its invalidations with RESP3
	// only; without it, it does nothing but the bookkeeping.
	Tracking bool

	// Sentinel, if not nil, says who knows where the master is. Network,
	// Host, Port and Socket are then of no account.
	Sentinel *Sentinel
}

// A Sentinel is how to find the master of a name. User, Password and TLS are
// for the sentinels themselves.
type Sentinel struct {
	Addrs    []string // host:port of each, in the order in which they are asked
	Master   string   // as "sentinel monitor" has named it
	User     string
	Password Secret
	TLS      *TLS
}

const (
	defaultPort         = 6379
	defaultSentinelPort = 26379
)

// Check reports the first thing that makes t no target. It reads the files of
// its certificates.
func (t Target) Check() error {
	switch {
	case t.Sources != nil && t.Network == "unix":
		return errors.New("target: a unix socket has no addresses to connect from")
	case t.DB < 0:
		return fmt.Errorf("target: database %d is negative", t.DB)
	case t.Sentinel != nil:
		if err := t.Sentinel.check(); err != nil {
			return err
		}
	case t.Network == "unix" && t.Socket == "":
		return errors.New("target: a unix socket needs a path")
	case t.Network == "unix" && t.TLS != nil:
		return errors.New("target: TLS is for TCP, not for a unix socket; leave one of them out")
	default:
		if err := checkAddr(t.Host, t.Port); err != nil {
			return err
		}
	}
	_, err := t.TLS.load()
	return err
}

func (s *Sentinel) check() error {
	if s.Master == "" {
		return errors.New("target: sentinels need the name of a master, as in redis+sentinel://host:26379/mymaster")
	}
	if len(s.Addrs) == 0 {
		return errors.New("target: no address of a sentinel is given")
	}
	for _, addr := range s.Addrs {
		host, port, err := splitAddr(addr)
		if err == nil {
			err = checkAddr(host, port)
		}
		if err != nil {
			return fmt.Errorf("sentinel %s: %w", addr, err)
		}
	}
	_, err := s.TLS.load()
	return err
}

func checkAddr(host string, port int) error {
	switch {
	case strings.Contains(host, ":") && net.ParseIP(strings.Split(host, "%")[0]) == nil:
		return fmt.Errorf("target: %q is no host name and no IPv6 address", host)
	case port < 0 || port > 65535:
		return fmt.Errorf("target: port %d is not in 1 to 65535", port)
	}
	return nil
}

// splitAddr takes host:port apart.
func splitAddr(addr string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, fmt.Errorf("target: %q is not host:port", addr)
	}
	if port, err = strconv.Atoi(text); err != nil {
		return "", 0, fmt.Errorf("target: port %q is not a number", text)
	}
	return host, port, nil
}

func joinAddr(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// Normal returns t with its defaults filled in.
func (t Target) Normal() Target {
	if t.Network == "" {
		t.Network = "tcp"
	}
	if t.Network == "tcp" && t.Sentinel == nil {
		if t.Host == "" {
			t.Host = "127.0.0.1"
		}
		if t.Port == 0 {
			t.Port = defaultPort
		}
	}
	return t
}

// Addr returns what to dial on t.Network; with sentinels their addresses, and
// of which master.
func (t Target) Addr() string {
	switch {
	case t.Sentinel != nil:
		return strings.Join(t.Sentinel.Addrs, ",") + "/" + t.Sentinel.Master
	case t.Network == "unix":
		return t.Socket
	}
	return joinAddr(t.Host, t.Port)
}

// at returns t with another address, by TCP and not through sentinels.
func (t Target) at(host string, port int) Target {
	t.Network, t.Host, t.Port, t.Socket, t.Sentinel = "tcp", host, port, "", nil
	return t
}
