package source

import (
	"context"
	"time"

	"github.com/googleapis/gax-go/v2"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// Under PerKey the order of a key holds by construction: one stream, one buffer and
// one bundle at a time keep the messages in the order in which the service sent them.
// Only what goes back can break it. A message that is returned, or that lapses, comes
// again behind those of its key that were received after it. So whatever goes back
// takes everything with it that was received and not emitted, and all that is still
// on its way: the stream is closed, and opened again only when the service has taken
// all of it back. Then it begins anew with the earliest message of each key.
//
// A stream that breaks may take messages with it that nobody has seen. To the service
// they are at the client that the stream was of, and it would go on behind them for that
// client. So each opening is another client to it, which gets no message of a key before
// the earlier ones are acknowledged or their leases are over.
//
// What was emitted before and still waits for its commit stays. It is earlier than
// all that goes back, and should its own bundles turn out void, all that was emitted
// since is void too, see ledger.claim.

func (r *reader) perKey() bool { return r.config.Ordering == options.PerKey }

// giveUpLocked returns messages that were emitted in vain.
func (r *reader) giveUpLocked(items []*held, now time.Time) {
	if len(items) == 0 {
		return
	}
	if !r.perKey() {
		r.giveBackLocked(items, now)
		return
	}
	for _, h := range items {
		h.state = gone
	}
	r.beginAnewLocked(items)
}

// lapseLocked lets go of messages whose lease has ended in the buffer.
func (r *reader) lapseLocked(items []*held, now time.Time) {
	if len(items) == 0 {
		return
	}
	if !r.perKey() {
		r.dropLocked(items, now)
		return
	}
	r.counts.Lapsed.Add(int64(len(items)))
	r.beginAnewLocked(items)
}

// beginAnewLocked returns items and everything that was received behind them, and
// opens the stream again, if it is open, when that has been answered.
func (r *reader) beginAnewLocked(items []*held) {
	reading := r.pulling != nil
	r.leaving = append(r.leaving, items...)
	r.stopLocked()
	if reading {
		r.pullLocked()
	}
}

// awaitReturned waits until the service has taken back what was returned, or, where a
// return was given up, until the leases of its messages are over. Until then the
// service takes it for received, and may go on behind it.
func (r *reader) awaitReturned(ctx context.Context) {
	r.returns.flush(ctx)
	r.mu.Lock()
	until := r.unreturned
	r.mu.Unlock()
	_ = gax.Sleep(ctx, time.Until(until))
}

// notReturned hears that the return of messages was given up.
func (r *reader) notReturned() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unreturned = later(r.unreturned, r.leased)
}

// leavesLocked notes how long the leases last of messages that are returned.
func (r *reader) leavesLocked(items []*held) {
	for _, h := range items {
		if h.lease != nil {
			r.leased = later(r.leased, h.lease.until)
		}
	}
}
