package source

import (
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/finalize"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// claim opens an attempt for a restriction that resumes token. It takes the
// reader from whoever holds it, returns to the service what the restriction does
// not build on, and opens the stream where pull says so and it is closed. It
// returns errEnded where the reader is no longer in use.
func (r *reader) claim(token, parent, newToken string, pull bool) (*attempt, error) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil, errEnded
	}
	if err := r.failureLocked(now); err != nil {
		return nil, err
	}
	a, committed, abandoned := r.ledger.claim(token, parent, newToken, now)
	if len(committed) > 0 {
		r.commits.signal(r.used, now) // Their bundle had ended by then.
		r.counts.ByResume.Add(int64(len(committed)))
		r.acknowledgeLocked(committed, now)
	}
	r.giveUpLocked(abandoned, now)
	r.bundle, r.used, r.ending = a, now, !pull
	if pull && r.pulling == nil {
		r.pullLocked()
	}
	return a, nil
}

// failureLocked returns why no bundle can use the reader, nil where one can.
func (r *reader) failureLocked(now time.Time) error {
	limit := r.config.Subscriber.FirstCommitTimeout
	since := r.ledger.waitingSince()
	if r.failure == nil && limit > 0 && !since.IsZero() && r.commits.never() && now.Sub(since) >= limit {
		r.failure = errNeverCommitted(r.subscription, r.ledger.owed, limit)
	}
	if r.failure == nil {
		r.failure = r.unconfirmedLocked(now)
	}
	return r.failure
}

// A delivery is a message on its way out of the buffer.
type delivery struct {
	msg       *message.Message
	attempt   int // the delivery attempt
	eventTime time.Time
	size      int64
	untimed   bool
}

// take moves up to n messages of together up to size bytes from the buffer into
// the attempt, and appends them to dst. It is the only way out of the buffer, so
// an attempt that lost the reader takes nothing more.
func (r *reader) take(a *attempt, dst []delivery, n int, size int64) ([]delivery, error) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.heldByLocked(a); err != nil {
		return dst, err
	}
	var items, lapsed []*held
	r.bufferLocked(func() { items, lapsed = r.fifo.pop(nil, n, size, r.perKey(), now) })
	r.lapseLocked(lapsed, now)
	for _, h := range items {
		h.msg.DeliveryAttempt = h.delivery
		dst = append(dst, delivery{msg: h.msg, attempt: h.delivery, eventTime: h.eventTime, size: h.size, untimed: h.untimed})
		h.msg = nil
	}
	if len(items) > 0 {
		r.wm.active = now
	}
	r.ledger.stage(a, items, r.holdLocked(items))
	return dst, nil
}

// check returns an error once the attempt has lost the reader, or the reader has
// failed.
func (r *reader) check(a *attempt) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heldByLocked(a)
}

func (r *reader) heldByLocked(a *attempt) error {
	switch {
	case r.failure != nil:
		return r.failure
	case a.fenced.Load():
		return errFenced
	}
	return nil
}

// leave hears that the bundle has done with the reader, though it has not ended,
// and how many messages it emitted. It returns how many bundles in a row emitted
// nothing, this one included, or why this bundle is void.
func (r *reader) leave(a *attempt, emitted int) (idleBundles int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.idleBundles++
	if emitted > 0 || r.fifo.messages > 0 {
		r.idleBundles = 0
	}
	return r.idleBundles, r.heldByLocked(a)
}

// stopFor is stop for an attempt that still holds the reader.
func (r *reader) stopFor(a *attempt) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.heldByLocked(a); err != nil {
		return err
	}
	r.ending = true
	r.stopLocked()
	return nil
}

// endFor takes the reader out of use for an attempt that still holds it, where
// nothing is owed, and reports whether it did.
func (r *reader) endFor(a *attempt) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.heldByLocked(a) != nil || r.owedLocked() > 0 {
		return false
	}
	r.ended = true
	return true
}

// finished hears that the attempt's bundle has ended well; the runner is told
// next. It runs in a hook.
func (r *reader) finished(a *attempt) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	a.ended = now
	r.freeLocked(a, now)
}

// freeLocked ends the attempt's hold on the reader, where it has it.
func (r *reader) freeLocked(a *attempt, now time.Time) {
	if r.bundle == a {
		r.bundle, r.used = nil, now
	}
}

// signal takes in the finalization of an attempt's bundle. It runs in a hook:
// the acknowledgements are made by the settler.
func (r *reader) signal(a *attempt, s finalize.Signal) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commits.signal(a.ended, now)
	items := r.ledger.signal(a.token, s)
	r.counts.ByFinalization.Add(int64(len(items)))
	r.acknowledgeLocked(items, now)
}

// fail returns the messages of an attempt whose bundle has failed. It runs in a
// hook: the return is made by the settler.
func (r *reader) fail(a *attempt) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.freeLocked(a, now)
	r.giveUpLocked(r.ledger.fail(a), now)
}

// commit acknowledges everything that was emitted.
func (r *reader) commit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	items := r.ledger.commitAll()
	r.counts.ByPipeline.Add(int64(len(items)))
	r.acknowledgeLocked(items, time.Now())
}

// A commitClock knows how long commits take.
type commitClock struct{ longest time.Duration }

func (c *commitClock) signal(ended, now time.Time) { c.longest = max(c.longest, now.Sub(ended), 1) }

// never reports whether no commit was ever seen.
func (c *commitClock) never() bool { return c.longest == 0 }
