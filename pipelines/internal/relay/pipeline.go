package relay

import (
	"context"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/google/uuid"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/routed"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// build adds the relay to scope. Its own steps count under nonce.
func build(scope beam.Scope, s settings, nonce string) error {
	messages, err := source.TryRead(scope, sourceConfig(s), source.Message)
	if err != nil {
		return err
	}
	messages, err = s.filtered(scope, nonce, messages)
	if err != nil {
		return err
	}
	if s.topicAttribute != "" {
		return writeRouted(scope, s, nonce, messages)
	}
	_, err = sink.TryWrite(scope, sinkConfig(s), s.encoder(), messages)
	return err
}

// writeRouted adds the publishing of messages to the topics that they name.
func writeRouted(scope beam.Scope, s settings, nonce string, messages beam.PCollection) error {
	out, err := beam.TryParDo(scope, &router{Attribute: s.topicAttribute, Otherwise: s.topic, Policy: s.failurePolicy(), Nonce: nonce}, messages)
	if err != nil {
		return err
	}
	if s.failurePolicy() == policyDeadLetter {
		if err := dlq.TryWrite(scope, deadLetters(s), out[1]); err != nil {
			return err
		}
	}
	_, err = sink.TryWrite(scope, sinkConfig(s), s.routedEncoder(), out[0])
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
		return sink.SendTo(deadLetters(s))
	}
	return sink.Fail()
}

// deadLetters is where messages go that cannot be published.
func deadLetters(s settings) dlq.Config {
	return dlq.Config{
		Topic:                 s.deadLetterTopic,
		EmulatorEndpoint:      s.Connection.EmulatorEndpoint,
		Endpoint:              s.Connection.Endpoint,
		ServiceAccountKeyFile: s.Connection.ServiceAccountKeyFile,
	}
}

// relay runs the pipeline to its end and tells meanwhile how far it is. The
// error is that of pubsubio.Run.
func relay(ctx context.Context, s settings, screen *program.Console) (report, error) {
	p, scope := beam.NewPipelineWithRoot()
	nonce := uuid.NewString()
	defer tallies.Delete(nonce)
	if err := build(scope, s, nonce); err != nil {
		return report{}, err
	}
	now := func() figures { return figuresOf(p, tallyOf(nonce)) }
	stop := showProgress(screen, s.total, now)
	start := time.Now()
	err := pubsubio.Run(ctx, p)
	elapsed := time.Since(start)
	stop()
	return newReport(now(), elapsed), err
}
