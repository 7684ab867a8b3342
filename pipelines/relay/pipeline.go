package main

import (
	"context"
	"errors"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

func init() {
	sink.RegisterEncoder(republish)
	sink.RegisterEncoder(republishWithoutKey)
}

// errOrderingKey is what republish returns: the sink refuses such a message too,
// and does not know what a user of the relay can do about it.
var errOrderingKey = errors.New("the message has an ordering key, and the relay does not keep the order of messages: --drop_ordering_keys publishes them without their keys")

// republish is a message as the service takes it from a publisher.
func republish(m *pubsubio.Message) (*pubsubio.Message, error) {
	if m.OrderingKey != "" {
		return nil, errOrderingKey
	}
	return m.Republishable(), nil
}

// republishWithoutKey is republish for --drop_ordering_keys: two functions,
// because workers know an encoder by its name alone.
func republishWithoutKey(m *pubsubio.Message) (*pubsubio.Message, error) {
	out := m.Republishable()
	out.OrderingKey = ""
	return out, nil
}

// build adds the relay to scope.
func build(scope beam.Scope, s settings) error {
	messages, err := source.TryRead(scope, sourceConfig(s), source.Message)
	if err != nil {
		return err
	}
	encode := republish
	if s.dropKeys {
		encode = republishWithoutKey
	}
	_, err = sink.TryWrite(scope, sinkConfig(s), encode, messages)
	return err
}

func sourceConfig(s settings) source.Config {
	return source.Config{
		Subscriptions:         source.From(s.subscriptions...),
		Limit:                 s.limit,
		EmulatorEndpoint:      s.Connection.EmulatorEndpoint,
		Endpoint:              s.Connection.Endpoint,
		ServiceAccountKeyFile: s.Connection.ServiceAccountKeyFile,
	}
}

func sinkConfig(s settings) sink.Config {
	return sink.Config{
		Topic: s.topic,
		// A mistyped --output_topic must not become a topic that nobody reads.
		CreateDisposition:     options.CreateNever,
		EmulatorEndpoint:      s.Connection.EmulatorEndpoint,
		Endpoint:              s.Connection.Endpoint,
		ServiceAccountKeyFile: s.Connection.ServiceAccountKeyFile,
	}
}

// relay runs the pipeline to its end and tells meanwhile how far it is. The
// error is that of pubsubio.Run.
func relay(ctx context.Context, s settings, screen *program.Console) (report, error) {
	p, scope := beam.NewPipelineWithRoot()
	if err := build(scope, s); err != nil {
		return report{}, err
	}
	counts := func() pubsubio.Counts { return pubsubio.CountsOf(p) }
	stop := showProgress(screen, s.total, counts)
	start := time.Now()
	err := pubsubio.Run(ctx, p)
	elapsed := time.Since(start)
	stop()
	return newReport(counts(), elapsed), err
}
