package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/poolsweep/poolsweep/sweep/load"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// A call asks all agents who they are.
type call struct {
	Version    int    `json:"v"`
	Controller string `json:"controller"`
}

// A presence is an agent's answer.
type presence struct {
	Version int    `json:"v"`
	ID      string `json:"id"`   // of this process; its subject
	Name    string `json:"name"` // as its user has called it
	Build   string `json:"build"`
	Cores   int    `json:"cores"`
	Loops   int    `json:"loops"`          // event loops
	Clients int    `json:"clients"`        // how many connections its open files allow
	TLS     bool   `json:"tls,omitempty"`  // its connection to NATS is encrypted
	Busy    string `json:"busy,omitempty"` // the controller that it works for
}

// A beat says that the controller lives, and which epoch it is.
type beat struct {
	Version    int    `json:"v"`
	Controller string `json:"controller"`
	Epoch      int64  `json:"epoch"`
}

// A pulse says that an agent lives.
type pulse struct {
	Version  int     `json:"v"`
	ID       string  `json:"id"`
	Epoch    int64   `json:"epoch"`
	Inserted []int64 `json:"inserted,omitempty"` // keys that it has inserted, in each part
}

// The kinds of order.
const (
	claimOrder     = "claim"     // work for this controller from now on
	setupOrder     = "setup"     // make a driver of Setup
	calibrateOrder = "calibrate" // at the depth of Share
	prepareOrder   = "prepare"   // open the connections of Share
	startOrder     = "start"     // begin to load, In after this is read
	awaitOrder     = "await"     // answer when the window is over
	collectOrder   = "collect"   // stop the load and answer with what was measured
	releaseOrder   = "release"   // the controller is done
)

// An order is what a controller wants of an agent.
type order struct {
	Version    int           `json:"v"`
	Kind       string        `json:"kind"`
	Controller string        `json:"controller"`
	Epoch      int64         `json:"epoch"`
	Trial      int64         `json:"trial,omitempty"`
	Setup      *setup        `json:"setup,omitempty"`
	Share      *share        `json:"share,omitempty"`
	In         time.Duration `json:"in_ns,omitempty"`
}

// A setup is what is sent, and to whom.
type setup struct {
	Workload   workload.Spec `json:"workload"`
	Target     target        `json:"target"`
	Nodes      []node        `json:"nodes,omitempty"` // the masters of a cluster
	PerRequest bool          `json:"connection_per_request,omitempty"`

	// Index of Agents: which of the inserted keys are its own. Inserted is how
	// many of them it has used up, in each part.
	Index    int     `json:"index"`
	Agents   int     `json:"agents"`
	Inserted []int64 `json:"inserted,omitempty"`
}

// A target is the server, without secrets unless the way to the agent is
// encrypted.
type target struct {
	Network  string   `json:"network"`
	Host     string   `json:"host,omitempty"`
	Port     int      `json:"port,omitempty"`
	Socket   string   `json:"socket,omitempty"`
	User     string   `json:"user,omitempty"`
	Password password `json:"password,omitempty"`
	DB       int      `json:"db,omitempty"`
	RESP3    bool     `json:"resp3,omitempty"`
	Tracking bool     `json:"tracking,omitempty"`
	TLS      *tlsMode `json:"tls,omitempty"`
}

// A tlsMode is how to check the server's certificate; the files are the
// agent's own.
type tlsMode struct {
	SNI      string `json:"sni,omitempty"`
	Insecure bool   `json:"insecure,omitempty"`
}

// A password prints as stars.
type password string

// Format writes stars for any verb.
func (p password) Format(f fmt.State, _ rune) {
	if p != "" {
		io.WriteString(f, "***")
	}
}

// A node is a master of a cluster.
type node struct {
	Host  string               `json:"host"`
	Port  int                  `json:"port"`
	Slots []workload.SlotRange `json:"slots"`
}

// A share is an agent's part of a load.Job.
type share struct {
	Clients  int           `json:"clients"`
	Depth    int           `json:"depth"`
	Warmup   time.Duration `json:"warmup_ns"`
	Duration time.Duration `json:"duration_ns"`
	Requests int64         `json:"requests,omitempty"`
}

// A reply is the answer to an order.
type reply struct {
	Version  int       `json:"v"`
	Error    string    `json:"error,omitempty"`
	Void     bool      `json:"void,omitempty"` // the error is none of the server's: the order comes too late or was cut off
	Presence *presence `json:"presence,omitempty"`
	Result   *result   `json:"result,omitempty"`
}

// A result is what an agent has measured.
type result struct {
	Measurement *load.Measurement `json:"measurement"`

	// Begun is how long after the start order was read the window began.
	Begun time.Duration `json:"begun_ns"`

	Agent    load.Agent `json:"agent"`              // without name and skew
	Inserted []int64    `json:"inserted,omitempty"` // as in a pulse
}

// A versionError says that a message is of another version of the protocol.
type versionError struct {
	version int
	name    string // of the agent, if the message has one
}

func (e *versionError) Error() string {
	return fmt.Sprintf("protocol version %d, want %d; use the same build of poolsweep everywhere", e.version, Protocol)
}

// A message can be decoded.
type message interface {
	call | presence | beat | pulse | order | reply
}

// decode reads a message. Its error is a *versionError when that is of another
// version; fields that are unknown are an error too.
func decode[M message](b []byte) (M, error) {
	var m M
	var head struct {
		Version int    `json:"v"`
		Name    string `json:"name"`
	}
	// Fields of other versions may be of other types: no more is read of them.
	if err := json.Unmarshal(b, &head); err != nil {
		return m, fmt.Errorf("reading a message: %w", err)
	}
	if head.Version != Protocol {
		return m, &versionError{head.Version, head.Name}
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, fmt.Errorf("reading a message: %w", err)
	}
	if err := check(any(m)); err != nil {
		return m, fmt.Errorf("reading a message: %w", err)
	}
	return m, nil
}

// encode is the inverse of decode.
func encode[M message](m M) ([]byte, error) { return json.Marshal(m) }

const (
	maxName    = 100 // bytes of a name or an id
	maxClients = 1_000_000
	maxLength  = 2 * time.Hour // of a warm-up or a window
)

// check reports what is wrong with a message.
func check(m any) error {
	switch m := m.(type) {
	case call:
		return checkID("controller", m.Controller)
	case presence:
		return m.check()
	case beat:
		return checkID("controller", m.Controller)
	case pulse:
		return checkID("agent", m.ID)
	case order:
		return m.check()
	case reply:
		return m.check()
	}
	return nil
}

func (p presence) check() error {
	switch {
	case p.Name == "" || len(p.Name) > maxName:
		return fmt.Errorf("a name of %d bytes; want 1 to %d", len(p.Name), maxName)
	case p.Cores < 0, p.Loops < 1, p.Loops > 1024, p.Clients < 0:
		return fmt.Errorf("%d cores, %d event loops and %d clients of agent %s", p.Cores, p.Loops, p.Clients, p.Name)
	}
	return checkID("agent", p.ID)
}

// checkID reports what is no token of a subject.
func checkID(what, id string) error {
	if id == "" || len(id) > maxName {
		return fmt.Errorf("an id of the %s of %d bytes; want 1 to %d", what, len(id), maxName)
	}
	for _, c := range []byte(id) {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return fmt.Errorf("an id of the %s with the byte %q", what, c)
		}
	}
	return nil
}

func (o order) check() error {
	if err := checkID("controller", o.Controller); err != nil {
		return err
	}
	switch o.Kind {
	case claimOrder, awaitOrder, collectOrder, releaseOrder:
		return nil
	case startOrder:
		if o.In < 0 || o.In > time.Minute {
			return fmt.Errorf("a start in %v; want 0 to 1m", o.In)
		}
		return nil
	case setupOrder:
		if o.Setup == nil {
			return errors.New("a setup order without a setup")
		}
		return o.Setup.check()
	case calibrateOrder, prepareOrder:
		if o.Share == nil {
			return fmt.Errorf("a %s order without a share", o.Kind)
		}
		return o.Share.check()
	}
	return fmt.Errorf("unknown order %q", o.Kind)
}

func (s *setup) check() error {
	if s.Agents < 1 || s.Index < 0 || s.Index >= s.Agents {
		return fmt.Errorf("agent %d of %d", s.Index, s.Agents)
	}
	if n := s.Target.Network; n != "tcp" && n != "unix" {
		return fmt.Errorf("a target on network %q; want tcp or unix", n)
	}
	return nil
}

func (j *share) check() error {
	switch {
	case j.Clients < 1 || j.Clients > maxClients || j.Depth < 1 || j.Depth > maxClients:
		return fmt.Errorf("%d clients at pipeline depth %d; want 1 to %d", j.Clients, j.Depth, maxClients)
	case j.Warmup < 0 || j.Warmup > maxLength || j.Duration < 0 || j.Duration > maxLength:
		return fmt.Errorf("a window of %v after %v; want 0 to %v", j.Duration, j.Warmup, maxLength)
	case j.Requests < 0:
		return fmt.Errorf("%d requests", j.Requests)
	}
	return nil
}

func (r reply) check() error {
	if r.Presence != nil {
		if err := r.Presence.check(); err != nil {
			return err
		}
	}
	if r.Result != nil && (r.Result.Measurement == nil || r.Result.Measurement.Latency == nil) {
		return errors.New("a result without a measurement")
	}
	return nil
}
