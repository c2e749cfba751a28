package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// A Pair is a certificate and its private key: paths of PEM files.
type Pair struct{ Cert, Key string }

// Certificates are made anew for a test. Server, Expired and Elsewhere are
// for servers: the first two are valid for localhost and 127.0.0.1.
type Certificates struct {
	CA      string // path of the certificate that has signed all the others
	OtherCA string // has signed Stranger only

	Server    Pair
	Expired   Pair // since an hour
	Elsewhere Pair // valid for elsewhere.example only
	Client    Pair
	Stranger  Pair // a client of OtherCA
}

// NewCertificates makes certificates that last for the test.
func NewCertificates(t testing.TB) *Certificates {
	t.Helper()
	dir := t.TempDir()
	ca, other := newAuthority(t, dir, "ca"), newAuthority(t, dir, "other-ca")
	loopback := x509.Certificate{DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	expired := loopback
	expired.NotAfter = time.Now().Add(-time.Hour)
	return &Certificates{
		CA:        ca.path,
		OtherCA:   other.path,
		Server:    ca.sign(t, dir, "server", loopback),
		Expired:   ca.sign(t, dir, "expired", expired),
		Elsewhere: ca.sign(t, dir, "elsewhere", x509.Certificate{DNSNames: []string{"elsewhere.example"}}),
		Client:    ca.sign(t, dir, "client", x509.Certificate{}),
		Stranger:  other.sign(t, dir, "stranger", x509.Certificate{}),
	}
}

// StartTLS starts a server that speaks TLS only, with the pair as its
// certificate, and with arguments behind those for it. It asks clients for a
// certificate of the CA unless an argument is "--tls-auth-clients", "no".
func StartTLS(t testing.TB, c *Certificates, pair Pair, args ...string) *Server {
	t.Helper()
	s := start(t, false, func(port int) []string {
		return slices.Concat([]string{"--port", "0", "--tls-port", strconv.Itoa(port)}, c.arguments(pair), keepNothing, args)
	})
	s.certificates = c
	return s
}

// StartTLSCluster is StartCluster of nodes that speak TLS only, without asking
// clients for a certificate.
func StartTLSCluster(t testing.TB, c *Certificates, masters int) *Cluster {
	t.Helper()
	return startCluster(t, masters, c, append(c.arguments(c.Server), "--tls-auth-clients", "no"))
}

// arguments tells a server its certificate and whom to trust.
func (c *Certificates) arguments(pair Pair) []string {
	return []string{"--tls-ca-cert-file", c.CA, "--tls-cert-file", pair.Cert, "--tls-key-file", pair.Key}
}

// config is that of a client which the servers let in, whatever their own
// certificate.
func (c *Certificates) config(t testing.TB) *tls.Config {
	t.Helper()
	if c == nil {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.Client.Cert, c.Client.Key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true}
}

type authority struct {
	path string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB, dir, name string) *authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{writePEM(t, dir, name+".crt", "CERTIFICATE", der), cert, key}
}

// sign makes a certificate of the template for servers and clients.
func (a *authority) sign(t testing.TB, dir, name string, template x509.Certificate) Pair {
	t.Helper()
	key := newKey(t)
	template.SerialNumber, template.Subject.CommonName = serial(t), name
	template.NotBefore = time.Now().Add(-2 * time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(24 * time.Hour)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, &template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return Pair{writePEM(t, dir, name+".crt", "CERTIFICATE", der), writePEM(t, dir, name+".key", "PRIVATE KEY", private)}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func serial(t testing.TB) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func writePEM(t testing.TB, dir, name, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
