package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
)

// TLS says how to encrypt a connection. The zero value trusts what the system
// trusts and shows no certificate.
type TLS struct {
	CACert string // PEM file of the authorities to trust; empty means the system's
	Cert   string // PEM files of the client's certificate and of its key,
	Key    string // both or none

	// SNI is the server's name: sent, and wanted in its certificate. Empty
	// means the host that is connected to.
	SNI string

	Insecure bool // the server's certificate is not checked

	// config is what the files make, nil until they are loaded: thousands of
	// connections must not read them each.
	config *tls.Config
}

// load returns a copy of x whose files have been read; nil for nil.
func (x *TLS) load() (*TLS, error) {
	if x == nil || x.config != nil {
		return x, nil
	}
	c := &tls.Config{ServerName: x.SNI, InsecureSkipVerify: x.Insecure}
	if x.CACert != "" {
		pem, err := os.ReadFile(x.CACert)
		if err != nil {
			return nil, fmt.Errorf("reading the CA certificate: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("reading the CA certificate: %s has no certificate in PEM form", x.CACert)
		}
	}
	switch {
	case x.Cert != "" && x.Key != "":
		pair, err := tls.LoadX509KeyPair(x.Cert, x.Key)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	case x.Cert != "" || x.Key != "":
		return nil, errors.New("reading the client certificate: one of certificate and key is missing; give --cert and --key")
	}
	loaded := *x
	loaded.config = c
	return &loaded, nil
}

// client does the handshake with a server on c, whose deadline bounds it.
func (x *TLS) client(ctx context.Context, c net.Conn, host string) (*tls.Conn, error) {
	config := x.config
	if config.ServerName == "" {
		config = config.Clone()
		config.ServerName = host
	}
	secured := tls.Client(c, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return secured, nil
}

// explain returns what is wrong with TLS and what to do; "" when err is not
// about it.
func (x *TLS) explain(err error, host string) string {
	var unknown x509.UnknownAuthorityError
	var roots x509.SystemRootsError
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &unknown), errors.As(err, &roots):
		return "the server's certificate is of an unknown authority; give its CA with --cacert"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("the server's certificate has expired or is not valid yet (%s to %s); renew it",
			invalid.Cert.NotBefore.UTC().Format("2006-01-02 15:04"), invalid.Cert.NotAfter.UTC().Format("2006-01-02 15:04 MST"))
	case errors.As(err, &name):
		if x.SNI != "" {
			host = x.SNI
		}
		return fmt.Sprintf("the server's certificate is not for %s (%s); give its name with --sni", host, certificateNames(name.Certificate))
	case errors.As(err, &record):
		return "the reply is not TLS; does this port speak TLS?"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Sprintf("no reply within %v; does this port speak TLS?", replyTimeout)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		if x.Cert == "" {
			return "the server closed the connection; does this port speak TLS, and does it want a client certificate (--cert and --key)?"
		}
		return "the server closed the connection; does this port speak TLS, and does the server trust the client certificate?"
	}
	return x.explainAlert(err)
}

// explainAlert explains the alert with which a server has ended the handshake;
// with TLS 1.3 it arrives when the client takes it for done. Package tls has
// no type for it: what is left is its text, "tls: " and RFC 8446's name.
func (x *TLS) explainAlert(err error) string {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "remote error" {
		return ""
	}
	alert := strings.TrimPrefix(op.Err.Error(), "tls: ")
	switch {
	case strings.Contains(alert, "certificate required"),
		x.Cert == "" && (strings.Contains(alert, "handshake failure") || strings.Contains(alert, "bad certificate")):
		return fmt.Sprintf("the server wants a client certificate (%s); give --cert and --key", alert)
	case strings.Contains(alert, "certificate"):
		return fmt.Sprintf("the server does not accept the client certificate (%s); give --cert and --key of one that it trusts", alert)
	}
	return fmt.Sprintf("the server has refused TLS: %s", alert)
}

// certificateNames returns whom a certificate is for.
func certificateNames(c *x509.Certificate) string {
	names := c.DNSNames
	for _, ip := range c.IPAddresses {
		names = append(names[:len(names):len(names)], ip.String())
	}
	if len(names) == 0 {
		return "it names no host"
	}
	return "but for " + strings.Join(names, ", ")
}
