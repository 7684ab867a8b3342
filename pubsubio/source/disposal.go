package source

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/mtime"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/seldom"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
)

// A disposal carries out the failure policy for what one call of ProcessElement
// refuses.
//
// Drop, Nack and Leave settle a message at once and by itself: it leaves the
// ledger, so nothing that becomes of the bundle settles it again. Under EmitFailed and
// SendTo it stays in the ledger, as if it had been decoded. What was emitted is as
// durable as the records of the bundle. What was handed to a queue is flushed before
// ProcessElement returns, and only a bundle whose every ProcessElement has returned
// well can commit: so no message is acknowledged whose letter is not durable.
type disposal struct {
	policy FailurePolicy
	counts *stats.Source
	emit   func(beam.EventTime, Failed)
	warn   func(text string, args ...any)

	n       int         // refused since takeCount
	letters *dlq.Sender // SendTo's, nil of another policy
}

func (s *settings) newDisposal(emit func(beam.EventTime, Failed)) *disposal {
	return &disposal{policy: s.Config.OnDecodeFailure, letters: s.letters(), counts: stats.ForSource(s.Nonce), emit: emit, warn: warn}
}

// letters returns what hands a bundle's letters to the dead-letter queue, nil where
// there is none.
func (s *settings) letters() *dlq.Sender {
	if s.Config.OnDecodeFailure.queue == nil {
		return nil
	}
	return dlq.NewSender(s.Config.OnDecodeFailure.queue, s.Nonce)
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
	id := d.msg.ID
	err = fmt.Errorf("decode message %s of %s: %w", id, v.reader.subscription, err)
	switch p.policy.kind {
	case drop:
		return p.drop(v, id, err)
	case nack:
		p.counts.Nacked.Add(1)
		return v.reader.nack(v.attempt, id, nackDelay(v.reader.config.NackDelay, d.attempt))
	case leave:
		p.counts.Left.Add(1)
		return v.reader.setAside(v.attempt, id)
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
	if err := p.letters.Send(ctx, f.DeadLetter()); err != nil {
		return fmt.Errorf("source: a message of %s: OnDecodeFailure %v: %w", f.Subscription, p.policy, err)
	}
	p.counts.DeadLetters.Add(1)
	return nil
}

// finish makes durable what was handed to the queue. An error fails the bundle.
func (p *disposal) finish(ctx context.Context) error {
	if p.letters == nil {
		return nil
	}
	if err := p.letters.Flush(ctx); err != nil {
		return fmt.Errorf("source: OnDecodeFailure %v: %w", p.policy, err)
	}
	return nil
}

// end lets go of what was not finished, and does nothing after finish. It is to be
// deferred: a later step that panics, or an error, ends ProcessElement anywhere.
func (p *disposal) end() {
	if p.letters != nil {
		p.letters.Drop()
	}
}

// closeQueue lets go of what the queue, if there is one, keeps for the Read in this
// process.
func (s *settings) closeQueue() error {
	if l := s.letters(); l != nil {
		return l.Close()
	}
	return nil
}

// newFailed returns the failure of a delivery and the time at which it is emitted:
// the event time that its records would have had, or the publish time where there is
// none.
func newFailed(v *visit, d *delivery, err error) (Failed, beam.EventTime) {
	at := mtime.FromTime(d.eventTime)
	if v.emit.timed {
		at = mtime.FromTime(publishTime(d.msg))
	}
	return Failed{
		Message:      d.msg,
		Subscription: v.reader.subscription,
		Error:        err.Error(),
		Time:         time.Now().UTC(),
		EventTime:    at.ToTime(),
	}, at
}
