package relay

import (
	"errors"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/routed"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
)

// Workers know an encoder by its name alone: so there is one for each way to treat
// ordering keys, of messages and of those that know their topic.
func init() {
	sink.RegisterEncoder(republish)
	sink.RegisterEncoder(republishWithKey)
	sink.RegisterEncoder(republishWithoutKey)
	sink.RegisterEncoder(republishRouted)
	sink.RegisterEncoder(republishRoutedWithKey)
	sink.RegisterEncoder(republishRoutedWithoutKey)
}

// errOrderingKey is what republish returns: the sink refuses such a message too,
// and does not know what a user of the relay can do about it.
var errOrderingKey = errors.New("the message has an ordering key: --ordering keeps the order of a key's messages, --drop_ordering_keys publishes them without their keys")

// republish is a message as the service takes it from a publisher.
func republish(m *pubsubio.Message) (*pubsubio.Message, error) {
	if m.OrderingKey != "" {
		return nil, errOrderingKey
	}
	return m.Republishable(), nil
}

// republishWithKey is republish for --ordering.
func republishWithKey(m *pubsubio.Message) (*pubsubio.Message, error) {
	return m.Republishable(), nil
}

// republishWithoutKey is republish for --drop_ordering_keys.
func republishWithoutKey(m *pubsubio.Message) (*pubsubio.Message, error) {
	out := m.Republishable()
	out.OrderingKey = ""
	return out, nil
}

func republishRouted(r routed.Message) (*pubsubio.Message, error) { return republish(r.Message) }
func republishRoutedWithKey(r routed.Message) (*pubsubio.Message, error) {
	return republishWithKey(r.Message)
}
func republishRoutedWithoutKey(r routed.Message) (*pubsubio.Message, error) {
	return republishWithoutKey(r.Message)
}

// encoder returns that of s.
func (s settings) encoder() sink.EncodeFunc[*pubsubio.Message] {
	switch {
	case s.ordering:
		return republishWithKey
	case s.dropKeys:
		return republishWithoutKey
	}
	return republish
}

// routedEncoder is encoder for messages that know their topic.
func (s settings) routedEncoder() sink.EncodeFunc[routed.Message] {
	switch {
	case s.ordering:
		return republishRoutedWithKey
	case s.dropKeys:
		return republishRoutedWithoutKey
	}
	return republishRouted
}
