package pubsubio

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

func init() {
	register.DoFn1x0[*message.Message](&fillBacklog{})
}

// fillBacklog is what a keyed write is to its run: at the first message it tells of a
// backlog that is full.
type fillBacklog struct{ RunID string }

const fullBacklog = 1 << 40 // bytes

var (
	filled   atomic.Pointer[run.Backlog]
	received atomic.Int64
)

// JoinRun implements run.Joiner.
func (fn *fillBacklog) JoinRun(id string) { fn.RunID = id }

func (fn *fillBacklog) ProcessElement(*message.Message) {
	received.Add(1)
	if b := run.Find(fn.RunID).Backlog(); filled.CompareAndSwap(nil, b) {
		b.Add(0, fullBacklog)
	}
}

// Nothing else bounds what waits in front of a keyed write on prism.
func TestRun_AFullBacklogHoldsTheReadsBack(t *testing.T) {
	const topic, sub = "projects/p/topics/input", "projects/p/subscriptions/input"
	filled.Store(nil)
	received.Store(0)
	srv := pubsubtest.New(t)
	if err := srv.CreateTopic(topic); err != nil {
		t.Fatal(err)
	}
	if err := srv.CreateSubscription(sub, topic); err != nil {
		t.Fatal(err)
	}
	publish := func(from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			if _, err := srv.Publish(topic, &message.Message{Data: fmt.Append(nil, i)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	p, s := beam.NewPipelineWithRoot()
	read := source.Read(s, source.Config{
		Subscriptions: source.From(sub), EmulatorEndpoint: srv.Endpoint(), Limit: options.Limit{MaxMessages: 100},
	}, source.Message)
	beam.ParDo0(s, &fillBacklog{}, read)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, p) }()

	publish(0, 1)
	await := func(what func(pubsubtest.Stats) bool) {
		t.Helper()
		if err := srv.Await(ctx, sub, what); err != nil {
			t.Fatal(err)
		}
	}
	await(func(s pubsubtest.Stats) bool { return s.Acknowledged == 1 })
	publish(1, 100)
	await(func(s pubsubtest.Stats) bool { return s.Outstanding == 99 }) // received, and held
	select {
	case err := <-ended:
		t.Fatalf("the pipeline ended: %v", err)
	case <-time.After(500 * time.Millisecond): // many bundles
	}
	if n := received.Load(); n != 1 {
		t.Errorf("%d messages were emitted beside a full backlog", n)
	}
	filled.Load().Add(0, -fullBacklog)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if n := received.Load(); n != 100 {
		t.Errorf("%d messages emitted", n)
	}
}
