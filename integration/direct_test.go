package integration

import (
	"context"
	"errors"
	"flag"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// onRunner sets the flag --runner, which decides at construction, for a test.
func onRunner(t *testing.T, name string) {
	t.Helper()
	before := flag.Lookup("runner").Value.String()
	must(t, flag.Set("runner", name))
	t.Cleanup(func() { must(t, flag.Set("runner", before)) })
}

func TestDirect_ABoundedRelayMovesAThousandMessages(t *testing.T) {
	expectNoneOfOurs := watchGoroutines()
	onRunner(t, "direct")
	srv := newServer(t)
	publish(t, srv, inTopic, 0, 1500)
	must(t, relayOf(srv, options.Limit{MaxMessages: 1000}).run(within(t, 30*time.Second)))
	s := srv.Stats(inSub)
	if n := srv.Published(outTopic); n != 1000 || s.Acknowledged != 1000 || s.Backlog != 500 || s.Redelivered != 0 {
		t.Errorf("%d were published: %+v", n, s)
	}
	expectAcknowledgedIsPublished(t, srv)
	expectSettled(t, srv, inSub)
	expectNoneOfOurs(t)
}

// Nothing is acknowledged before the whole pipeline has succeeded.
func TestDirect_AcknowledgesAfterThePipeline(t *testing.T) {
	onRunner(t, "direct")
	srv := newServer(t)
	const n = 25_000 // More than the buffer holds.
	publish(t, srv, inTopic, 0, n)
	must(t, relayOf(srv, options.Limit{MaxMessages: n}).run(within(t, 60*time.Second)))
	var lastPublish, firstAcknowledge uint64
	for _, e := range srv.Events() {
		switch {
		case e.Kind == pubsubtest.Publish && e.Topic == outTopic:
			lastPublish = e.Seq
		case e.Kind == pubsubtest.Acknowledge && firstAcknowledge == 0:
			firstAcknowledge = e.Seq
		}
	}
	if firstAcknowledge < lastPublish {
		t.Errorf("event %d is an acknowledgement, event %d still a publish", firstAcknowledge, lastPublish)
	}
	if s := srv.Stats(inSub); s.Acknowledged != n {
		t.Errorf("not everything is acknowledged: %+v", s)
	}
	expectArrived(t, srv, true)
	expectSettled(t, srv, inSub)
}

func TestDirect_SeveralSubscriptionsToADuration(t *testing.T) {
	onRunner(t, "direct")
	srv := newServer(t)
	srv.MustCreateSubscription(inSub+"2", inTopic)
	publish(t, srv, inTopic, 0, 300)
	r := relayOf(srv, options.Limit{MaxDuration: stretched(time.Second)})
	r.source.Subscriptions = source.From(inSub, inSub+"2")
	must(t, r.run(within(t, 30*time.Second)))
	if n := srv.Published(outTopic); n != 600 {
		t.Errorf("%d were published, not 600", n)
	}
	expectSettled(t, srv, inSub)
	expectSettled(t, srv, inSub+"2")
}

func TestDirect_AnUnboundedReadIsRefused(t *testing.T) {
	onRunner(t, "direct")
	srv := newServer(t)
	expectError(t, relayOf(srv, options.Limit{}).run(within(t, 10*time.Second)), "direct", "prism", "Limit")
	if n := srv.Calls("StreamingPull"); n != 0 {
		t.Errorf("%d streams were opened", n)
	}
}

func TestDirect_AFailedPipelineAcknowledgesNothing(t *testing.T) {
	for name, fail := range failures {
		t.Run(name, func(t *testing.T) {
			onRunner(t, "direct")
			srv := newServer(t)
			publish(t, srv, inTopic, 0, 100)
			r := relayOf(srv, options.Limit{MaxMessages: 100})
			r.probe = failAt(fail)
			expectError(t, r.run(within(t, 20*time.Second)), "number 50 is broken")
			if s := srv.Stats(inSub); s.Acknowledged != 0 || s.Backlog != 100 {
				t.Errorf("want everything returned: %+v", s)
			}
			expectSettled(t, srv, inSub)
			r.probe = nil
			must(t, r.run(within(t, 20*time.Second)))
			expectArrived(t, srv, false)
		})
	}
}

func TestDirect_ACancelledPipelineReturnsEverything(t *testing.T) {
	onRunner(t, "direct")
	srv := newServer(t)
	publish(t, srv, inTopic, 0, 100)
	r := relayOf(srv, options.Limit{MaxMessages: 1000})
	seen := make(chan struct{})
	r.probe = &probe{after: func(_ context.Context, m *message.Message) error {
		if string(m.Data) == "0000099" {
			close(seen)
		}
		return nil
	}}
	j := start(t, time.Minute, r.run)
	<-seen
	if err := j.stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("the pipeline ended with %v", err)
	}
	if s := srv.Stats(inSub); s.Acknowledged != 0 || s.Backlog != 100 {
		t.Errorf("want everything returned: %+v", s)
	}
	expectSettled(t, srv, inSub)
}

func TestDirect_MissingSubscription(t *testing.T) {
	long(t)
	onRunner(t, "direct")
	srv := newServer(t)
	r := relayOf(srv, options.Limit{MaxMessages: 1})
	const typo = "projects/integration/subscriptions/inptu"
	r.source.Subscriptions = source.From(typo)
	expectError(t, r.run(within(t, 30*time.Second)), typo, "NotFound")
}

// A read that was built for another runner, before the flag was set.
func TestDirect_ReadBuiltBeforeTheFlagIsRefused(t *testing.T) {
	srv := newServer(t)
	p := relayOf(srv, options.Limit{MaxMessages: 1}).build()
	onRunner(t, "direct")
	expectError(t, pubsubio.Run(within(t, 10*time.Second), p), "direct", "prism", "flag.Parse")
}

// Beam's own runners for Flink and Spark cannot be told to checkpoint.
func TestRun_BeamsFlinkAndSparkAreRefusedForARead(t *testing.T) {
	for _, name := range []string{"flink", "spark"} {
		t.Run(name, func(t *testing.T) {
			onRunner(t, name)
			srv := newServer(t)
			expectError(t, relayOf(srv, options.Limit{MaxMessages: 1}).run(within(t, 10*time.Second)), "--runner="+name, "finalized")
			if n := srv.Calls("StreamingPull"); n != 0 {
				t.Errorf("%d streams were opened", n)
			}
		})
	}
}

// The flag given explicitly means the same as Run's default.
func TestRun_ExplicitPrism(t *testing.T) {
	for _, name := range []string{"prism", "PrismRunner"} {
		t.Run(name, func(t *testing.T) {
			onRunner(t, name)
			srv := newServer(t)
			publish(t, srv, inTopic, 0, 100)
			must(t, relayOf(srv, options.Limit{MaxMessages: 100}).run(within(t, 20*time.Second)))
			expectArrived(t, srv, true)
			expectSettled(t, srv, inSub)
		})
	}
}

// Without Run the direct runner would never acknowledge.
func TestDirect_WithoutRunIsRefused(t *testing.T) {
	onRunner(t, "direct")
	srv := newServer(t)
	publish(t, srv, inTopic, 0, 10)
	p := relayOf(srv, options.Limit{MaxMessages: 10}).build()
	_, err := beam.Run(within(t, 10*time.Second), "direct", p)
	expectError(t, err, "pubsubio.Run")
	if s := srv.Stats(inSub); s.Acknowledged != 0 || s.Outstanding != 0 {
		t.Errorf("%+v", s)
	}
}
