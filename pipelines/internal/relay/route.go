package relay

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
)

func init() {
	register.DoFn1x2[*pubsubio.Message, routed, error](&router{})
	beam.RegisterType(reflect.TypeFor[routed]())
	beam.RegisterCoder(reflect.TypeFor[routed](), encodeRouted, decodeRouted)
	sink.RegisterResolver(topicOf)
}

// A routed message knows its topic.
type routed struct {
	Topic   string
	Message *pubsubio.Message
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
func (r *router) ProcessElement(m *pubsubio.Message) (routed, error) {
	topic, ok := m.Attributes[r.Attribute]
	if !ok {
		topic = r.Otherwise
	}
	if topic == "" {
		return routed{}, fmt.Errorf("relay: message %s has no attribute %q to say its topic (--output_topic_attribute); --output_topic is for such messages", m.ID, r.Attribute)
	}
	if _, err := message.ParseTopic(topic); err != nil {
		return routed{}, fmt.Errorf("relay: message %s: attribute %q (--output_topic_attribute): %w", m.ID, r.Attribute, err)
	}
	return routed{topic, m}, nil
}

func topicOf(r routed, _ time.Time) (string, error) { return r.Topic, nil }

func encodeRouted(r routed) []byte {
	return append(protowire.AppendString(nil, r.Topic), message.Marshal(r.Message)...)
}

func decodeRouted(b []byte) (routed, error) {
	topic, n := protowire.ConsumeString(b)
	if n < 0 {
		return routed{}, errors.New("relay: a message with its topic is malformed")
	}
	m, err := message.Unmarshal(b[n:])
	return routed{topic, m}, err
}
