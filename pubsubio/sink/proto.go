package sink

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"google.golang.org/protobuf/proto"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// Proto is an encoder that publishes each record, a protocol buffer message, in its
// wire form. T is a pointer to a generated type. Register the instance, in init, which
// registers T with Beam, too:
//
//	sink.RegisterEncoder(sink.Proto[*shoppb.Order])
//
// It suits a topic whose schema has the BINARY encoding, too. A record that is nil, that
// lacks a required field, or that has text which is no UTF-8 is refused, with an error
// that names the field and quotes no data. One without any field set has no bytes, which
// the service takes beside an attribute only, see [WithAttributes].
func Proto[T proto.Message](record T) (*message.Message, error) {
	if !record.ProtoReflect().IsValid() {
		return nil, errors.New("protocol buffer: the record is nil")
	}
	data, err := proto.Marshal(record)
	if err != nil {
		return nil, fmt.Errorf("protocol buffer: %w", err)
	}
	return message.New(data), nil
}

// registerProto registers record with Beam where it is a protocol buffer message:
// Beam has a coder for these, and needs to know the type by its name.
func registerProto(record reflect.Type) {
	if record.Implements(reflect.TypeFor[proto.Message]()) && record.Kind() == reflect.Pointer {
		beam.RegisterType(record)
	}
}
