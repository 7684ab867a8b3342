package sink

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/panics"
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
		if r.queue, err = dlq.Decode(p.Queue); err != nil {
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
		return &sender{routing: r}
	case handleWith:
		return &caller{handler: r.handler}
	case fail:
	}
	return new(failer)
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

// sender is SendTo. It opens a writer at the bundle's first failure.
type sender struct {
	*routing
	writer dlq.Writer
}

func (r *sender) take(ctx context.Context, f *failure) error {
	whole, err := f.whole()
	if err != nil {
		return err
	}
	if r.writer == nil {
		if err := r.open(ctx); err != nil {
			return fmt.Errorf("open the dead-letter queue: %w", err)
		}
	}
	if err := r.offer(ctx, whole.letter()); err != nil {
		return fmt.Errorf("hand a failed record to the dead-letter queue: %w", err)
	}
	r.stats.DeadLetters.Add(1)
	deadLetters.Inc(ctx, 1)
	return nil
}

func (r *sender) finish(ctx context.Context, _ func(beam.EventTime, Failed)) error {
	if r.writer == nil {
		return nil
	}
	if err := r.flush(ctx); err != nil {
		return fmt.Errorf("flush the dead-letter queue: %w", err)
	}
	r.writer = nil
	return nil
}

func (r *sender) open(ctx context.Context) (err error) {
	defer panics.Recover(&err, "dead-letter queue", r.name())
	r.writer, err = r.queue.Open(ctx, r.owner)
	return err
}

func (r *sender) offer(ctx context.Context, letter dlq.Letter) (err error) {
	defer panics.Recover(&err, "dead-letter queue", r.name())
	return r.writer.Offer(ctx, letter)
}

func (r *sender) flush(ctx context.Context) (err error) {
	defer panics.Recover(&err, "dead-letter queue", r.name())
	return r.writer.Flush(ctx)
}

// name is the queue's type, for error texts.
func (r *sender) name() string { return fmt.Sprintf("%T", r.queue) }

func (r *sender) drop() {
	if w := r.writer; w != nil {
		r.writer = nil
		if err := dropWriter(w, r.name()); err != nil {
			// Nobody is told: the bundle fails, or has ended, anyway.
			slog.Warn("sink: " + err.Error())
		}
	}
}

func dropWriter(w dlq.Writer, name string) (err error) {
	defer panics.Recover(&err, "dead-letter queue", name)
	w.Drop()
	return nil
}

func closeQueue(q dlq.Queue, owner string) (err error) {
	defer panics.Recover(&err, "dead-letter queue", fmt.Sprintf("%T", q))
	return q.Close(owner)
}

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
