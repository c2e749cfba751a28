package fleet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/poolsweep/poolsweep/probe"
)

// A Broker is a NATS server in this process.
type Broker struct {
	server  *server.Server
	link    Link
	address string // as agents reach it
	token   string
}

const (
	startTimeout = 10 * time.Second

	// maxPayload is room for a result: a histogram is 10 to 50 KB, and there
	// is one for each command and each node.
	maxPayload = 8 << 20

	// certificateLife is longer than any run.
	certificateLife = 30 * 24 * time.Hour
)

// Listen starts a NATS server on host:port; port 0 is a free one. On an
// address that others can reach it wants a token and TLS, both made for this
// run.
func Listen(addr string) (*Broker, error) {
	b, err := listen(addr)
	if err != nil {
		return nil, fmt.Errorf("listening for agents on %s: %w", addr, err)
	}
	return b, nil
}

func listen(addr string) (*Broker, error) {
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, errors.New("want host:port, as in 10.0.0.1:4222")
	}
	// The server itself would only say that it is not ready.
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%w; give another --listen, or an existing server with --nats", bare(err))
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return nil, err
	}
	o := &server.Options{
		ServerName: "poolsweep", Host: host, Port: port,
		NoLog: true, NoSigs: true, NoSystemAccount: true,
		MaxPayload: maxPayload, MaxPending: 16 * maxPayload,
	}
	b := new(Broker)
	scheme := "nats"
	if !loopback(host) {
		scheme = "tls"
		if err := b.secure(o); err != nil {
			return nil, err
		}
	}
	if b.server, err = server.NewServer(o); err != nil {
		return nil, err
	}
	b.server.Start()
	if !b.server.ReadyForConnections(startTimeout) {
		b.Close()
		return nil, fmt.Errorf("port %s is not ready within %v", portText, startTimeout)
	}
	b.address = scheme + "://" + net.JoinHostPort(reachable(host), strconv.Itoa(port))
	own := host
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		own = "127.0.0.1"
	}
	b.link.URL = scheme + "://" + net.JoinHostPort(own, strconv.Itoa(port))
	return b, nil
}

// bare takes the address off an error of listening, which has been said.
func bare(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// secure makes a token and a certificate for the run.
func (b *Broker) secure(o *server.Options) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now()
	// The fingerprint is what is checked: the certificate needs no name, and
	// is valid for agents whose clocks are wrong.
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: "poolsweep"},
		NotBefore:    now.Add(-certificateLife), NotAfter: now.Add(certificateLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(der)
	b.link.Fingerprint = hex.EncodeToString(sum[:])
	b.token = rand.Text()
	b.link.Token = probe.NewSecret(b.token)
	o.Authorization = b.token
	o.TLS, o.TLSTimeout, o.AuthTimeout = true, 5, 6
	o.TLSConfig = &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	}
	return nil
}

// reachable returns an address of this machine for a host that it listens on.
func reachable(host string) string {
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		return host
	}
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	return "ADDRESS-OF-THIS-MACHINE"
}

// Link returns how this process reaches the server.
func (b *Broker) Link() Link { return b.link }

// JoinCommand returns what to type on another machine. It has the token in it,
// in the environment, where no process list shows it.
func (b *Broker) JoinCommand() string {
	if b.token == "" {
		return "poolsweep agent --join " + b.address
	}
	return fmt.Sprintf("POOLSWEEP_TOKEN=%s poolsweep agent --join %s --fingerprint %s", b.token, b.address, b.link.Fingerprint)
}

// Close stops the server.
func (b *Broker) Close() {
	if b == nil || b.server == nil {
		return
	}
	b.server.Shutdown()
	b.server.WaitForShutdown()
}
