package probe

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseTarget(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want string // as String prints it; "" wants an error
		err  string
	}{
		{in: "redis://127.0.0.1:6379", want: "redis://127.0.0.1:6379"},
		{in: "redis://bob:hunter2@db.example:7000/3", want: "redis://bob@db.example:7000/3"},
		{in: "redis://:hunter2@db", want: "redis://db:6379"},
		{in: "db.example:7000", want: "redis://db.example:7000"},
		{in: "redis://[::1]:7000", want: "redis://[::1]:7000"},
		{in: "unix:///run/redis.sock?db=2", want: "unix:///run/redis.sock?db=2"},
		{in: "rediss://bob:hunter2@db/2", want: "rediss://bob@db:6379/2"},
		{in: "redis+sentinel://s1:7000/mymaster", want: "redis+sentinel://s1:7000/mymaster"},
		{in: "redis+sentinel://bob:hunter2@s1,s2:7000,[::1]:7001/my%2Fmaster/3", want: "redis+sentinel://bob@s1:26379,s2:7000,[::1]:7001/my%2Fmaster/3"},
		{in: "rediss+sentinel://s1,s2/m?db=4", want: "rediss+sentinel://s1:26379,s2:26379/m/4"},
		{in: "unix://", err: "needs a path"},
		{in: "unix://run/redis.sock", err: "unix:///path"},
		{in: "http://db", err: `unknown scheme "http"`},
		{in: "unix+sentinel://h/m", err: `unknown scheme "unix+sentinel"`},
		{in: "redis://db:99999", err: "99999"},
		{in: "redis://db/x", err: `"x" is not a number`},
		{in: "redis://:hunter2@db:port", err: "URL"},
		{in: "redis+sentinel://s1:26379", err: "name of a master"},
		{in: "redis+sentinel:///m", err: "no host of a sentinel"},
		{in: "redis+sentinel://:hunter2@s1,,s2/m", err: "no host of a sentinel"},
		{in: "redis+sentinel://:hunter2@s1:port/m", err: "URL"},
		{in: "redis+sentinel://s1:99999/m", err: "99999"},
		{in: "redis+sentinel://s1/m/x", err: `"x" is not a number`},
	} {
		got, err := ParseTarget(tt.in)
		if tt.err != "" {
			wantLine(t, err, tt.err)
			continue
		}
		if err != nil || got.Normal().String() != tt.want {
			t.Errorf("%s: got %v, %v, want %s", tt.in, got.Normal(), err, tt.want)
		}
		if strings.Contains(tt.in, "hunter2") && got.Password.Reveal() != "hunter2" {
			t.Errorf("%s: password %q", tt.in, got.Password.Reveal())
		}
	}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		target Target
		want   string
	}{
		{Target{DB: -1}, "database -1"},
		{Target{Network: "unix", Socket: "/a", TLS: &TLS{}}, "not for a unix socket"},
		{Target{TLS: &TLS{CACert: "/nowhere/ca.crt"}}, "reading the CA certificate: open /nowhere/ca.crt"},
		{Target{TLS: &TLS{CACert: "url_test.go"}}, "url_test.go has no certificate in PEM form"},
		{Target{TLS: &TLS{Cert: "a"}}, "give --cert and --key"},
		{Target{TLS: &TLS{Cert: "/nowhere/a", Key: "/nowhere/b"}}, "reading the client certificate: open /nowhere/a"},
		{Target{Sentinel: &Sentinel{Master: "m"}}, "no address of a sentinel"},
		{Target{Sentinel: &Sentinel{Addrs: []string{"h:1"}}}, "name of a master"},
		{Target{Sentinel: &Sentinel{Addrs: []string{"h"}, Master: "m"}}, "not host:port"},
		{Target{Sentinel: &Sentinel{Addrs: []string{"h:1"}, Master: "m", TLS: &TLS{Key: "a"}}}, "give --cert and --key"},
	} {
		wantLine(t, tt.target.Check(), tt.want)
	}
	if err := (Target{}).Check(); err != nil {
		t.Errorf("the zero value: %v", err)
	}
}

// FuzzParseTarget: what is accepted prints as a URL that is read as the same
// target.
func FuzzParseTarget(f *testing.F) {
	for _, s := range []string{
		"redis://u:p@h:1/2", "unix:///a?db=1", "h:1", "redis://[::1%25lo]:1", "://", "redis://h:0", "rediss://h",
		"redis+sentinel://u:p@h:1,[::1%25lo]/m/2", "rediss+sentinel://h,i/%2F?db=1", "redis+sentinel://@,/",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseTarget(s)
		if err != nil {
			return
		}
		a = a.Normal()
		a.Password = Secret{}
		b, err := ParseTarget(a.String())
		if err != nil {
			t.Fatalf("%q prints as %q: %v", s, a, err)
		}
		if d := cmp.Diff(a, b.Normal(), cmp.AllowUnexported(Secret{}, TLS{})); d != "" {
			t.Fatalf("%q prints as %q, -first +again:\n%s", s, a, d)
		}
	})
}
