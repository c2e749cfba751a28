package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/poolsweep/poolsweep/sweep/load"
	"github.com/poolsweep/poolsweep/sweep/workload"
)

// examples are messages of every kind that are in order.
func examples() []any {
	target := target{Network: "tcp", Host: "db", Port: 6379, Password: "secret", TLS: &tlsMode{SNI: "db"}}
	setup := &setup{
		Workload: workload.Spec{Name: "SET", Prefix: "p:"}, Target: target, Index: 1, Agents: 3,
		Nodes: []node{{Host: "db", Port: 1, Slots: []workload.SlotRange{{First: 0, Last: 16383}}}}, Inserted: []int64{7},
	}
	agent := presence{Version: Protocol, ID: "A1", Name: "web-1", Loops: 1, Clients: 900, Cores: 2}
	o := order{Version: Protocol, Controller: "C1", Epoch: 2}
	with := func(change func(*order)) order { x := o; change(&x); return x }
	m := &load.Measurement{Step: load.Step{Clients: 4, Depth: 1}, Requests: 5, Latency: new(load.Latency)}
	return []any{
		call{Version: Protocol, Controller: "C1"},
		agent,
		beat{Version: Protocol, Controller: "C1", Epoch: 3},
		pulse{Version: Protocol, ID: "A1", Epoch: 3, Inserted: []int64{1}},
		with(func(o *order) { o.Kind = claimOrder }),
		with(func(o *order) { o.Kind, o.Setup = setupOrder, setup }),
		with(func(o *order) {
			o.Kind, o.Trial, o.Share = prepareOrder, 9, &share{Clients: 4, Depth: 16, Warmup: time.Second}
		}),
		with(func(o *order) { o.Kind, o.Trial, o.In = startOrder, 9, time.Millisecond }),
		with(func(o *order) { o.Kind = awaitOrder }),
		with(func(o *order) { o.Kind = collectOrder }),
		with(func(o *order) { o.Kind, o.Share = calibrateOrder, &share{Clients: 1, Depth: 1} }),
		with(func(o *order) { o.Kind = releaseOrder }),
		reply{Version: Protocol, Presence: &agent},
		reply{Version: Protocol, Error: "refused", Void: true},
		reply{Version: Protocol, Result: &result{Measurement: m, Begun: 3, Agent: load.Agent{Clients: 4}}},
	}
}

// decodeAs decodes as the type of m.
func decodeAs(m any, b []byte) (any, error) {
	switch m.(type) {
	case call:
		return decode[call](b)
	case presence:
		return decode[presence](b)
	case beat:
		return decode[beat](b)
	case pulse:
		return decode[pulse](b)
	case order:
		return decode[order](b)
	}
	return decode[reply](b)
}

func encoded(t testing.TB, m any) []byte {
	t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Decoding is the inverse of encoding, and another version is refused.
func TestMessages(t *testing.T) {
	for _, m := range examples() {
		b := encoded(t, m)
		got, err := decodeAs(m, b)
		if err != nil {
			t.Errorf("%s: %v", b, err)
			continue
		}
		if diff := cmp.Diff(string(b), string(encoded(t, got))); diff != "" {
			t.Error(diff)
		}
		other := bytes.Replace(b, []byte(`"v":1`), []byte(`"v":2,"later":{"field":1}`), 1)
		var version *versionError
		if _, err := decodeAs(m, other); !errors.As(err, &version) || version.version != 2 {
			t.Errorf("%s: %v, want a refusal of its version", other, err)
		}
		unknown := bytes.Replace(b, []byte(`"v":1`), []byte(`"v":1,"unknown":1`), 1)
		if _, err := decodeAs(m, unknown); err == nil {
			t.Errorf("%s is taken", unknown)
		}
	}
}

func TestWrongMessages(t *testing.T) {
	for _, tt := range []struct {
		as   any
		text string
		want string
	}{
		{order{}, `{"v":1,"kind":"dance","controller":"C"}`, "unknown order"},
		{order{}, `{"v":1,"kind":"claim","controller":"a.b"}`, "id of the controller"},
		{order{}, `{"v":1,"kind":"claim","controller":"*"}`, "id of the controller"},
		{order{}, `{"v":1,"kind":"setup","controller":"C"}`, "without a setup"},
		{order{}, `{"v":1,"kind":"prepare","controller":"C"}`, "without a share"},
		{order{}, `{"v":1,"kind":"prepare","controller":"C","share":{"clients":0,"depth":1,"warmup_ns":0,"duration_ns":0}}`, "0 clients"},
		{order{}, `{"v":1,"kind":"start","controller":"C","in_ns":-1}`, "a start in"},
		{presence{}, `{"v":1,"id":"A","name":"","loops":1}`, "a name of 0 bytes"},
		{reply{}, `{"v":1,"result":{"begun_ns":1}}`, "without a measurement"},
		{beat{}, `[]`, "reading a message"},
	} {
		if _, err := decodeAs(tt.as, []byte(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.text, err, tt.want)
		}
	}
}

// A password is in the message and nowhere else.
func TestPasswordPrintsAsStars(t *testing.T) {
	x := target{Password: "secret"}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if text := fmt.Sprintf(format, x); strings.Contains(text, "secret") || strings.Contains(text, "736563") {
			t.Errorf("%s: %s", format, text)
		}
	}
}

// FuzzMessages: nothing panics, and what is taken encodes to what decodes to
// itself.
func FuzzMessages(f *testing.F) {
	for _, m := range examples() {
		f.Add(encoded(f, m))
	}
	f.Add([]byte(`{"v":2}`))
	kinds := []any{call{}, presence{}, beat{}, pulse{}, order{}, reply{}}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, kind := range kinds {
			m, err := decodeAs(kind, b)
			if err != nil {
				continue
			}
			first := encoded(t, m)
			again, err := decodeAs(kind, first)
			if err != nil {
				t.Fatalf("%s: %v", first, err)
			}
			if second := encoded(t, again); !reflect.DeepEqual(first, second) {
				t.Errorf("%s became %s", first, second)
			}
		}
	})
}
