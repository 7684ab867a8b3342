package sink

import (
	"fmt"
	"unicode/utf8"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// Config says where and how to publish. Topic or Resolve is required; the zero
// value of every other field means its default. It is for building a pipeline: as
// JSON it loses Resolve and OnFailure, which name functions of the program.
type Config struct {
	// Topic is the full name of the one topic, projects/<project>/topics/<id>.
	// Required, unless Resolve is set.
	Topic string

	// Resolve chooses a topic for each record: [ResolveWith] makes it of a function
	// that was given to [RegisterResolver]. Default: none. Refused beside Topic.
	// What it costs to have many topics, Publisher.MaxActivePublishers and
	// Publisher.PerDestinationMetrics say.
	Resolve Resolver

	// CreateDisposition says what becomes of a record whose topic does not exist.
	// Default [options.CreateIfNeeded]: the topic is created, once, and the record
	// published then. With [options.CreateNever] the bundle fails. The sink never
	// looks whether a topic exists: only the service's answer to a publish tells.
	CreateDisposition options.CreateDisposition

	// TopicCreate holds the settings of the topics that the sink creates, one set
	// for all. Default: the service's own. Refused beside CreateNever.
	TopicCreate options.TopicCreate

	// Publisher tunes how a worker batches, retries and bounds what it
	// publishes.
	Publisher options.Publisher

	// OnFailure says what becomes of a record that can never be published: one that
	// the encoder refused, or whose message was rejected for what it is. Default
	// [Fail]. An outage, a missing permission, a missing topic, a resolver's fault
	// or an ordering key without Publisher.EnableMessageOrdering fails the bundle,
	// whatever is set here. Publisher.MaxConsecutiveRejections bounds how many
	// messages in a row are rejected and go to a policy that drops.
	OnFailure FailurePolicy

	// OrderBy says which order is kept for an ordering key, beside
	// Publisher.EnableMessageOrdering. Default [options.OrderInPlace].
	// [options.OrderByKey] needs Publisher.EnableMessageOrdering.
	OrderBy options.OrderBy

	// SequenceAttribute is the key of an attribute that the sink adds to each
	// message with an ordering key: a decimal number, one more than that of the
	// message before it of its topic and key, by which a consumer sees gaps and
	// replays; the package comment says what it may conclude, and why it must not drop
	// duplicates by it. The runner keeps a number for each key, for as long as the job
	// runs. Default: none. It needs OrderBy [options.OrderByKey].
	SequenceAttribute string

	// TimestampAttribute is the key of an attribute that the sink adds to each
	// message, or replaces: the record's event time in milliseconds since the Unix
	// epoch, in decimal digits, as Beam's PubsubIO for Java writes it. A record
	// without an event time of its own has Beam's least one,
	// -9223372036854775. Default: none.
	TimestampAttribute string

	// IDAttribute is the key of an attribute that the sink adds to each message: an
	// id by which a consumer drops duplicates, as Beam's PubsubIO for Java writes
	// it. Default: none. The id is, in this order:
	//
	//   - what the encoder put into the attribute, if that is not empty. A value that
	//     follows from the record is the same however often it is published.
	//   - the message's ID, if it has one: a message that was received and is relayed
	//     keeps the id it came with, so that a replay of the bundle has it again, and
	//     so has a message that the subscription delivers twice.
	//   - 128 random bits in hexadecimal digits. They are the same when a request is
	//     sent again, because its answer was lost, but not when the runner retries
	//     the bundle: what a failed bundle had published comes again with other ids.
	//     With OrderBy [options.OrderByKey] the id of a message with a key is drawn
	//     before the shuffle, so that the bundle which publishes it has it again.
	IDAttribute string

	// ServiceAccountKeyFile, EmulatorEndpoint and Endpoint say as whom and
	// where to publish; see the fields of that name in options.Connection. The
	// environment variable PUBSUB_EMULATOR_HOST has no influence.
	ServiceAccountKeyFile, EmulatorEndpoint, Endpoint string
}

func (c Config) connection() options.Connection {
	return options.Connection{
		ServiceAccountKeyFile: c.ServiceAccountKeyFile,
		EmulatorEndpoint:      c.EmulatorEndpoint,
		Endpoint:              c.Endpoint,
	}
}

// in is how the fields of a Config are named in faults.
const in = "sink.Config."

// Validate reports every rule that c breaks, joined; each error names the field,
// the value and the rule. TryWrite calls it, and checks besides that the functions
// take the records.
func (c Config) Validate() error {
	var f options.Faults
	c.topicFaults(&f)
	c.OnFailure.faults(&f, c.Topic)
	c.orderFaults(&f)
	c.attributeFaults(&f)
	c.connection().Faults(&f, "sink.Config")
	c.Publisher.Faults(&f)
	return f.Err()
}

func (c Config) topicFaults(f *options.Faults) {
	_, err := message.ParseTopic(c.Topic)
	switch {
	case c.Resolve.isSet() && c.Topic != "":
		f.Add(in+"Topic", fmt.Sprintf("%q", c.Topic), "must be empty beside Resolve, which chooses the topic of each record")
	case !c.Resolve.isSet() && c.Topic == "":
		f.AddError(fmt.Errorf(in+"Topic: %w, unless Resolve chooses the topics", err))
	case !c.Resolve.isSet() && err != nil:
		f.AddError(fmt.Errorf(in+"Topic: %w", err))
	}
	if c.Resolve.fault != nil {
		f.AddError(fmt.Errorf(in+"Resolve: resolver %w", c.Resolve.fault))
	}
	c.CreateDisposition.Faults(f, in+"CreateDisposition")
	if c.CreateDisposition == options.CreateNever && c.TopicCreate.IsSet() {
		f.Add(in+"TopicCreate", "(set)", "must be unset beside CreateDisposition options.CreateNever, which creates no topic")
	}
	c.TopicCreate.Faults(f)
}

func (c Config) orderFaults(f *options.Faults) {
	c.OrderBy.Faults(f, in+"OrderBy")
	if c.OrderBy == options.OrderByKey && !c.Publisher.EnableMessageOrdering {
		f.Add(in+"OrderBy", c.OrderBy, "needs Publisher.EnableMessageOrdering, without which no message may have an ordering key")
	}
	if c.SequenceAttribute != "" && c.OrderBy != options.OrderByKey {
		f.Add(in+"SequenceAttribute", fmt.Sprintf("%q", c.SequenceAttribute), "needs OrderBy options.OrderByKey: elsewhere bundles that run at once would count beside each other")
	}
}

// maxAttributeKey is how many bytes the key of an attribute may have, from "Quotas
// and limits" in the Pub/Sub documentation
// (https://cloud.google.com/pubsub/quotas#resource_limits).
const maxAttributeKey = 256

func (c Config) attributeFaults(f *options.Faults) {
	attributes := []struct{ field, key string }{
		{"SequenceAttribute", c.SequenceAttribute},
		{"TimestampAttribute", c.TimestampAttribute},
		{"IDAttribute", c.IDAttribute},
	}
	for i, a := range attributes {
		if a.key == "" {
			continue
		}
		if rule := attributeKeyRule(a.key); rule != "" {
			f.Add(in+a.field, fmt.Sprintf("%.40q", a.key), rule)
		}
		for _, other := range attributes[:i] {
			if a.key == other.key {
				f.Add(in+a.field, fmt.Sprintf("%.40q", a.key), "must differ from "+other.field)
			}
		}
	}
}

// attributeKeyRule returns the rule that the key of an attribute breaks, or "".
func attributeKeyRule(key string) string {
	switch {
	case len(key) > maxAttributeKey:
		return fmt.Sprintf("must have at most %d bytes, it has %d", maxAttributeKey, len(key))
	case !utf8.ValidString(key):
		return "must be valid UTF-8"
	case message.ReservedAttribute(key):
		return "must not begin with goog, which the service reserves"
	default:
		return ""
	}
}
