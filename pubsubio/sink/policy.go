package sink

import (
	"fmt"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/util/reflectx"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// A FailurePolicy says what becomes of a record that can never be published:
// [Fail], which is the zero value, [LogAndDrop], [EmitFailed], [SendTo] or
// [HandleWith]. The field Config.OnFailure says which records these are.
type FailurePolicy struct {
	kind policyKind
	// queue is SendTo's.
	queue dlq.Queue
	// key and name are those of HandleWith's function, fault is why the workers
	// would not find it.
	key, name string
	fault     error
}

type policyKind int

const (
	fail policyKind = iota
	logAndDrop
	emitFailed
	sendTo
	handleWith
)

// Fail has the bundle's other messages published, and then fails the bundle with
// the first failure and how many there were. A message with an ordering key fails
// the bundle at once, and so does a record that the encoder refuses where
// Publisher.EnableMessageOrdering is set: nothing may follow them on their key. A runner that retries bundles for ever
// is then stuck at the record, which nothing skips. It is the default.
func Fail() FailurePolicy { return FailurePolicy{} }

// LogAndDrop drops the record. A warning with the destination and the reason is
// logged, at a decreasing rate: for the first five on a worker, then at every
// doubling of their number, and at most once a minute between these, each with the
// number so far. It holds no payload and no attribute's value, except where an
// encoder put one into its own error.
func LogAndDrop() FailurePolicy { return FailurePolicy{kind: logAndDrop} }

// EmitFailed emits the record on Result.Failed, at the end of its bundle, once all
// of the bundle's messages are answered. A bundle keeps its failures in memory until
// then.
func EmitFailed() FailurePolicy { return FailurePolicy{kind: emitFailed} }

// SendTo hands the record to a dead-letter queue, whose type must have been given to
// dlq.Register in init; [dlq.Config] is one over Pub/Sub, whose topic must be another
// than the sink's. At the end of its bundle, once the bundle's own messages are
// answered, the queue is flushed; the bundle succeeds when all that was handed to it
// is durable, and fails when it cannot be. A queue that can be checked is, when the
// first bundle of the Write starts in a process.
func SendTo(queue dlq.Queue) FailurePolicy { return FailurePolicy{kind: sendTo, queue: queue} }

// HandleWith hands the record to a function that was given to [RegisterHandler] in
// init.
func HandleWith(handle FailureHandler) FailurePolicy {
	p := FailurePolicy{kind: handleWith}
	p.key, p.fault = handlerKey(handle)
	if p.fault == nil {
		p.name = reflectx.FunctionName(handle)
		p.fault = handlers.Registered(p.key, handle, "sink.RegisterHandler")
	}
	return p
}

// String returns the call that made p.
func (p FailurePolicy) String() string {
	switch p.kind {
	case fail:
		return "sink.Fail()"
	case logAndDrop:
		return "sink.LogAndDrop()"
	case emitFailed:
		return "sink.EmitFailed()"
	case sendTo:
		return fmt.Sprintf("sink.SendTo(%T)", p.queue)
	case handleWith:
		return fmt.Sprintf("sink.HandleWith(%s)", p.name)
	default:
		return fmt.Sprintf("sink.FailurePolicy(%d)", int(p.kind))
	}
}

// faults records in f what would keep a worker from following p, where records go to
// topic, or "" where each chooses.
func (p FailurePolicy) faults(f *options.Faults, topic string) {
	if p.fault != nil {
		f.AddError(fmt.Errorf(in+"OnFailure: failure handler %w", p.fault))
	}
	if p.kind != sendTo {
		return
	}
	encoded, err := dlq.EncodeQueue(p.queue)
	if err != nil {
		f.AddError(fmt.Errorf(in+"OnFailure: %w", err))
		return
	}
	// As the workers will find it: what JSON does not carry is lost on the way.
	queue, err := dlq.DecodeQueue(encoded)
	if err == nil {
		err = queue.Validate()
	}
	if err != nil {
		f.AddError(fmt.Errorf(in+"OnFailure: dead-letter queue: %w", err))
		return
	}
	if topic != "" && dlq.TopicOf(queue) == topic {
		f.Add(in+"OnFailure", fmt.Sprintf("%v to %q", p, topic), "must go to another topic than Topic, which refused the record and could refuse its letter, or bring it round again")
	}
}

// A policy is a FailurePolicy as it travels to the workers.
type policy struct {
	Kind    policyKind
	Handler string      // the key of the function
	Queue   dlq.Encoded // empty without one
}

// travel returns p as it travels.
func (p FailurePolicy) travel() (policy, error) {
	out := policy{Kind: p.kind, Handler: p.key}
	if p.kind == sendTo {
		var err error
		if out.Queue, err = dlq.EncodeQueue(p.queue); err != nil {
			return policy{}, fmt.Errorf(in+"OnFailure: %w", err)
		}
	}
	return out, nil
}
