package source

import (
	"encoding/json"
	"fmt"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// A FailurePolicy says what becomes of a message that the decoder refuses: [Fail],
// which is the zero value, [Drop], [Nack], [Leave], [EmitFailed] or [SendTo]. The field
// Config.OnDecodeFailure says which messages these are.
//
// Records that the decoder emitted before it refused the message stay, under any
// policy but Fail.
type FailurePolicy struct {
	kind  policyKind
	queue dlq.Queue // SendTo's
}

type policyKind int

const (
	fail policyKind = iota
	drop
	nack
	emitFailed
	sendTo
	leave
)

// Fail fails the bundle: its messages are returned and come again. A runner that
// retries bundles for ever is then stuck at the message, which nothing skips. It is
// the default.
func Fail() FailurePolicy { return FailurePolicy{} }

// Drop acknowledges the message at once, whatever becomes of its bundle. A warning
// with the subscription, the message's id and the reason is logged, at a decreasing
// rate: for the first five of a Read on a worker, then at every doubling of their
// number, and at most once a minute between these, each with the number so far. It
// holds no payload and no attribute's value, except where a decoder put one into its
// own error.
func Drop() FailurePolicy { return FailurePolicy{kind: drop} }

// Nack returns the message at once, whatever becomes of its bundle; Config.NackDelay
// says how long it then stays away. The subscription's dead-letter policy, which it
// must have, ends that.
//
// The read has done with the message until it comes again: it counts for
// Limit.MaxMessages each time that it comes, holds no watermark while it is away, so
// that what a later delivery of it is decoded into may be late, and does not keep a
// read from being idle. It is refused beside options.PerKey.
func Nack() FailurePolicy { return FailurePolicy{kind: nack} }

// Leave leaves the message in the subscription, for whoever reads it after this read:
// it is neither emitted nor acknowledged, whatever becomes of its bundle, stays leased
// while the read goes on, so that it comes to nobody, and is returned when the read
// ends. It is for a read that ends and takes some of the messages only, those which a
// decoder does not refuse, as package pipelines' replay does with dead letters.
//
// A message that is left holds no watermark and does not keep a read from being idle;
// it counts once for Limit.MaxMessages, and against MaxOutstandingMessages and
// MaxOutstandingBytes until the read ends: once those are reached the service sends
// nothing more, and the bundle fails. Each costs about half a kilobyte of memory. Where
// the worker is killed, messages come again once their leases lapse, ten minutes later
// at most. The return counts as a delivery attempt. It is refused beside
// options.PerKey.
func Leave() FailurePolicy { return FailurePolicy{kind: leave} }

// EmitFailed emits the message and the reason on a second output, which
// [ReadWithFailures] returns. The message is acknowledged once its bundle has
// committed, which makes the failure as durable as the records.
func EmitFailed() FailurePolicy { return FailurePolicy{kind: emitFailed} }

// SendTo hands the message to a dead-letter queue, whose type must have been given
// to dlq.Register in init; [dlq.Config] is one over Pub/Sub, whose topic must not be
// that of a subscription which is read. The queue is flushed before the bundle ends,
// which fails where that fails; the message is acknowledged once the bundle has
// committed. A bundle that fails after the flush has its letters sent again. A queue
// that can be checked is, when the job starts.
func SendTo(queue dlq.Queue) FailurePolicy { return FailurePolicy{kind: sendTo, queue: queue} }

// String returns the call that made p.
func (p FailurePolicy) String() string {
	switch p.kind {
	case fail:
		return "source.Fail()"
	case drop:
		return "source.Drop()"
	case nack:
		return "source.Nack()"
	case emitFailed:
		return "source.EmitFailed()"
	case sendTo:
		return fmt.Sprintf("source.SendTo(%T)", p.queue)
	case leave:
		return "source.Leave()"
	default:
		return fmt.Sprintf("source.FailurePolicy(%d)", int(p.kind))
	}
}

// faults records in f what would keep a worker from following p.
func (p FailurePolicy) faults(f *options.Faults) {
	const in = "source.Config.OnDecodeFailure"
	if p.kind < fail || p.kind > leave {
		f.Add(in, p, "must be one of the policies of package source")
	}
	if p.kind != sendTo {
		return
	}
	encoded, err := dlq.EncodeQueue(p.queue)
	if err != nil {
		f.AddError(fmt.Errorf(in+": %w", err))
		return
	}
	// As the workers will find it: what JSON does not carry is lost on the way.
	queue, err := dlq.DecodeQueue(encoded)
	if err == nil {
		err = queue.Validate()
	}
	if err != nil {
		f.AddError(fmt.Errorf(in+": dead-letter queue: %w", err))
	}
}

// topic is that of a dead-letter queue over Pub/Sub; "" where there is none.
func (p FailurePolicy) topic() string {
	if _, err := dlq.EncodeQueue(p.queue); err != nil {
		return "" // The fault is told elsewhere; a queue that is a nil pointer has no topic.
	}
	return dlq.TopicOf(p.queue)
}

// traveling is a FailurePolicy on its way to the workers.
type traveling struct {
	Kind  policyKind   `json:"kind,omitempty"`
	Queue *dlq.Encoded `json:"queue,omitempty"`
}

// MarshalJSON has p travel to the workers within its Config.
func (p FailurePolicy) MarshalJSON() ([]byte, error) {
	t := traveling{Kind: p.kind}
	if p.kind == sendTo {
		queue, err := dlq.EncodeQueue(p.queue)
		if err != nil {
			return nil, err
		}
		t.Queue = &queue
	}
	return json.Marshal(t)
}

// UnmarshalJSON is MarshalJSON's counterpart on a worker, where the queue's type
// must be registered.
func (p *FailurePolicy) UnmarshalJSON(b []byte) error {
	var t traveling
	if err := json.Unmarshal(b, &t); err != nil {
		return err
	}
	*p = FailurePolicy{kind: t.Kind}
	if t.Queue == nil {
		return nil
	}
	var err error
	p.queue, err = dlq.DecodeQueue(*t.Queue)
	return err
}
