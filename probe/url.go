package probe

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// urlForms is what an error says is wanted.
const urlForms = "want redis:// or rediss://user@host:port/db, unix:///path, or redis+sentinel://host:port,host:port/master/db"

// ParseTarget reads a URL:
//
//	redis://[user[:password]@]host[:port][/db]
//	rediss://…                                    the same with TLS
//	unix://[user[:password]@]/path[?db=N]
//	redis+sentinel://[user[:password]@]host[:port][,host[:port]…]/master[/db]
//	rediss+sentinel://…                           the same with TLS to all
//
// A string without "://" is taken as host[:port]. User and password are the
// server's; those of the sentinels are no part of a URL.
func ParseTarget(s string) (Target, error) {
	if !strings.Contains(s, "://") {
		s = "redis://" + s
	}
	t, err := parseURL(s)
	if err != nil {
		// url's own error repeats the URL and with it a password.
		var parse *url.Error
		if errors.As(err, &parse) {
			err = fmt.Errorf("%w; %s", parse.Err, urlForms)
		}
		return Target{}, fmt.Errorf("reading the URL: %w", err)
	}
	if err := t.Check(); err != nil {
		return Target{}, err
	}
	return t, nil
}

func parseURL(s string) (Target, error) {
	scheme, rest, _ := strings.Cut(s, "://")
	base, sentinels := strings.CutSuffix(strings.ToLower(scheme), "+sentinel")
	t := Target{Network: "tcp"}
	switch {
	case base == "redis":
	case base == "rediss":
		t.TLS = &TLS{}
	case base == "unix" && !sentinels:
		t.Network = "unix"
	default:
		// Not %q of it all: before "://" of a mistyped URL may be anything.
		return Target{}, fmt.Errorf("unknown scheme %.20q; %s", scheme, urlForms)
	}
	if sentinels {
		// A list of hosts is no URL: it is cut out and read one by one.
		var hosts string
		hosts, rest = cutHosts(rest)
		t.Sentinel = new(Sentinel)
		if t.TLS != nil {
			t.Sentinel.TLS = &TLS{}
		}
		for host := range strings.SplitSeq(hosts, ",") {
			addr, err := parseSentinelAddr(host)
			if err != nil {
				return Target{}, err
			}
			t.Sentinel.Addrs = append(t.Sentinel.Addrs, addr)
		}
	}
	u, err := url.Parse("redis://" + rest)
	if err != nil {
		return Target{}, err
	}
	if u.User != nil {
		t.User = u.User.Username()
		p, _ := u.User.Password()
		t.Password = NewSecret(p)
	}
	return t, t.locate(u)
}

// locate takes address and database from the URL.
func (t *Target) locate(u *url.URL) (err error) {
	db := strings.Trim(u.Path, "/")
	switch {
	case t.Sentinel != nil:
		// Escapes are undone behind the cut: a name may have a slash in it.
		name, number, _ := strings.Cut(strings.Trim(u.EscapedPath(), "/"), "/")
		if t.Sentinel.Master, err = url.PathUnescape(name); err != nil {
			return err
		}
		db = number
	case t.Network == "unix":
		t.Socket, db = u.Path, ""
		if u.Host != "" {
			return fmt.Errorf("a host, %q, stands before the path of the socket; want unix:///path", u.Host)
		}
	default:
		t.Host = u.Hostname()
		if p := u.Port(); p != "" {
			if t.Port, err = strconv.Atoi(p); err != nil {
				return fmt.Errorf("port %q is not a number", p)
			}
		}
	}
	if q := u.Query().Get("db"); q != "" {
		db = q
	}
	if db != "" {
		if t.DB, err = strconv.Atoi(db); err != nil {
			return fmt.Errorf("database %q is not a number", db)
		}
	}
	return nil
}

// cutHosts takes the hosts out of what stands behind "://", and leaves one in
// their place.
func cutHosts(s string) (hosts, rest string) {
	end := len(s)
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		end = i
	}
	begin := strings.LastIndex(s[:end], "@") + 1
	return s[begin:end], s[:begin] + "sentinel" + s[end:]
}

func parseSentinelAddr(s string) (string, error) {
	u, err := url.Parse("redis://" + s)
	if err != nil {
		return "", err
	}
	if u.Hostname() == "" || u.User != nil || u.Path != "" {
		return "", fmt.Errorf("%q is no host of a sentinel; %s", u.Host, urlForms)
	}
	port := defaultSentinelPort
	if p := u.Port(); p != "" {
		if port, err = strconv.Atoi(p); err != nil {
			return "", fmt.Errorf("port %q is not a number", p)
		}
	}
	return joinAddr(u.Hostname(), port), nil
}

// String returns the target as a URL without the password. What a URL cannot
// say is left out: files of certificates, RESP3, the sentinels' own user.
func (t Target) String() string {
	u := url.URL{Scheme: "redis", Host: t.Addr()}
	if t.TLS != nil {
		u.Scheme = "rediss"
	}
	if t.User != "" {
		u.User = url.User(t.User)
	}
	db := ""
	if t.DB != 0 {
		db = "/" + strconv.Itoa(t.DB)
	}
	switch {
	case t.Sentinel != nil:
		return t.sentinelURL(u, db)
	case t.Network == "unix":
		u.Scheme, u.Host, u.Path = "unix", "", t.Socket
		if t.DB != 0 {
			u.RawQuery = "db=" + strconv.Itoa(t.DB)
		}
	default:
		u.Path = db
	}
	return u.String()
}

// sentinelURL is String of a target with sentinels, given what is the same
// without them.
func (t Target) sentinelURL(u url.URL, db string) string {
	text := u.Scheme + "+sentinel://"
	if u.User != nil {
		text += u.User.String() + "@"
	}
	for i, addr := range t.Sentinel.Addrs {
		if i > 0 {
			text += ","
		}
		text += strings.TrimPrefix((&url.URL{Host: addr}).String(), "//")
	}
	return text + "/" + url.PathEscape(t.Sentinel.Master) + db
}
