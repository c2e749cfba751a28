package probe

import (
	"context"
	"testing"
	"time"
)

// A clock that advances by the given gaps gives them back.
func TestWatchClock(t *testing.T) {
	gaps := []time.Duration{
		50, 99_999, // below 100 µs
		100_000, 999_999, // one of 100 µs and one just below 1 ms
		time.Millisecond, 10 * time.Millisecond, 50,
	}
	var now, sum time.Duration
	for _, g := range gaps {
		sum += g
	}
	next := 0
	clock := func() time.Duration {
		if next > 0 {
			now += gaps[next-1]
		}
		next++
		return now
	}
	got := watchClock(sum, clock, func() bool { return false })
	want := Stalls{
		Elapsed: sum, Readings: 7, Worst: 10 * time.Millisecond, Over100us: 4, Over1ms: 2, Over10ms: 1,
		Lost: 100_000 + 999_999 + 11*time.Millisecond,
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got.Mean() != sum/7 {
		t.Errorf("mean %v, want %v", got.Mean(), sum/7)
	}
}

// Of a real clock only laws are known.
func TestIntrinsic(t *testing.T) {
	const over = 20 * time.Millisecond
	s := Intrinsic(t.Context(), over)
	if s.Elapsed < over || s.Readings == 0 || s.Worst > s.Elapsed || s.Lost > s.Elapsed || s.Mean() > s.Worst {
		t.Errorf("%+v", s)
	}
	if s.Over10ms > s.Over1ms || s.Over1ms > s.Over100us || s.Over100us > s.Readings {
		t.Errorf("the counts do not contain each other: %+v", s)
	}
}

func TestIntrinsicEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s := Intrinsic(ctx, time.Hour); s.Elapsed >= time.Hour {
		t.Errorf("%+v", s)
	}
	if got := (Stalls{}).Mean(); got != 0 {
		t.Errorf("mean of nothing: %v", got)
	}
}
