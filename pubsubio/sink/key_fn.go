package sink

import (
	"context"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/finalize"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
)

func init() {
	register.DoFn5x1[context.Context, beam.EventTime, beam.X, func(beam.EventTime, Failed), func(beam.EventTime, string, keyed), error](&keyFn{})
	register.Emitter3[beam.EventTime, string, keyed]()
}

// keyFn prepares messages for orderedFn. Those without an ordering key have no
// order to keep: it publishes them itself.
type keyFn struct {
	preparation
	publication

	// RunID is the run of pubsubio.Run, if there is one in this process.
	RunID string

	messages, bytes int64 // emitted in the bundle that is open
}

// JoinRun implements run.Joiner.
func (fn *keyFn) JoinRun(id string) { fn.RunID = id }

// Setup finds the functions that the write was built with.
func (fn *keyFn) Setup() error {
	if err := fn.preparation.find(); err != nil {
		return err
	}
	return fn.publication.find()
}

// StartBundle opens a bundle.
func (fn *keyFn) StartBundle(ctx context.Context, _ func(beam.EventTime, Failed), _ func(beam.EventTime, string, keyed)) error {
	fn.messages, fn.bytes = 0, 0
	return fn.start(ctx)
}

// ProcessElement prepares a record.
func (fn *keyFn) ProcessElement(ctx context.Context, at beam.EventTime, record beam.X, _ func(beam.EventTime, Failed), emit func(beam.EventTime, string, keyed)) error {
	topic, m, err := fn.prepare(ctx, &fn.publication, at, record)
	if err != nil || m == nil {
		return err
	}
	if m.OrderingKey == "" {
		return fn.add(ctx, topic, m, at)
	}
	k := newKeyed(topic, m, at)
	fn.messages++
	fn.bytes += k.size()
	emit(at, k.key(), k)
	return nil
}

// FinishBundle returns once there is nothing left to do for the messages without a
// key. What was emitted counts as the run's backlog once the bundle has ended well.
func (fn *keyFn) FinishBundle(ctx context.Context, emit func(beam.EventTime, Failed), _ func(beam.EventTime, string, keyed)) error {
	if err := fn.finish(ctx, emit); err != nil {
		return err
	}
	backlog, messages, bytes := run.Find(fn.RunID).Backlog(), fn.messages, fn.bytes
	if scope, ok := finalize.FromContext(ctx); ok {
		scope.OnFinished(func() { backlog.Add(messages, bytes) })
	}
	return nil
}
