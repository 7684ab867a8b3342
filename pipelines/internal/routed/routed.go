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
}

// Resolve is the setting of a sink that publishes each message to its topic.
func Resolve() sink.Resolver { return sink.ResolveWith(topicOf) }

// Encode is an encoder of messages that can be published as they are.
func Encode(m Message) (*message.Message, error) { return m.Message, nil }

func topicOf(m Message, _ time.Time) (string, error) { return m.Topic, nil }

func marshal(m Message) []byte {
	return append(protowire.AppendString(nil, m.Topic), message.Marshal(m.Message)...)
}

func unmarshal(b []byte) (Message, error) {
	topic, n := protowire.ConsumeString(b)
	if n < 0 {
		return Message{}, errors.New("routed: a message with its topic is malformed")
	}
	m, err := message.Unmarshal(b[n:])
	return Message{Topic: topic, Message: m}, err
}
