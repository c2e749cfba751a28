package fleet

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/poolsweep/poolsweep/probe"
)

// A Link is how to reach NATS.
type Link struct {
	// URL is nats://host:port or tls://host:port; several, of a NATS cluster,
	// are divided by commas. It holds no credentials.
	URL string

	Token probe.Secret // empty for none
	Creds string       // file of a user's credentials; empty for none

	// The server's certificate is trusted by the authorities in the file CA,
	// or by its own Fingerprint, SHA-256 in hexadecimal; both empty: by the
	// system's authorities.
	CA, Fingerprint string

	// Plaintext allows a connection that is not encrypted to leave this
	// machine.
	Plaintext bool
}

const (
	dialTimeout    = 3 * time.Second
	reconnectEvery = 200 * time.Millisecond
)

// Check reports the first thing that is wrong with the link.
func (l Link) Check() error {
	_, err := l.options()
	return err
}

// options returns how to connect.
func (l Link) options() ([]nats.Option, error) {
	away := false
	for part := range strings.SplitSeq(l.URL, ",") {
		u, err := url.Parse(strings.TrimSpace(part))
		switch {
		case err != nil, u.Host == "", u.Scheme != "nats" && u.Scheme != "tls":
			return nil, fmt.Errorf("NATS: %q is no URL; want nats://host:4222 or tls://host:4222", withoutUser(part))
		case u.User != nil:
			return nil, errors.New("NATS: the URL has credentials; give a token in POOLSWEEP_TOKEN, or a credentials file")
		}
		away = away || !loopback(u.Hostname())
	}
	options := []nats.Option{
		nats.Timeout(dialTimeout),
		nats.MaxReconnects(-1), nats.ReconnectWait(reconnectEvery), nats.ReconnectJitter(reconnectEvery/4, reconnectEvery/4),
		nats.PingInterval(2 * time.Second), nats.MaxPingsOutstanding(2),
		nats.ReconnectBufSize(-1), // an order that arrives late is a wrong one
	}
	if t := l.Token.Reveal(); t != "" {
		options = append(options, nats.Token(t))
	}
	if l.Creds != "" {
		if _, err := os.Stat(l.Creds); err != nil {
			return nil, fmt.Errorf("NATS: reading the credentials: %w", err)
		}
		options = append(options, nats.UserCredentials(l.Creds))
	}
	config, err := l.tls()
	if err != nil {
		return nil, err
	}
	if config != nil || away && !l.Plaintext {
		if config == nil {
			config = new(tls.Config)
		}
		options = append(options, nats.Secure(config))
	}
	return options, nil
}

// withoutUser hides what may be a password.
func withoutUser(s string) string {
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		return "***" + s[i:]
	}
	return s
}

// tls returns how the server's certificate is checked; nil: as usual, if it
// has one.
func (l Link) tls() (*tls.Config, error) {
	switch {
	case l.CA != "" && l.Fingerprint != "":
		return nil, errors.New("NATS: give the CA or the fingerprint, not both")
	case l.CA != "":
		pem, err := os.ReadFile(l.CA)
		if err != nil {
			return nil, fmt.Errorf("NATS: reading the CA certificate: %w", err)
		}
		c := &tls.Config{RootCAs: x509.NewCertPool()}
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("NATS: %s has no certificate in PEM form", l.CA)
		}
		return c, nil
	case l.Fingerprint != "":
		want, err := hex.DecodeString(strings.ReplaceAll(l.Fingerprint, ":", ""))
		if err != nil || len(want) != sha256.Size {
			return nil, fmt.Errorf("NATS: %q is no fingerprint; want the 64 hexadecimal digits that the controller has printed", l.Fingerprint)
		}
		return &tls.Config{
			// The certificate itself is known: no authority needs to vouch.
			InsecureSkipVerify: true,
			VerifyConnection: func(s tls.ConnectionState) error {
				if len(s.PeerCertificates) == 0 || sha256.Sum256(s.PeerCertificates[0].Raw) != [sha256.Size]byte(want) {
					return errFingerprint
				}
				return nil
			},
		}, nil
	}
	return nil, nil
}

var errFingerprint = errors.New("its certificate has another fingerprint; is this the controller's address?")

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// connect connects to NATS. Its errors are one line.
func (l Link) connect(name string, more ...nats.Option) (*nats.Conn, error) {
	options, err := l.options()
	if err != nil {
		return nil, err
	}
	options = append(options, nats.Name("poolsweep "+name), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {
		// What fails is seen by who waits for it; nothing is to be printed.
	}))
	nc, err := nats.Connect(l.URL, append(options, more...)...)
	if err != nil {
		return nil, fmt.Errorf("connecting to NATS at %s: %w", l.URL, explain(err))
	}
	return nc, nil
}

// explain says what to do about an error of connecting.
func explain(err error) error {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.Is(err, nats.ErrAuthorization):
		return fmt.Errorf("%w: wrong token or credentials, or none; give the token of the controller in POOLSWEEP_TOKEN", errRefused)
	case errors.Is(err, nats.ErrSecureConnWanted):
		return fmt.Errorf("%w: it offers no TLS, without which nothing is sent to another machine; use a server with TLS, or --nats-plaintext on a network that you trust", errRefused)
	case errors.Is(err, errFingerprint):
		return fmt.Errorf("%w: %w", errRefused, errFingerprint)
	case errors.As(err, &unknown):
		return fmt.Errorf("%w: its certificate is of an unknown authority; give --fingerprint as the controller has printed it, or --nats-ca", errRefused)
	case errors.As(err, &name):
		return fmt.Errorf("%w: its certificate is not for this name (%w); give --fingerprint as the controller has printed it", errRefused, name)
	}
	return err
}

// errRefused says that trying again is of no use.
var errRefused = errors.New("refused")

// encrypted reports whether a connection is.
func encrypted(nc *nats.Conn) bool {
	_, err := nc.TLSConnectionState()
	return err == nil
}
