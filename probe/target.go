// Package probe observes: which server a target is, and what the server, its
// process, the host, the network and the generator itself do while load runs.
// It records facts over exact intervals and holds no threshold; what they mean
// is package analyze's to say. It sends no load: its few commands (PING, INFO,
// CONFIG GET) go over a control connection of their own.
package probe

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// A Secret is a password. It prints as stars and has no JSON form, so that it
// reaches no file, log or error by accident. The zero value is no password.
type Secret struct{ text string }

// NewSecret returns text as a Secret.
func NewSecret(text string) Secret { return Secret{text} }

// Format writes stars for any verb.
func (s Secret) Format(f fmt.State, _ rune) {
	if s.text != "" {
		fmt.Fprint(f, "***")
	}
}

// MarshalJSON writes null.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// Reveal returns the password itself.
func (s Secret) Reveal() string { return s.text }

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
}

// ParseTarget reads a URL: redis://[user[:password]@]host[:port][/db] or
// unix://[user[:password]@]/path[?db=N]. A string without "://" is taken as
// host[:port].
func ParseTarget(s string) (Target, error) {
	if !strings.Contains(s, "://") {
		s = "redis://" + s
	}
	u, err := url.Parse(s)
	if err != nil {
		// url's own error repeats the URL and with it a password.
		var parse *url.Error
		if errors.As(err, &parse) {
			err = parse.Err
		}
		return Target{}, fmt.Errorf("reading the URL: %w; want redis://user@host:port/db or unix:///path", err)
	}
	t := Target{Network: "tcp"}
	if u.User != nil {
		t.User = u.User.Username()
		p, _ := u.User.Password()
		t.Password = NewSecret(p)
	}
	db := strings.Trim(u.Path, "/")
	switch u.Scheme {
	case "redis":
		t.Host = u.Hostname()
		if p := u.Port(); p != "" {
			if t.Port, err = strconv.Atoi(p); err != nil {
				return Target{}, fmt.Errorf("reading the URL: port %q is not a number", p)
			}
		}
	case "unix":
		t.Network, t.Socket, db = "unix", u.Path, ""
	case "rediss", "redis+sentinel":
		return Target{}, fmt.Errorf("reading the URL: %s:// is not supported yet; want redis:// or unix://", u.Scheme)
	default:
		return Target{}, fmt.Errorf("reading the URL: unknown scheme %q; want redis:// or unix://", u.Scheme)
	}
	if q := u.Query().Get("db"); q != "" {
		db = q
	}
	if db != "" {
		if t.DB, err = strconv.Atoi(db); err != nil {
			return Target{}, fmt.Errorf("reading the URL: database %q is not a number", db)
		}
	}
	return t, t.Check()
}

// Check reports the first thing that makes t no target.
func (t Target) Check() error {
	switch {
	case t.Network == "unix" && t.Socket == "":
		return errors.New("target: a unix socket needs a path")
	case strings.Contains(t.Host, ":") && net.ParseIP(strings.Split(t.Host, "%")[0]) == nil:
		return fmt.Errorf("target: %q is no host name and no IPv6 address", t.Host)
	case t.Port < 0 || t.Port > 65535:
		return fmt.Errorf("target: port %d is not in 1 to 65535", t.Port)
	case t.DB < 0:
		return fmt.Errorf("target: database %d is negative", t.DB)
	}
	return nil
}

// Normal returns t with its defaults filled in.
func (t Target) Normal() Target {
	if t.Network == "" {
		t.Network = "tcp"
	}
	if t.Network == "tcp" {
		if t.Host == "" {
			t.Host = "127.0.0.1"
		}
		if t.Port == 0 {
			t.Port = 6379
		}
	}
	return t
}

// Addr returns what to dial on t.Network.
func (t Target) Addr() string {
	if t.Network == "unix" {
		return t.Socket
	}
	return net.JoinHostPort(t.Host, strconv.Itoa(t.Port))
}

// String returns the target as a URL without the password.
func (t Target) String() string {
	u := url.URL{Scheme: "redis", Host: t.Addr()}
	if t.Network == "unix" {
		u = url.URL{Scheme: "unix", Path: t.Socket}
	}
	if t.User != "" {
		u.User = url.User(t.User)
	}
	if t.DB != 0 {
		if t.Network == "unix" {
			u.RawQuery = "db=" + strconv.Itoa(t.DB)
		} else {
			u.Path = "/" + strconv.Itoa(t.DB)
		}
	}
	return u.String()
}

// PasswordFromEnvironment returns what redis-cli's variable REDISCLI_AUTH
// holds, and removes the variable, so that no child process inherits it.
func PasswordFromEnvironment() Secret {
	const name = "REDISCLI_AUTH"
	s := NewSecret(os.Getenv(name))
	os.Unsetenv(name)
	return s
}

// PasswordFromFile returns the first line of a file.
func PasswordFromFile(path string) (Secret, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Secret{}, fmt.Errorf("reading the password: %w", err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	line = strings.TrimSuffix(line, "\r")
	if line == "" {
		return Secret{}, fmt.Errorf("reading the password: the first line of %s is empty", path)
	}
	return NewSecret(line), nil
}
