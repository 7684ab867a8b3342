package loadgen

import (
	"math"
	"time"
)

const (
	// tick is how far apart two visits of the generator are at least, so that a rate of
	// thousands a second does not become as many bundles.
	tick = 5 * time.Millisecond
	// bundleMost is how many messages a bundle has at most, and bundleTime how long
	// the generator goes on emitting one while the sink holds it back.
	bundleMost = 10_000
	bundleTime = 200 * time.Millisecond
)

// A pacer says which messages are due when. It knows no clock.
type pacer struct {
	rate     float64       // messages a second, 0: all at once
	burst    int64         // messages that are due together
	duration time.Duration // after which none is due any more, 0: never
}

// due returns how many messages are due in all at a time since the first: all those of
// which dueAt is not later.
func (p pacer) due(since time.Duration) int64 {
	if p.rate == 0 {
		return math.MaxInt64
	}
	bursts := math.Floor(since.Seconds()*p.rate/float64(p.burst)) + 1 // the first at once
	if bursts*float64(p.burst) >= math.MaxInt64/2 {
		return math.MaxInt64
	}
	// That is rounded, and so is dueAt, which decides.
	n := int64(bursts) * p.burst
	for n > p.burst && p.dueAt(n-1) > since {
		n -= p.burst
	}
	for p.dueAt(n) <= since {
		n += p.burst
	}
	return n
}

// dueAt returns when message n, from 0, is due, since the first.
func (p pacer) dueAt(n int64) time.Duration {
	if p.rate == 0 {
		return 0
	}
	seconds := float64(n/p.burst) * float64(p.burst) / p.rate
	if seconds > never.Seconds() {
		return never
	}
	return time.Duration(math.Ceil(seconds * 1e9))
}

// never is a time that does not come: a hundred years.
const never = 100 * 365 * 24 * time.Hour

// over reports whether nothing more is due.
func (p pacer) over(since time.Duration) bool { return p.duration > 0 && since >= p.duration }

// wait returns how long to wait before message n, when that time has passed since the
// first.
func (p pacer) wait(n int64, since time.Duration) time.Duration {
	wait := p.dueAt(n) - since
	if wait <= 0 {
		return 0
	}
	wait = max(wait, tick)
	if p.duration > 0 {
		wait = min(wait, max(p.duration-since, 0)) // the end must not wait for a message
	}
	return min(wait, time.Second) // nor an interrupt
}
