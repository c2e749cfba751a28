package probe

import (
	"net"
	"strings"
	"testing"

	"github.com/poolsweep/poolsweep/internal/redistest"
)

func TestSentinel(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t, "--requirepass", "hunter2")
	const own = "requirepass hunter22\nsentinel sentinel-pass hunter22"
	sentinel := redistest.StartSentinel(t, "mymaster", master, "sentinel auth-pass mymaster hunter2")
	guarded := redistest.StartSentinel(t, "mymaster", master, "sentinel auth-pass mymaster hunter2", own)
	other := redistest.StartSentinel(t, "other", master)
	replica := redistest.StartReplica(t, redistest.Start(t))
	stale := redistest.StartSentinel(t, "mymaster", replica)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()

	target := func(name string, addrs ...string) Target {
		t, err := ParseTarget("redis+sentinel://:hunter2@" + strings.Join(addrs, ",") + "/" + name)
		if err != nil {
			panic(err)
		}
		return t
	}
	withOwn := target("mymaster", guarded.Addr)
	withOwn.Sentinel.Password = NewSecret("hunter22")

	for _, tt := range []struct {
		name   string
		target Target
		err    string // "" wants the master
	}{
		{"one", target("mymaster", sentinel.Addr), ""},
		{"the first is down, the second does not know it", target("mymaster", nobody, other.Addr, sentinel.Addr), ""},
		{"with a password of its own", withOwn, ""},
		{"none answers", target("mymaster", nobody), "asking the sentinels for mymaster: no sentinel answers: " + nobody + ": connection refused"},
		{"none knows it", target("nomaster", nobody, sentinel.Addr, other.Addr), "no sentinel knows a master of this name: " +
			sentinel.Addr + " knows mymaster; " + other.Addr + " knows other; " + nobody + ": connection refused"},
		{"the sentinel wants a password", target("mymaster", guarded.Addr), guarded.Addr + ": the server wants a password"},
		{"no sentinel", func() Target {
			x := target("mymaster", master.Addr)
			x.Sentinel.Password = NewSecret("hunter2")
			return x
		}(), "is this a sentinel?"},
		{"it names a replica", target("mymaster", stale.Addr), "the sentinels call it the master of mymaster, but it is a replica; is a failover under way?"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if strings.HasPrefix(tt.name, "it names") {
				tt.target.Password = Secret{}
			}
			s, err := Connect(t.Context(), tt.target)
			if tt.err != "" {
				wantLine(t, err, tt.err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if s.Target.Addr() != master.Addr || s.Target.Sentinel != nil || s.Identity.Sentinel != "mymaster" || s.Identity.Role != "master" {
				t.Errorf("connected to %v, identity %+v", s.Target, s.Identity)
			}
			c, err := tt.target.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if got := c.RemoteAddr().String(); got != master.Addr {
				t.Errorf("dialled %s, want the master %s", got, master.Addr)
			}
		})
	}
}

// With rediss+sentinel both the sentinel and the master speak TLS, each with
// the certificates that are for it.
func TestSentinelTLS(t *testing.T) {
	c := redistest.NewCertificates(t)
	master := redistest.StartTLS(t, c, c.Server)
	sentinel := redistest.StartSentinel(t, "mymaster", master)
	target, err := ParseTarget("rediss+sentinel://" + sentinel.Addr + "/mymaster")
	if err != nil {
		t.Fatal(err)
	}
	client := &TLS{CACert: c.CA, Cert: c.Client.Cert, Key: c.Client.Key}
	_, err = Connect(t.Context(), target)
	wantLine(t, err, "no sentinel answers: "+sentinel.Addr+": the server's certificate is of an unknown authority; give its CA with --cacert")
	target.Sentinel.TLS = client
	_, err = Connect(t.Context(), target)
	wantLine(t, err, "connecting to "+master.Addr+": the server's certificate is of an unknown authority")
	target.TLS = client
	s, err := Connect(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Target.Addr() != master.Addr {
		t.Errorf("connected to %s, want %s", s.Target.Addr(), master.Addr)
	}
}

func TestSentinelIsNoTarget(t *testing.T) {
	sentinel := redistest.StartSentinel(t, "mymaster", redistest.Start(t))
	_, err := Connect(t.Context(), targetOf(t, sentinel))
	wantLine(t, err, "this is a sentinel; give redis+sentinel://"+sentinel.Addr+"/NAME")
}
