package loadgen

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/load"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
)

// Full requests where keys and rate allow it: a hundred messages a key, within bounds.
const (
	leastInFlight = 10_000
	mostInFlight  = 100_000
)

func sinkConfig(s settings) sink.Config {
	create := options.CreateNever // A mistyped --topic must not become one that nobody reads.
	if s.create {
		create = options.CreateIfNeeded
	}
	return sink.Config{
		Topic:             s.topic,
		CreateDisposition: create,
		Publisher: options.Publisher{
			EnableMessageOrdering: s.stream.Ordered,
			BatchElementCount:     options.MaxRequestMessages,
			MaxInFlightMessages:   min(max(100*s.stream.Keys, leastInFlight), mostInFlight),
		},
		EmulatorEndpoint:      s.Connection.EmulatorEndpoint,
		Endpoint:              s.Connection.Endpoint,
		ServiceAccountKeyFile: s.Connection.ServiceAccountKeyFile,
	}
}

// generateLoad runs the pipeline to its end and tells meanwhile how far it is. The end
// of ctx stops the generator, and the pipeline ends once what it has made is answered.
// An error is that of pubsubio.Run.
func generateLoad(ctx context.Context, s settings, screen *program.Console) (load.Report, error) {
	g := &generator{stream: s.stream, pacer: pacer{rate: s.rate, burst: s.burst, duration: s.duration}}
	p, scope := beam.NewPipelineWithRoot()
	messages, forget := generate(scope, g, s.end())
	defer forget()
	if _, err := sink.TryWrite(scope, sinkConfig(s), sink.Message, messages); err != nil {
		return load.Report{}, err
	}
	unwatch := context.AfterFunc(ctx, g.stop)
	defer unwatch()
	published := func() int64 { return pubsubio.CountsOf(p).Published }
	stop := program.ShowProgress(screen, program.Progress{
		What:  "publishing",
		Unit:  "messages",
		Total: s.messages,
		Done:  published,
		Line: func(perSecond int64) string {
			return fmt.Sprintf("published %s (%s/s)", program.Grouped(published()), program.Grouped(perSecond))
		},
	})
	start := time.Now()
	// Not with ctx: a pipeline that reads nothing would be cut off, and what became of
	// the messages under way would not be known.
	err := pubsubio.Run(context.WithoutCancel(ctx), p)
	elapsed := time.Since(start)
	stop()
	return newReport(s, g, pubsubio.CountsOf(p), elapsed, err), err
}

// newReport is what a run has done that has ended with err. It is complete where the
// pipeline has ended well, which it does only once every message is answered, and the
// counts say so, too.
func newReport(s settings, g *generator, c pubsubio.Counts, elapsed time.Duration, err error) load.Report {
	r := load.Report{
		Run:         s.stream.Run,
		Topic:       s.topic,
		Ordering:    s.stream.Ordered,
		Published:   c.Published,
		PoisonShare: s.stream.Poison,
		Bytes:       c.PublishedBytes,
		Seconds:     elapsed.Seconds(),
		KeyCount:    s.stream.Keys,
	}
	if elapsed > 0 {
		r.MessagesPerSecond = float64(c.Published) / elapsed.Seconds()
	}
	if n := g.emitted.Load(); err == nil && c.Published == n {
		r.Complete, r.Poison, r.Keys = true, g.poison.Load(), s.stream.Counts(n)
	}
	return r
}
