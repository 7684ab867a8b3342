package sink

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/finalize"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/publish"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// A publication publishes messages, bundle by bundle, and routes what fails. A DoFn
// embeds it and calls its methods from those of the same names; its exported fields
// travel to the workers.
type publication struct {
	// Failure is what becomes of a record that can never be published.
	Failure policy
	// Pool is what the bundles of a worker share.
	Pool publish.Config

	// Set by find.
	routing routing
	stats   *stats.Sink

	// Of the bundle that is open. One that fails sees no FinishBundle, so
	// StartBundle drops them.
	bundle   *publish.Bundle
	failures router
}

// StatsNonce names the counters of the Write.
func (p *publication) StatsNonce() string { return p.Pool.Nonce }

// EndRun closes what a run that has ended has left in this process: the pool, then
// the dead-letter queue. It makes the DoFn a run.Ender.
func (p *publication) EndRun() error {
	err := publish.Close(p.Pool)
	if p.Failure.Kind != sendTo {
		return err
	}
	r, routingErr := newRouting(p.Failure, p.Pool.Nonce)
	if routingErr != nil {
		return errors.Join(err, routingErr)
	}
	return errors.Join(err, r.close())
}

// find finds on this worker what the policy names.
func (p *publication) find() error {
	var err error
	p.routing, err = newRouting(p.Failure, p.Pool.Nonce)
	p.stats = stats.ForSink(p.Pool.Nonce)
	return err
}

// start opens a bundle in the worker's pool. The runner's harness drops it if the
// bundle fails; where there is none, on the direct runner, Teardown does.
func (p *publication) start(ctx context.Context) error {
	p.drop()
	if err := p.routing.check(ctx); err != nil {
		return fmt.Errorf("sink: %w", err)
	}
	failures := p.routing.open()
	bundle, err := publish.Open(p.Pool, publish.Handlers{
		Warn: func(ctx context.Context, text string) { log.Warnf(ctx, "sink: %s", text) },
		// Under Fail the bundle fails at its end, and at once where order asks for it.
		RejectionsFail: p.Failure.Kind == fail,
		Reject:         func(ctx context.Context, r publish.Rejection) error { return p.route(ctx, rejected(r)) },
	})
	if err != nil {
		return fmt.Errorf("sink: %w", err)
	}
	p.bundle, p.failures = bundle, failures
	if scope, ok := finalize.FromContext(ctx); ok {
		scope.OnFailed(func() { bundle.Drop(); failures.drop() })
	}
	return nil
}

// add hands a message to the pool. One that fails for what it is goes to the policy:
// its neighbours are published.
func (p *publication) add(ctx context.Context, topic string, m *message.Message, at beam.EventTime) error {
	if err := p.bundle.Add(ctx, topic, m, int64(at)); err != nil {
		return refused(topic, err)
	}
	return nil
}

// refused says what an error of Add is to the bundle.
func refused(topic string, err error) error {
	if errors.Is(err, publish.ErrOrderingKey) {
		return fmt.Errorf("sink: publish to %s: the message has an ordering key, whose order would be lost: set options.Publisher.EnableMessageOrdering, or clear the key", topic)
	}
	return fmt.Errorf("sink: %w", err)
}

// route counts a record that failed and hands it to the policy.
func (p *publication) route(ctx context.Context, f *failure) error {
	p.stats.Failed.Add(1)
	recordsFailed.Inc(ctx, 1)
	return p.failures.take(ctx, f)
}

// finish waits until every message of the bundle is answered, and lets the policy
// finish: a bundle that succeeds has nothing left to do for its records.
func (p *publication) finish(ctx context.Context, emit func(beam.EventTime, Failed)) error {
	defer p.drop()
	err := p.bundle.Finish(ctx)
	reportLoad(ctx, p.bundle.Load())
	reportCounts(ctx, p.bundle.Counts())
	if err == nil {
		err = p.failures.finish(ctx, emit)
	}
	if err != nil {
		return fmt.Errorf("sink: %w", err)
	}
	return nil
}

// Teardown closes the pool and then the dead-letter queue, unless other bundles
// use them. Only the direct runner calls it; elsewhere both close themselves.
func (p *publication) Teardown() error {
	p.drop()
	if err := p.EndRun(); err != nil {
		return fmt.Errorf("sink: %w", err)
	}
	return nil
}

// drop lets go of a bundle that has ended or that was not finished.
func (p *publication) drop() {
	if p.bundle != nil {
		p.bundle.Drop()
		p.failures.drop()
		p.bundle, p.failures = nil, nil
	}
}
