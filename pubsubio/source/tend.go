package source

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
)

const (
	// tendInterval lets the shortest lease be tried several times within its margin.
	tendInterval = time.Second
	// extensionCalls is how many extensions of a reader are under way at once: at 100 ms a
	// call, half a million messages are extended in seven seconds.
	extensionCalls = 8
	// idleTimeout is how long a reader may be unclaimed before it parks, whatever
	// it holds: its streams are closed and what it has not emitted is returned. It
	// is well above any resume delay of ours, so the restriction has gone elsewhere
	// or its job has ended. Only the direct runner ever calls Teardown.
	idleTimeout = time.Minute
	// minPatience is how long it waits, at least, for the commit of what it has
	// emitted.
	minPatience = 10 * time.Minute
)

// tend extends the leases of what is held, drops what has lapsed all the same, looks
// at a subscription that brings nothing, and ends a reader that nobody claims any more. newReader starts it; it ends
// with ctx or with the reader.
func (r *reader) tend(ctx context.Context) {
	tick := time.NewTicker(tendInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		r.extend(ctx)
		r.dropLapsed(time.Now()) //nolint:contextcheck // a stream that is opened again has the reader's context
		r.watchTopic(ctx)
		if r.retire(time.Now()) {
			return
		}
	}
}

// extend renews the leases that are due. It makes its own calls, so that no
// queue of acknowledgements can delay an extension.
func (r *reader) extend(ctx context.Context) {
	var calls errgroup.Group
	calls.SetLimit(extensionCalls)
	var stop atomic.Bool // the others of this round are not worth a try
	for _, l := range r.dueLeases(time.Now()) {
		calls.Go(func() error {
			if !stop.Load() && !r.extendLease(ctx, l) {
				stop.Store(true)
			}
			return nil
		})
	}
	_ = calls.Wait()
}

// extendLease renews a lease that is due, by the ids that its messages have by now: those
// that were returned meanwhile must not be leased again. It reports whether the others of
// this round are worth a try.
func (r *reader) extendLease(ctx context.Context, l *lease) bool {
	r.mu.Lock()
	x := extension{ids: l.ackIDs(), granted: l.granted, period: r.leases.extension(l, time.Now())}
	r.mu.Unlock()
	if len(x.ids) == 0 {
		return true
	}
	sent := time.Now()
	if err := r.modify(ctx, x); err != nil {
		return r.mayExtendLater(ctx, err, len(x.ids))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !time.Now().Before(l.until) { // It may have come too late.
		r.counts.LapsedEmitted.Add(int64(l.emitted()))
	}
	l.grant(x.period, sent)
	return true
}

// mayExtendLater deals with an extension that failed, and reports whether the
// others of this round are worth a try.
func (r *reader) mayExtendLater(ctx context.Context, err error, messages int) bool {
	class := transport.Classify(ctx, err)
	if class == transport.Permanent {
		r.setFailure(callError("extend leases of", r.subscription, err))
		return false
	}
	// The next tick tries again, while the lease lasts. A subscription that is
	// missing is the stream's to judge.
	r.extensionsFailed(messages, err)
	return class == transport.Rejected
}

// extensionsFailed warns, once a minute: a tick is a second.
func (r *reader) extensionsFailed(messages int, err error) {
	now := time.Now()
	r.mu.Lock()
	again := now.Sub(r.extensionWarned) < warnEvery
	if !again {
		r.extensionWarned = now
	}
	r.mu.Unlock()
	if again {
		return
	}
	warn("leases were not extended; trying again", "subscription", r.subscription, "messages", messages, "error", transport.Describe(err))
}

// An extension is to be asked of the service.
type extension struct {
	ids []string
	// granted is the period that is running, period the next.
	granted, period time.Duration
}

// leasePeriod is the lease that a stream asks for.
func (r *reader) leasePeriod() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leases.period()
}

func (r *reader) dueLeases(now time.Time) []*lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leases.due(now)
}

// modify asks for x in requests that the service accepts, and gives up while there
// is time for another try.
func (r *reader) modify(ctx context.Context, x extension) error {
	ctx, cancel := context.WithTimeout(ctx, margin(x.granted)/2)
	defer cancel()
	for ids := x.ids; len(ids) > 0; {
		n := fitting(ids)
		if err := r.calls.modify(ctx, ids[:n], x.period); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

// dropLapsed frees the buffer of messages that the service delivers again
// anyway: they are never emitted. Those that were emitted already are counted, and
// acknowledged all the same once they are committed: the acknowledgement may still
// count, and if the message comes again before it is made, it takes the newer id.
func (r *reader) dropLapsed(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lapsed, emitted := r.leases.lapsed(now)
	r.counts.LapsedEmitted.Add(int64(emitted))
	r.bufferLocked(func() {
		for _, h := range lapsed {
			r.fifo.drop(h)
		}
	})
	r.lapseLocked(lapsed, now)
}

// retire parks a reader that has been unclaimed for too long, and closes it
// once nothing is owed, or once no commit can be expected any more. It reports
// whether it did. Where the whole pipeline is what commits, its end is what
// closes the reader.
func (r *reader) retire(now time.Time) bool {
	r.mu.Lock()
	unclaimed := now.Sub(r.used)
	if r.ended || r.bundle != nil || unclaimed < idleTimeout || r.ledger.rule == run.Pipeline {
		defer r.mu.Unlock()
		r.parkIfPausedLocked(now)
		return r.ended
	}
	r.parkLocked()
	r.ended = r.ledger.owed+r.acks.owed() == 0 || unclaimed >= r.patience()
	ended, uncommitted := r.ended, r.ledger.owed
	r.mu.Unlock()
	if ended {
		if uncommitted > 0 {
			warn("emitted messages were never committed and are returned: the runner has neither finalized their bundle nor come back for the read (on Flink, checkpointing must be on)",
				"subscription", r.subscription, "messages", uncommitted, "for", unclaimed.Round(time.Second))
		}
		r.abandon()
		r.group.leave(r)
	}
	return ended
}

// patience is how long an unclaimed reader waits for the commit of what it has
// emitted.
func (r *reader) patience() time.Duration {
	return max(minPatience, r.config.Subscriber.FirstCommitTimeout, 2*r.commits.longest)
}

// abandon closes the reader without waiting for it. The goroutine ends with the
// timeout at the latest, and the group waits for it.
//
//nolint:contextcheck // the reader's own context ends in close
func (r *reader) abandon() {
	r.end()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), r.config.Subscriber.ShutdownTimeout)
		defer cancel()
		r.close(ctx)
	}()
}
