package relay

import (
	"fmt"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/routed"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

func init() {
	register.DoFn1x1[*pubsubio.Message, routed.Message](&router{})
}

// A router finds a message's topic in an attribute: a resolver has no parameters,
// because workers know it by its name alone.
type router struct {
	// Attribute is its key, --output_topic_attribute.
	Attribute string
	// Otherwise is the topic of messages without it, --output_topic. Empty: they have none.
	Otherwise string
}

// ProcessElement reads the attribute. A message without a usable one is not the router's to
// fail, for who publishes may write anything there: --failure_policy decides.
func (r *router) ProcessElement(m *pubsubio.Message) routed.Message {
	topic, ok := m.Attributes[r.Attribute]
	if !ok {
		topic = r.Otherwise
	}
	if topic == "" {
		return without(m, fmt.Sprintf("message %s has no attribute %q to say its topic (--output_topic_attribute); --output_topic is for such messages", m.ID, r.Attribute))
	}
	if _, err := message.ParseTopic(topic); err != nil {
		return without(m, fmt.Sprintf("message %s: attribute %q (--output_topic_attribute): %v", m.ID, r.Attribute, err))
	}
	return routed.Message{Topic: topic, Message: m}
}

func without(m *pubsubio.Message, fault string) routed.Message {
	return routed.Message{Topic: routed.None, Message: m, Fault: fault}
}
