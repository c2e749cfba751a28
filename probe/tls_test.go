package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/poolsweep/poolsweep/internal/redistest"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	c := redistest.NewCertificates(t)
	any := []string{"--tls-auth-clients", "no"}
	open := redistest.StartTLS(t, c, c.Server, any...)
	mutual := redistest.StartTLS(t, c, c.Server)
	mutual12 := redistest.StartTLS(t, c, c.Server, "--tls-protocols", "TLSv1.2")
	expired := redistest.StartTLS(t, c, c.Expired, any...)
	elsewhere := redistest.StartTLS(t, c, c.Elsewhere, any...)
	plain := redistest.Start(t)
	client := func(p redistest.Pair) *TLS { return &TLS{CACert: c.CA, Cert: p.Cert, Key: p.Key} }

	for _, tt := range []struct {
		name string
		at   *redistest.Server
		tls  *TLS
		err  string // "" wants a connection
	}{
		{"right CA", open, &TLS{CACert: c.CA}, ""},
		{"not checked", expired, &TLS{Insecure: true}, ""},
		{"client certificate", mutual, client(c.Client), ""},
		{"client certificate, TLS 1.2", mutual12, client(c.Client), ""},
		{"another name", elsewhere, &TLS{CACert: c.CA, SNI: "elsewhere.example"}, ""},
		{"the system's CAs", open, &TLS{}, "unknown authority; give its CA with --cacert"},
		{"wrong CA", open, &TLS{CACert: c.OtherCA}, "unknown authority; give its CA with --cacert"},
		{"expired", expired, &TLS{CACert: c.CA}, "has expired or is not valid yet"},
		{"wrong name", elsewhere, &TLS{CACert: c.CA}, "not for 127.0.0.1 (but for elsewhere.example); give its name with --sni"},
		{"wrong SNI", open, &TLS{CACert: c.CA, SNI: "a.example"}, "not for a.example (but for localhost, 127.0.0.1)"},
		{"no client certificate", mutual, &TLS{CACert: c.CA}, "client certificate"},
		{"no client certificate, TLS 1.2", mutual12, &TLS{CACert: c.CA}, "client certificate"},
		{"client certificate of another CA", mutual, client(c.Stranger), "client certificate"},
		{"expired client certificate", mutual, client(c.Expired), "client certificate"},
		{"plain server", plain, &TLS{CACert: c.CA}, "does this port speak TLS?"},
		{"TLS server", open, nil, "--tls"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := targetOf(t, tt.at)
			target.TLS = tt.tls
			s, err := Connect(t.Context(), target)
			if tt.err != "" {
				wantLine(t, err, "connecting to "+tt.at.Addr+": ")
				wantLine(t, err, tt.err)
				t.Log(err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if !s.Identity.Local || s.Identity.Role != "master" {
				t.Errorf("identity %+v", s.Identity)
			}
			conn, err := s.Target.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, ok := conn.(*tls.Conn); !ok {
				t.Errorf("a %T, want *tls.Conn", conn)
			}
		})
	}
}

// A port that says nothing must not hold up a TLS handshake for longer than
// its user wants.
func TestTLSHonoursContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	target, err := ParseTarget("rediss://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []Target{target, {Port: target.Port}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		time.AfterFunc(50*time.Millisecond, func() { cancel(gone) })
		begun := time.Now()
		if _, err := target.Dial(ctx); !errors.Is(err, gone) {
			t.Errorf("%v: got %v", target, err)
		}
		if d := time.Since(begun); d > replyTimeout/2 {
			t.Errorf("%v: returned after %v", target, d)
		}
	}
}
