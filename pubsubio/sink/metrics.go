package sink

import (
	"context"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/publish"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
)

// namespace is that of the sink's Beam metrics, which the package comment
// describes.
const namespace = "pubsubio.sink"

var (
	recordsSend       = beam.NewCounter(namespace, "recordsSend")
	bytesSend         = beam.NewCounter(namespace, "bytesSend")
	recordsSkipped    = beam.NewCounter(namespace, "recordsSkipped")
	recordsFailed     = beam.NewCounter(namespace, "recordsFailed")
	deadLetters       = beam.NewCounter(namespace, "deadLetters")
	sendErrors        = beam.NewCounter(namespace, "sendErrors")
	topicsCreated     = beam.NewCounter(namespace, "topicsCreated")
	shutdownsAbandons = beam.NewCounter(namespace, "publisherShutdownsAbandoned")
	inFlightMessages  = beam.NewGauge(namespace, "inFlightMessages")
	inFlightBytes     = beam.NewGauge(namespace, "inFlightBytes")
	parkedMessages    = beam.NewGauge(namespace, "parkedMessages")
)

// reportLoad sets the gauges.
func reportLoad(ctx context.Context, l publish.Load) {
	inFlightMessages.Set(ctx, int64(l.Messages))
	inFlightBytes.Set(ctx, l.Bytes)
	parkedMessages.Set(ctx, int64(l.Parked))
}

// reportCounts adds what became of a bundle's messages to Beam's counters. The pool
// counts for the process itself.
func reportCounts(ctx context.Context, c publish.Counts) {
	recordsSend.Inc(ctx, c.Published)
	bytesSend.Inc(ctx, c.Bytes)
	sendErrors.Inc(ctx, c.Errors)
	topicsCreated.Inc(ctx, c.TopicsCreated)
	shutdownsAbandons.Inc(ctx, c.ShutdownsAbandoned)
	for code, n := range c.ErrorsByCode {
		beam.NewCounter(namespace, "errorClass."+transport.CodeName(code)+".errors").Inc(ctx, n)
	}
	for topic, d := range c.Destinations {
		prefix := "destination." + topic + "."
		beam.NewCounter(namespace, prefix+"recordsSend").Inc(ctx, d.Published)
		beam.NewCounter(namespace, prefix+"bytesSend").Inc(ctx, d.Bytes)
		beam.NewCounter(namespace, prefix+"sendErrors").Inc(ctx, d.Errors)
	}
}
