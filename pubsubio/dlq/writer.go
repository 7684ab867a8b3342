package dlq

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/publish"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// pool says how the letters of an owner are published on a worker.
//
// What ends a wait is FlushTimeout alone: a request is tried again for as long as a
// bundle waits for it, and leaves the pool when none does. So no budget of its own
// ends it earlier, with an error that names an option which nobody has set. An attempt
// may take two thirds of the wait: a topic that is slow is answered by its first, and
// one whose answer is lost leaves a third for the next. Shorter ones would be cut again
// and again while the service stores the letters each time.
func (c Config) pool(owner string) publish.Config {
	p := publish.Config{
		Connection: c.connection(),
		Publisher: options.Publisher{
			RetryTotalTimeout:      options.Disabled,
			RetryMaxDelay:          max(min(5*time.Second, c.FlushTimeout/4), time.Millisecond),
			RetryInitialRPCTimeout: max(c.FlushTimeout-c.FlushTimeout/3, time.Millisecond),
			PublishProgressTimeout: math.MaxInt64,
			// A letter that is refused fails its bundle, however many there are.
			MaxConsecutiveRejections: options.Unbounded,
			ShutdownTimeout:          c.ShutdownTimeout,
		},
		Disposition: options.CreateNever,
		// A transform and its queue share neither caps nor guardrail.
		Nonce: "dlq " + owner + " " + c.Topic,
	}
	switch n := c.MaxInFlightMessages; n {
	case Unbounded:
		p.Publisher.MaxInFlightMessages = math.MaxInt
		p.Publisher.MaxInFlightBytes = options.Unbounded
	case WriteThrough: // Each bundle has one letter at a time.
	default:
		p.Publisher.MaxInFlightMessages = n
	}
	return p
}

// Open implements [Queue]. It makes no call to the service, and fails where the
// credentials cannot be read.
func (c Config) Open(_ context.Context, owner string) (Writer, error) {
	c = c.withDefaults()
	w := &writer{config: c, pool: c.pool(owner), stats: stats.ForQueue(owner)}
	w.stats.Follow(&stats.ForSink(w.pool.Nonce).InFlight)
	if c.MaxInFlightMessages == WriteThrough {
		return &throughWriter{w}, nil
	}
	if err := w.begin(); err != nil {
		return nil, err
	}
	return w, nil
}

// Close implements [Queue].
func (c Config) Close(owner string) error {
	if err := publish.Close(c.withDefaults().pool(owner)); err != nil {
		return fmt.Errorf("dlq: dead-letter topic %s: %w", c.Topic, err)
	}
	return nil
}

// A writer publishes the letters of a bundle. The pool that it shares with the other
// bundles of its owner batches them, tries again and keeps the cap.
type writer struct {
	config  Config // with defaults
	pool    publish.Config
	stats   *stats.Queue
	bundle  *publish.Bundle // nil before begin
	letters int64           // offered
	failed  error           // of the first Offer that failed
}

func (w *writer) begin() error {
	b, err := publish.Open(w.pool, publish.Handlers{
		Warn: func(ctx context.Context, text string) { log.Warnf(ctx, "dlq: %s", text) },
		// Without a handler a rejection fails the bundle: nothing is dropped.
	})
	if err != nil {
		return fmt.Errorf("dlq: dead-letter topic %s: %w", w.config.Topic, err)
	}
	w.bundle, w.letters = b, 0
	return nil
}

// Offer puts a letter into a request. At the cap it waits, FlushTimeout at most.
func (w *writer) Offer(ctx context.Context, l Letter) error {
	return w.keep(w.add(ctx, l))
}

// keep returns err, and notes it for Flush if it is the first.
func (w *writer) keep(err error) error {
	if w.failed == nil {
		w.failed = err
	}
	return err
}

func (w *writer) add(ctx context.Context, l Letter) error {
	if l.Destination == w.config.Topic {
		return fmt.Errorf("dlq: a record for %s failed, which is the topic of its dead-letter queue: its letter could not be published there either, or would come round again; choose another topic for dlq.Config.Topic", l.Destination)
	}
	ctx, cancel := w.deadline(ctx)
	defer cancel()
	for _, m := range seal(l, w.config.Topic) {
		if err := w.bundle.Add(ctx, w.config.Topic, m, 0); err != nil {
			return w.explain(err)
		}
	}
	w.letters++
	return nil
}

// Flush returns once the service has stored all letters, which one that Offer has
// failed with never is.
func (w *writer) Flush(ctx context.Context) error {
	if w.failed != nil {
		return w.failed
	}
	return w.flush(ctx)
}

func (w *writer) flush(ctx context.Context) error {
	began := time.Now()
	ctx, cancel := w.deadline(ctx)
	defer cancel()
	err := w.bundle.Finish(ctx)
	w.report(ctx, time.Since(began), err)
	return w.explain(err)
}

// Drop lets go of what has not been sent. It is the pool's to make no call.
func (w *writer) Drop() {
	if w.bundle != nil {
		w.bundle.Drop()
	}
}

// deadline bounds one wait.
func (w *writer) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, w.config.FlushTimeout,
		fmt.Errorf("dlq.Config.FlushTimeout (%v) is over", w.config.FlushTimeout))
}

// explain makes err, if it is one, an error of the queue.
func (w *writer) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case status.Code(err) == codes.NotFound:
		return missing(w.config.Topic, err)
	default:
		return fmt.Errorf("dlq: %w", err)
	}
}

// A throughWriter waits for each letter.
type throughWriter struct{ *writer }

// Offer returns once the service has stored the letter.
func (w *throughWriter) Offer(ctx context.Context, l Letter) error {
	return w.keep(w.through(ctx, l))
}

func (w *throughWriter) through(ctx context.Context, l Letter) error {
	if err := w.begin(); err != nil {
		return err
	}
	if err := w.add(ctx, l); err != nil {
		return err // Drop follows.
	}
	return w.flush(ctx)
}

// Flush has nothing to wait for.
func (w *throughWriter) Flush(context.Context) error { return w.failed }
