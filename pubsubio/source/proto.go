package source

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// Proto is a decoder that emits a message's data, a protocol buffer message in its
// wire form, as a T, a pointer to a generated type. Register the instance, in init,
// which registers T with Beam, too:
//
//	source.RegisterDecoder(source.Proto[*shoppb.Order])
//
// Data that is not in the wire form, or that lacks a required field, is a decode
// failure, whose text never quotes the data. Empty data is a message without any
// field set, and fields that T does not have are kept as unknown.
//
// A message of a topic with a schema says how it is encoded. One in the JSON encoding is
// decoded as the JSON form of a protocol buffer message: fields that T does not have are
// ignored, and the failure says no more than that it did not fit.
func Proto[T proto.Message](m *message.Message, emit func(T)) error {
	var none T
	record, ok := none.ProtoReflect().New().Interface().(T)
	if !ok {
		return errors.New("protocol buffer: the type makes no messages of itself")
	}
	if m.Attributes[schemaEncoding] == jsonEncoding {
		// The library quotes what it does not like.
		if (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(m.Data, record) != nil {
			return fmt.Errorf("protocol buffer: the data, in the JSON encoding of the topic's schema, does not fit %s", record.ProtoReflect().Descriptor().FullName())
		}
		emit(record)
		return nil
	}
	if err := proto.Unmarshal(m.Data, record); err != nil {
		// The library quotes no data; what is missing, or no UTF-8, it names by its field.
		return fmt.Errorf("protocol buffer: %w", err)
	}
	emit(record)
	return nil
}

// registerProto registers record with Beam where it is a protocol buffer message:
// Beam has a coder for these, and needs to know the type by its name.
func registerProto(record reflect.Type) {
	if record.Implements(reflect.TypeFor[proto.Message]()) && record.Kind() == reflect.Pointer {
		beam.RegisterType(record)
	}
}
