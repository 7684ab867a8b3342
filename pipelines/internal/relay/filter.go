package relay

import (
	"context"
	"fmt"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/beam-pubsub/beam-pubsub-go/internal/filter"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

func init() {
	register.DoFn3x1[context.Context, *pubsubio.Message, func(*pubsubio.Message), error](&filterFn{})
	register.Emitter1[*pubsubio.Message]()
}

// A filterFn lets through the messages that match. It is no decoder, which a worker
// would know by its name alone, without the expression. The others end here, and are
// acknowledged with the bundle as those that are published.
type filterFn struct {
	// Expression is --filter.
	Expression string
	Nonce      string

	parsed  filter.Expression
	tally   *tally
	counter beam.Counter // of the job, where the workers are other processes
}

// Setup reads the expression, once for all messages.
func (fn *filterFn) Setup() (err error) {
	if fn.parsed, err = filter.Parse(fn.Expression); err != nil {
		return fmt.Errorf("relay: --filter %s: %w", fn.Expression, err)
	}
	fn.tally = tallyOf(fn.Nonce)
	fn.counter = beam.NewCounter("relay", "filtered")
	return nil
}

// ProcessElement emits a message that matches.
func (fn *filterFn) ProcessElement(ctx context.Context, m *pubsubio.Message, emit func(*pubsubio.Message)) error {
	if fn.parsed.Matches(m.Attributes) {
		emit(m)
		return nil
	}
	fn.tally.filtered.Add(1)
	fn.counter.Inc(ctx, 1)
	return nil
}

// filtered adds the filter to scope, if there is one.
func (s settings) filtered(scope beam.Scope, nonce string, messages beam.PCollection) (matching beam.PCollection, err error) {
	if s.filter == "" {
		return messages, nil
	}
	out, err := beam.TryParDo(scope, &filterFn{Expression: s.filter, Nonce: nonce}, messages)
	if err != nil {
		return messages, err
	}
	return out[0], nil
}

// filterFaults records in f why --filter is no filter.
func (s settings) filterFaults(f *options.Faults) {
	if s.filter == "" {
		return
	}
	if _, err := filter.Parse(s.filter); err != nil {
		f.Add("--filter", s.filter, err.Error())
	}
}
