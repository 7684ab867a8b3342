package source

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
)

// A reader pulls one split of a subscription: it owns the stream, what was
// received and not emitted, the leases, and the ledger of what was emitted. It
// outlives bundles, DoFn instances and execution plans; one bundle at a time
// holds it.
//
// Its goroutines are started by newReader, claim, pull and nack, and end with close,
// which waits for them: one for each stream and one that keeps it open, tend, and
// one for each settler.
type reader struct {
	// Set once.
	nonce        string
	subscription string
	group        *group
	config       Config
	counts       *stats.Source
	awaiting     *awaiting
	topic        *topicWatch
	calls        calls
	acks         *settler[*held]
	returns      *settler[string]
	nacks        *settler[nacked]
	ctx          context.Context //nolint:containedctx // the lifetime of the reader's goroutines, which no caller's bounds
	cancel       context.CancelFunc
	goroutines   sync.WaitGroup
	closing      sync.Once
	streams      []*stream

	mu          sync.Mutex // guards all below; never held across a call, a wait or an emission
	fifo        fifo
	ledger      ledger
	leases      leases
	byID        map[string]*held // what is held, by message id
	identities  identities
	bytes       int64     // of what is held
	bundle      *attempt  // of the bundle that holds the reader and has not ended
	idleBundles int       // in a row, that emitted nothing
	used        time.Time // when a bundle last claimed it or ended
	commits     commitClock
	failure     error // why the next bundle fails
	wm          progress
	came        time.Time          // the last response with messages
	gap         time.Duration      // between it and the one before
	told        time.Time          // the watermark that the restriction has reported
	nacking     bool               // something was nacked, so that nacks runs
	aside       []*held            // left for others, until the streams are closed
	asideBytes  int64              // of those
	leaving     []*held            // to be returned once the streams have ended
	late        []late             // what came while they were being closed, as well
	ending      bool               // its restriction reads nothing more, and waits for what is owed
	ended       bool               // no bundle can claim it any more
	closed      bool               // and close is done with it
	heldBack    int                // streams that wait for room before they receive
	parked      bool               // nobody claims it, so its streams are closed
	pulling     context.CancelFunc // closes the streams; nil while they are to be closed
	pulled      chan struct{}      // closed when the last of them have ended
	known       time.Time          // when the service was first seen to know the subscription
	leased      time.Time          // until when what was returned had leases
	unreturned  time.Time          // and what could not be returned
	reported    int                // what of PendingAcks is this reader's
	// When trouble was last reported: with a stream, with extensions, with
	// acknowledgements.
	warned, extensionWarned, refusalWarned time.Time
}

func newReader(g *group, nonce, subscription string, c calls) *reader {
	ctx, cancel := context.WithCancel(context.Background())
	cfg := g.config
	pulled := make(chan struct{})
	close(pulled)
	r := &reader{
		nonce:        nonce,
		subscription: subscription,
		group:        g,
		config:       cfg,
		counts:       g.counts,
		awaiting:     g.awaitingLocked(subscription),
		topic:        g.topicLocked(subscription),
		calls:        c.counted(g.counts),
		ctx:          ctx,
		cancel:       cancel,
		ledger:       ledger{rule: g.binding.Rule},
		leases:       newLeases(cfg.Subscriber),
		byID:         make(map[string]*held),
		identities:   newIdentities(cfg.IDAttribute),
		used:         time.Now(),
		wm:           progress{lag: cfg.WatermarkLag, idle: cfg.WatermarkIdleTimeout},
		pulled:       pulled,
	}
	r.ledger.onCommit = r.timeCommit
	r.streams = newStreams(r, c.first)
	r.acks, r.returns, r.nacks = r.newAcks(), r.newReturns(), r.newNacks()
	r.goroutines.Go(func() { r.acks.run(ctx) })
	r.goroutines.Go(func() { r.returns.run(ctx) })
	r.goroutines.Go(func() { r.tend(ctx) })
	return r
}

// pullLocked opens the streams, once the last ones have ended.
func (r *reader) pullLocked() {
	ctx, cancel := context.WithCancel(r.ctx)
	before, done := r.pulled, make(chan struct{})
	r.pulling, r.pulled = cancel, done
	r.unparkLocked()
	r.goroutines.Go(func() {
		defer close(done)
		<-before
		if r.perKey() {
			r.awaitReturned(ctx)
		}
		var others sync.WaitGroup
		for _, s := range r.streams[1:] {
			others.Go(func() { s.receive(ctx) })
		}
		r.streams[0].receive(ctx)
		others.Wait()
		r.returnLeaving()
	})
}

// returnLeaving returns what was in the buffer when the streams were to be closed,
// and what has come since.
func (r *reader) returnLeaving() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.returnLeavingLocked()
}

func (r *reader) returnLeavingLocked() {
	now := time.Now()
	r.giveBackLocked(r.leaving, now)
	r.leaving = nil
	r.returnLateLocked(now)
}

// stop closes the streams and returns what was not emitted.
func (r *reader) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopLocked()
}

func (r *reader) stopLocked() {
	if r.pulling != nil {
		r.pulling()
		r.pulling = nil
	}
	// On an open stream they would come again, and count another delivery.
	r.bufferLocked(func() { r.leaving = append(r.leaving, r.fifo.clear()...) })
	r.leaving = append(r.leaving, r.takeAsideLocked()...)
	r.returnOnceClosedLocked()
}

// returnOnceClosedLocked returns what is leaving once no stream is open.
func (r *reader) returnOnceClosedLocked() {
	select {
	case <-r.pulled:
		r.returnLeavingLocked()
	default: // The end of the streams does it.
	}
}

// bufferLocked runs change, which fills or empties the buffer, and tells the gate by
// how much.
func (r *reader) bufferLocked(change func()) {
	messages, bytes := r.fifo.messages, r.fifo.bytes
	change()
	r.group.filled.note(r, messages > 0, r.fifo.messages > 0)
	messages, bytes = r.fifo.messages-messages, r.fifo.bytes-bytes
	r.group.gate.add(int64(messages), bytes)
	r.counts.Buffered.Add(int64(messages))
	r.counts.BufferedBytes.Add(bytes)
}

// end takes the reader out of use: the next claim makes a new one.
func (r *reader) end() {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.group.remove(r)
}

// close ends the reader: it closes the streams, returns what is not committed,
// waits until the service has answered, and for the goroutines; at the latest
// with ctx, and counts what was committed and could not be acknowledged by then.
// It may be called several times.
func (r *reader) close(ctx context.Context) {
	r.closing.Do(func() {
		r.end()
		now := time.Now()
		r.mu.Lock()
		r.stopLocked()
		r.giveBackLocked(r.ledger.abandonAll(), now)
		pulled := r.pulled
		r.mu.Unlock()
		select {
		case <-pulled: // The last messages of the streams are among the returned.
		case <-ctx.Done():
		}
		r.acks.flush(ctx)
		r.returns.flush(ctx)
		r.nacks.flush(ctx)
		if r.owed() > 0 { // ctx was over first.
			r.counts.ShutdownsAbandoned.Add(1)
		}
		r.cancel()
		r.goroutines.Wait()
		r.calls.close()
		r.forgetCounts()
		r.group.closed(r.acks.owed(), r.unacknowledgedBecause())
	})
}

// forgetCounts takes what a reader that has closed still holds out of what is
// counted of the moment: nobody will settle it any more.
func (r *reader) forgetCounts() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.reportOwedLocked(0)
	r.unparkLocked()
}

// unacknowledgedBecause says why a closing reader could not acknowledge
// everything: the last answer of the service, where there was one.
func (r *reader) unacknowledgedBecause() error {
	if err := r.acks.lastError(); err != nil {
		return callError("acknowledge messages of", r.subscription, err)
	}
	return fmt.Errorf("source: acknowledge messages of %s: no answer before the reader had to close (options.Subscriber.ShutdownTimeout is %v)", r.subscription, r.config.Subscriber.ShutdownTimeout)
}

// setFailure has the next bundle, or the one under way, fail with err.
func (r *reader) setFailure(err error) {
	r.mu.Lock()
	if r.failure == nil {
		r.failure = err
	}
	r.mu.Unlock()
	r.group.changed.signal()
}

// buffered returns how many messages wait to be emitted.
func (r *reader) buffered() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fifo.messages
}

// owed returns how many messages are emitted and not acknowledged, or returned
// and not answered.
func (r *reader) owed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.owedLocked()
}

func (r *reader) owedLocked() int {
	return r.ledger.owed + len(r.leaving) + len(r.late) + r.acks.owed() + r.returns.owed() + r.nacks.owed()
}

// quietSince returns since when there has been nothing to read; false while the
// stream is not open, or something that is held explains a lull.
func (r *reader) quietSince() (time.Time, bool) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	since, open := r.wm.quietSince()
	return since, open && r.awaiting.oldest(now).IsZero() && r.drainableLocked()
}

// drainableLocked reports whether nothing that was received, or that this
// process holds back, could explain that no message comes.
func (r *reader) drainableLocked() bool {
	return r.fifo.messages == 0 && r.heldBack == 0 && !r.saturatedLocked()
}

func (r *reader) saturated() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.saturatedLocked()
}

// saturatedLocked reports whether the service may be holding messages back
// because this reader has not settled enough of the earlier ones.
func (r *reader) saturatedLocked() bool {
	return len(r.byID)+r.returns.owed()+r.nacks.owed() >= r.config.Subscriber.MaxOutstandingMessages ||
		r.bytes >= r.config.Subscriber.MaxOutstandingBytes
}
