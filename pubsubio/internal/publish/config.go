package publish

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// defaultIdleTimeout is how long a pool without bundles and requests keeps its
// connection: longer than the pauses between the bundles of a slow pipeline,
// shorter than anybody minds an open connection.
const defaultIdleTimeout = time.Minute

// A Config says where and how a pool publishes. Bundles that are opened with one
// Nonce share a pool; it travels as JSON.
type Config struct {
	// Connection says which Pub/Sub to talk to, and as whom.
	Connection options.Connection

	// Publisher tunes batches, retries and caps.
	Publisher options.Publisher

	// Disposition says what a missing topic leads to, TopicCreate how it is
	// created.
	Disposition options.CreateDisposition
	TopicCreate options.TopicCreate

	// Nonce names the pool: it keeps those of two writes apart, whatever else they
	// have in common. The pool counts in stats.ForSink(Nonce).
	Nonce string

	// IdleTimeout is how long a pool outlives its last bundle and request.
	// Default 1 min.
	IdleTimeout time.Duration
}

func (c Config) withDefaults() Config {
	c.Publisher = c.Publisher.WithDefaults()
	c.IdleTimeout = cmp.Or(c.IdleTimeout, defaultIdleTimeout)
	return c
}

// Handlers are what a bundle calls back, always on the goroutine that is in its
// Add or its Finish, and without a lock held.
type Handlers struct {
	// Warn logs a warning. ctx is the one that was given to the waiting call. Nil
	// logs by slog.
	Warn func(ctx context.Context, text string)

	// RejectionsFail says that Reject lets no bundle succeed that had a rejection. A
	// rejected message with an ordering key then ends the bundle at once, with its
	// error and without Reject: nothing that comes after it on its key is sent.
	RejectionsFail bool

	// Reject takes a message that was rejected, after it has left the pool and its
	// caps. An error ends the bundle. Nil ends the bundle with the rejection.
	Reject func(ctx context.Context, r Rejection) error
}

func (h Handlers) withDefaults() Handlers {
	if h.Warn == nil {
		h.Warn = func(ctx context.Context, text string) { slog.WarnContext(ctx, text) }
	}
	if h.Reject == nil {
		h.Reject = func(_ context.Context, r Rejection) error { return r.err() }
		h.RejectionsFail = true
	}
	return h
}

// A Rejection is one message that was refused for what it is.
type Rejection struct {
	// Topic is the full name of where it was to go.
	Topic string
	// Message is its data, attributes and ordering key. It is the handler's to
	// keep.
	Message *message.Message
	// Tag is what Add was given with it.
	Tag int64
	// Err is a *RuleError, where a rule refused it before it was sent, or else the
	// service's refusal of it alone, on which status.FromError works.
	Err error
	// Attempts is how often a request with it was sent, with others and alone.
	Attempts int
}

// err is r as the error of its bundle.
func (r Rejection) err() error {
	if r.Attempts > 0 {
		return r.Err
	}
	return fmt.Errorf("publish to %s: %w", r.Topic, r.Err)
}
