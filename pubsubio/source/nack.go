package source

import (
	"context"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

const (
	// maxNackDelay is the longest deadline that the service has for a message.
	maxNackDelay = 600 * time.Second
	// uncountedNackDelay is the default where the service does not count deliveries.
	uncountedNackDelay = 10 * time.Second
)

// nackDelay returns how long a message stays away that was refused at the attempt-th
// delivery, zero where the service does not count them.
func nackDelay(setting time.Duration, attempt int) time.Duration {
	switch {
	case setting == options.Disabled:
		return 0
	case setting == 0 && attempt == 0:
		return uncountedNackDelay
	case setting == 0 && attempt == 1:
		return 0
	case setting == 0:
		setting, attempt = time.Second, attempt-1
	}
	for ; attempt > 1 && setting < maxNackDelay; attempt-- {
		setting *= 2
	}
	return min(setting, maxNackDelay)
}

// A nacked message is on its way back, to stay away for delay.
type nacked struct {
	ackID string
	delay time.Duration
}

// newNacks returns what hands refused messages back. A request has one delay, so it
// takes those from the front of the queue that share theirs.
//
// A return is tried for as long as any: after that the message comes again by itself.
func (r *reader) newNacks() *settler[nacked] {
	// The settler calls ids and send in turn, on one goroutine.
	var delay time.Duration
	s := &settler[nacked]{
		ids: func(items []nacked) []string {
			if len(items) > 0 {
				delay = items[0].delay
			}
			ids := make([]string, 0, len(items))
			for _, n := range items {
				if n.delay != delay {
					break
				}
				ids = append(ids, n.ackID)
			}
			return ids
		},
		send:   func(ctx context.Context, ids []string) error { return r.calls.modify(ctx, ids, delay) },
		budget: returnBudget,
		done: func(_ []nacked, ids []string, err error) []nacked {
			r.returned(nil, ids, err)
			return nil
		},
		answered: &r.group.changed,
	}
	return s.start()
}

// withdrawLocked takes one message, staged by the attempt, out of the ledger: what becomes
// of the bundle is nothing to it any more. It returns an error where the attempt has
// lost the reader: then the message was returned with all others of the attempt, and
// is not the attempt's to dispose of.
func (r *reader) withdrawLocked(a *attempt, id string) (*held, error) {
	if err := r.heldByLocked(a); err != nil {
		return nil, err
	}
	h := r.byID[id]
	if h == nil || !r.ledger.withdraw(a, h) {
		return nil, errFenced // Cannot be: what the attempt has staged is held until it ends.
	}
	return h, nil
}

// withdraw takes h, staged by a, out of the ledger, and reports whether it was there.
// It was staged a moment ago, so it is near the end.
func (l *ledger) withdraw(a *attempt, h *held) bool {
	for i := len(a.items) - 1; i >= 0; i-- {
		if a.items[i] == h {
			a.items = append(a.items[:i], a.items[i+1:]...)
			l.owed--
			return true
		}
	}
	return false
}

// acknowledgeNow acknowledges a message of the attempt without waiting for its
// bundle.
func (r *reader) acknowledgeNow(a *attempt, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, err := r.withdrawLocked(a, id)
	if err != nil {
		return err
	}
	r.acknowledgeLocked([]*held{h}, time.Now())
	return nil
}

// nack returns a message of the attempt without waiting for its bundle, to stay away
// for delay. It is not awaited: it was refused, and while it is away it neither holds
// the watermark nor keeps the read from being idle. One message that can never be
// decoded would hold up every window, else, for as long as it comes and goes.
func (r *reader) nack(a *attempt, id string, delay time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, err := r.withdrawLocked(a, id)
	if err != nil {
		return err
	}
	if !r.nacking { // Few reads ever do. close waits for it: what it has fenced off nacks nothing.
		r.nacking = true
		r.goroutines.Go(func() { r.nacks.run(r.ctx) })
	}
	r.nacks.add([]nacked{{h.ackID, delay}})
	for _, c := range r.identities.settle([]*held{h}, false, time.Now()) { // They would be refused alike.
		r.nacks.add([]nacked{{c.ackID, delay}})
		r.forgetLocked([]*held{c})
	}
	r.forgetLocked([]*held{h})
	return nil
}
