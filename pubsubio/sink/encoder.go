package sink

import (
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/util/reflectx"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/byname"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// An EncodeFunc turns a record into the message to publish: its data, attributes
// and ordering key. The sink is done with the message when the next record is
// encoded, so that a function may return the same one, or parts of the record.
//
// message.New and its methods make one of a payload, attributes and a key, of which
// what is empty adds nothing. A nil message skips the record, which is counted and no failure. An error or a
// panic is the record's failure, which Config.OnFailure decides about; its text is
// logged, emitted and sent as it is, so keep payloads out of it. The function is
// called from several bundles at once.
type EncodeFunc[T any] func(T) (*message.Message, error)

// An encoder is a registered function as the DoFn calls it, without reflection.
type encoder struct {
	name   string // as a user knows it
	record reflect.Type
	encode func(record any) (*message.Message, error)
}

// encoders are the registered encoders of this program, by key. They are filled
// in init: workers rebuild a DoFn from its JSON, so a function travels by name.
var encoders byname.Registry[*encoder]

func init() {
	RegisterEncoder(Message)
	RegisterEncoder(Bytes)
	RegisterEncoder(String)
}

// RegisterEncoder makes encode known to the workers. Call it in init, once for
// each encoder, with a function that has a name of its own: a worker on a real
// runner never reaches main. It panics where encode is a closure or a method
// value, whose names tell nothing, and where another function has the same name
// and record: instances of a generic function that differ in something else.
//
// A record that is a protocol buffer message is registered with Beam, too.
func RegisterEncoder[T any](encode EncodeFunc[T]) {
	e, key, err := newEncoder(encode)
	if err != nil {
		panic("sink.RegisterEncoder: " + err.Error())
	}
	if err := encoders.Add(key, encode, e); err != nil {
		panic("sink.RegisterEncoder: " + err.Error())
	}
	registerProto(e.record)
}

// newEncoder returns encode's adaptor and its key.
func newEncoder[T any](encode EncodeFunc[T]) (*encoder, string, error) {
	record := reflect.TypeFor[T]()
	key, err := byname.Key(encode, record)
	if err != nil {
		return nil, "", err
	}
	e := &encoder{
		name:   reflectx.FunctionName(encode),
		record: record,
		encode: func(record any) (*message.Message, error) { return encode(record.(T)) },
	}
	return e, key, nil
}

// Message is an encoder for records that are messages: it publishes their data and
// attributes, and their ordering key, which fails the bundle unless
// options.Publisher.EnableMessageOrdering is set.
//
// A message that was received, and so has an id, may carry attributes that the service
// or its clients have added and that it refuses from a publisher, as those of a schema:
// they are left out, see message.ReservedAttribute. In one that has no id they are a
// mistake, and the message is rejected. A nil message is skipped.
func Message(m *message.Message) (*message.Message, error) {
	if m == nil || m.ID == "" {
		return m, nil
	}
	for key := range m.Attributes {
		if message.ReservedAttribute(key) {
			out := m.Republishable()
			out.ID = m.ID // Config.IDAttribute may write it.
			return out, nil
		}
	}
	return m, nil
}

// Bytes is an encoder that publishes each record as a message's data. The service
// has no empty messages: an empty record is rejected.
func Bytes(b []byte) (*message.Message, error) { return &message.Message{Data: b}, nil }

// String is an encoder that publishes each record as a message's data, as it is,
// whether or not it is valid UTF-8. The service has no empty messages: an empty
// record is rejected.
func String(s string) (*message.Message, error) { return &message.Message{Data: []byte(s)}, nil }
