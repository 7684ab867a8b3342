package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// JSON is a decoder that emits a message's data, one JSON value, as a T. Register
// the instance, in init:
//
//	source.RegisterDecoder(source.JSON[Order])
//
// Data that is empty, no JSON, null, or does not fit T is a decode failure, fields
// that T does not have are ignored. The failure says where and what was expected,
// and never quotes the data, as encoding/json would: its text goes to logs and
// dead letters.
func JSON[T any](m *message.Message, emit func(T)) error {
	if m.Attributes[schemaEncoding] == binaryEncoding {
		return errors.New("JSON: the message has the BINARY encoding of its topic's schema: decode it with source.Proto, or with a decoder for its Avro schema")
	}
	if bytes.Equal(bytes.TrimSpace(m.Data), []byte("null")) {
		return errors.New("JSON: the data is null")
	}
	var record T
	if err := json.Unmarshal(m.Data, &record); err != nil {
		return withoutData(err)
	}
	emit(record)
	return nil
}

// withoutData returns what encoding/json says, without what it quotes.
func withoutData(err error) error {
	var syntax *json.SyntaxError
	var unfit *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("JSON: the data is not valid JSON, from byte %d on", syntax.Offset)
	case errors.As(err, &unfit):
		kind, _, _ := strings.Cut(unfit.Value, " ") // "number -5"
		field := ""
		if unfit.Field != "" {
			field = " of field " + unfit.Field
		}
		return fmt.Errorf("JSON: a %s does not fit the Go type %v%s, at byte %d", kind, unfit.Type, field, unfit.Offset)
	default: // That of a type with a method of its own.
		return fmt.Errorf("JSON: a type refused its value with a %T, whose text may quote it", err)
	}
}
