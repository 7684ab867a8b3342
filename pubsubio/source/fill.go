package source

import (
	"context"
	"time"
)

// fill waits for more messages in a bundle that has emitted some and has found the
// buffer empty, and reports whether more have come: a bundle costs a runner as much as
// many messages, and a response of the service is a bundle otherwise. All waits of a
// bundle together take BundleFillDelay. What comes is emitted at once, so that only the
// commit is later for it.
//
// It waits for nobody's sake but its own reader's: where another one of the bundle has
// messages, that one's turn is next.
func (v *visit) fill(ctx context.Context) bool {
	if v.emitted == 0 || v.quota.used() {
		return false
	}
	timer := time.NewTimer(v.budget.fillFor(time.Now()))
	defer timer.Stop()
	for {
		changed := v.group.changed.changed()
		switch {
		case v.reader.check(v.attempt) != nil || v.group.ready(v.budget.served) > 0:
			return false
		case v.reader.buffered() > 0:
			return true
		}
		select {
		case <-changed:
		case <-timer.C:
			return false
		case <-v.group.run.Stopping():
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// fillFor returns how long the bundle may still wait for more; the first call begins
// that time.
func (b *budget) fillFor(now time.Time) time.Duration {
	if b.filled.IsZero() {
		b.filled = now.Add(b.fillDelay)
	}
	return min(b.filled.Sub(now), b.until.Sub(now))
}
