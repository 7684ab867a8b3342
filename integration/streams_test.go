package integration

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// One split over several streams: everything once, and each stream keeps its part of
// the budget.
func TestPrism_StreamsShareASplit(t *testing.T) {
	const n, streams = 20_000, 4
	srv := newServer(t)
	r := relayOf(srv, options.Limit{})
	r.source.Subscriber.Streams = streams
	r.source.Subscriber.MaxOutstandingMessages = 4000
	j := start(t, time.Minute, r.run)
	ctx := within(t, 40*time.Second)
	awaitStreams(ctx, t, srv, inSub, streams)
	publish(t, srv, inTopic, 0, n)
	awaitAcknowledged(ctx, t, srv, inSub, n)
	if s := srv.Stats(inSub); s.MaxOutstanding > 4000 || s.Redelivered != 0 {
		t.Errorf("the split may hold 4,000: %+v", s)
	}
	_ = j.stop()
	expectArrived(t, srv, true)
	expectSettled(t, srv, inSub)
}

// C19: the quota of streams hid behind retries.
func TestPrism_C19_TwoOfEightStreamsAreRefused(t *testing.T) {
	parallel(t)
	srv := newServer(t)
	quota := srv.Order(pubsubtest.Rule{Method: "StreamingPull", Skip: 6},
		pubsubtest.Fail(status.Error(codes.ResourceExhausted, "Quota exceeded: StreamingPull connections")))
	r := relayOf(srv, options.Limit{})
	r.source.Subscriber.Streams = 8
	p := r.build()
	began := time.Now()
	j := start(t, time.Minute, func(ctx context.Context) error { return runPipeline(ctx, p) })
	ctx := within(t, 40*time.Second)
	must(t, quota.AwaitFired(ctx, 4))
	publish(t, srv, inTopic, 0, 1000)
	awaitAcknowledged(ctx, t, srv, inSub, 1000)
	for pubsubio.CountsOf(p).OpenStreams != 6 {
		work(ctx, 10*time.Millisecond)
		j.running(t)
	}
	if c := pubsubio.CountsOf(p); c.ReadErrors["RESOURCE_EXHAUSTED"] < 4 {
		t.Errorf("the refusals are not counted: %+v", c)
	}
	if n, most := srv.Calls("StreamingPull"), 8*(int64(time.Since(began)/time.Second)+1); n > most {
		t.Errorf("%d streams were asked for in %v", n, time.Since(began))
	}
	quota.Remove()
	awaitStreams(ctx, t, srv, inSub, 8)
	j.running(t)
}

// C06: a reader hoarded the backlog, and one that came later got nothing. The case
// joins after a minute, which soak tests do.
func TestPrism_C06_AReaderThatJoinsLaterGetsWork(t *testing.T) {
	long(t)
	parallel(t)
	join := 3 * time.Second
	if os.Getenv(soakEnv) != "" {
		join = time.Minute
	}
	srv := newServer(t)
	publish(t, srv, inTopic, 0, 60)
	counting := func(seen *atomic.Int64) *relay {
		r := relayOf(srv, options.Limit{})
		r.source.Subscriber.MaxOutstandingMessages = 1
		r.probe = &probe{before: func(ctx context.Context, _ *message.Message) error {
			seen.Add(1)
			work(ctx, join/20)
			return nil
		}}
		return r
	}
	var first, second atomic.Int64
	a := start(t, 2*time.Minute, counting(&first).run)
	ctx := within(t, 2*time.Minute)
	work(ctx, join)
	if s := srv.Stats(inSub); s.MaxOutstanding > 1 {
		t.Errorf("%d messages were outstanding at once, not 1", s.MaxOutstanding)
	}
	b := start(t, 2*time.Minute, counting(&second).run)
	joined := time.Now()
	for second.Load() == 0 {
		work(ctx, 10*time.Millisecond)
		if time.Since(joined) > stretched(10*time.Second) {
			t.Fatalf("the second reader has got nothing, the first %d: %+v", first.Load(), srv.Stats(inSub))
		}
	}
	a.running(t)
	b.running(t)
	t.Logf("work after %v", time.Since(joined).Round(time.Millisecond))
}

// C16: a stream went quiet without an error, or was opened every few milliseconds.
func TestPrism_C16_ReadingResumesWithinAMinute(t *testing.T) {
	long(t)
	for name, disturb := range map[string]func(*pubsubtest.Server){
		"GOAWAY":      func(srv *pubsubtest.Server) { srv.GoAway() },
		"UNAVAILABLE": func(srv *pubsubtest.Server) { _ = srv.EndStreams(inSub, status.Error(codes.Unavailable, "over")) },
		"RST":         func(srv *pubsubtest.Server) { srv.BreakConnections() },
		// The server's connections lose everything, those to come work.
		"black hole": func(srv *pubsubtest.Server) { srv.Silence() },
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			// What the server sent into the hole is leased to it: not for long here.
			srv := newServer(t, func(c *pubsubtest.Config) { c.LeaseSecond = 2 * time.Second / 60 })
			out := pubsubtest.New(t)
			out.MustCreateTopic(outTopic)
			r := relayOf(srv, options.Limit{})
			r.sink.EmulatorEndpoint = out.Endpoint() // It is undisturbed.
			r.source.Subscriber.Streams = 3
			j := start(t, 3*time.Minute, r.run)
			ctx := within(t, 3*time.Minute)
			publish(t, srv, inTopic, 0, 10)
			awaitAcknowledged(ctx, t, srv, inSub, 10)
			work(ctx, time.Second)
			opened := srv.Calls("StreamingPull")
			began := time.Now()
			disturb(srv)
			publish(t, srv, inTopic, 10, 10)
			must(t, out.AwaitPublished(within(t, time.Minute), outTopic, 20))
			took := time.Since(began)
			t.Logf("resumed after %v", took.Round(time.Millisecond))
			if n, most := srv.Calls("StreamingPull")-opened, 3*(int64(took/time.Second)+1); n > most {
				t.Errorf("%d streams were opened within %v, more than one a second for each", n, took)
			}
			j.running(t)
			awaitAcknowledged(ctx, t, srv, inSub, 20)
			if got := data(out.Messages(outTopic)); len(got) != 20 {
				t.Errorf("%d distinct messages arrived of 20", len(got))
			}
		})
	}
}

// Each subscription costs something: what, with a thousand of them.
func TestPrism_AThousandSubscriptionsStartTogether(t *testing.T) {
	long(t)
	const n = 1000
	srv := pubsubtest.New(t)
	srv.MustCreateTopic(inTopic)
	srv.MustCreateTopic(outTopic)
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("projects/integration/subscriptions/input-%04d", i)
		srv.MustCreateSubscription(names[i], inTopic)
	}
	r := relayOf(srv, options.Limit{})
	r.source.Subscriptions = source.From(names...)
	p := r.build()
	before := len(ours())
	began := time.Now()
	j := start(t, 2*time.Minute, func(ctx context.Context) error { return runPipeline(ctx, p) })
	ctx := within(t, time.Minute)
	for pubsubio.CountsOf(p).OpenStreams < n {
		work(ctx, 10*time.Millisecond)
		j.running(t)
		must(t, ctx.Err())
	}
	must(t, srv.AwaitEvent(ctx, func(e pubsubtest.Event) bool { return e.Kind == pubsubtest.StreamOpen }))
	for _, name := range names {
		awaitStreams(ctx, t, srv, name, 1)
	}
	took := time.Since(began)
	connections, _ := srv.Connections()
	goroutines := len(ours()) - before
	t.Logf("%d subscriptions are read after %v, over %d connections, by %d goroutines of ours", n, took.Round(time.Millisecond), connections, goroutines)
	if took > stretched(10*time.Second) {
		t.Errorf("starting took %v", took)
	}
	// 90 streams share a connection, and all calls that settle another.
	if most := n/90 + 1 + 2; connections > most {
		t.Errorf("%d connections, more than %d", connections, most)
	}
	if most := 6*n + 50; goroutines > most {
		t.Errorf("%d goroutines, more than %d", goroutines, most)
	}
	publish(t, srv, inTopic, 0, 1)
	for _, name := range names {
		awaitAcknowledged(ctx, t, srv, name, 1)
	}
	began = time.Now()
	if err := j.stop(); err == nil || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("the pipeline ended with %v", err)
	}
	t.Logf("stopped after %v", time.Since(began).Round(time.Millisecond))
	for _, name := range names {
		expectSettled(t, srv, name)
	}
}
