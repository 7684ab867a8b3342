package publish

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// ErrOrderingKey is what Add returns for a message with an ordering key in a pool
// that does not publish in order: a request may hold messages of one key only,
// and their order would be lost in silence.
var ErrOrderingKey = errors.New("the message has an ordering key: set options.Publisher.EnableMessageOrdering, or clear the key")

// errEnded is what a bundle says that was finished or dropped, to a call that is
// still waiting in it too.
var errEnded = errors.New("the bundle has ended")

// A Bundle is a set of messages that are published, or fail, together. Open
// makes one; Finish or Drop must end it.
//
// Add and Finish are for one goroutine at a time; Drop may come from any.
type Bundle struct {
	// Set once.
	pool     *pool
	handlers Handlers
	wake     chan struct{} // holds one signal: look at the state again

	// Of the bundle's goroutine.
	timer     *time.Timer // of its waits
	publisher *publisher  // that it last added to
	topic     string      // that it last asked for, for error texts

	// Guarded by the pool's lock.
	ended    bool                // by Finish or Drop: nothing of it waits for an attempt any more
	err      error               // the first refusal; sticks
	pending  int                 // messages that have no verdict
	batches  map[*batch]struct{} // that it has a share in and that have no verdict
	rejected []rejected          // that the handlers have not seen yet
	warnings []string            // likewise
	tripped  bool                // one of those trips the guardrail: the bundle fails once it is routed

	rejections rejections // that it has in the guardrail's count
	want       int64      // bytes that it waits for, while in window.waiting
	granted    bool       // room was taken on its behalf
	counts     Counts
}

// rejected is a rejection on its way to the bundle's goroutine.
type rejected struct {
	Rejection
	trips error // the guardrail's error, if this one trips it
}

// doneLocked reports whether b's messages are of no more use: it failed, even if
// its goroutine has yet to see it, or is sure to, or it ended.
func (b *Bundle) doneLocked() bool { return b.ended || b.err != nil || b.tripped }

// Add encodes m into a request to topic, a full name, and keeps no reference to
// it. At the caps, of messages in flight and of publishers, it sends what is
// batching in the pool, then waits.
//
// tag comes back in m's [Rejection], if it is rejected: by a rule at once, by the
// service during a later call. An error, a refusal of something added before
// among them, ends the bundle: Drop it.
func (b *Bundle) Add(ctx context.Context, topic string, m *message.Message, tag int64) error {
	size, err := check(m, options.MaxRequestBytes-headerSize(topic))
	if err != nil {
		return b.refuse(ctx, Rejection{Topic: topic, Message: clone(m), Tag: tag, Err: err})
	}
	p := b.pool
	if m.OrderingKey != "" && !p.opts.EnableMessageOrdering {
		return ErrOrderingKey
	}
	b.topic = topic
	p.mu.Lock()
	defer p.mu.Unlock()
	if b.err != nil {
		return b.err
	}
	if b.newsLocked() {
		if err := b.routeLocked(ctx); err != nil {
			return err
		}
	}
	framed := int64(sizeFramed(size))
	if err := b.takeRoomLocked(ctx, framed); err != nil {
		return err
	}
	d, err := b.publisherLocked(ctx, topic)
	if err != nil {
		p.giveBackLocked(share{messages: 1, bytes: framed})
		return err
	}
	b.pending++
	d.laneLocked(m.OrderingKey).addLocked(b, m, size, tag)
	switch { // it came after what those in line have sent
	case len(p.topics.line) > 0:
		p.sealAllLocked()
	case len(p.window.waiting) > 0:
		p.sealHalfLocked()
	}
	return nil
}

// clone copies what is published of m, which its owner may change.
func clone(m *message.Message) *message.Message {
	return &message.Message{Data: slices.Clone(m.Data), Attributes: maps.Clone(m.Attributes), OrderingKey: m.OrderingKey}
}

// refuse hands a message to the handler that a rule refuses. It counts towards the
// guardrail as one that the service refuses.
func (b *Bundle) refuse(ctx context.Context, r Rejection) error {
	p := b.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if b.err != nil {
		return b.err
	}
	b.rejectLocked(r)
	return b.routeLocked(ctx)
}

// rejectLocked notes a rejection for the bundle's goroutine. One that comes after
// the guardrail was tripped belongs to a bundle that fails: it is counted nowhere.
func (b *Bundle) rejectLocked(r Rejection) {
	p := b.pool
	var trips error
	if !b.tripped {
		trips = p.guard.rejected(r.Err, &b.rejections)
		b.tripped = trips != nil
	}
	if b.handlers.RejectionsFail && r.Message.OrderingKey != "" {
		// The bundle is to fail, and is run again with this message mended: what
		// comes after it on its key must not be stored before.
		p.stats.Failed.Add(1)
		b.failLocked(r.err())
		return
	}
	b.rejected = append(b.rejected, rejected{r, trips})
	b.signal()
}

// newsLocked reports whether there is anything for the handlers.
func (b *Bundle) newsLocked() bool { return len(b.rejected) > 0 || len(b.warnings) > 0 }

// routeLocked hands the handlers what was rejected, and warnings. It gives the
// lock up meanwhile. What trips the guardrail is routed, too, and ends the bundle
// then.
func (b *Bundle) routeLocked(ctx context.Context) error {
	for p := b.pool; b.newsLocked() && b.err == nil; {
		next, warnings := b.rejected, b.warnings
		b.rejected, b.warnings = nil, nil
		var err error
		p.unlocked(func() {
			for _, text := range warnings {
				b.handlers.Warn(ctx, text)
			}
			err = b.routeAll(ctx, next)
		})
		if err != nil {
			b.failLocked(err)
		}
	}
	return b.err
}

// unlocked calls f without the pool's lock, which the caller has. Whoever panics in
// f finds the lock as the caller's deferred Unlock needs it.
func (p *pool) unlocked(f func()) {
	p.mu.Unlock()
	defer p.mu.Lock()
	f()
}

func (b *Bundle) routeAll(ctx context.Context, list []rejected) error {
	for _, r := range list {
		if err := b.handlers.Reject(ctx, r.Rejection); err != nil {
			return err
		}
		if r.trips != nil {
			return r.trips
		}
	}
	return nil
}

// takeRoomLocked takes a message's room, and waits for it at the caps.
func (b *Bundle) takeRoomLocked(ctx context.Context, framed int64) error {
	p := b.pool
	if p.window.tryTake(framed) {
		return nil
	}
	p.window.enqueue(b, framed)
	p.sealHalfLocked()
	if err := b.waitForLocked(ctx, func() bool { return b.granted }); err != nil {
		p.window.leave(b)
		return err
	}
	b.granted = false
	return nil
}

// Finish sends what is still batching, waits until every message of the bundle
// has its verdict and the handler has seen what was rejected, and ends the
// bundle. The error is the first refusal, or says what the wait ended by; what
// was not yet sent is then dropped.
func (b *Bundle) Finish(ctx context.Context) error {
	p := b.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	for t := range b.batches {
		if t.lane.batch == t {
			t.lane.sealLocked()
		}
	}
	// The wait hands what was rejected over before it asks.
	err := b.waitForLocked(ctx, func() bool { return b.pending == 0 })
	if err == nil {
		p.topics.releaseIdle()
		b.rejections = rejections{} // they stay counted
	}
	b.endLocked()
	return err
}

// Drop ends the bundle at once, if it has not ended: what it has queued, and what
// waits to be sent again, gives its share of the caps back. It makes no call and
// waits for nothing but the pool's lock, and may be called twice.
func (b *Bundle) Drop() {
	p := b.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	b.endLocked()
	b.signal()
}

func (b *Bundle) endLocked() {
	if b.ended {
		return
	}
	b.ended = true
	if b.err == nil {
		b.err = errEnded
	}
	p := b.pool
	p.guard.takeBack(&b.rejections)
	var held share
	for t := range b.batches {
		s := p.abandonLocked(b, t)
		held.messages += s.messages
		held.bytes += s.bytes
	}
	b.batches, b.rejected = nil, nil
	p.window.leave(b)
	p.topics.leave(b)
	p.topics.wakeLocked() // a publisher may have become unwanted
	p.giveBackLocked(held)
	p.endedLocked()
}

// abandonLocked lets go of what b, which has ended, has in t, and returns what
// gives its room back: everything but what is on the wire.
func (p *pool) abandonLocked(b *Bundle, t *batch) (held share) {
	t.lane.publisher.wanted--
	switch t.state {
	case unsent:
		held = t.removeLocked(b)
		p.unsent.take(held)
		if t.messages() == 0 {
			t.lane.takeOutLocked(t)
			p.discardLocked(t)
		}
	case resting:
		held = t.voidLocked(b)
		if t.wake != nil && !t.wantedLocked() {
			close(t.wake)
			t.wake = nil
		}
	case onWire, settled:
	}
	return held
}

// leftLocked notes that b, which has not ended, has no share in t any more.
func (b *Bundle) leftLocked(t *batch) {
	delete(b.batches, t)
	t.lane.publisher.wanted--
	t.lane.publisher.wakeLineLocked()
}

// Counts returns what became of the bundle's messages so far.
func (b *Bundle) Counts() Counts {
	b.pool.mu.Lock()
	defer b.pool.mu.Unlock()
	c := b.counts
	c.ErrorsByCode, c.Destinations = maps.Clone(c.ErrorsByCode), maps.Clone(c.Destinations)
	return c
}

// Load returns what the pool holds now, for all of its bundles.
func (b *Bundle) Load() Load {
	p := b.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	return Load{Messages: p.window.messages, Bytes: p.window.bytes, Parked: p.parked}
}

// failLocked makes err the end of the bundle, unless it failed or ended before.
func (b *Bundle) failLocked(err error) {
	if b.ended || b.err != nil {
		return
	}
	b.err = err
	b.signal()
}

// signal makes the bundle's goroutine, if it waits, look at the state again.
func (b *Bundle) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}
