// Package faultproxy is a TCP proxy for tests that does to connections what
// networks do: it delays, stalls, resets and falls silent. It is not for load
// beyond some ten thousand requests a second: it copies every byte twice.
package faultproxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// A Proxy forwards connections to one address.
type Proxy struct {
	// Addr is where it listens, host:port on loopback.
	Addr string

	to       string
	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex
	delay  time.Duration
	until  time.Time // nothing is forwarded before
	silent bool      // what comes is dropped
	conns  map[net.Conn]bool
	closed bool
}

// Start starts a proxy to an address. It must be closed.
func Start(to string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{Addr: l.Addr().String(), to: to, listener: l, conns: make(map[net.Conn]bool)}
	p.running.Go(p.accept)
	return p, nil
}

// Delay makes every byte arrive d later, in each direction.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Stall holds everything back for d, then delivers it.
func (p *Proxy) Stall(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Now().Add(d)
}

// Silence drops everything from now on, without closing: a half-open peer.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = true
}

// Reset closes the connections there are with a TCP reset. New ones work.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	err := p.listener.Close()
	p.running.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = in.Close()
			continue
		}
		if p.add(in, out) {
			p.running.Go(func() { p.forward(in, out) })
			p.running.Go(func() { p.forward(out, in) })
		}
	}
}

// add remembers connections; false when the proxy is closed.
func (p *Proxy) add(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.closed {
			_ = c.Close()
			continue
		}
		p.conns[c] = true
	}
	return !p.closed
}

// A packet is what has been read at once, and when it is due.
type packet struct {
	due  time.Time
	data []byte
}

// forward copies one direction. Reading goes on while packets wait, as on a
// long line.
func (p *Proxy) forward(from, to net.Conn) {
	line := make(chan packet, 1024)
	p.running.Go(func() {
		defer close(line)
		for {
			b := make([]byte, 4096)
			n, err := from.Read(b)
			if n > 0 {
				p.mu.Lock()
				due, silent := time.Now().Add(p.delay), p.silent
				p.mu.Unlock()
				if !silent {
					line <- packet{due, b[:n]}
				}
			}
			if err != nil {
				return
			}
		}
	})
	for x := range line {
		time.Sleep(time.Until(x.due))
		p.mu.Lock()
		stalled := time.Until(p.until)
		p.mu.Unlock()
		time.Sleep(stalled)
		if _, err := to.Write(x.data); err != nil && !errors.Is(err, io.EOF) {
			_ = from.Close() // ends the reader
		}
	}
	_ = to.Close()
	p.mu.Lock()
	delete(p.conns, to)
	p.mu.Unlock()
}
