//go:build unix

package fleet

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/sync/errgroup"

	"github.com/poolsweep/poolsweep/analyze"
	"github.com/poolsweep/poolsweep/internal/modelserver"
	"github.com/poolsweep/poolsweep/probe"
	"github.com/poolsweep/poolsweep/sweep"
	"github.com/poolsweep/poolsweep/sweep/load"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// beProcess makes this test program an agent or a NATS server when a test has
// started it as one.
func beProcess() {
	var err error
	switch os.Getenv("FLEET_TEST") {
	case "":
		return
	case "agent":
		err = beAgent()
	case "agents":
		err = beAgents()
	case "model":
		err = beModel()
	case "nats":
		err = beNATS(os.Getenv("FLEET_TEST_CONFIG"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func beAgent() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if n, err := strconv.ParseUint(os.Getenv("FLEET_TEST_FILES"), 10, 64); err == nil {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
			return err
		}
	}
	a := Agent{Name: os.Getenv("FLEET_TEST_NAME"), Threads: 1, Say: func(s string) { fmt.Fprintln(os.Stderr, s) }}
	return a.Run(ctx, Link{
		URL: os.Getenv("FLEET_TEST_URL"), Token: probe.NewSecret(os.Getenv("FLEET_TEST_TOKEN")), Fingerprint: os.Getenv("FLEET_TEST_FINGERPRINT"),
	})
}

// beAgents is several agents in one process.
func beAgents() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	n, err := strconv.Atoi(os.Getenv("FLEET_TEST_COUNT"))
	if err != nil {
		return err
	}
	var all errgroup.Group
	for i := range n {
		a := Agent{Name: fmt.Sprintf("agent-%03d", i), Threads: 1}
		all.Go(func() error { return a.Run(ctx, Link{URL: os.Getenv("FLEET_TEST_URL")}) })
	}
	return all.Wait()
}

// beModel is a model server of 10,000 requests a second, which prints where it
// listens.
func beModel() error {
	runtime.GOMAXPROCS(8)
	s, err := modelserver.Start(modelserver.Model{Workers: 50, Service: 5 * time.Millisecond})
	if err != nil {
		return err
	}
	fmt.Println(s.Addr)
	select {}
}

func beNATS(config string) error {
	o, err := server.ProcessConfigFile(config)
	if err != nil {
		return err
	}
	o.NoLog, o.NoSigs = true, true
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	s.Start()
	s.WaitForShutdown()
	return nil
}

// A process is this program started again. It ends with the test.
type process struct {
	*exec.Cmd
	stdout io.Reader
	stderr *bytes.Buffer // valid when it has ended
	gone   chan struct{}
}

// start starts this program with an environment, through the words before it.
func start(t testing.TB, env []string, before ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	words := append(slices.Clone(before), self)
	p := &process{Cmd: exec.Command(words[0], words[1:]...), stderr: new(bytes.Buffer), gone: make(chan struct{})}
	p.Env, p.Cmd.Stderr = append(os.Environ(), env...), p.stderr
	if p.stdout, err = p.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.Wait()
		close(p.gone)
	}()
	t.Cleanup(func() {
		p.Process.Signal(syscall.SIGCONT)
		p.Process.Kill()
		<-p.gone
		if t.Failed() {
			t.Logf("%s: %s", p.Env[len(p.Env)-1], p.stderr)
		}
	})
	return p
}

func agentEnv(l Link, name string, more ...string) []string {
	return append(more, "FLEET_TEST=agent", "FLEET_TEST_URL="+l.URL, "FLEET_TEST_TOKEN="+l.Token.Reveal(),
		"FLEET_TEST_FINGERPRINT="+l.Fingerprint, "FLEET_TEST_NAME="+name)
}

// sweepFleet sweeps with a fleet, or with this process when f is nil, and
// returns the result as it stands in its file.
func sweepFleet(t *testing.T, f *Fleet, s *probe.Server, clients []int, change func(*sweep.Config)) *sweep.Result {
	t.Helper()
	p := sweep.DefaultPlan()
	spec := set(t)
	spec.Seed = 1
	p.Workloads, p.Clients, p.Fixed = []workload.Spec{spec}, clients, true
	p.Slices, p.Duration, p.MinRequests, p.Warmup = 1, 200*time.Millisecond, 40, 60*time.Millisecond
	p.Budget = time.Second
	path := filepath.Join(t.TempDir(), "result.jsonl")
	journal, err := sweep.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	c := sweep.Config{Plan: p, Server: s, Journal: journal, Progress: func(e sweep.Event) {
		if e.Note != "" {
			t.Log(e.Note)
		}
	}}
	if f != nil {
		c.Room = f.Clients()
		c.NewDriver = func(w *workload.Workload) (load.Driver, error) { return f.Driver(w, s, false) }
	}
	if change != nil {
		change(&c)
	}
	if _, err := sweep.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	res, err := sweep.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// A model that answers a control connection, too.
func observable(m modelserver.Model) modelserver.Model {
	m.Reply = func(command string) string {
		switch command {
		case "INFO", "CONFIG", "ROLE":
			return "-ERR unknown command\r\n"
		case "UNLINK":
			return ":1\r\n"
		}
		return ""
	}
	return m
}

func connect(t testing.TB, addr string) *probe.Server {
	t.Helper()
	s, err := probe.Connect(t.Context(), at(t, addr).Target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// An agent that is killed, or frozen, in the middle of a sweep voids a slice.
// The sweep ends with a file that is whole, and says so; the agent that was
// frozen loads no more when it is woken.
func TestAgentProcessFails(t *testing.T) {
	for _, tt := range []struct {
		name   string
		signal syscall.Signal
	}{{"killed", syscall.SIGKILL}, {"frozen", syscall.SIGSTOP}} {
		t.Run(tt.name, func(t *testing.T) {
			m, _ := model(t, observable(modelserver.Model{Workers: 6, Service: 2 * time.Millisecond}))
			l := broker(t).Link()
			agents := make(map[string]*process)
			for _, name := range []string{"a", "b", "c"} {
				agents[name] = start(t, agentEnv(l, name))
			}
			f := gatherJoined(t, l, 3)
			done := 0
			res := sweepFleet(t, f, connect(t, m.Addr), []int{3, 6, 10, 12}, func(c *sweep.Config) {
				c.Plan.Trials = 2
				say := c.Progress
				c.Progress = func(e sweep.Event) {
					say(e)
					if e.Clients == 0 {
						return
					}
					if done++; done == 3 { // in the middle of the next slice
						time.AfterFunc(150*time.Millisecond, func() { agents["b"].Process.Signal(tt.signal) })
					}
				}
			})
			count := make(map[int]int) // slices by agents
			marked := 0
			for _, s := range res.Slices {
				if s.Superseded {
					continue
				}
				count[len(s.Measurement.Agents)]++
				if slices.Contains(s.Invalid, "agent-lost") {
					marked++
				}
				sum := 0
				for _, a := range s.Measurement.Agents {
					sum += a.Clients
				}
				if sum != s.Measurement.Clients {
					t.Errorf("the agents have %d of %d clients", sum, s.Measurement.Clients)
				}
			}
			if count[3] < 3 || count[2] < 3 || count[3]+count[2] != 8 || marked != 1 {
				t.Errorf("slices by agents: %v, %d of them marked", count, marked)
			}
			agents["b"].Process.Signal(syscall.SIGCONT)
			quiet(t, m)
		})
	}
}

// An agent whose limit of open files is low gets fewer clients.
func TestFileLimit(t *testing.T) {
	_, target := model(t, modelserver.Model{})
	l := broker(t).Link()
	start(t, agentEnv(l, "low", "FLEET_TEST_FILES=220"))
	start(t, agentEnv(l, "high"))
	f := gatherJoined(t, l, 2)
	m, err := driver(t, f, newWorkload(t, set(t)), target).Run(t.Context(), step(100, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range m.Agents {
		if want := map[string]int{"low": 20, "high": 80}[a.Name]; a.Clients != want {
			t.Errorf("agent %s has %d clients, want %d", a.Name, a.Clients, want)
		}
	}
	_, err = driver(t, f, newWorkload(t, set(t)), target).Run(t.Context(), step(900_000, 1))
	if err == nil || !strings.Contains(err.Error(), "ulimit -n") {
		t.Errorf("%v", err)
	}
}

// A NATS server of its own, with a token and TLS.
func TestExternalNATS(t *testing.T) {
	// The certificate of a broker serves, as its fingerprint is what counts.
	o := new(server.Options)
	var b Broker
	if err := b.secure(o); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key := pemFiles(t, dir, o.TLSConfig.Certificates[0])
	port := freePort(t)
	config := filepath.Join(dir, "nats.conf")
	text := fmt.Sprintf("listen: 127.0.0.1:%d\nauthorization { token: %q }\ntls { cert_file: %q, key_file: %q }\n", port, b.token, cert, key)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, []string{"FLEET_TEST=nats", "FLEET_TEST_CONFIG=" + config})
	l := b.link
	l.URL = fmt.Sprintf("tls://127.0.0.1:%d", port)
	for _, name := range []string{"a", "b"} {
		start(t, agentEnv(l, name))
	}
	eventually(t, "NATS listens", func() bool {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	f := gatherJoined(t, l, 2)
	if !encrypted(f.nc) || !f.all[0].TLS || !f.all[1].TLS {
		t.Error("a connection is not encrypted")
	}
	s, target := model(t, modelserver.Model{Workers: 2, Service: time.Millisecond})
	m, err := driver(t, f, newWorkload(t, set(t)), target).Run(t.Context(), step(4, 1))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Served.Load(), m.Sent+4; got != want {
		t.Errorf("the server has answered %d requests, want %d", got, want)
	}

	wrong := l
	wrong.Token = probe.NewSecret("wrong")
	refused(t, wrong, "wrong token")
	wrong = l
	wrong.Fingerprint = strings.Repeat("0", 64)
	refused(t, wrong, "fingerprint")
	wrong = l
	wrong.Fingerprint = ""
	refused(t, wrong, "--fingerprint")
}

// refused joins and gathers over a link that must be refused with one line
// that holds no secret.
func refused(t *testing.T, l Link, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, gathered := Gather(ctx, Config{Link: l, Agents: 1, Wait: time.Second})
	joined := (&Agent{Name: "x", Threads: 1}).Run(ctx, l)
	for _, err := range []error{gathered, joined} {
		switch {
		case err == nil, !strings.Contains(err.Error(), want), strings.Contains(err.Error(), "\n"):
			t.Errorf("%v; want a line with %q", err, want)
		case l.Token.Reveal() != "" && strings.Contains(strings.ReplaceAll(err.Error(), want, ""), l.Token.Reveal()):
			t.Errorf("%v holds the token", err)
		}
	}
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// Without TLS nothing leaves the machine, the token least of all.
func TestNoTLS(t *testing.T) {
	addr := publicAddress(t)
	o := &server.Options{Host: addr, Port: -1, NoLog: true, NoSigs: true}
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("NATS is not ready")
	}
	l := Link{URL: s.ClientURL(), Token: probe.NewSecret("t0ken")}
	refused(t, l, "--nats-plaintext")
	l.Plaintext = true
	join(t, l, Agent{Name: "a"})
	gatherJoined(t, l, 1)
}

// publicAddress returns an address of this machine that is not loopback.
func publicAddress(t testing.TB) string {
	t.Helper()
	if a := reachable("0.0.0.0"); net.ParseIP(a) != nil {
		return a
	}
	t.Skip("this machine has no address but loopback")
	return ""
}

// Three agents in network namespaces of their own find the knee and the
// throughput of a single generator, and their sums are exact.
func TestNamespacesInRealTime(t *testing.T) {
	const service = 10 * time.Millisecond // forward and veth take up to half of one
	links := namespaces(t, 3)
	m, _ := model(t, observable(modelserver.Model{Workers: 6, Service: service}))
	b, err := Listen(links[0].outer + ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	// Each agent dials the model at the one address that all of them reach.
	addr := forward(t, links[0].outer, m.Addr)
	for _, n := range links {
		start(t, agentEnv(b.Link(), n.name), "ip", "netns", "exec", n.name)
	}
	f := gatherJoined(t, b.Link(), 3)
	server := connect(t, addr)

	d := driver(t, f, newWorkload(t, set(t)), server)
	before := m.Served.Load()
	one, err := d.Run(t.Context(), step(10, 1))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.Served.Load()-before, one.Sent+10; got != want {
		t.Errorf("the server has answered %d requests, want %d", got, want)
	}
	for _, a := range one.Agents {
		t.Logf("%s: %d clients, %d requests, skew %v ± %v", a.Name, a.Clients, a.Requests, a.Skew, a.SkewError)
	}

	levels := []int{2, 6, 8, 12}
	modelserver.Holds(t, func() error {
		fleet := sweepFleet(t, f, server, levels, nil)
		single := sweepFleet(t, nil, server, levels, nil)
		if a, b := knee(fleet), knee(single); a != b {
			return fmt.Errorf("the fleet finds a knee of %d clients, a single generator %d", a, b)
		}
		for _, clients := range levels {
			// X = min(N, c)/S, less what the machine adds to a reply.
			want := float64(min(clients, 6)) / service.Seconds()
			a, b := median(fleet, clients), median(single, clients)
			t.Logf("%2d clients: fleet %.0f/s, single %.0f/s, model %.0f/s", clients, a, b, want)
			if a < 0.8*want || a > 1.05*want || a < 0.85*b || b < 0.85*a {
				return fmt.Errorf("%d clients: the fleet has %.0f requests/s, a single generator %.0f, the model %.0f", clients, a, b, want)
			}
		}
		return nil
	})
}

func knee(r *sweep.Result) int {
	return analyze.Analyze(r.Curves()[0], analyze.Options{Tolerance: 0.05}).Knee.Apparent
}

// median returns the median throughput of a step.
func median(r *sweep.Result, clients int) float64 {
	var qps []float64
	for _, s := range r.Slices {
		if s.Measurement.Clients == clients && !s.Superseded {
			qps = append(qps, s.Measurement.Throughput())
		}
	}
	slices.Sort(qps)
	return qps[len(qps)/2]
}

// A namespace is a network of its own that is connected with ours.
type namespace struct {
	name         string
	outer, inner string // addresses of the two ends
}

// namespaces makes n of them; the first one's outer address is reached from all.
func namespaces(t testing.TB, n int) []namespace {
	t.Helper()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("network namespaces need Linux and root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("network namespaces need the command ip")
	}
	var all []namespace
	id := os.Getpid() % 100_000
	for i := range n {
		x := namespace{fmt.Sprintf("ps%d-%d", id, i), fmt.Sprintf("198.18.%d.1", i), fmt.Sprintf("198.18.%d.2", i)} // RFC 2544
		outside, inside := fmt.Sprintf("pso%d-%d", id, i), fmt.Sprintf("psi%d-%d", id, i)
		ip := func(args ...string) error {
			out, err := exec.Command("ip", args...).CombinedOutput()
			if err != nil {
				return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
			}
			return nil
		}
		if err := ip("netns", "add", x.name); err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { ip("netns", "del", x.name); ip("link", "del", outside) })
		for _, args := range [][]string{
			{"link", "add", outside, "type", "veth", "peer", "name", inside, "netns", x.name},
			{"addr", "add", x.outer + "/24", "dev", outside},
			{"link", "set", outside, "up"},
			{"-n", x.name, "addr", "add", x.inner + "/24", "dev", inside},
			{"-n", x.name, "link", "set", inside, "up"},
			{"-n", x.name, "link", "set", "lo", "up"},
			{"-n", x.name, "route", "add", "default", "via", x.outer},
		} {
			if err := ip(args...); err != nil {
				t.Skip(err)
			}
		}
		all = append(all, x)
	}
	return all
}

// forward makes a server on loopback reachable at another address and returns
// that.
func forward(t testing.TB, host, to string) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
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
			s, err := net.Dial("tcp", to)
			if err != nil {
				c.Close()
				return
			}
			for _, way := range [][2]net.Conn{{c, s}, {s, c}} {
				go func() {
					io.Copy(way[0], way[1])
					way[0].Close()
					way[1].Close()
				}()
			}
		}
	}()
	return l.Addr().String()
}
