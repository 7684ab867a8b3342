package source

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/mtime"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/panics"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/seldom"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// A disposal carries out the failure policy for what one call of ProcessElement
// refuses.
//
// Drop and Nack settle a message with the service at once and by itself: it leaves the
// ledger, so nothing that becomes of the bundle settles it again. Under EmitFailed and
// SendTo it stays in the ledger, as if it had been decoded. What was emitted is as
// durable as the records of the bundle. What was handed to a queue is flushed before
// ProcessElement returns, and only a bundle whose every ProcessElement has returned
// well can commit: so no message is acknowledged whose letter is not durable.
type disposal struct {
	policy FailurePolicy
	owner  string // the nonce of the Read
	counts *stats.Source
	emit   func(beam.EventTime, Failed)
	warn   func(text string, args ...any)

	n      int        // refused since takeCount
	writer dlq.Writer // SendTo's, opened at the first failure
}

func (s *settings) newDisposal(emit func(beam.EventTime, Failed)) *disposal {
	return &disposal{policy: s.Config.OnDecodeFailure, owner: s.Nonce, counts: stats.ForSource(s.Nonce), emit: emit, warn: warn}
}

// takeCount returns how many messages were refused since it was called last.
func (p *disposal) takeCount() int {
	n := p.n
	p.n = 0
	return n
}

// take disposes of the message of a delivery, which was refused because of err. An
// error fails the bundle.
func (p *disposal) take(ctx context.Context, v *visit, d *delivery, err error) error {
	p.n++
	p.counts.DecodeFailures.Add(1)
	id := d.msg.GetMessageId()
	err = fmt.Errorf("decode message %s of %s: %w", id, v.reader.subscription, err)
	switch p.policy.kind {
	case drop:
		return p.drop(v, id, err)
	case nack:
		p.counts.Nacked.Add(1)
		return v.reader.nack(v.attempt, id, nackDelay(v.reader.config.NackDelay, d.attempt))
	case emitFailed:
		f, at := newFailed(v, d, err)
		p.emit(at, f)
		return nil
	case sendTo:
		f, _ := newFailed(v, d, err)
		return p.send(ctx, f)
	case fail:
	}
	return fmt.Errorf("source: %w; the bundle fails and the message stays unacknowledged; source.Config.OnDecodeFailure may drop, return or emit such messages instead", err)
}

func (p *disposal) drop(v *visit, id string, err error) error {
	if err := v.reader.acknowledgeNow(v.attempt, id); err != nil {
		return err
	}
	if n := p.counts.Dropped.Add(1); seldom.Turn(n, &p.counts.DropLogged, time.Now()) {
		p.warn("dropped a message", "so far", n, "error", err)
	}
	return nil
}

// send hands a failure to the queue.
func (p *disposal) send(ctx context.Context, f Failed) error {
	if p.writer == nil {
		if err := p.open(ctx); err != nil {
			return fmt.Errorf("source: open the dead-letter queue of OnDecodeFailure %v: %w", p.policy, err)
		}
	}
	if err := p.offer(ctx, f.letter()); err != nil {
		return fmt.Errorf("source: hand a message of %s to the dead-letter queue of OnDecodeFailure %v: %w", f.Subscription, p.policy, err)
	}
	p.counts.DeadLetters.Add(1)
	return nil
}

// finish makes durable what was handed to the queue. An error fails the bundle.
func (p *disposal) finish(ctx context.Context) error {
	if p.writer == nil {
		return nil
	}
	if err := p.flush(ctx); err != nil {
		return fmt.Errorf("source: flush the dead-letter queue of OnDecodeFailure %v: %w", p.policy, err)
	}
	p.writer = nil
	return nil
}

// end lets go of what was not finished, and does nothing after finish. It is to be
// deferred: a later step that panics, or an error, ends ProcessElement anywhere.
func (p *disposal) end() {
	w := p.writer
	if w == nil {
		return
	}
	p.writer = nil
	if err := p.dropWriter(w); err != nil {
		slog.Warn("source: " + err.Error()) // The bundle fails already.
	}
}

func (p *disposal) open(ctx context.Context) (err error) {
	defer panics.Recover(&err, "dead-letter queue", p.queueName())
	p.writer, err = p.policy.queue.Open(ctx, p.owner)
	return err
}

func (p *disposal) offer(ctx context.Context, letter dlq.Letter) (err error) {
	defer panics.Recover(&err, "dead-letter queue", p.queueName())
	return p.writer.Offer(ctx, letter)
}

func (p *disposal) flush(ctx context.Context) (err error) {
	defer panics.Recover(&err, "dead-letter queue", p.queueName())
	return p.writer.Flush(ctx)
}

func (p *disposal) dropWriter(w dlq.Writer) (err error) {
	defer panics.Recover(&err, "dead-letter queue", p.queueName())
	w.Drop()
	return nil
}

// closeQueue lets go of what the queue keeps for the Read in this process.
func (p *disposal) closeQueue() (err error) {
	if p.policy.queue == nil {
		return nil
	}
	defer panics.Recover(&err, "dead-letter queue", p.queueName())
	return p.policy.queue.Close(p.owner)
}

func (p *disposal) queueName() string { return fmt.Sprintf("%T", p.policy.queue) }

// newFailed returns the failure of a delivery and the time at which it is emitted:
// the event time that its records would have had, or the publish time where there is
// none. The message is made anew, for the decoder has had the other.
func newFailed(v *visit, d *delivery, err error) (Failed, beam.EventTime) {
	at := mtime.FromTime(d.eventTime)
	if v.emit.timed {
		at = mtime.FromTime(d.msg.GetPublishTime().AsTime())
	}
	return Failed{
		Message:      message.FromProto(d.msg, d.attempt),
		Subscription: v.reader.subscription,
		Error:        err.Error(),
		Time:         time.Now().UTC(),
		EventTime:    at.ToTime(),
	}, at
}
