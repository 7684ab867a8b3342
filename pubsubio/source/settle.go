package source

import (
	"context"
	"slices"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
)

// returnBudget is how long a return is tried; after that the messages come again
// by themselves.
const returnBudget = 30 * time.Second

// newAcks returns what acknowledges committed messages. It never gives up by
// itself: a committed message must not come again, so it stays held, its lease
// is extended, and a redelivery only renews its ack id.
func (r *reader) newAcks() *settler[*held] {
	s := &settler[*held]{ids: r.ackIDs, send: r.calls.ack, refused: r.acknowledgesLater, done: r.acknowledged, answered: &r.group.changed}
	return s.start()
}

// acknowledgesLater reports whether an acknowledgement that was refused is tried
// again: while a lease of its messages lives, they come to nobody, and a permission
// that was revoked by mistake may be back by then. Not where the user waits for the
// confirmation, nor where the read does, to end.
func (r *reader) acknowledgesLater(items []*held, err error) bool {
	now := time.Now()
	r.mu.Lock()
	later := r.config.Subscriber.AwaitAckConfirmation == 0 && !r.ending &&
		slices.ContainsFunc(items, func(h *held) bool { return !h.lapsed(now) })
	warnNow := later && now.Sub(r.refusalWarned) >= warnEvery
	if warnNow {
		r.refusalWarned = now
	}
	r.mu.Unlock()
	if warnNow {
		warn("acknowledgements are refused; trying again while the leases of their messages are extended", "messages", len(items), "error", callError("acknowledge messages of", r.subscription, err))
	}
	return later
}

// unconfirmedLocked returns the error of a commit whose acknowledgement has no answer
// in the time that the user gives it.
func (r *reader) unconfirmedLocked(now time.Time) error {
	limit, since := r.config.Subscriber.AwaitAckConfirmation, r.acks.waitingSince()
	if limit == 0 || since.IsZero() || now.Sub(since) < limit {
		return nil
	}
	return errUnconfirmed(r.subscription, r.acks.owed(), limit, r.acks.lastError())
}

// newReturns returns what hands messages back.
func (r *reader) newReturns() *settler[string] {
	s := &settler[string]{
		ids:      func(ids []string) []string { return ids },
		send:     func(ctx context.Context, ids []string) error { return r.calls.modify(ctx, ids, 0) },
		budget:   returnBudget,
		done:     r.returned,
		answered: &r.group.changed,
	}
	return s.start()
}

// acknowledgeLocked hands committed messages to the settler.
func (r *reader) acknowledgeLocked(items []*held, now time.Time) {
	items = append(items, r.identities.settle(items, true, now)...)
	for _, h := range items {
		h.state = committed
	}
	r.acks.add(items)
}

// giveBackLocked returns messages to the service, which sends them again at
// once, here or to another subscriber.
func (r *reader) giveBackLocked(items []*held, now time.Time) {
	if len(items) == 0 {
		return
	}
	items = append(items, r.identities.settle(items, false, now)...)
	r.awaiting.add(items, now)
	r.leavesLocked(items)
	r.returns.add(ackIDsOf(items))
	r.forgetLocked(items)
}

// dropLocked forgets messages whose lease has lapsed: the service sends them
// again.
func (r *reader) dropLocked(items []*held, now time.Time) {
	r.counts.Lapsed.Add(int64(len(items)))
	r.awaiting.add(items, now)
	copies := r.identities.settle(items, false, now)
	r.forgetLocked(items)
	r.giveBackLocked(copies, now) // Their own leases may last.
}

// forgetLocked lets go of messages.
func (r *reader) forgetLocked(items []*held) {
	for _, h := range items {
		r.leases.release(h)
		if r.byID[h.id] == h {
			delete(r.byID, h.id)
			r.bytes -= h.size
		}
		h.state, h.msg = gone, nil
	}
}

func (r *reader) ackIDs(items []*held) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return ackIDsOf(items)
}

// ackIDsOf returns the messages' newest ack ids, under the reader's lock.
func ackIDsOf(items []*held) []string {
	ids := make([]string, len(items))
	for i, h := range items {
		ids[i] = h.ackID
	}
	return ids
}

// acknowledged hears how a request of acknowledgements ended. A message that was
// delivered again meanwhile has a newer ack id, which is sent next.
func (r *reader) acknowledged(items []*held, ids []string, err error) (again []*held) {
	if err != nil && r.ctx.Err() != nil {
		return items // close counts what is left.
	}
	now := time.Now()
	r.mu.Lock()
	done := items
	if err == nil {
		done = make([]*held, 0, len(items))
		for i, h := range items {
			if h.ackID != ids[i] {
				again = append(again, h)
				continue
			}
			done = append(done, h)
		}
		r.counts.Acknowledged.Add(int64(len(done)))
		r.leases.learn(done, now)
	}
	r.forgetLocked(done)
	r.mu.Unlock()
	if err != nil {
		r.group.gaveUp(len(items), callError("acknowledge messages of", r.subscription, err))
		r.settledWith("acknowledge messages of", len(items), err)
		if r.config.Subscriber.AwaitAckConfirmation > 0 {
			r.setFailure(callError("acknowledge messages of", r.subscription, err))
		}
	}
	return again
}

func (r *reader) returned(_, ids []string, err error) []string {
	if err == nil {
		r.counts.Returned.Add(int64(len(ids)))
	} else if r.ctx.Err() == nil {
		r.notReturned()
		r.settledWith("return messages to", len(ids), err)
	}
	return nil
}

// settledWith reports a request that came to nothing: its messages are delivered
// again. One that only somebody else can mend fails the next bundle.
func (r *reader) settledWith(act string, n int, err error) {
	switch transport.Classify(context.Background(), err) {
	case transport.Retryable, transport.Ended, transport.Rejected:
		warn("a request was given up; the service delivers its messages again", "act", act, "subscription", r.subscription, "messages", n, "error", transport.Describe(err))
	default:
		r.setFailure(callError(act, r.subscription, err))
	}
}
