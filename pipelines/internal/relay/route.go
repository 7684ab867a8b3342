package relay

import (
	"context"
	"fmt"
	"math/bits"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/routed"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
)

func init() {
	register.DoFn4x1[context.Context, *pubsubio.Message, func(routed.Message), func(sink.Failed), error](&router{})
	register.Emitter1[routed.Message]()
	register.Emitter1[sink.Failed]()
}

// A router finds a message's topic in an attribute: a resolver has no parameters,
// because workers know it by its name alone. A message without a usable one is not the
// router's to fail, for who publishes may write anything there: --failure_policy decides.
//
// Such a message never reaches the sink, to which it would be a record that did not become
// a message: a letter would hold it in Beam's coding, which nothing publishes again.
type router struct {
	// Attribute is its key, --output_topic_attribute.
	Attribute string
	// Otherwise is the topic of messages without it, --output_topic. Empty: they have none.
	Otherwise string
	// Policy is what becomes of messages without a topic, one of the policies.
	Policy string
	Nonce  string

	tally *tally
	count beam.Counter // of the job, where the workers are other processes
}

// Setup finds where it is counted.
func (r *router) Setup() {
	r.tally = tallyOf(r.Nonce)
	r.count = beam.NewCounter("relay", "topicless")
}

// ProcessElement emits a message with its topic, or one that has none and is to be a dead
// letter.
func (r *router) ProcessElement(ctx context.Context, m *pubsubio.Message, emit func(routed.Message), letter func(sink.Failed)) error {
	topic, fault := r.topicOf(m)
	if fault == "" {
		emit(routed.Message{Topic: topic, Message: m})
		return nil
	}
	n := r.tally.topicless.Add(1)
	r.count.Inc(ctx, 1)
	switch r.Policy {
	case policyDeadLetter:
		letter(sink.Failed{Message: m, Destination: topic, Error: fault, Time: time.Now().UTC()})
	case policyDrop:
		if bits.OnesCount64(uint64(n)) == 1 { // Seldom: all of them may be so.
			log.Warnf(ctx, "relay: dropped a message, %d so far: %s", n, fault)
		}
	default:
		return fmt.Errorf("%s; --failure_policy=drop drops such messages, --dead_letter_topic keeps them", fault)
	}
	return nil
}

// topicOf returns the topic that is m's to be published to, and why it is none.
func (r *router) topicOf(m *pubsubio.Message) (topic, fault string) {
	topic, ok := m.Attributes[r.Attribute]
	if !ok {
		topic = r.Otherwise
	}
	if topic == "" {
		return "", fmt.Sprintf("message %s has no attribute %q to say its topic (--output_topic_attribute); --output_topic is for such messages", m.ID, r.Attribute)
	}
	if _, err := message.ParseTopic(topic); err != nil {
		return topic, fmt.Sprintf("message %s: attribute %q (--output_topic_attribute): %v", m.ID, r.Attribute, err)
	}
	return topic, ""
}
