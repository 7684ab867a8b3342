package source

import (
	"context"
	"errors"
	"math"
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/google/uuid"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

func init() {
	beam.RegisterType(reflect.TypeFor[boundedFn]())
}

// unlimited is more than a limited read holds; as flow control it is none.
const unlimited = math.MaxInt32

// boundedFn is a limited Read on the direct runner, which cuts a splittable DoFn
// short after one call and finalizes nothing: one call reads all subscriptions to
// the limit, and pubsubio.Run acknowledges everything once the pipeline has
// succeeded.
type boundedFn struct {
	settings
}

// ProcessElement reads until the limit is reached.
func (fn *boundedFn) ProcessElement(ctx context.Context, _ []byte, emit func(beam.EventTime, beam.X), failed func(beam.EventTime, Failed)) error {
	if fn.Binding.Rule != run.Pipeline || run.Find(fn.Binding.RunID) == nil {
		return errors.New("source: on the direct runner a read is acknowledged by pubsubio.Run once the pipeline has succeeded: run the pipeline with it")
	}
	decoder, err := fn.decoder()
	if err != nil {
		return err
	}
	started, err := fn.startUp(ctx)
	if started == nil {
		return err
	}
	visits, err := fn.enter(started)
	if err != nil {
		return err
	}
	out, refused := newEmitter(decoder, emit), fn.newDisposal(failed)
	defer refused.end()
	rest := restriction{Left: -1, Deadline: fn.deadline()}
	// All subscriptions share the limit, so any of them says whether it is
	// reached.
	first := visits[0]
	for !first.ended(rest) {
		round := newBudget(first.reader.config.Subscriber)
		for _, v := range visits {
			v.budget, v.emit, v.refused = round, out, refused
			if err := v.drain(ctx); err != nil {
				return err
			}
		}
		if !round.emitted {
			first.awaitMessages(ctx)
		}
		reportMetrics(ctx, first.group.counts, first.group.all()...)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	for _, v := range visits {
		v.reader.stop()
	}
	return refused.finish(ctx)
}

// Teardown lets go of what a dead-letter queue keeps for the Read.
func (fn *boundedFn) Teardown() error { return fn.closeQueue() }

// config lifts the cap on outstanding messages: nothing is acknowledged before
// the end, so it would end the read early.
func (fn *boundedFn) config() Config {
	cfg := fn.Config.withDefaults()
	cfg.Subscriber.MaxOutstandingMessages = unlimited
	cfg.Subscriber.MaxOutstandingBytes = math.MaxInt64
	cfg.Subscriber.FirstCommitTimeout = options.Disabled
	return cfg
}

// enter claims a reader for each subscription.
func (fn *boundedFn) enter(started *startup) ([]*visit, error) {
	nonce := uuid.NewString()
	group := func() (*group, error) {
		return groupOf(nonce, fn.onWorker(fn.config()), fn.Binding, stats.ForSource(fn.Nonce))
	}
	var visits []*visit
	for _, subscription := range fn.Config.Subscriptions {
		a := assignment{ReaderNonce: uuid.NewString(), Subscription: subscription.Name, MaxDelivery: started.maxDelivery(subscription.Name)}
		v, err := enter(group, a, restriction{Left: -1}, uuid.NewString())
		if err != nil {
			return nil, err
		}
		visits = append(visits, v)
	}
	return visits, nil
}
