// Package load drives a server: it opens connections, keeps requests in
// flight on them (closed loop) or sends them when they are due (open loop),
// and records what came back and when. It
// records facts and judges nothing; what to drive next is package sweep's
// business, what may be concluded package analyze's.
//
// A Driver runs one Job at a time. EventLoops is the driver for plain TCP and
// unix sockets: gnet event loops, the cheapest way measured to keep one
// Redis thread busy from Go (docs/design.md has the numbers). Conns has a
// goroutine a connection, for what gnet cannot do: TLS, and a new connection
// for each request. Everything that is not transport, what to send next, which
// bytes end a reply, what counts, is in session and shared by both.
//
// A driver has one Endpoint, or the masters of a cluster, each of which is
// sent the part of the workload that it owns.
package load

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/poolsweep/poolsweep/internal/arrivals"
)

// A Step is one operating point of a sweep: how much is kept in flight.
type Step struct {
	Clients int `json:"clients"` // connections N, at least 1
	Depth   int `json:"depth"`   // requests in a batch on each connection P, at least 1
}

// InFlight returns the number of requests kept in flight, N·P.
func (s Step) InFlight() int { return s.Clients * s.Depth }

// A Job is one uninterrupted measurement of a step: connect, warm up,
// measure, drain, close. Only the window between Warmup and the end counts.
type Job struct {
	Step
	Warmup   time.Duration // load before the window; may be 0
	Duration time.Duration // length of the window; used when Requests is 0

	// Requests is the exact number of requests to send in the window, which
	// then ends with the last reply. 0: the window ends after Duration.
	Requests int64

	// Rate is how many requests a second are due, in batches of Depth: the
	// loop is then an open one, in which they do not wait for each other's
	// replies. One that finds no connection free waits for one, and is timed
	// from when it was due. Arrivals says at which gaps, Seed makes them the
	// same again. Requests must be 0. 0: a closed loop.
	Rate     float64
	Arrivals arrivals.Kind
	Seed     uint64

	// Begin and End are called when the window begins and ends; Run returns
	// after both have returned. They may be nil. Begin is called on a
	// goroutine of its own, and the window does not wait for it. A window of
	// Duration has the load going on behind it until End returns.
	Begin, End func()
}

// A Driver runs jobs. Run returns an error when the load could not be driven
// (it could not connect, every connection was lost, ctx ended); what was
// measured until then comes with it and may be nil.
type Driver interface {
	Run(ctx context.Context, job Job) (*Measurement, error)
	Close() error
}

// A Measurement is what one job, or several of one step merged, has recorded.
// Facts only. Its JSON form is part of the result file.
type Measurement struct {
	Step
	Start   time.Time     `json:"start"`      // when the window began
	Elapsed time.Duration `json:"elapsed_ns"` // its length

	// Requests is the number of requests answered without an error inside
	// the window, Errors what the others were answered with.
	Requests int64                 `json:"requests"`
	Errors   map[string]ErrorClass `json:"errors,omitempty"`

	// Nulls is how many of Requests were answered with a null: for a GET
	// the misses.
	Nulls int64 `json:"nulls,omitempty"`

	// The whole job, warm-up and drain included:
	// Sent = Received + Failed + Lost, always.
	Sent     int64 `json:"sent"`
	Received int64 `json:"received"` // answered without an error
	Failed   int64 `json:"failed"`   // answered with an error
	Lost     int64 `json:"lost"`     // not answered: the connection was lost or the drain timed out

	// Redirects is how often a node of a cluster said, in the whole job, that
	// another one has the key, and was followed: MOVED and ASK. Such a request
	// is sent again and counts once, when it is answered.
	Redirects int64 `json:"redirects,omitempty"`

	// LostConnections is how many connections ended before the job did.
	LostConnections int `json:"lost_connections,omitempty"`

	BytesOut int64 `json:"bytes_out"` // sent inside the window
	BytesIn  int64 `json:"bytes_in"`  // received inside the window

	// Latency has one value for each of Requests and for each error in the
	// window: from when the batch was written to when its reply was handled.
	// Where each request has a connection of its own, it begins before that is
	// opened.
	Latency *Latency `json:"latency"`

	// Commands is the same by command when the workload has several, Nodes by
	// node when there are several endpoints, in their order. The sums of
	// either are those above.
	Commands []Part `json:"commands,omitempty"`
	Nodes    []Part `json:"nodes,omitempty"`

	// BatchTime is the sum over the batches answered in the window of the
	// time from writing a batch to its last reply.
	BatchTime time.Duration `json:"batch_time_ns"`

	// Intervals has the Requests of each 100 ms of the window; the last one
	// may be shorter.
	Intervals []int64 `json:"intervals_100ms,omitempty"`

	// Connect is how long opening the connections took; Loops how many
	// event loops drove them, 0 where each had a goroutine.
	Connect time.Duration `json:"connect_ns"`
	Loops   int           `json:"loops"`

	// Open is set by an open loop, where Requests, Errors, Latency and what
	// is like them are those of the requests that were due in the window,
	// whenever they were answered, and the latency begins when they were due.
	Open *Open `json:"open,omitempty"`

	// Agents are the generators of a fleet, nil when there was but this one.
	Agents []Agent `json:"agents,omitempty"`
}

// Open is what an open loop records beside a closed one, in requests that were
// due in the window if nothing else is said.
type Open struct {
	Rate     float64       `json:"rate_qps"` // of arrivals, intended
	Arrivals arrivals.Kind `json:"arrivals"`

	Due int64 `json:"due"`

	// Answered is how many replies without an error came within the window,
	// to whatever request. Well below Due, the server does not keep up.
	Answered int64 `json:"answered"`

	// Waited is how many had to wait for a connection, Wait the sum of how
	// long.
	Waited int64         `json:"waited"`
	Wait   time.Duration `json:"wait_ns"`

	// Slip has, of each that was sent, how late the generator was: from when
	// it was due to when it was written, 0 for one that had to wait for a
	// connection. It is in the latency.
	Slip *Latency `json:"slip"`
}

// merge adds o to m, either of which may be nil, and returns the sum, which
// shares nothing with o.
func (m *Open) merge(o *Open) *Open {
	if o == nil {
		return m
	}
	if m == nil {
		m = &Open{Rate: o.Rate, Arrivals: o.Arrivals, Slip: new(Latency)}
	}
	m.Due += o.Due
	m.Answered += o.Answered
	m.Waited += o.Waited
	m.Wait += o.Wait
	m.Slip.Merge(o.Slip)
	return m
}

// Missing returns how many of the requests due in the window of an open loop
// have no latency: they were never sent, or were lost. 0 for a closed loop.
func (m *Measurement) Missing() int64 {
	if m.Open == nil {
		return 0
	}
	return max(0, m.Open.Due-m.Latency.Count())
}

// A Part is what became of some of the requests of a Measurement inside the
// window: those of one command, or those that one node answered.
type Part struct {
	Name     string   `json:"name"`              // of the command; address of the node
	Clients  int      `json:"clients,omitempty"` // connections to the node
	Requests int64    `json:"requests"`          // answered without an error
	Failed   int64    `json:"failed,omitempty"`  // answered with an error
	Nulls    int64    `json:"nulls,omitempty"`   // of Requests, answered with a null
	Latency  *Latency `json:"latency"`
}

// An ErrorClass is what a number of requests was answered with.
type ErrorClass struct {
	Count int64  `json:"count"`
	First string `json:"first"` // text of the first of them
}

// interval is the grain of Measurement.Intervals.
const interval = 100 * time.Millisecond

// Throughput returns X, the requests answered without an error per second.
func (m *Measurement) Throughput() float64 {
	if m.Elapsed <= 0 {
		return 0
	}
	return float64(m.Requests) / m.Elapsed.Seconds()
}

// Utilisation returns X·R/(N·P), R the mean time from writing a batch to its
// last reply: the share of the window in which the requests were really in
// flight. By Little's law it is 1 in a closed loop without think time; below
// about 0.95 the connections idled between requests and the server was not
// what limited the throughput.
//
// See Little (1961), "A Proof for the Queuing Formula: L = λW".
func (m *Measurement) Utilisation() float64 {
	if m.Elapsed <= 0 || m.Clients == 0 {
		return 0
	}
	return m.BatchTime.Seconds() / (m.Elapsed.Seconds() * float64(m.Clients))
}

// ErrorCount returns how many requests in the window were answered with an
// error.
func (m *Measurement) ErrorCount() int64 {
	var n int64
	for _, e := range m.Errors {
		n += e.Count
	}
	return n
}

// Merge adds another measurement of the same step: counts add up, histograms
// are merged by counts, windows are put one behind the other.
func (m *Measurement) Merge(o *Measurement) error {
	if m.Step != o.Step {
		return fmt.Errorf("merging measurements: %v is not %v", o.Step, m.Step)
	}
	if o.Start.Before(m.Start) {
		m.Start = o.Start
	}
	m.Elapsed += o.Elapsed
	m.Requests += o.Requests
	m.Nulls += o.Nulls
	m.Sent += o.Sent
	m.Received += o.Received
	m.Failed += o.Failed
	m.Lost += o.Lost
	m.Redirects += o.Redirects
	m.LostConnections += o.LostConnections
	m.BytesOut += o.BytesOut
	m.BytesIn += o.BytesIn
	m.BatchTime += o.BatchTime
	m.Connect += o.Connect
	m.Loops = max(m.Loops, o.Loops)
	m.Intervals = append(m.Intervals, o.Intervals...)
	for class, e := range o.Errors {
		m.addError(class, e)
	}
	m.Latency.Merge(o.Latency)
	m.Commands = mergeParts(m.Commands, o.Commands)
	m.Nodes = mergeParts(m.Nodes, o.Nodes)
	m.Open = m.Open.merge(o.Open)
	m.Agents = mergeAgents(m.Agents, o.Agents)
	return nil
}

// mergeParts adds the parts of o to those of the same name in m. Connections
// are not added: they are those of one step.
func mergeParts(m, o []Part) []Part {
	for _, p := range o {
		i := slices.IndexFunc(m, func(q Part) bool { return q.Name == p.Name })
		if i < 0 {
			m = append(m, p.clone())
			continue
		}
		q := &m[i]
		q.Clients = max(q.Clients, p.Clients)
		q.Requests += p.Requests
		q.Failed += p.Failed
		q.Nulls += p.Nulls
		q.Latency.Merge(p.Latency)
	}
	return m
}

// clone returns a copy that shares nothing with p.
func (p Part) clone() Part {
	l := new(Latency)
	l.Merge(p.Latency)
	p.Latency = l
	return p
}

// Clone returns a copy that shares nothing with m.
func (m *Measurement) Clone() *Measurement {
	c := *m
	c.Errors = maps.Clone(m.Errors)
	c.Intervals = append([]int64(nil), m.Intervals...)
	c.Latency = new(Latency)
	c.Latency.Merge(m.Latency)
	c.Commands = mergeParts(nil, m.Commands)
	c.Nodes = mergeParts(nil, m.Nodes)
	c.Open = (*Open)(nil).merge(m.Open)
	c.Agents = slices.Clone(m.Agents)
	return &c
}

// Pack gives up the memory that recording takes: a few hundred kilobytes for
// each latency. It may still be merged with others.
func (m *Measurement) Pack() {
	m.Latency.pack()
	for _, parts := range [][]Part{m.Commands, m.Nodes} {
		for _, p := range parts {
			p.Latency.pack()
		}
	}
	if m.Open != nil {
		m.Open.Slip.pack()
	}
}

func (m *Measurement) addError(class string, e ErrorClass) {
	if m.Errors == nil {
		m.Errors = make(map[string]ErrorClass)
	}
	have := m.Errors[class]
	if have.Count == 0 {
		have.First = e.First
	}
	have.Count += e.Count
	m.Errors[class] = have
}

// FirstError returns the text of the most frequent error, "" when there was none.
func (m *Measurement) FirstError() string {
	var most ErrorClass
	for _, e := range m.Errors {
		if e.Count > most.Count || e.Count == most.Count && e.First < most.First {
			most = e
		}
	}
	return most.First
}
