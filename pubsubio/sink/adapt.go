package sink

import (
	"maps"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// WithAttributes returns an encoder that adds attributes of the record to the message
// that encode makes of it, over those of the same keys that it has. A key or a value
// that is empty adds nothing: what a record does not have is no attribute. A record that
// encode skips or refuses stays so.
//
// What it returns has no name by which workers could find it. Call it from a function
// that has one, and register that:
//
//	func init() { sink.RegisterEncoder(encodeOrder) }
//
//	var withCountry = sink.WithAttributes(sink.JSON[Order], func(o Order) map[string]string {
//		return map[string]string{"country": o.Country}
//	})
//
//	func encodeOrder(o Order) (*message.Message, error) { return withCountry(o) }
func WithAttributes[T any](encode EncodeFunc[T], attributes func(record T) map[string]string) EncodeFunc[T] {
	return func(record T) (*message.Message, error) {
		m, err := encode(record)
		if m == nil || err != nil {
			return nil, err
		}
		// The message, and its attributes, may be those of every record.
		out := *m
		out.Attributes = maps.Clone(m.Attributes)
		return out.WithAttributes(attributes(record)), nil
	}
}

// WithOrderingKey returns an encoder that gives the message that encode makes of a
// record the ordering key that the record has. An empty key adds nothing. Keys need
// options.Publisher.EnableMessageOrdering. What it returns is registered as that of
// [WithAttributes] is.
func WithOrderingKey[T any](encode EncodeFunc[T], key func(record T) string) EncodeFunc[T] {
	return func(record T) (*message.Message, error) {
		m, err := encode(record)
		if m == nil || err != nil {
			return nil, err
		}
		out := *m
		return out.WithOrderingKey(key(record)), nil
	}
}
