package dlq

import (
	"context"
	"fmt"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/finalize"
)

func init() {
	register.DoFn3x1[context.Context, beam.X, func([]byte), error](&writeFn{})
	register.Emitter1[[]byte]()
}

// writeFn sends failures to a queue. Its output stays empty: it is the one that a
// transform keeps, see package keep.
type writeFn struct {
	// Queue is where to.
	Queue Encoded
	// Nonce is the owner's name.
	Nonce string

	// Set by Setup.
	queue Queue

	// Of the bundle that is open. One that fails sees no FinishBundle, so
	// StartBundle drops it.
	sender *Sender
}

// StatsNonce names the counters of the Write.
func (fn *writeFn) StatsNonce() string { return fn.Nonce }

// EndRun closes what a run that has ended has left in this process. It makes the
// DoFn a run.Ender.
func (fn *writeFn) EndRun() error {
	queue, err := DecodeQueue(fn.Queue)
	if err != nil {
		return fmt.Errorf("dlq: %w", err)
	}
	return NewSender(queue, fn.Nonce).Close()
}

// Setup finds the queue on this worker.
func (fn *writeFn) Setup() (err error) {
	if fn.queue, err = DecodeQueue(fn.Queue); err != nil {
		return fmt.Errorf("dlq: %w", err)
	}
	return nil
}

// StartBundle checks the queue, once in the process. The runner's harness drops the
// bundle if it fails; where there is none, on the direct runner, Teardown does.
func (fn *writeFn) StartBundle(ctx context.Context, _ func([]byte)) error {
	fn.drop()
	sender := NewSender(fn.queue, fn.Nonce)
	if err := sender.Check(ctx); err != nil {
		return err
	}
	fn.sender = sender
	if scope, ok := finalize.FromContext(ctx); ok {
		scope.OnFailed(sender.Drop)
	}
	return nil
}

// ProcessElement hands a failure to the queue.
func (fn *writeFn) ProcessElement(ctx context.Context, failed beam.X, _ func([]byte)) error {
	return fn.sender.Send(ctx, failed.(Failure).DeadLetter())
}

// FinishBundle returns once all of the bundle's letters are durable.
func (fn *writeFn) FinishBundle(ctx context.Context, _ func([]byte)) error {
	defer fn.drop()
	return fn.sender.Flush(ctx)
}

// Teardown closes the queue. Only the direct runner calls it; elsewhere it closes
// itself.
func (fn *writeFn) Teardown() error {
	fn.drop()
	return fn.EndRun()
}

func (fn *writeFn) drop() {
	if fn.sender != nil {
		fn.sender.Drop()
		fn.sender = nil
	}
}
