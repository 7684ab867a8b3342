package sink

import (
	"context"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
)

func init() {
	register.DoFn4x1[context.Context, beam.EventTime, beam.X, func(beam.EventTime, Failed), error](&writeFn{})
	register.Emitter2[beam.EventTime, Failed]()
}

// writeFn publishes in place: fused with its producer, its state in the worker's
// memory. A runner has one instance for each bundle that it runs at a time.
type writeFn struct {
	preparation
	publication
}

// Setup finds the functions that the write was built with.
func (fn *writeFn) Setup() error {
	if err := fn.preparation.find(); err != nil {
		return err
	}
	return fn.publication.find()
}

// StartBundle opens a bundle.
func (fn *writeFn) StartBundle(ctx context.Context, _ func(beam.EventTime, Failed)) error {
	return fn.start(ctx)
}

// ProcessElement hands a record's message to the pool.
func (fn *writeFn) ProcessElement(ctx context.Context, at beam.EventTime, record beam.X, _ func(beam.EventTime, Failed)) error {
	topic, m, err := fn.prepare(ctx, &fn.publication, at, record)
	if err != nil || m == nil {
		return err
	}
	return fn.add(ctx, topic, m, at)
}

// FinishBundle returns once there is nothing left to do for the bundle's records.
func (fn *writeFn) FinishBundle(ctx context.Context, emit func(beam.EventTime, Failed)) error {
	return fn.finish(ctx, emit)
}
