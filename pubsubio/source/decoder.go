package source

import (
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/util/reflectx"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/byname"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// A DecodeFunc turns a message into records: it calls emit for each, during the
// call, on the goroutine of the call, and never after it. The message is the
// function's to keep, and not to change: what refers to it later, such as a dead
// letter, shares its data and attributes.
//
// A record's event time is that of its message, unless T is a [Timed]. The
// message's DeliveryAttempt tells a function that it has seen a message before,
// where the subscription has a dead-letter policy.
//
// An error or a panic is a decode failure, which Config.OnDecodeFailure decides
// about; its text is logged, emitted and sent as it is, so keep payloads out of it.
// What was emitted before stays, except where the policy fails the bundle. A panic
// of emit itself is no decode failure: a later step of the pipeline has failed, and
// so does the bundle, also where the function recovers the panic.
//
// It is called from several bundles at once.
type DecodeFunc[T any] func(m *message.Message, emit func(T)) error

// A boundDecoder decodes into the emitter that it was bound to.
type boundDecoder func(m *message.Message) error

// A registration is a decoder as the DoFn calls it, without reflection.
type registration struct {
	name   string       // as a user knows it
	record reflect.Type // of the collection's elements
	timed  bool         // records come with their own event times
	bind   func(e *emitter) boundDecoder
}

// decoders are the registered decoders of this program, by name. They are filled
// in init: workers rebuild a DoFn from its JSON, so a function travels by name.
var decoders byname.Registry[registration]

func init() {
	RegisterDecoder(Message)
	RegisterDecoder(Bytes)
	RegisterDecoder(String)
	RegisterDecoder(dlq.Entries)
}

// RegisterDecoder makes decode known to the workers. Call it in init, once for
// each decoder, with a function that has a name of its own: a worker on a real
// runner never reaches main. An instance of a generic function has one, as
// JSON[Order]. It panics where decode is a closure or a method value, whose names
// tell nothing, and where another function has the same name and record: instances
// of a generic function that differ in something else.
//
// A record that is a protocol buffer message is registered with Beam, too. Other
// types need that where Beam says so.
func RegisterDecoder[T any](decode DecodeFunc[T]) {
	name, err := byname.Key(decode, reflect.TypeFor[T]())
	if err == nil {
		err = decoders.Add(name, decode, registrationOf(decode))
	}
	if err != nil {
		panic("source.RegisterDecoder: " + err.Error())
	}
}

func registrationOf[T any](decode DecodeFunc[T]) registration {
	record, timed := recordOf[T]()
	registerProto(record)
	return registration{
		name:   reflectx.FunctionName(decode),
		record: record,
		timed:  timed,
		bind: func(e *emitter) boundDecoder {
			typed := emitInto[T](e)
			return func(m *message.Message) error { return decode(m, typed) }
		},
	}
}

// Message is a decoder that emits each message as it is, with its id, publish
// time, attributes, ordering key and delivery attempt.
func Message(m *message.Message, emit func(*message.Message)) error {
	emit(m)
	return nil
}

// Bytes is a decoder that emits each message's data.
func Bytes(m *message.Message, emit func([]byte)) error {
	emit(m.Data)
	return nil
}

// String is a decoder that emits each message's data as a string, whether or not
// it is valid UTF-8.
func String(m *message.Message, emit func(string)) error {
	emit(string(m.Data))
	return nil
}
