package sink

import (
	"context"
	"fmt"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
)

// A router carries out a failure policy for one bundle. Its methods are called by
// the bundle's goroutine, one at a time, but for drop.
type router interface {
	// take disposes of a record that failed. An error fails the bundle.
	take(ctx context.Context, f *failure) error
	// finish ends a bundle whose messages are all answered. An error fails it.
	finish(ctx context.Context, emit func(beam.EventTime, Failed)) error
	// drop lets go of what the bundle has not finished. It makes no call and waits
	// for nothing, comes once the others have returned, and may come twice.
	drop()
}

// A routing makes the routers of an instance of the DoFn.
type routing struct {
	kind    policyKind
	handler *registeredHandler
	queue   dlq.Queue
	owner   string
	stats   *stats.Sink
}

// newRouting finds what p names on this worker. owner is the nonce of the Write.
func newRouting(p policy, owner string) (routing, error) {
	r := routing{kind: p.Kind, owner: owner, stats: stats.ForSink(owner)}
	switch p.Kind {
	case sendTo:
		var err error
		if r.queue, err = dlq.DecodeQueue(p.Queue); err != nil {
			return routing{}, fmt.Errorf("sink: %w", err)
		}
	case handleWith:
		var ok bool
		if r.handler, ok = handlers.Find(p.Handler); !ok {
			return routing{}, fmt.Errorf("sink: failure handler %s is not registered on this worker: call sink.RegisterHandler with it in init, not in main", p.Handler)
		}
	case fail, logAndDrop, emitFailed:
	}
	return r, nil
}

// open returns the router of a bundle.
func (r *routing) open() router {
	switch r.kind {
	case logAndDrop:
		return &dropper{log: &dropLog{stats: r.stats}}
	case emitFailed:
		return new(emitter)
	case sendTo:
		return &sender{Sender: r.letters(), stats: r.stats}
	case handleWith:
		return &caller{handler: r.handler}
	case fail:
	}
	return new(failer)
}

// letters returns what hands a bundle's letters to the queue.
func (r *routing) letters() *dlq.Sender { return dlq.NewSender(r.queue, r.owner) }

// check asks the queue, if there is one, whether it can work: once in this process. A
// sink without one makes no call but those that publish.
func (r *routing) check(ctx context.Context) error {
	if r.queue == nil {
		return nil
	}
	return r.letters().Check(ctx)
}

// close lets go of what the queue, if there is one, keeps for the Write in this
// process.
func (r *routing) close() error {
	if r.queue == nil {
		return nil
	}
	return r.letters().Close()
}

// failer is Fail.
type failer struct {
	n     int64
	first error
}

func (r *failer) take(_ context.Context, f *failure) error {
	if r.first == nil {
		r.first = f.err
	}
	r.n++
	return nil
}

func (r *failer) finish(context.Context, func(beam.EventTime, Failed)) error {
	if r.first == nil {
		return nil
	}
	return fmt.Errorf("%d of the bundle's records failed, the others were published; the first: %w", r.n, r.first)
}

func (*failer) drop() {}

// dropper is LogAndDrop.
type dropper struct{ log *dropLog }

func (r *dropper) take(ctx context.Context, f *failure) error {
	r.log.dropped(ctx, f)
	return nil
}

func (*dropper) finish(context.Context, func(beam.EventTime, Failed)) error { return nil }

func (*dropper) drop() {}

// emitter is EmitFailed. It keeps the failures until the bundle's messages are
// answered: emitted earlier, those of a bundle that fails would have been worked on
// for nothing, and would come twice.
type emitter struct{ failures []timed }

type timed struct {
	at beam.EventTime
	f  Failed
}

func (r *emitter) take(_ context.Context, f *failure) error {
	whole, err := f.whole()
	if err != nil {
		return err
	}
	r.failures = append(r.failures, timed{f.at, whole})
	return nil
}

func (r *emitter) finish(_ context.Context, emit func(beam.EventTime, Failed)) error {
	for _, t := range r.failures {
		emit(t.at, t.f)
	}
	return nil
}

func (r *emitter) drop() { r.failures = nil }

// sender is SendTo.
type sender struct {
	*dlq.Sender
	stats *stats.Sink
}

func (r *sender) take(ctx context.Context, f *failure) error {
	whole, err := f.whole()
	if err != nil {
		return err
	}
	if err := r.Send(ctx, whole.DeadLetter()); err != nil {
		return err
	}
	r.stats.DeadLetters.Add(1)
	deadLetters.Inc(ctx, 1)
	return nil
}

func (r *sender) finish(ctx context.Context, _ func(beam.EventTime, Failed)) error {
	return r.Flush(ctx)
}

func (r *sender) drop() { r.Drop() }

// caller is HandleWith.
type caller struct{ handler *registeredHandler }

func (r *caller) take(ctx context.Context, f *failure) error {
	whole, err := f.whole()
	if err != nil {
		return err
	}
	if err := r.handler.call(ctx, whole); err != nil {
		return fmt.Errorf("failure handler %s: %w; the failure: %w", r.handler.name, err, f.err)
	}
	return nil
}

func (*caller) finish(context.Context, func(beam.EventTime, Failed)) error { return nil }

func (*caller) drop() {}
