package faultproxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// echo starts a server that sends back each line.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T) (*Proxy, net.Conn, *bufio.Reader) {
	t.Helper()
	p, err := Start(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	c, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return p, c, bufio.NewReader(c)
}

func TestDelayAndStall(t *testing.T) {
	p, c, r := dial(t)
	p.Delay(10 * time.Millisecond)
	ask := func() time.Duration {
		begun := time.Now()
		if _, err := c.Write([]byte("x\n")); err != nil {
			t.Fatal(err)
		}
		if line, err := r.ReadString('\n'); err != nil || line != "x\n" {
			t.Fatalf("got %q, %v", line, err)
		}
		return time.Since(begun)
	}
	if d := ask(); d < 20*time.Millisecond {
		t.Errorf("an echo took %v with a delay of 10 ms each way", d)
	}
	p.Stall(100 * time.Millisecond)
	if d := ask(); d < 100*time.Millisecond {
		t.Errorf("an echo took %v in a stall of 100 ms", d)
	}
}

func TestSilenceAndReset(t *testing.T) {
	p, c, r := dial(t)
	p.Silence()
	if _, err := c.Write([]byte("x\n")); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadString('\n'); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a silent peer: got error %v, want a timeout", err)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	p.Reset()
	if _, err := r.ReadString('\n'); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.EOF) {
		t.Errorf("a reset peer: got error %v, want a reset", err)
	}
}
