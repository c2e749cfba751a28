package probe

import (
	"maps"
	"net"
	"testing"

	"github.com/poolsweep/poolsweep/internal/redistest"
)

// Connections come from the addresses in turn.
func TestSources(t *testing.T) {
	target, err := ParseTarget(redistest.Start(t).Addr)
	if err != nil {
		t.Fatal(err)
	}
	if target.Sources, err = ParseSources("127.0.0.2, 127.0.0.3"); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]int)
	for range 6 {
		c, err := target.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		host, _, _ := net.SplitHostPort(c.LocalAddr().String())
		got[host]++
	}
	if want := map[string]int{"127.0.0.2": 3, "127.0.0.3": 3}; !maps.Equal(got, want) {
		t.Errorf("connections from %v, want %v", got, want)
	}
	for _, wrong := range []string{"", "db", "127.0.0.2:80", "127.0.0.2,"} {
		if _, err := ParseSources(wrong); err == nil {
			t.Errorf("%q: no error", wrong)
		}
	}
	target.Network, target.Socket = "unix", "/tmp/x"
	if err := target.Check(); err == nil {
		t.Error("a unix socket: no error")
	}
}
