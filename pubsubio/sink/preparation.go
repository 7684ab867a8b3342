package sink

import (
	"context"
	"fmt"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/panics"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// A preparation turns records into messages and finds their topics. A DoFn embeds
// it; its exported fields travel to the workers.
type preparation struct {
	// Topic is the full name of the one topic. Empty beside Resolver.
	Topic string
	// Resolver is the key of the resolver. Empty beside Topic.
	Resolver string
	// Encoder is the key of the encoder.
	Encoder string
	// Stamp is what is added to each message.
	Stamp stamp

	// Set by find.
	topics  topics
	encoder *encoder
}

// find finds the functions on this worker.
func (p *preparation) find() error {
	e, ok := encoders.Find(p.Encoder)
	if !ok {
		return fmt.Errorf("sink: encoder %s is not registered on this worker: call sink.RegisterEncoder with it in init, not in main", p.Encoder)
	}
	p.encoder = e
	var err error
	p.topics, err = newTopics(p.Topic, p.Resolver)
	return err
}

// prepare resolves and encodes a record for the publication's bundle. The message
// is nil where there is nothing to publish: the record is skipped, or was routed.
func (p *preparation) prepare(ctx context.Context, to *publication, at beam.EventTime, record any) (topic string, m *message.Message, err error) {
	topic, err = p.topics.of(record, at)
	if err != nil {
		return "", nil, err
	}
	m, err = p.encode(record)
	if err != nil {
		if to.Failure.Kind == fail && to.Pool.Publisher.EnableMessageOrdering {
			// The bundle is to fail, and is run again with this record mended: what
			// comes after it, perhaps on its key, must not be stored before.
			to.stats.Failed.Add(1)
			return "", nil, fmt.Errorf("sink: encode a record for %s: %w", topic, err)
		}
		if err := to.route(ctx, notEncoded(topic, record, at, err)); err != nil {
			return "", nil, fmt.Errorf("sink: %w", err)
		}
		return "", nil, nil
	}
	if m == nil {
		to.stats.Skipped.Add(1)
		recordsSkipped.Inc(ctx, 1)
		return "", nil, nil
	}
	return topic, p.Stamp.on(m, at), nil
}

// encode calls the encoder and turns its panic into an error.
func (p *preparation) encode(record any) (m *message.Message, err error) {
	defer panics.Recover(&err, "encoder", p.encoder.name)
	m, err = p.encoder.encode(record)
	if err != nil {
		return nil, fmt.Errorf("encoder %s: %w", p.encoder.name, err)
	}
	return m, nil
}
