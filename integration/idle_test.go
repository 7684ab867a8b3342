package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/internal/emulator"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

func init() {
	helpers["idle relay"] = func(ctx context.Context, t task) (usage, error) {
		return idle(ctx, t, relayAt(t.Endpoint, options.Limit{MaxDuration: t.Warmup + t.Duration + time.Second}).build())
	}
	helpers["idle counter"] = func(ctx context.Context, t task) (usage, error) {
		p, s := beam.NewPipelineWithRoot()
		cfg := relayAt(t.Endpoint, options.Limit{MaxDuration: t.Warmup + t.Duration + time.Second}).source
		beam.ParDo0(s, drop, source.Read(s, cfg, source.Message))
		return idle(ctx, t, p)
	}
}

// idle runs p and measures what it costs from the end of the warm-up on.
func idle(ctx context.Context, t task, p *beam.Pipeline) (usage, error) {
	ended := make(chan error, 1)
	go func() { ended <- pubsubio.Run(ctx, p) }()
	work(ctx, t.Warmup)
	began := time.Now()
	before, err := busy()
	if err != nil {
		return usage{}, err
	}
	work(ctx, t.Duration)
	u := usage{Measured: time.Since(began)}
	after, err := busy()
	if err != nil {
		return usage{}, err
	}
	u.Busy = after - before
	return u, <-ended
}

// A pipeline with nothing to do kept a core busy.
func TestPrism_IdlePipelinesCostNextToNothing(t *testing.T) {
	measured(t)
	const most = 5 // % of a core
	d := startDaemon(t, 0)
	emulator.Dial(t, d.endpoint).CreateTopic(outTopic)
	for _, name := range []string{"idle relay", "idle counter"} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			u := runHelper(within(t, time.Minute), t, name, task{Endpoint: d.endpoint, Warmup: 2 * time.Second, Duration: 8 * time.Second})
			share := 100 * u.Busy.Seconds() / u.Measured.Seconds()
			t.Logf("%.1f %% of a core", share)
			if share > most {
				t.Errorf("%.1f %% of a core, more than %d", share, most)
			}
		})
	}
}

// Prism runs the restrictions of a stage one after another: each idle one that
// waited a moment for messages delayed the busy one by it.
func TestPrism_TwelveIdleSubscriptionsDoNotDelayABusyOne(t *testing.T) {
	const idleOnes, n = 12, 200
	srv := newServer(t)
	var subs []string
	for i := range idleOnes {
		topic, sub := fmt.Sprintf("%s%d", idleTopic, i), fmt.Sprintf("%s%d", idleSub, i)
		srv.MustCreateTopic(topic)
		srv.MustCreateSubscription(sub, topic)
		subs = append(subs, sub)
	}
	r := relayOf(srv, options.Limit{})
	r.source.Subscriptions = source.From(slices.Insert(subs, idleOnes/2, inSub)...)
	emitted := make(chan struct{}, 1)
	r.probe = &probe{before: func(context.Context, *message.Message) error {
		emitted <- struct{}{}
		return nil
	}}
	j := start(t, time.Minute, r.run)
	ctx := within(t, 40*time.Second)
	for _, sub := range append(subs, inSub) {
		awaitStreams(ctx, t, srv, sub, 1)
	}
	delays := make([]time.Duration, n)
	for i := range delays { // Each is published when the one before was seen.
		published := time.Now()
		publish(t, srv, inTopic, i, 1)
		select {
		case <-emitted:
		case <-ctx.Done():
			t.Fatalf("message %d does not come", i)
		}
		delays[i] = time.Since(published)
	}
	j.running(t)
	slices.Sort(delays)
	p50, p99 := delays[n/2], delays[n*99/100]
	t.Logf("publish to emit: p50 %v, p99 %v", p50, p99)
	// One idle restriction that waits inside costs 100 ms, twelve of them 1.2 s.
	if limit := 50 * time.Millisecond; p50 > limit && !raceDetector {
		t.Errorf("publish to emit took %v in the middle, more than %v", p50, limit)
	}
}

// A burst on one subscription does not wait for the bundles of the others either.
func TestPrism_TwelveBusySubscriptionsAreServedAlike(t *testing.T) {
	const busyOnes, each = 12, 3000
	srv := newServer(t)
	var subs []string
	for i := range busyOnes {
		sub := fmt.Sprintf("%s%d", inSub, i)
		srv.MustCreateSubscription(sub, inTopic)
		subs = append(subs, sub)
	}
	publish(t, srv, inTopic, 0, each)
	r := relayOf(srv, options.Limit{MaxMessages: busyOnes * each})
	r.source.Subscriptions = source.From(subs...)
	r.source.Subscriber.MaxRecordsPerBundle = 600
	must(t, r.run(within(t, 40*time.Second)))
	// When half of everything was acknowledged, everybody had about half.
	got, total := make(map[string]int), 0
	for _, e := range srv.Events() {
		if e.Kind == pubsubtest.Acknowledge && total < busyOnes*each/2 {
			got[e.Subscription]++
			total++
		}
	}
	for _, sub := range subs {
		if got[sub] < each/4 {
			t.Errorf("%s had %d of the first %d acknowledgements", sub, got[sub], total)
		}
		expectSettled(t, srv, sub)
	}
}
