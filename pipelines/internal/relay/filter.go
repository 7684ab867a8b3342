package relay

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/google/uuid"

	"github.com/beam-pubsub/beam-pubsub-go/internal/filter"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

func init() {
	register.DoFn3x1[context.Context, *pubsubio.Message, func(*pubsubio.Message), error](&filterFn{})
	register.Emitter1[*pubsubio.Message]()
}

// keptBack are the counts of the filterFns of this process, by nonce: Beam makes a
// filterFn anew from its JSON.
var keptBack sync.Map

func keptBackBy(nonce string) *atomic.Int64 {
	n, _ := keptBack.LoadOrStore(nonce, new(atomic.Int64))
	return n.(*atomic.Int64)
}

// A filterFn lets through the messages that match. It is no decoder, which a worker
// would know by its name alone, without the expression. The others end here, and are
// acknowledged with the bundle as those that are published.
type filterFn struct {
	// Expression is --filter.
	Expression string
	Nonce      string

	parsed   filter.Expression
	filtered *atomic.Int64
	counter  beam.Counter // of the job, where the workers are other processes
}

// Setup reads the expression, once for all messages.
func (fn *filterFn) Setup() (err error) {
	if fn.parsed, err = filter.Parse(fn.Expression); err != nil {
		return fmt.Errorf("relay: --filter %s: %w", fn.Expression, err)
	}
	fn.filtered = keptBackBy(fn.Nonce)
	fn.counter = beam.NewCounter("relay", "filtered")
	return nil
}

// ProcessElement emits a message that matches.
func (fn *filterFn) ProcessElement(ctx context.Context, m *pubsubio.Message, emit func(*pubsubio.Message)) error {
	if fn.parsed.Matches(m.Attributes) {
		emit(m)
		return nil
	}
	fn.filtered.Add(1)
	fn.counter.Inc(ctx, 1)
	return nil
}

// filtered adds the filter to scope, if there is one. count returns how many messages
// it has kept back in this process, and forget ends the counting.
func (s settings) filtered(scope beam.Scope, messages beam.PCollection) (matching beam.PCollection, count func() int64, forget func(), err error) {
	if s.filter == "" {
		return messages, func() int64 { return 0 }, func() {}, nil
	}
	nonce := uuid.NewString()
	out, err := beam.TryParDo(scope, &filterFn{Expression: s.filter, Nonce: nonce}, messages)
	if err != nil {
		return messages, nil, nil, err
	}
	return out[0], keptBackBy(nonce).Load, func() { keptBack.Delete(nonce) }, nil
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
