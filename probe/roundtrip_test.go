package probe

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"pgregory.net/rapid"

	"github.com/poolsweep/poolsweep/internal/modelserver"
)

// With one worker, a fixed service time S and a delay D on the way, no round
// trip of an idle server is shorter than S + D (see package modelserver), and
// with pauses none waits for another.
func TestRoundTripInRealTime(t *testing.T) {
	const service, delay = 2 * time.Millisecond, 3 * time.Millisecond
	s, err := modelserver.Start(modelserver.Model{Workers: 1, Service: service, Delay: delay})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	target, err := ParseTarget(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	r, err := RoundTrip(t.Context(), target, 300*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if r.Count == 0 || r.Min < service+delay {
		t.Errorf("%+v, want no round trip below %v", r, service+delay)
	}
	// One PING rests for PingInterval before the next.
	if most := int64(r.Elapsed/(PingInterval+service+delay)) + 1; r.Count > most {
		t.Errorf("%d round trips in %v, want at most %d", r.Count, r.Elapsed, most)
	}
}

// All is the sum of the intervals.
func TestPingerAll(t *testing.T) {
	p, err := NewPinger(t.Context(), fake(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var sum RoundTrips
	for range 3 {
		r, err := p.Measure(t.Context(), 20*time.Millisecond, time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		sum.Count += r.Count
		sum.Max = max(sum.Max, r.Max)
	}
	if all := p.All(); all.Count != sum.Count || all.Max != sum.Max || sum.Count == 0 {
		t.Errorf("all %+v, want count and max of %+v", all, sum)
	}
}

// A PING that is not answered when the user gives up counts with the time that
// it has waited.
func TestPingWithoutReply(t *testing.T) {
	asked := make(chan struct{}, 1)
	pings := 0
	target := fake(t, func(command string) string {
		if command != "PING" {
			return ""
		}
		if pings++; pings == 1 {
			return "+PONG\r\n" // of the handshake
		}
		asked <- struct{}{}
		return "+PO" // and no more
	})
	p, err := NewPinger(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	r, err := p.Measure(ctx, 0, 0)
	if err != nil || r.Count != 1 || r.Max <= 0 {
		t.Errorf("%+v, %v, want the time that it waited", r, err)
	}
}

// What goes wrong on the way is one line that says what to do, and what there
// is comes with it.
func TestPingErrors(t *testing.T) {
	for _, tt := range []struct{ name, reply, want string }{
		{"refused", "-NOPERM this user has no permissions to run the 'ping' command\r\n", "'ping' command; give a user that may run it (--user)"},
		{"nonsense", "HTTP/1.1 400 Bad Request\r\n\r\n", "not a RESP line"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pings := 0
			p, err := NewPinger(t.Context(), withPassword(fake(t, func(command string) string {
				if command == "PING" {
					if pings++; pings > 3 {
						return tt.reply
					}
				}
				return ""
			})))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			r, err := p.Measure(t.Context(), 0, 0)
			wantLine(t, err, tt.want)
			if r.Count != 2 { // three PINGs less that of the handshake
				t.Errorf("%d round trips before it, want 2", r.Count)
			}
		})
	}
}

func TestPingOfServerThatEnds(t *testing.T) {
	m := miniredis.RunT(t)
	target, err := ParseTarget(m.Addr())
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPinger(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m.Close()
	_, err = p.Measure(t.Context(), 0, 0)
	wantLine(t, err, "the server closed the connection")
}

func TestRoundTripRefused(t *testing.T) {
	_, err := RoundTrip(t.Context(), Target{Network: "unix", Socket: "/nowhere/redis.sock"}, time.Second)
	wantLine(t, err, "no such socket")
}

// The law of a summary: min ≤ mean ≤ max and min ≤ p50 ≤ p99 ≤ max, p50 and p99
// within 0.1 % (three digits) of the exact ones.
func TestRoundTripsSummary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(1, int64(2*pingTimeout)), 1, 200).Draw(t, "values")
		var r roundTrips
		for _, v := range values {
			r.record(time.Duration(v))
		}
		s := r.summary(time.Second)
		slices.Sort(values)
		n := len(values)
		if s.Count != int64(n) || int64(s.Min) != values[0] || int64(s.Max) != values[n-1] {
			t.Fatalf("%+v of %v", s, values)
		}
		if s.Mean < s.Min || s.Mean > s.Max || s.P50 < s.Min || s.P99 < s.P50 || s.P99 > s.Max {
			t.Fatalf("out of order: %+v", s)
		}
		exact := float64(values[(n-1)/2]) // nearest rank: ceil(n/2)
		if d := float64(s.P50) - exact; d < 0 || d > 0.001*exact+1 {
			t.Fatalf("p50 %v, want %v", s.P50, time.Duration(exact))
		}
	})
}

func TestRoundTripsOfNothing(t *testing.T) {
	var r roundTrips
	if got := r.summary(time.Second); got != (RoundTrips{Elapsed: time.Second}) {
		t.Errorf("%+v", got)
	}
}
