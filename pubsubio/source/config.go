package source

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// A Subscription is one subscription to read.
type Subscription struct {
	// Name is the full name, projects/<project>/subscriptions/<id>. Required.
	Name string

	// Create lets the job create the subscription with these settings when it starts
	// and there is none of that name. Default: it must exist, or the job fails. One
	// that exists is neither changed nor compared with them.
	Create *options.SubscriptionCreate

	// own is the name that FromTopic gave the subscription, which is then the
	// pipeline's to delete. Only the program that builds the pipeline needs it, so it
	// does not travel.
	own string
}

// From returns the subscriptions of those names, as Config.Subscriptions takes
// them.
func From(names ...string) []Subscription {
	subscriptions := make([]Subscription, len(names))
	for i, name := range names {
		subscriptions[i].Name = name
	}
	return subscriptions
}

// Config says what to read and how. Subscriptions is required; the zero value of
// every other field means its default.
type Config struct {
	// Subscriptions are what is read, at least one, each named once. [From]
	// makes them from names of such that exist, [FromTopic] makes one of a topic that is
	// the pipeline's own.
	//
	// When the job starts, each is looked up (pubsub.subscriptions.get, which
	// roles/pubsub.viewer has), created if it may be, and checked. The job fails, with
	// one error that names every fault and what mends it, where a subscription is
	// missing, detached or its topic deleted; where it delivers by push or export, or
	// exactly once; or where it lacks what Ordering and OnDecodeFailure need. Where the
	// account may not look, a warning says what is assumed instead.
	Subscriptions []Subscription

	// StartPosition says where in the subscriptions the job starts, the first time.
	// Default [options.ContinueFromSubscription].
	StartPosition options.StartPosition

	// Ordering says which order is kept. Default [options.Unordered]. With
	// [options.PerKey] the messages of an ordering key are emitted in the order in which
	// they were published; the package comment says what that promises. Every
	// subscription must have message ordering, Splits and Subscriber.Streams are 1, and
	// OnDecodeFailure cannot be [Nack] or [Leave].
	Ordering options.Ordering

	// OnDecodeFailure says what becomes of a message that the decoder refuses, by an
	// error or a panic, or that has no usable TimestampAttribute. Default [Fail]. What
	// a later step of the pipeline makes of a record fails the bundle, whatever is set
	// here. [Nack] and [Leave] are refused beside Ordering options.PerKey, Nack also at the
	// start where a subscription has no dead-letter policy; [EmitFailed] needs
	// [ReadWithFailures].
	OnDecodeFailure FailurePolicy

	// NackDelay is how long a message stays away that [Nack] returns, the first time;
	// each further delivery attempt doubles it, up to 600 s. Whole seconds from 1 s to
	// 600 s, which is what the service has. Default: it comes again at once the first
	// time, and stays away for 1 s, 2 s, 4 s and so on after that;
	// [options.Disabled]: it always comes again at once. Where the service counts no
	// deliveries, each is taken for the first, but for the default, which is 10 s then.
	//
	// The service goes on counting a message against the flow control of the stream
	// that brought it until the delay is over: keep
	// Subscriber.MaxOutstandingMessages well above the number of messages that are to
	// be refused at a time. A retry policy of the subscription itself has no such
	// cost, and needs Disabled here.
	NackDelay time.Duration

	// Splits is how many readers share a subscription, each with streams of its
	// own (Subscriber.Streams) that carry about 10 MB/s each from the service: what
	// spreads a subscription over workers. Default 1. Limit.MaxMessages needs 1.
	Splits int

	// Subscriber tunes how a worker pulls, buffers and holds messages. Its zero value
	// means every default.
	Subscriber options.Subscriber

	// Limit makes the read end by itself. Default: it never ends. The collection stays
	// unbounded to Beam, except on the direct runner. Limit.MaxMessages needs Splits 1.
	Limit options.Limit

	// TimestampAttribute is the key of an attribute that holds a message's event time:
	// an RFC 3339 time with any offset, or milliseconds since the Unix epoch in
	// decimal digits, as Beam's PubsubIO for Java and sink.Config write it. The
	// watermark follows these times. Default: none, and the event time is the publish
	// time. It excludes a decoder that emits [Timed] records.
	//
	// A message without the attribute, with another value, or with a time outside of
	// Beam's range (±292,000 years about 1970) is a decode failure. A number is always
	// taken for milliseconds: one that lies in 1970, as each count of seconds does, is
	// taken as it is, counted (timestampsInSeconds), and warned of once.
	TimestampAttribute string

	// WatermarkLag is how far the watermark stays behind the clock while the
	// subscription is drained, and for how long a message that comes out of
	// publish order holds it otherwise. Default 10 s, at least 1 ms. Pub/Sub
	// promises no order: a message that arrives out of order by more than that
	// may be late.
	WatermarkLag time.Duration

	// WatermarkIdleTimeout is how long nothing may have come before a
	// subscription counts as drained. Default 5 s, at least 1 ms. A window of a drained
	// subscription fires WatermarkLag after its end, and after a last message not before
	// this. Limit.StopWhenIdle is another.
	WatermarkIdleTimeout time.Duration

	// WatermarkHoldLimit is how long one message that is held, because its
	// bundle does not commit or nobody takes it, may hold the watermark.
	// Default 10 min, at least 1 ms. What is held for longer may be late: keep it above
	// the time between two commits.
	WatermarkHoldLimit time.Duration

	// IDAttribute is the key of an attribute by which copies of a message are known, as
	// Beam's PubsubIO for Java reads it and a sink's IDAttribute writes it: of those with
	// the same value only one is emitted. A copy that comes while the first is held is
	// acknowledged or returned with that; afterwards the value is remembered for ten
	// minutes, and for the last 500,000 messages at most, which takes about 40 MB a
	// subscription. The reader remembers, so what was acknowledged by another worker,
	// or before a restart, is not known. A message without the attribute is never a
	// copy. Beside it Splits must be 1.
	//
	// Default: the message's own id, by which only a message that is still held is
	// known when the service delivers it again.
	IDAttribute string

	// ServiceAccountKeyFile, EmulatorEndpoint and Endpoint say as whom and
	// where to read; see the fields of that name in options.Connection. The
	// environment variable PUBSUB_EMULATOR_HOST has no influence.
	ServiceAccountKeyFile, EmulatorEndpoint, Endpoint string

	// timedRecords says, within a worker, that the decoder gives records their times.
	timedRecords bool
}

func (c Config) connection() options.Connection {
	return options.Connection{
		ServiceAccountKeyFile: c.ServiceAccountKeyFile,
		EmulatorEndpoint:      c.EmulatorEndpoint,
		Endpoint:              c.Endpoint,
	}
}

// withDefaults returns c with every unset field at its default.
func (c Config) withDefaults() Config {
	if c.Ordering == options.PerKey && c.Subscriber.BundleFillDelay == 0 {
		// The service sends no more of a key until what it has sent is acknowledged,
		// which a bundle that waits puts off.
		c.Subscriber.BundleFillDelay = options.Disabled
	}
	c.Subscriber = c.Subscriber.WithDefaults()
	if c.Splits == 0 {
		c.Splits = 1
	}
	if c.WatermarkLag == 0 {
		c.WatermarkLag = 10 * time.Second
	}
	if c.WatermarkIdleTimeout == 0 {
		c.WatermarkIdleTimeout = 5 * time.Second
	}
	if c.WatermarkHoldLimit == 0 {
		c.WatermarkHoldLimit = 10 * time.Minute
	}
	return c
}

// Validate reports every rule that c breaks, joined; each error names the field,
// the value and the rule. TryRead calls it.
func (c Config) Validate() error {
	var f options.Faults
	c.subscriptionFaults(&f)
	c.StartPosition.Faults(&f, "source.Config.StartPosition")
	c.Ordering.Faults(&f, "source.Config.Ordering")
	if c.Splits < 0 {
		f.Add("source.Config.Splits", c.Splits, "must be at least 1")
	}
	if c.Splits > 1 && c.Ordering == options.PerKey {
		f.Add("source.Config.Splits", c.Splits, "must be 1 beside Ordering options.PerKey: the messages of a key come over one stream")
	}
	if c.Splits > 1 && c.IDAttribute != "" {
		f.Add("source.Config.Splits", c.Splits, "must be 1 beside IDAttribute: the copies of a message may come to any of them")
	}
	if c.Subscriber.Streams > 1 && c.Ordering == options.PerKey {
		f.Add("options.Subscriber.Streams", c.Subscriber.Streams, "must be 1 beside Ordering options.PerKey: the messages of a key come over one stream")
	}
	c.OnDecodeFailure.faults(&f)
	c.decodeFaults(&f)
	if k := c.OnDecodeFailure.kind; (k == nack || k == leave) && c.Ordering == options.PerKey {
		f.Add("source.Config.OnDecodeFailure", c.OnDecodeFailure, "must be another policy beside Ordering options.PerKey: the service would hold back the messages of a key behind the returned one")
	}
	if c.Splits > 1 && c.Limit.MaxMessages > 0 {
		f.Add("source.Config.Splits", c.Splits, "must be 1 beside Limit.MaxMessages, which splits cannot count together")
	}
	atLeastMillisecond := func(field string, d time.Duration) {
		if d != 0 && d < time.Millisecond {
			f.Add("source.Config."+field, d, "must be at least 1ms")
		}
	}
	atLeastMillisecond("WatermarkLag", c.WatermarkLag)
	atLeastMillisecond("WatermarkIdleTimeout", c.WatermarkIdleTimeout)
	atLeastMillisecond("WatermarkHoldLimit", c.WatermarkHoldLimit)
	c.connection().Faults(&f, "source.Config")
	c.Subscriber.Faults(&f)
	c.Limit.Faults(&f)
	return f.Err()
}

// maxAttributeKey is how many bytes the key of an attribute may have, from "Quotas
// and limits" in the Pub/Sub documentation
// (https://cloud.google.com/pubsub/quotas#resource_limits).
const maxAttributeKey = 256

// decodeFaults records in f the rules of what becomes of a message and of its time.
func (c Config) decodeFaults(f *options.Faults) {
	if d := c.NackDelay; d != 0 && d != options.Disabled && (d < time.Second || d > maxNackDelay || d%time.Second != 0) {
		f.Add("source.Config.NackDelay", d, "must be whole seconds from 1s to 600s, or options.Disabled")
	}
	if c.NackDelay != 0 && c.OnDecodeFailure.kind != nack {
		f.Add("source.Config.NackDelay", c.NackDelay, fmt.Sprintf("must be unset beside OnDecodeFailure %v, which has no use for it", c.OnDecodeFailure))
	}
	attribute := func(field, key string) {
		if len(key) > maxAttributeKey || !utf8.ValidString(key) {
			f.Add("source.Config."+field, fmt.Sprintf("%.40q", key), "must be a key that a message can have: valid UTF-8 of at most 256 bytes")
		}
	}
	attribute("TimestampAttribute", c.TimestampAttribute)
	attribute("IDAttribute", c.IDAttribute)
}
