package sink

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// JSON is an encoder that publishes each record as one JSON value, as encoding/json
// writes it. Register the instance, in init:
//
//	beam.RegisterType(reflect.TypeFor[Order]())
//	sink.RegisterEncoder(sink.JSON[Order])
//
// The first is Beam's, for any struct in a collection: the workers make an unnamed one
// of it otherwise, which no encoder takes.
//
// It suits a topic whose schema has the JSON encoding, too. A record that is nil, or
// that JSON has no form for, is refused; the error names a Go type and quotes no data,
// as encoding/json would: its text goes to logs and dead letters. [WithAttributes] and
// [WithOrderingKey] add to it.
func JSON[T any](record T) (*message.Message, error) {
	data, err := json.Marshal(record)
	if err != nil {
		return nil, withoutData(err)
	}
	if bytes.Equal(data, []byte("null")) {
		return nil, errors.New("JSON: the record is nil")
	}
	return message.New(data), nil
}

// withoutData returns what encoding/json says, without what it quotes.
func withoutData(err error) error {
	var kind *json.UnsupportedTypeError
	var value *json.UnsupportedValueError
	var method *json.MarshalerError
	switch {
	case errors.As(err, &method): // It wraps the others.
		return fmt.Errorf("JSON: the method of %v that writes it failed with a %T, whose text may quote the value", method.Type, method.Err)
	case errors.As(err, &kind):
		return fmt.Errorf("JSON: there is no form for the Go type %v", kind.Type)
	case errors.As(err, &value):
		return fmt.Errorf("JSON: there is no form for a value of the Go type %v, such as a number that is not finite or a cycle", value.Value.Type())
	default:
		return fmt.Errorf("JSON: the record was refused with a %T, whose text may quote it", err)
	}
}
