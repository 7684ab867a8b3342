// Package routed has messages that know their topic, for programs that publish to many.
package routed

import (
	"errors"
	"reflect"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
)

func init() {
	beam.RegisterType(reflect.TypeFor[Message]())
	beam.RegisterCoder(reflect.TypeFor[Message](), marshal, unmarshal)
	sink.RegisterResolver(topicOf)
	sink.RegisterEncoder(Encode)
}

// A Message knows its topic.
type Message struct {
	// Topic is the full name of the topic that it is to be published to.
	Topic string
	// Message is published as it is.
	Message *message.Message
	// Fault says why it has no topic; empty where it has one. The encoder fails with it, so
	// that the sink's failure policy decides. Topic is then [None].
	Fault string
}

// None stands for the topic of a message that has none: no project has so short a name.
const None = "projects/none/topics/none"

// Resolve is the setting of a sink that publishes each message to its topic.
func Resolve() sink.Resolver { return sink.ResolveWith(topicOf) }

// Encode is an encoder of messages that can be published as they are.
func Encode(m Message) (*message.Message, error) {
	if m.Fault != "" {
		return nil, errors.New(m.Fault)
	}
	return m.Message, nil
}

func topicOf(m Message, _ time.Time) (string, error) { return m.Topic, nil }

func marshal(m Message) []byte {
	b := protowire.AppendString(protowire.AppendString(nil, m.Topic), m.Fault)
	return append(b, message.Marshal(m.Message)...)
}

func unmarshal(b []byte) (Message, error) {
	var texts [2]string
	for i := range texts {
		text, n := protowire.ConsumeString(b)
		if n < 0 {
			return Message{}, errors.New("routed: a message with its topic is malformed")
		}
		texts[i], b = text, b[n:]
	}
	m, err := message.Unmarshal(b)
	return Message{Topic: texts[0], Message: m, Fault: texts[1]}, err
}
