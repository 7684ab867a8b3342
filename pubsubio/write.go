package pubsubio

import (
	"errors"
	"fmt"
	"reflect"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
)

func init() { sink.RegisterEncoder(fromProto) }

// Write publishes the elements of col to a topic of the global service: []byte as the
// data of a message, *PubsubMessage or *Message as a message with its data, attributes
// and ordering key. It has the signature of Write in Beam's own pubsubio and panics
// where that does, as for a collection of anything else, and where a name is wrong.
//
// topic is a topic's id in the project, or its full name, projects/<project>/topics/<id>,
// of any project. It must exist: the bundle fails where it does not, and nothing creates
// it, for a misspelt one would take what nobody reads.
//
// A message that was received may be written as it is: what the service refuses from a
// publisher is left out, and its id and publish time are made anew. Ordering keys are
// kept, and with them the order in which a worker is given the messages of a key, as
// options.OrderInPlace says. A message that can never be published fails its bundle.
//
// It is sink.Write with the defaults of its Config, but for the topic that must exist
// and the ordering keys. A program that wants a topic for each record, a failure policy
// or other settings uses sink.Write.
func Write(s beam.Scope, project, topic string, col beam.PCollection) {
	Service{}.Write(s, project, topic, col)
}

// Write is the function [Write] to the service at.
func (at Service) Write(s beam.Scope, project, topic string, col beam.PCollection) {
	if err := at.TryWrite(s, project, topic, col); err != nil {
		panic(err)
	}
}

// TryWrite is [Service.Write] that returns an error where that panics. The error joins
// every fault.
func (at Service) TryWrite(s beam.Scope, project, topic string, col beam.PCollection) error {
	cfg := at.sink()
	cfg.CreateDisposition = options.CreateNever
	name, err := message.TopicIn(project, topic)
	if err != nil {
		err = fmt.Errorf("topic: %w", err)
		cfg.Topic = "projects/p/topics/any" // What else is wrong, Validate says.
	} else {
		cfg.Topic = name.String()
	}
	write, unfit := writing(cfg, col)
	if err := errors.Join(err, unfit); err != nil {
		return fmt.Errorf("pubsubio.Write: %w", errors.Join(err, cfg.Validate()))
	}
	if err := write(s.Scope("pubsubio.Write")); err != nil {
		return fmt.Errorf("pubsubio.Write: %w", err)
	}
	return nil
}

// writing returns what writes a collection of the type that col has.
func writing(cfg sink.Config, col beam.PCollection) (func(beam.Scope) error, error) {
	if !col.IsValid() {
		return nil, errors.New("the collection is not valid")
	}
	ordered := cfg
	ordered.Publisher.EnableMessageOrdering = true // Messages may have keys, of which none is dropped.
	switch t := col.Type().Type(); t {
	case reflect.TypeFor[[]byte]():
		return func(s beam.Scope) error { _, err := sink.TryWrite(s, cfg, sink.Bytes, col); return err }, nil
	case reflect.TypeFor[*pubsubpb.PubsubMessage]():
		return func(s beam.Scope) error { _, err := sink.TryWrite(s, ordered, fromProto, col); return err }, nil
	case reflect.TypeFor[*message.Message]():
		return func(s beam.Scope) error { _, err := sink.TryWrite(s, ordered, sink.Message, col); return err }, nil
	default:
		return nil, fmt.Errorf("the collection holds %v: it must hold []byte, *pubsubpb.PubsubMessage or *message.Message; make them of it in a ParDo, or use sink.Write with an encoder", col.Type())
	}
}

// fromProto is the encoder of messages in Google's own type.
func fromProto(p *pubsubpb.PubsubMessage) (*message.Message, error) {
	if p == nil {
		return nil, errors.New("the message is nil")
	}
	return sink.Message(message.FromProto(p, 0))
}
