package load

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"sync"
	"time"

	"github.com/panjf2000/gnet/v2"
)

// A null answers every command with the same reply.
type null struct {
	command int // its size, 0 when it varies
	reply   []byte
}

// A nullConn is a connection of a responder.
type nullConn struct {
	partial int            // bytes of a command that have come, when all are of one size
	scan    commandScanner // when they are not
	out     []byte         // replies, as many as were ever needed at once
}

// answer returns the replies to the commands that end in data.
func (n *null) answer(c *nullConn, data []byte) ([]byte, error) {
	commands := 0
	if n.command > 0 {
		c.partial += len(data)
		commands = c.partial / n.command
		c.partial %= n.command
	} else {
		for len(data) > 0 {
			k, done, err := c.scan.Scan(data)
			if err != nil {
				return nil, err
			}
			if done {
				commands++
			}
			data = data[k:]
		}
	}
	for len(c.out) < commands*len(n.reply) {
		c.out = append(c.out, n.reply...)
	}
	return c.out[:commands*len(n.reply)], nil
}

// A loopResponder is a null responder on event loops.
type loopResponder struct {
	gnet.BuiltinEventEngine
	null
	listener net.Listener
	client   *gnet.Client
}

func startLoopResponder(n null, loops int) (*loopResponder, error) {
	r := &loopResponder{null: n}
	var err error
	if r.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	if r.client, err = startClient(r, loops); err != nil {
		return nil, errors.Join(err, r.listener.Close())
	}
	go r.accept()
	return r, nil
}

// accept hands connections to the event loops.
func (r *loopResponder) accept() {
	for {
		nc, err := r.listener.Accept()
		if err != nil {
			return
		}
		if _, err := r.client.EnrollContext(nc, new(nullConn)); err != nil {
			return
		}
	}
}

// OnTraffic answers the commands that have come whole.
func (r *loopResponder) OnTraffic(c gnet.Conn) gnet.Action {
	data, err := c.Next(-1)
	if err != nil {
		return gnet.Close
	}
	out, err := r.answer(c.Context().(*nullConn), data)
	if err != nil {
		return gnet.Close
	}
	_, _ = c.Write(out)
	return gnet.None
}

func (r *loopResponder) Close() error {
	return errors.Join(r.listener.Close(), r.client.Stop())
}

// A connResponder is a null responder with a goroutine a connection.
type connResponder struct {
	null
	listener net.Listener

	mu      sync.Mutex
	conns   map[net.Conn]bool
	closed  bool
	running sync.WaitGroup
}

// startConnResponder starts a responder that speaks TLS when there is a
// configuration for it.
func startConnResponder(n null, c *tls.Config) (*connResponder, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if c != nil {
		l = tls.NewListener(l, c)
	}
	r := &connResponder{null: n, listener: l, conns: make(map[net.Conn]bool)}
	r.running.Go(r.accept)
	return r, nil
}

func (r *connResponder) accept() {
	for {
		c, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		if r.closed {
			reset(c)
		}
		r.conns[c] = true
		r.mu.Unlock()
		r.running.Go(func() { r.serve(c) })
	}
}

// serve answers what comes over one connection.
func (r *connResponder) serve(c net.Conn) {
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.conns, c)
		reset(c)
	}()
	var nc nullConn
	in := make([]byte, minRead)
	for {
		n, err := c.Read(in)
		if err != nil {
			return
		}
		out, err := r.answer(&nc, in[:n])
		if err != nil {
			return
		}
		if _, err := c.Write(out); err != nil {
			return
		}
		in = grown(in, n)
	}
}

func (r *connResponder) Close() error {
	err := r.listener.Close()
	r.mu.Lock()
	r.closed = true
	for c := range r.conns {
		reset(c)
	}
	r.mu.Unlock()
	r.running.Wait()
	return err
}

// selfSigned returns the configuration of a server with a certificate that
// nobody has signed and nothing keeps.
func selfSigned() (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, nil
}

// tlsDialer adds TLS to what dial opens. The responder is our own, so that its
// certificate need not be looked at.
func tlsDialer(dial func(context.Context) (net.Conn, error)) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		nc, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		c := tls.Client(nc, &tls.Config{InsecureSkipVerify: true})
		if err := c.HandshakeContext(ctx); err != nil {
			reset(nc)
			return nil, err
		}
		return c, nil
	}
}
