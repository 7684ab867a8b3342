package relay

import (
	"context"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/routed"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// build adds the relay to scope. filtered returns how many messages --filter has kept
// back, until forget.
func build(scope beam.Scope, s settings) (filtered func() int64, forget func(), err error) {
	messages, err := source.TryRead(scope, sourceConfig(s), source.Message)
	if err != nil {
		return nil, nil, err
	}
	messages, filtered, forget, err = s.filtered(scope, messages)
	if err != nil {
		return nil, nil, err
	}
	return filtered, forget, write(scope, s, messages)
}

// write adds the publishing of messages to scope.
func write(scope beam.Scope, s settings, messages beam.PCollection) error {
	if s.topicAttribute == "" {
		_, err := sink.TryWrite(scope, sinkConfig(s), s.encoder(), messages)
		return err
	}
	to, err := beam.TryParDo(scope, &router{Attribute: s.topicAttribute, Otherwise: s.topic}, messages)
	if err != nil {
		return err
	}
	_, err = sink.TryWrite(scope, sinkConfig(s), s.routedEncoder(), to[0])
	return err
}

func sourceConfig(s settings) source.Config {
	c := source.Config{
		Subscriptions:         source.From(s.subscriptions...),
		StartPosition:         s.position,
		Limit:                 s.limit,
		EmulatorEndpoint:      s.Connection.EmulatorEndpoint,
		Endpoint:              s.Connection.Endpoint,
		ServiceAccountKeyFile: s.Connection.ServiceAccountKeyFile,
	}
	if s.ordering {
		c.Ordering = options.PerKey
	}
	if s.subscribeTo != "" {
		for i := range c.Subscriptions {
			c.Subscriptions[i].Create = &options.SubscriptionCreate{Topic: s.subscribeTo, EnableMessageOrdering: s.ordering}
		}
	}
	return c
}

func sinkConfig(s settings) sink.Config {
	c := sink.Config{
		Topic: s.topic,
		// A mistyped --output_topic must not become a topic that nobody reads.
		CreateDisposition:     options.CreateNever,
		Publisher:             options.Publisher{EnableMessageOrdering: s.ordering},
		OnFailure:             s.onFailure(),
		EmulatorEndpoint:      s.Connection.EmulatorEndpoint,
		Endpoint:              s.Connection.Endpoint,
		ServiceAccountKeyFile: s.Connection.ServiceAccountKeyFile,
	}
	if s.createTopics {
		c.CreateDisposition = options.CreateIfNeeded
	}
	if s.topicAttribute != "" {
		c.Topic, c.Resolve = "", routed.Resolve()
	}
	return c
}

// onFailure is what becomes of a message that the service can never take.
func (s settings) onFailure() sink.FailurePolicy {
	switch s.failurePolicy() {
	case policyDrop:
		return sink.LogAndDrop()
	case policyDeadLetter:
		return sink.SendTo(dlq.Config{
			Topic:                 s.deadLetterTopic,
			EmulatorEndpoint:      s.Connection.EmulatorEndpoint,
			Endpoint:              s.Connection.Endpoint,
			ServiceAccountKeyFile: s.Connection.ServiceAccountKeyFile,
		})
	}
	return sink.Fail()
}

// relay runs the pipeline to its end and tells meanwhile how far it is. The
// error is that of pubsubio.Run.
func relay(ctx context.Context, s settings, screen *program.Console) (report, error) {
	p, scope := beam.NewPipelineWithRoot()
	filtered, forget, err := build(scope, s)
	if err != nil {
		return report{}, err
	}
	defer forget()
	now := func() figures { return figures{pubsubio.CountsOf(p), filtered()} }
	stop := showProgress(screen, s.total, now)
	start := time.Now()
	err = pubsubio.Run(ctx, p)
	elapsed := time.Since(start)
	stop()
	return newReport(now(), elapsed), err
}
