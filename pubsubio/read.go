package pubsubio

import (
	"errors"
	"fmt"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

func init() { source.RegisterDecoder(toProto) }

// ReadOptions say what [Read] reads. They are those of Beam's own pubsubio.
type ReadOptions struct {
	// Topic is a topic to read, by its id in the project of the Read or by its full
	// name, projects/<project>/topics/<id>, of any project. The pipeline gets a
	// subscription of its own to it, in the project of the Read: source.FromTopic says
	// how it is named, and who deletes it when. Refused beside Subscription.
	Topic string

	// Subscription is a subscription that exists, by its id in the project of the Read
	// or by its full name, projects/<project>/subscriptions/<id>. Refused beside Topic.
	Subscription string

	// IDAttribute is the key of an attribute by which copies of a message are known and
	// left out, as far as source.Config.IDAttribute can. Default: none.
	IDAttribute string

	// TimestampAttribute is the key of an attribute that holds a message's event time, as
	// source.Config.TimestampAttribute reads it. A message without a usable one fails
	// its bundle. Default: none, and the event time is the publish time.
	TimestampAttribute string

	// WithAttributes makes the elements whole messages, *PubsubMessage, with their
	// attributes, id, publish time and ordering key. Default: []byte, the data alone.
	WithAttributes bool
}

// Read reads a topic or a subscription of the global service into an unbounded
// PCollection<[]byte>, or a PCollection<*PubsubMessage> with WithAttributes. It has the
// signature of Read in Beam's own pubsubio, which runs on Dataflow only: a program
// written for that goes on with this package's import in place of Beam's. It panics
// where Beam's does, and where a name or another option is wrong.
//
// project is where a topic or subscription is that opts names by its id alone, and
// where the subscription of opts.Topic is created. It may be empty beside a
// Subscription that is named in full.
//
// It is source.Read with the defaults of its Config: everything that is said there of
// guarantees, runners and the watermark holds. The pipeline never ends by itself; a
// program that wants a Limit, order, several subscriptions or a failure policy uses
// source.Read.
func Read(s beam.Scope, project string, opts ReadOptions) beam.PCollection {
	return Service{}.Read(s, project, opts)
}

// Read is the function [Read] from the service at.
func (at Service) Read(s beam.Scope, project string, opts ReadOptions) beam.PCollection {
	col, err := at.TryRead(s, project, opts)
	if err != nil {
		panic(err)
	}
	return col
}

// TryRead is [Service.Read] that returns an error where that panics. The error joins
// every fault.
func (at Service) TryRead(s beam.Scope, project string, opts ReadOptions) (beam.PCollection, error) {
	cfg := at.source()
	cfg.IDAttribute, cfg.TimestampAttribute = opts.IDAttribute, opts.TimestampAttribute
	subscriptions, err := opts.subscriptions(project)
	if err != nil {
		cfg.Subscriptions = source.From("projects/p/subscriptions/any") // What else is wrong, Validate says.
		return beam.PCollection{}, fmt.Errorf("pubsubio.Read: %w", errors.Join(err, cfg.Validate()))
	}
	cfg.Subscriptions = subscriptions
	s = s.Scope("pubsubio.Read")
	read := func() (beam.PCollection, error) { return source.TryRead(s, cfg, source.Bytes) }
	if opts.WithAttributes {
		read = func() (beam.PCollection, error) { return source.TryRead(s, cfg, toProto) }
	}
	col, err := read()
	if err != nil {
		return beam.PCollection{}, fmt.Errorf("pubsubio.Read: %w", err)
	}
	return col, nil
}

// subscriptions returns what is to be read.
func (o ReadOptions) subscriptions(project string) ([]source.Subscription, error) {
	switch {
	case (o.Topic == "") == (o.Subscription == ""):
		return nil, fmt.Errorf("pubsubio.ReadOptions: Topic %q, Subscription %q: exactly one of the two must be set", o.Topic, o.Subscription)
	case o.Subscription != "":
		name, err := message.SubscriptionIn(project, o.Subscription)
		if err != nil {
			return nil, fmt.Errorf("pubsubio.ReadOptions.Subscription: %w", err)
		}
		return source.From(name.String()), nil
	}
	topic, err := message.TopicIn(project, o.Topic)
	if err != nil {
		return nil, fmt.Errorf("pubsubio.ReadOptions.Topic: %w", err)
	}
	subscriptions := source.FromTopic(project, topic.String())
	if _, err := message.ParseSubscription(subscriptions[0].Name); err != nil {
		return nil, fmt.Errorf("project %q, in which the subscription of Topic is created: %w", project, err)
	}
	return subscriptions, nil
}

// toProto is the decoder of WithAttributes.
func toProto(m *message.Message, emit func(*pubsubpb.PubsubMessage)) error {
	p := m.PublishProto()
	p.MessageId = m.ID
	if !m.PublishTime.IsZero() {
		p.PublishTime = timestamppb.New(m.PublishTime)
	}
	emit(p)
	return nil
}
