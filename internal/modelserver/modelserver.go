// Package modelserver is a Redis server for tests whose throughput is known
// from a formula: c workers with a fixed service time S answer X = min(N, c)/S
// requests a second to N clients in a closed loop, so that the knee is exactly
// c. A delay D on the way moves it to c + D·c/S (Little's law). It speaks just enough RESP for load and for a control connection, keeps
// no data and is no part of the poolsweep command.
package modelserver

import (
	"bytes"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/poolsweep/poolsweep/internal/resp"
)

// A Server is a running model.
type Server struct {
	// Addr is where it listens, on the loopback interface.
	Addr string

	// Served counts the requests answered, all connections together.
	Served atomic.Int64

	model    Model
	listener net.Listener
	handlers sync.WaitGroup
	close    sync.Once

	mu    sync.Mutex
	free  []time.Time // when each worker has done what it was given
	queue chan answer // in the order of due, which is that of arrival
	conns map[net.Conn]bool

	killed bool
}

// An answer waits for its time.
type answer struct {
	due   time.Time
	conn  net.Conn
	bytes []byte
}

// A Model says how a server answers. The zero value is a null responder: it
// answers every command at once with +OK.
type Model struct {
	Workers int           // c; 0 answers at once
	Service time.Duration // S, of each request
	Delay   time.Duration // between server and clients, both ways together

	// Reply is given the name of a command, in upper case, and returns the
	// bytes to answer with; "" stands for +OK. It may be nil.
	Reply func(command string) string
}

// Start starts a server.
func Start(m Model) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{
		Addr:     l.Addr().String(),
		model:    m,
		listener: l,
		free:     make([]time.Time, m.Workers),
		queue:    make(chan answer, 1<<16),
		conns:    make(map[net.Conn]bool),
	}
	go s.deliver()
	s.handlers.Go(s.accept)
	return s, nil
}

// Close may be called again. It ends the server and waits for its goroutines.
func (s *Server) Close() {
	s.close.Do(func() {
		s.Kill()
		s.handlers.Wait()
		close(s.queue)
	})
}

// Kill closes the listener and every connection, as the end of a server's
// process does.
func (s *Server) Kill() {
	s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killed = true
	for c := range s.conns {
		c.Close()
	}
}

func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[c] = true
		if s.killed {
			c.Close()
		}
		s.mu.Unlock()
		s.handlers.Go(func() {
			s.serve(c)
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
			c.Close()
		})
	}
}

// serve takes the commands of one connection in their order.
func (s *Server) serve(c net.Conn) {
	var scan resp.Scanner // a command is an array like a reply
	var command, out []byte
	in := make([]byte, 16<<10)
	for {
		n, err := c.Read(in)
		if err != nil {
			return
		}
		out = out[:0]
		var due time.Time
		for data := in[:n]; len(data) > 0; {
			n, done, err := scan.Scan(data)
			if err != nil {
				return
			}
			command = append(command, data[:n]...)
			data = data[n:]
			if done {
				out = append(out, s.answer(command)...)
				command = command[:0]
				s.Served.Add(1)
				due = s.work()
			}
		}
		if len(s.free) == 0 {
			c.Write(out)
		} else {
			s.queue <- answer{due.Add(s.model.Delay), c, bytes.Clone(out)}
		}
	}
}

// work gives a request to the worker that is free first and returns when it
// will be done.
func (s *Server) work() time.Time {
	if len(s.free) == 0 {
		return time.Time{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	first := 0
	for i, t := range s.free {
		if t.Before(s.free[first]) {
			first = i
		}
	}
	start := time.Now()
	if s.free[first].After(start) {
		start = s.free[first]
	}
	s.free[first] = start.Add(s.model.Service)
	return s.free[first]
}

// deliver sends each answer at its time. It sleeps in the kernel: Go's timers
// come up to a millisecond late on an idle process, a tenth of a service time.
// A goroutine in the kernel can keep its processor for 10 ms: a test that runs
// the model raises GOMAXPROCS.
func (s *Server) deliver() {
	for a := range s.queue {
		if wait := time.Until(a.due); wait > 0 {
			tv := unix.NsecToTimeval(wait.Nanoseconds())
			unix.Select(0, nil, nil, nil, &tv)
		}
		a.conn.Write(a.bytes)
	}
}

// answer returns the reply to one command. It allocates only for a model
// with a reply function: tests count what the generator allocates.
func (s *Server) answer(command []byte) string {
	name := command // "*2\r\n$3\r\nGET\r\n…"
	for range 2 {
		_, name, _ = bytes.Cut(name, crlf)
	}
	name, _, _ = bytes.Cut(name, crlf)
	if bytes.EqualFold(name, []byte("HELLO")) {
		return "-ERR unknown command 'HELLO'\r\n" // as a server before 6.0
	}
	if s.model.Reply != nil {
		if r := s.model.Reply(strings.ToUpper(string(name))); r != "" {
			return r
		}
	}
	return "+OK\r\n"
}

var crlf = []byte("\r\n")
