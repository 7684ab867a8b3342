package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// acknowledged returns how often each message of a subscription was acknowledged,
// by its data.
func acknowledged(srv *pubsubtest.Server, subscription string) map[string]int {
	counts := make(map[string]int)
	for _, e := range srv.Events() {
		if e.Kind == pubsubtest.Acknowledge && e.Subscription == subscription {
			counts[string(e.Message().Data)]++
		}
	}
	return counts
}

// expectAcknowledgedIsPublished checks that exactly the messages that were
// published to out are acknowledged.
func expectAcknowledgedIsPublished(t *testing.T, srv *pubsubtest.Server) {
	t.Helper()
	acked, out := acknowledged(srv, inSub), data(srv.Messages(outTopic))
	if n := srv.EventsDropped(); n != 0 {
		t.Errorf("%d events are missing from the log", n)
	}
	for d := range acked {
		if out[d] == 0 {
			t.Errorf("%s was acknowledged and not published", d)
		}
	}
	for d := range out {
		if acked[d] == 0 {
			t.Errorf("%s was published and not acknowledged", d)
		}
	}
	if t.Failed() {
		t.Logf("%d acknowledged, %d published: %+v", len(acked), len(out), srv.Stats(inSub))
	}
}

// A pipeline that is interrupted published what it never acknowledged, and left
// leases behind.
func TestPrism_CancelAtAnyPoint(t *testing.T) {
	const total = 20_000
	points := 20
	if testing.Short() {
		points = 5
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range points {
		point := random.Int64N(total)
		if i == 0 {
			point = 0
		}
		t.Run(fmt.Sprint("at ", point), func(t *testing.T) {
			srv := newServer(t)
			publish(t, srv, inTopic, 0, total)
			r := relayOf(srv, options.Limit{})
			r.source.Subscriber.MaxRecordsPerBundle = 100 + random.IntN(3000)
			r.source.Splits = 1 + random.IntN(2)
			j := start(t, time.Minute, r.run)
			must(t, srv.AwaitPublished(within(t, 30*time.Second), outTopic, point))
			if err := j.stop(); !errors.Is(err, context.Canceled) {
				t.Errorf("the pipeline ended with %v", err)
			}
			expectAcknowledgedIsPublished(t, srv)
			expectSettled(t, srv, inSub)
			if s := srv.Stats(inSub); s.Acknowledged+s.Backlog != total {
				t.Errorf("neither acknowledged nor there to be read again: %+v", s)
			}
		})
	}
}

func TestPrism_CancelledBeforeItStarts(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, inTopic, 0, 10)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := relayOf(srv, options.Limit{}).run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the pipeline ended with %v", err)
	}
	if n := srv.Calls("StreamingPull"); n != 0 {
		t.Errorf("%d streams were opened", n)
	}
}

func TestPrism_CancelTellsItsCause(t *testing.T) {
	srv := newServer(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	j := start(t, time.Minute, func(context.Context) error { return relayOf(srv, options.Limit{}).run(ctx) })
	must(t, srv.Await(within(t, 10*time.Second), inSub, func(s pubsubtest.Stats) bool { return s.Streams == 1 }))
	cause := errors.New("lunch")
	cancel(cause)
	if err := j.wait(); !errors.Is(err, cause) {
		t.Errorf("the pipeline ended with %v, want one that wraps %v", err, cause)
	}
	expectSettled(t, srv, inSub)
}

// What ends one pipeline of a process must not touch another.
func TestPrism_TwoPipelinesOneCancelled(t *testing.T) {
	first, second := newServer(t), newServer(t)
	publish(t, first, inTopic, 0, 5000)
	publish(t, second, inTopic, 0, 5000)
	ctx := within(t, 30*time.Second)
	one := start(t, time.Minute, relayOf(first, options.Limit{}).run)
	awaitStreams(ctx, t, first, inSub, 1)
	two := start(t, time.Minute, relayOf(second, options.Limit{}).run)
	must(t, first.AwaitPublished(ctx, outTopic, 1000))
	must(t, second.AwaitPublished(ctx, outTopic, 1))
	if err := one.stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled pipeline ended with %v", err)
	}
	expectAcknowledgedIsPublished(t, first)
	expectSettled(t, first, inSub)

	publish(t, second, inTopic, 5000, 5000)
	awaitAcknowledged(ctx, t, second, inSub, 10_000)
	two.running(t)
	if s := second.Stats(inSub); s.StreamsOpened != 1 || s.Redelivered != 0 || s.Returned != 0 {
		t.Errorf("the other pipeline was disturbed: %+v", s)
	}
	if err := two.stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("the other pipeline ended with %v", err)
	}
	expectArrived(t, second, true)
	expectSettled(t, second, inSub)
}

// Two Reads of one pipeline stop together.
func TestPrism_CancelStopsEveryReadOfThePipeline(t *testing.T) {
	a, b := newServer(t), newServer(t)
	publish(t, a, inTopic, 0, 3000)
	publish(t, b, inTopic, 3000, 3000)
	p, s := beam.NewPipelineWithRoot()
	passing := &probe{}
	for _, srv := range []*pubsubtest.Server{a, b} {
		col := passing.apply(s, source.Read(s, relayOf(srv, options.Limit{}).source, source.Message))
		beam.ParDo0(s, drop, col)
	}
	j := start(t, time.Minute, func(ctx context.Context) error { return runPipeline(ctx, p) })
	ctx := within(t, 30*time.Second)
	awaitAcknowledged(ctx, t, a, inSub, 1)
	awaitAcknowledged(ctx, t, b, inSub, 1)
	if err := j.stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("the pipeline ended with %v", err)
	}
	if n := a.Stats(inSub).Acknowledged + b.Stats(inSub).Acknowledged; n != passing.passed.Load() {
		t.Errorf("%d were acknowledged of %d that were processed", n, passing.passed.Load())
	}
	expectSettled(t, a, inSub)
	expectSettled(t, b, inSub)
}

// A cancelled pipeline whose DoFn then fails tells both.
func TestPrism_CancelDuringAFailure(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, inTopic, 0, 100)
	r := relayOf(srv, options.Limit{})
	reached, failing := make(chan struct{}), make(chan struct{})
	r.probe = &probe{before: func(ctx context.Context, m *message.Message) error {
		if string(m.Data) != "0000050" {
			return nil
		}
		close(reached)
		<-failing
		return errors.New("number 50 is broken")
	}}
	j := start(t, time.Minute, r.run)
	<-reached
	j.cancel()
	close(failing)
	err := j.wait()
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "number 50 is broken") {
		t.Errorf("the pipeline ended with %v", err)
	}
	if s := srv.Stats(inSub); s.Acknowledged != 0 || s.Backlog != 100 {
		t.Errorf("want everything returned: %+v", s)
	}
	expectSettled(t, srv, inSub)
}
