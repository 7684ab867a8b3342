package loadgen

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPacer_Due(t *testing.T) {
	for _, tc := range []struct {
		pacer pacer
		since time.Duration
		want  int64
	}{
		{pacer{rate: 10, burst: 1}, 0, 1},
		{pacer{rate: 10, burst: 1}, 99 * time.Millisecond, 1},
		{pacer{rate: 10, burst: 1}, 101 * time.Millisecond, 2},
		{pacer{rate: 10, burst: 1}, time.Second + time.Millisecond, 11},
		{pacer{rate: 10, burst: 5}, 0, 5},
		{pacer{rate: 10, burst: 5}, 499 * time.Millisecond, 5},
		{pacer{rate: 10, burst: 5}, 501 * time.Millisecond, 10},
		{pacer{rate: 0, burst: 1}, 0, math.MaxInt64},
		{pacer{rate: 1e9, burst: 1e9}, math.MaxInt64, math.MaxInt64},
	} {
		if got := tc.pacer.due(tc.since); got != tc.want {
			t.Errorf("%+v after %v: %d due, want %d", tc.pacer, tc.since, got, tc.want)
		}
	}
}

// A message is due when dueAt says so, and not much before: else the generator would
// come back for nothing, for ever, or run ahead.
func TestPacer_IsOfOneMind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := pacer{
			rate:  rapid.Float64Range(0.001, 1e6).Draw(t, "rate"),
			burst: rapid.Int64Range(1, 10_000).Draw(t, "burst"),
		}
		n := rapid.Int64Range(0, 1_000_000).Draw(t, "n")
		at := p.dueAt(n)
		if got := p.due(at); got <= n {
			t.Fatalf("message %d is due at %v, and then %d are", n, at, got)
		}
		if got := p.due(at - 1); at > 0 && got > n {
			t.Fatalf("message %d is due at %v, and a nanosecond before %d are", n, at, got)
		}
	})
}

func TestPacer_Wait(t *testing.T) {
	for name, tc := range map[string]struct {
		pacer pacer
		n     int64
		since time.Duration
		want  time.Duration
	}{
		"behind":              {pacer{rate: 10, burst: 1}, 1, time.Second, 0},
		"all at once":         {pacer{burst: 1}, 1000, time.Second, 0},
		"soon":                {pacer{rate: 1000, burst: 1}, 1, 0, tick},
		"half a second":       {pacer{rate: 2, burst: 1}, 1, 0, 500 * time.Millisecond},
		"an interrupt":        {pacer{rate: 0.001, burst: 1}, 1, 0, time.Second},
		"the end comes first": {pacer{rate: 1, burst: 1, duration: 100 * time.Millisecond}, 1, 40 * time.Millisecond, 60 * time.Millisecond},
		"the end is over":     {pacer{rate: 1, burst: 1, duration: 100 * time.Millisecond}, 1, 140 * time.Millisecond, 0},
	} {
		if got := tc.pacer.wait(tc.n, tc.since); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	if p := (pacer{duration: time.Second}); p.over(999*time.Millisecond) || !p.over(time.Second) || (pacer{}).over(time.Hour) {
		t.Error("the duration does not end it")
	}
}
