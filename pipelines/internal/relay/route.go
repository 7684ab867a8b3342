package relay

import (
	"fmt"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/routed"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

func init() {
	register.DoFn1x2[*pubsubio.Message, routed.Message, error](&router{})
}

// A router finds a message's topic in an attribute: a resolver has no parameters,
// because workers know it by its name alone.
type router struct {
	// Attribute is its key, --output_topic_attribute.
	Attribute string
	// Otherwise is the topic of messages without it, --output_topic. Empty: they fail.
	Otherwise string
}

// ProcessElement reads the attribute.
func (r *router) ProcessElement(m *pubsubio.Message) (routed.Message, error) {
	topic, ok := m.Attributes[r.Attribute]
	if !ok {
		topic = r.Otherwise
	}
	if topic == "" {
		return routed.Message{}, fmt.Errorf("relay: message %s has no attribute %q to say its topic (--output_topic_attribute); --output_topic is for such messages", m.ID, r.Attribute)
	}
	if _, err := message.ParseTopic(topic); err != nil {
		return routed.Message{}, fmt.Errorf("relay: message %s: attribute %q (--output_topic_attribute): %w", m.ID, r.Attribute, err)
	}
	return routed.Message{Topic: topic, Message: m}, nil
}
