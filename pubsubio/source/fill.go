package source

import (
	"context"
	"time"
)

// fill waits for more messages in a bundle that has emitted some and has found the
// buffer empty, and reports whether more have come: a bundle costs a runner as much as
// many messages, and a response of the service is a bundle otherwise. All waits of a
// bundle together take BundleFillDelay. What comes is emitted at once; what waits for
// the end of the bundle (the commit, and what a fused write has batched) waits as much
// longer.
//
// So it waits only where messages are to be expected in that time: the last two
// responses were no further apart, and neither flow control nor another reader of the
// Read that has messages, whose turn a wait would put off, speaks against it.
func (v *visit) fill(ctx context.Context) bool {
	if v.emitted == 0 || v.quota.used() || !v.reader.flows(v.budget.fillDelay) {
		return false
	}
	over := func() bool { return v.group.othersReady(v.reader) }
	limit := v.budget.fillFor(time.Now())
	v.await(ctx, limit, v.group.run.Stopping(), func() bool { return v.reader.buffered() > 0 || over() })
	return v.reader.buffered() > 0 && !over() && v.reader.check(v.attempt) == nil
}

// flows reports whether responses come at most that far apart, and the service may
// send another one before something is acknowledged.
func (r *reader) flows(gap time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gap <= gap && !r.saturatedLocked()
}

// fillFor returns how long the bundle may still wait for more; the first call begins
// that time.
func (b *budget) fillFor(now time.Time) time.Duration {
	if b.filled.IsZero() {
		b.filled = now.Add(b.fillDelay)
	}
	return min(b.filled.Sub(now), b.until.Sub(now))
}
