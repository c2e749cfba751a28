// Package modelserver is a Redis server for tests of which formulas tell what
// load will see. With c workers and a fixed service time S it answers
// X = min(N, c)/S requests a second to N clients in a closed loop, so that the
// knee is exactly c; a delay D on the way moves it to c + D·c/S (Little's
// law). With exponential service times a pool of N connections before it, at
// which requests come at random, is Erlang's queue M/M/N.
//
// It speaks just enough RESP for load and for a control connection, keeps no
// data and is no part of the poolsweep command.
package modelserver

import (
	"bytes"
	"context"
	"math/rand/v2"
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
	// Addr is where it listens, on the loopback interface; "" in memory.
	Addr string

	// Served counts the requests answered, all connections together.
	Served atomic.Int64

	late atomic.Int64 // ns, of the answers together

	model    Model
	listener net.Listener // nil in memory
	handlers sync.WaitGroup
	close    sync.Once

	started time.Time
	sleep   func(time.Duration)

	mu    sync.Mutex
	free  []time.Time // when each worker has done what it was given
	rng   *rand.Rand  // of service times; nil when they are fixed
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

	// Exponential makes S the mean of service times that are drawn from an
	// exponential distribution, with Seed. There is no Delay then, and what
	// makes a connection ready (HELLO, CLIENT, PING) is answered at once.
	Exponential bool
	Seed        uint64

	// FreezeFor is how long the server answers nothing, once every
	// FreezeEvery and the first time after half of that. 0: it does not
	// freeze.
	FreezeFor, FreezeEvery time.Duration

	// Reply is given the name of a command, in upper case, and returns the
	// bytes to answer with; "" stands for +OK. It may be nil.
	Reply func(command string) string
}

// serviceStream keeps the service times apart from what else a test draws with
// the same seed.
const serviceStream = 1 << 32

// ServiceTimes returns the source of the exponential service times of a
// server with that seed: the n-th request has its n-th ExpFloat64, times S.
func ServiceTimes(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, serviceStream)) }

// Start starts a server that listens on the loopback interface. It sleeps in
// the kernel: Go's timers come up to a millisecond late on an idle process, a
// tenth of a service time. A goroutine in the kernel can keep its processor for
// 10 ms: a test that runs the model raises GOMAXPROCS.
func Start(m Model) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := newServer(m, func(d time.Duration) {
		tv := unix.NsecToTimeval(d.Nanoseconds())
		unix.Select(0, nil, nil, nil, &tv)
	})
	s.Addr, s.listener = l.Addr().String(), l
	s.handlers.Go(s.accept)
	return s, nil
}

// InMemory starts a server that is reached by its method Dial only and sleeps
// as Go does, so that it can be run in a bubble of testing/synctest, where a
// clock of its own makes the formulas exact.
func InMemory(m Model) *Server { return newServer(m, time.Sleep) }

func newServer(m Model, sleep func(time.Duration)) *Server {
	s := &Server{
		model:   m,
		started: time.Now(),
		sleep:   sleep,
		free:    make([]time.Time, m.Workers),
		queue:   make(chan answer, 1<<16),
		conns:   make(map[net.Conn]bool),
	}
	if m.Exponential {
		s.rng = ServiceTimes(m.Seed)
	}
	go s.deliver()
	return s
}

// Lateness returns by how much an answer left after its time, on average. It
// is what a busy machine adds to each service time.
func (s *Server) Lateness() time.Duration {
	return time.Duration(s.late.Load() / max(1, s.Served.Load()))
}

// Throughput returns the X that n clients in a closed loop will see, in
// requests a second: n of them each take S and the lateness, and c workers that
// have a queue before them take S.
func (s *Server) Throughput(n int) float64 {
	service := s.model.Service.Seconds()
	return min(float64(n)/(service+s.Lateness().Seconds()), float64(s.model.Workers)/service)
}

// Dial returns a connection that does not leave the process.
func (s *Server) Dial(context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	s.handle(server)
	return client, nil
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
	if s.listener != nil {
		s.listener.Close()
	}
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
		s.handle(c)
	}
}

// handle serves a connection on a goroutine of its own.
func (s *Server) handle(c net.Conn) {
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
				s.Served.Add(1)
				if !s.model.Exponential || !readies(command) {
					due = s.work()
				}
				command = command[:0]
			}
		}
		switch {
		case len(s.free) == 0:
			s.sleepUntil(s.thaw())
			c.Write(out)
		case s.model.Exponential:
			// One may overtake another: each connection waits for itself.
			s.sleepUntil(due)
			s.sleepUntil(s.thaw())
			c.Write(out)
		default:
			s.queue <- answer{due.Add(s.model.Delay), c, bytes.Clone(out)}
		}
	}
}

// thaw returns when the freeze ends that the server is in, or a time that has
// passed.
func (s *Server) thaw() time.Time {
	if s.model.FreezeEvery == 0 {
		return time.Time{}
	}
	first := s.started.Add(s.model.FreezeEvery / 2)
	last := time.Since(first).Truncate(s.model.FreezeEvery)
	if time.Now().Before(first) {
		return time.Time{}
	}
	return first.Add(last + s.model.FreezeFor)
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
	service := s.model.Service
	if s.rng != nil {
		service = time.Duration(s.rng.ExpFloat64() * float64(service))
	}
	s.free[first] = start.Add(service)
	return s.free[first]
}

// deliver sends each answer at its time.
func (s *Server) deliver() {
	for a := range s.queue {
		s.sleepUntil(a.due)
		s.sleepUntil(s.thaw())
		a.conn.Write(a.bytes)
		s.late.Add(int64(time.Since(a.due)))
	}
}

// sleepUntil returns at t, at once when t is in the past.
func (s *Server) sleepUntil(t time.Time) {
	if wait := time.Until(t); wait > 0 {
		s.sleep(wait)
	}
}

// answer returns the reply to one command. It allocates only for a model
// with a reply function: tests count what the generator allocates.
func (s *Server) answer(command []byte) string {
	name := nameOf(command)
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

// nameOf returns the name of a command, as it was sent.
func nameOf(command []byte) []byte {
	name := command // "*2\r\n$3\r\nGET\r\n…"
	for range 2 {
		_, name, _ = bytes.Cut(name, crlf)
	}
	name, _, _ = bytes.Cut(name, crlf)
	return name
}

// readies reports whether a command makes a connection ready.
func readies(command []byte) bool {
	switch strings.ToUpper(string(nameOf(command))) {
	case "HELLO", "CLIENT", "PING":
		return true
	}
	return false
}

var crlf = []byte("\r\n")
