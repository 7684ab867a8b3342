package dlq

import (
	"cmp"
	"fmt"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

func init() {
	Register[Config]()
	Register[*Config]()
}

// Values of Config.MaxInFlightMessages beside numbers.
const (
	// Unbounded has no letter wait before the flush.
	Unbounded = options.Unbounded
	// WriteThrough has each letter stored by the service before Offer returns.
	WriteThrough = -2
)

// Config is a dead-letter queue over Pub/Sub: a [Queue] that publishes an envelope
// for each letter to one topic. Topic is required; the zero value of every other
// field means its default. The package comment says what an envelope holds, and what
// the queue looks at before a job depends on it.
type Config struct {
	// Topic is the full name of the topic, projects/<project>/topics/<id>. Required.
	// It must exist, and should have a subscription: the queue never creates it,
	// for nothing would be consuming it, and what a topic without a subscription
	// gets is lost. It must be another one than those whose records fail.
	Topic string

	// MaxInFlightMessages caps the letters of one transform on one worker that the
	// service has not answered yet; a letter in parts counts for each of them. At the
	// cap the next letter waits, FlushTimeout at most. Default 1,000, beside which 64 MiB
	// are a cap, too. [WriteThrough] waits for each letter, at the price of a round
	// trip for each: then a worker that dies has handed over all that it gave up.
	// [Unbounded] waits for none before the flush, and keeps in memory what a bundle
	// gives up.
	MaxInFlightMessages int

	// FlushTimeout is how long one wait for the service may take, whether for the
	// answers to all letters of a bundle, for room, or for one letter with
	// WriteThrough. There is one deadline for all that is waited for; when it passes,
	// the bundle fails, and its runner runs it again. One attempt to publish may take two
	// thirds of it: what takes longer never arrives. Default 60 s, at least 1 ms. It
	// cannot be turned off: a topic that is never answered would hold a bundle for ever.
	FlushTimeout time.Duration

	// ShutdownTimeout is how long Close waits for requests that nobody waits for any
	// more. It comes after what the transform itself takes to close. Default 30 s, at
	// least 1 ms.
	ShutdownTimeout time.Duration

	// ServiceAccountKeyFile, EmulatorEndpoint and Endpoint say as whom and where to
	// publish, whatever the transform does; see the fields of that name in
	// options.Connection. The environment variable PUBSUB_EMULATOR_HOST has no
	// influence.
	ServiceAccountKeyFile, EmulatorEndpoint, Endpoint string
}

// in is how the fields of a Config are named in faults.
const in = "dlq.Config."

// Validate reports every rule that c breaks, joined; each error names the field, the
// value and the rule.
func (c Config) Validate() error {
	var f options.Faults
	if _, err := message.ParseTopic(c.Topic); err != nil {
		f.AddError(fmt.Errorf(in+"Topic: %w", err))
	}
	if n := c.MaxInFlightMessages; n < 0 && n != Unbounded && n != WriteThrough {
		f.Add(in+"MaxInFlightMessages", n, "must be positive, dlq.WriteThrough or dlq.Unbounded")
	}
	c = c.withDefaults()
	if c.FlushTimeout < time.Millisecond {
		f.Add(in+"FlushTimeout", c.FlushTimeout, "must be at least 1ms: no wait is unbounded")
	}
	if c.ShutdownTimeout < time.Millisecond {
		f.Add(in+"ShutdownTimeout", c.ShutdownTimeout, "must be at least 1ms")
	}
	c.connection().Faults(&f, "dlq.Config")
	return f.Err()
}

func (c Config) withDefaults() Config {
	c.MaxInFlightMessages = cmp.Or(c.MaxInFlightMessages, 1000)
	c.FlushTimeout = cmp.Or(c.FlushTimeout, time.Minute)
	c.ShutdownTimeout = cmp.Or(c.ShutdownTimeout, 30*time.Second)
	return c
}

func (c Config) connection() options.Connection {
	return options.Connection{
		ServiceAccountKeyFile: c.ServiceAccountKeyFile,
		EmulatorEndpoint:      c.EmulatorEndpoint,
		Endpoint:              c.Endpoint,
	}
}

// DeadLetterTopic implements [TopicQueue].
func (c Config) DeadLetterTopic() string { return c.Topic }
