package relay

import (
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/routed"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
)

// Workers know an encoder by its name alone: so there is one for each way to treat
// ordering keys, of messages and of those that know their topic.
func init() {
	sink.RegisterEncoder(republish)
	sink.RegisterEncoder(republishWithoutKey)
	sink.RegisterEncoder(republishRouted)
	sink.RegisterEncoder(republishRoutedWithoutKey)
}

// republish is a message as the service takes it from a publisher. One that has an ordering
// key fails the relay, where the sink does not keep the order of keys: no policy may drop it.
func republish(m *pubsubio.Message) (*pubsubio.Message, error) {
	return m.Republishable(), nil
}

// republishWithoutKey is republish for --drop_ordering_keys.
func republishWithoutKey(m *pubsubio.Message) (*pubsubio.Message, error) {
	out := m.Republishable()
	out.OrderingKey = ""
	return out, nil
}

func republishRouted(r routed.Message) (*pubsubio.Message, error) { return republish(r.Message) }

func republishRoutedWithoutKey(r routed.Message) (*pubsubio.Message, error) {
	return republishWithoutKey(r.Message)
}

// encoder returns that of s.
func (s settings) encoder() sink.EncodeFunc[*pubsubio.Message] {
	if s.dropKeys {
		return republishWithoutKey
	}
	return republish
}

// routedEncoder is encoder for messages that know their topic.
func (s settings) routedEncoder() sink.EncodeFunc[routed.Message] {
	if s.dropKeys {
		return republishRoutedWithoutKey
	}
	return republishRouted
}
