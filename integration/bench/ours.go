package main

import (
	"cmp"
	"context"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

func init() {
	sink.RegisterEncoder(republish)
}

// republish is what pipelines/relay does with a message, too.
func republish(m *pubsubio.Message) (*pubsubio.Message, error) { return m.Republishable(), nil }

// configs are those of a job, with the contestant's settings.
func configs(j job) (source.Config, sink.Config, error) {
	in, out, err := j.settings.ours()
	in.Subscriptions = source.From(j.phase.subscription())
	in.Splits = cmp.Or(in.Splits, j.load.Splits)
	if j.load.Keys > 0 {
		in.Ordering = options.PerKey
	}
	in.EmulatorEndpoint, out.EmulatorEndpoint = j.endpoint, j.endpoint
	j.spread(&out)
	return in, out, err
}

// relayOurs reads and writes.
func relayOurs(ctx context.Context, j job) error {
	in, out, err := configs(j)
	if err != nil {
		return err
	}
	p, s := beam.NewPipelineWithRoot()
	sink.Write(s, out, republish, source.Read(s, in, source.Message))
	return pubsubio.Run(ctx, p)
}

// readOurs reads into a counter.
func readOurs(ctx context.Context, j job) error {
	in, _, err := configs(j)
	if err != nil {
		return err
	}
	p, s := beam.NewPipelineWithRoot()
	count(s, source.Read(s, in, source.Message))
	return pubsubio.Run(ctx, p)
}

// writeOurs writes what is made in memory.
func writeOurs(ctx context.Context, j job) error {
	_, out, err := configs(j)
	if err != nil {
		return err
	}
	p, s := beam.NewPipelineWithRoot()
	records, err := generate(s, j)
	if err != nil {
		return err
	}
	sink.Write(s, out, recordMessage, records)
	return pubsubio.Run(ctx, p)
}

// runEngine is writeOurs without the sink: what prism costs by itself.
func runEngine(ctx context.Context, j job) error {
	p, s := beam.NewPipelineWithRoot()
	records, err := generate(s, j)
	if err != nil {
		return err
	}
	count(s, records)
	return pubsubio.Run(ctx, p)
}
