package sink

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync/atomic"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

func init() {
	t := reflect.TypeFor[keyed]()
	beam.RegisterType(t)
	beam.RegisterCoder(t, encodeKeyed, decodeKeyed)
}

// A keyed is a message on its way to the worker that publishes its ordering key.
type keyed struct {
	Topic   string
	Message *message.Message
	// At is the record's event time; Beam takes none for a part of an element.
	At int64

	// Origin and Number say in which order one process prepared its messages. A
	// runner keeps no order across a shuffle, and prism turns records of one time
	// round.
	Origin, Number uint64
}

// origin is this process. It is random: two workers must not have the same.
var origin = rand.Uint64()

// prepared counts what this process has prepared.
var prepared atomic.Uint64

func newKeyed(topic string, m *message.Message, at beam.EventTime) keyed {
	return keyed{Topic: topic, Message: m, At: int64(at), Origin: origin, Number: prepared.Add(1)}
}

// key brings all messages of an ordering key and a topic to one place. No topic's
// name has a line break.
func (k keyed) key() string { return k.Topic + "\n" + k.Message.OrderingKey }

// size is what a message takes in memory, about.
func (k keyed) size() int64 {
	const overhead = 200
	n := overhead + len(k.Message.Data) + len(k.Message.OrderingKey)
	for key, value := range k.Message.Attributes {
		n += len(key) + len(value)
	}
	return int64(n)
}

// encodeKeyed writes what decodeKeyed reads.
func encodeKeyed(k keyed) []byte {
	m := message.Marshal(k.Message)
	b := make([]byte, 0, 48+len(k.Topic)+len(m))
	b = protowire.AppendString(b, k.Topic)
	b = protowire.AppendVarint(b, protowire.EncodeZigZag(k.At))
	b = protowire.AppendFixed64(b, k.Origin)
	b = protowire.AppendVarint(b, k.Number)
	return append(b, m...)
}

var errMalformedKeyed = errors.New("sink: decode a keyed message: it is malformed")

func decodeKeyed(b []byte) (keyed, error) {
	var k keyed
	topic, n := protowire.ConsumeString(b)
	if n < 0 {
		return keyed{}, errMalformedKeyed
	}
	b = b[n:]
	at, n := protowire.ConsumeVarint(b)
	if n < 0 {
		return keyed{}, errMalformedKeyed
	}
	b = b[n:]
	if k.Origin, n = protowire.ConsumeFixed64(b); n < 0 {
		return keyed{}, errMalformedKeyed
	}
	b = b[n:]
	if k.Number, n = protowire.ConsumeVarint(b); n < 0 {
		return keyed{}, errMalformedKeyed
	}
	m, err := message.Unmarshal(b[n:])
	if err != nil {
		return keyed{}, fmt.Errorf("sink: decode a keyed message: %w", err)
	}
	k.Topic, k.At, k.Message = topic, protowire.DecodeZigZag(at), m
	return k, nil
}
