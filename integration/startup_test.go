package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/beam-pubsub/beam-pubsub-go/internal/emulator"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// arrivals returns the data of what arrived, sorted.
func arrivals(srv *pubsubtest.Server) []string {
	var got []string
	for _, m := range srv.Messages(outTopic) {
		got = append(got, string(m.Data))
	}
	slices.Sort(got)
	return got
}

// publishAged publishes a message for each age, which is its data.
func publishAged(t *testing.T, srv *pubsubtest.Server, ages ...time.Duration) {
	t.Helper()
	for _, age := range ages {
		if _, err := srv.Publish(inTopic, &message.Message{Data: []byte(age.String()), PublishTime: time.Now().Add(-age)}); err != nil {
			t.Fatal(err)
		}
	}
}

// A job starts where it is told to, and seeks once, however many bundles it has.
func TestPrism_C27_StartPositions(t *testing.T) {
	for name, c := range map[string]struct {
		position options.StartPosition
		want     []string // of 3h and 1h, which are acknowledged, 2h, which waits, and 0s
		seeks    int64
	}{
		"ContinueFromSubscription": {options.ContinueFromSubscription(), []string{"0s", "2h0m0s"}, 0},
		"EarliestRetained":         {options.EarliestRetained(), []string{"0s", "1h0m0s", "2h0m0s", "3h0m0s"}, 1},
		"Latest":                   {options.Latest(), []string{"0s"}, 1},
		"FromTimestamp":            {options.FromTimestamp(time.Now().Add(-150 * time.Minute)), []string{"0s", "1h0m0s", "2h0m0s"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t)
			const sub = "projects/integration/subscriptions/retaining"
			srv.MustCreateSubscription(sub, inTopic, pubsubtest.RetainAcked())
			publishAged(t, srv, 3*time.Hour, time.Hour)
			emulator.Dial(t, srv.Endpoint()).Drain(sub)
			publishAged(t, srv, 2*time.Hour)
			r := relayOf(srv, options.Limit{MaxMessages: int64(len(c.want))})
			r.source.Subscriptions, r.source.StartPosition = source.From(sub), c.position
			r.source.Subscriber.MaxRecordsPerBundle = 1
			p := r.build() // Latest is now.
			publishAged(t, srv, 0)
			must(t, runPipeline(within(t, 30*time.Second), p))
			if got := arrivals(srv); !slices.Equal(got, c.want) {
				t.Errorf("%q arrived, want %q", got, c.want)
			}
			if n := srv.Calls("Seek"); n != c.seeks {
				t.Errorf("%d seeks, want %d", n, c.seeks)
			}
			expectSettled(t, srv, sub)
		})
	}
}

// A job makes its subscription, and reads from before that what the topic retains.
func TestPrism_CreatesItsSubscriptionAndReadsWhatTheTopicRetains(t *testing.T) {
	srv := newServer(t)
	client := emulator.Dial(t, srv.Endpoint())
	_, err := client.Publisher.UpdateTopic(t.Context(), &pubsubpb.UpdateTopicRequest{
		Topic:      &pubsubpb.Topic{Name: inTopic, MessageRetentionDuration: durationpb.New(time.Hour)},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"message_retention_duration"}},
	})
	must(t, err)
	publish(t, srv, inTopic, 0, 100)
	const sub = "projects/elsewhere/subscriptions/created"
	r := relayOf(srv, options.Limit{MaxMessages: 100})
	r.source.Subscriptions = []source.Subscription{{Name: sub, Create: &options.SubscriptionCreate{Topic: inTopic, EnableMessageOrdering: true}}}
	r.source.Ordering = options.PerKey
	r.source.StartPosition = options.EarliestRetained()
	must(t, r.run(within(t, 30*time.Second)))
	expectArrived(t, srv, true)
	expectSettled(t, srv, sub)
	must(t, r.run(within(t, 30*time.Second))) // The second start seeks again, and finds the subscription.
	if creates, seeks := srv.Calls("CreateSubscription"), srv.Calls("Seek"); creates != 1 || seeks != 2 {
		t.Errorf("%d creations, %d seeks", creates, seeks)
	}
}

// The pipeline fails with every refusal before it reads anything.
func TestPrism_C21_EveryRefusalEndsThePipelineAtOnce(t *testing.T) {
	srv := newServer(t)
	const gone, orphan, once = "projects/integration/topics/gone", "projects/integration/subscriptions/orphan", "projects/integration/subscriptions/once"
	srv.MustCreateTopic(gone)
	srv.MustCreateSubscription(orphan, gone)
	srv.MustCreateSubscription(once, inTopic, pubsubtest.ExactlyOnce())
	must(t, srv.DeleteTopic(gone))
	publish(t, srv, inTopic, 0, 10)
	r := relayOf(srv, options.Limit{})
	r.source.Subscriptions = source.From(inSub, orphan, once)
	r.source.StartPosition = options.Latest()
	expectError(t, r.run(within(t, 30*time.Second)), "2 of 3 subscriptions", orphan+": its topic is deleted", once+": has exactly-once delivery")
	if streams, seeks := srv.Calls("StreamingPull"), srv.Calls("Seek"); streams != 0 || seeks != 0 {
		t.Errorf("%d streams, %d seeks", streams, seeks)
	}
	if s := srv.Stats(inSub); s.Backlog != 10 {
		t.Errorf("want everything left as it was: %+v", s)
	}
}

// The direct runner has no startup of its own: the read begins with it.
func TestDirect_StartsUpAsElsewhere(t *testing.T) {
	onRunner(t, "direct")
	srv := newServer(t)
	publishAged(t, srv, time.Hour)
	const sub = "projects/integration/subscriptions/created"
	r := relayOf(srv, options.Limit{MaxMessages: 1})
	r.source.Subscriptions = append(source.From(inSub), source.Subscription{Name: sub, Create: &options.SubscriptionCreate{Topic: inTopic}})
	r.source.StartPosition = options.Latest()
	p := r.build()
	must(t, srv.DeleteSubscription(inSub))
	srv.MustCreateSubscription(inSub, inTopic, pubsubtest.ExactlyOnce())
	expectError(t, runPipeline(within(t, 20*time.Second), p), "1 of 2 subscriptions", inSub+": has exactly-once delivery")
	if n := srv.Calls("Seek"); n != 0 {
		t.Errorf("%d seeks", n)
	}
	must(t, srv.DeleteSubscription(inSub))
	srv.MustCreateSubscription(inSub, inTopic)
	publishAged(t, srv, time.Hour)
	p = r.build()
	j := start(t, 20*time.Second, func(ctx context.Context) error { return runPipeline(ctx, p) })
	must(t, srv.Await(within(t, 20*time.Second), inSub, func(s pubsubtest.Stats) bool { return s.StreamsOpened > 0 }))
	publishAged(t, srv, 0)
	must(t, j.wait())
	if got := arrivals(srv); !slices.Equal(got, []string{"0s"}) {
		t.Errorf("%q arrived", got)
	}
}

// Google's emulator takes the same creation and the same seek, which it has not for a
// subscription with message ordering.
func TestPrism_CreatesAndSeeksOnTheEmulator(t *testing.T) {
	endpoint := emulator.Start(t)
	client := emulator.Dial(t, endpoint)
	client.CreateTopic(inTopic)
	client.CreateTopic(outTopic)
	client.CreateSubscription(outSub, outTopic)
	r := relayAt(endpoint, options.Limit{MaxMessages: 20})
	r.source.Subscriptions = []source.Subscription{{Name: inSub, Create: &options.SubscriptionCreate{
		Topic: inTopic, AckDeadline: time.Minute, RetainAckedMessages: true, MessageRetention: time.Hour,
		NeverExpire: true, DeadLetterPolicy: &options.DeadLetterPolicy{Topic: outTopic, MaxDeliveryAttempts: 7},
	}}}
	r.source.StartPosition = options.EarliestRetained()
	j := start(t, time.Minute, r.run)
	// The topic has no retention: what comes before the subscription is not for it.
	awaitSubscription(t, client, inSub)
	var all []*pubsubpb.PubsubMessage
	for i := range 20 {
		all = append(all, &pubsubpb.PubsubMessage{Data: fmt.Appendf(nil, "%07d", i)})
	}
	client.Publish(inTopic, all...)
	must(t, j.wait())
	got, err := client.Subscriber.GetSubscription(t.Context(), &pubsubpb.GetSubscriptionRequest{Subscription: inSub})
	must(t, err)
	if got.GetAckDeadlineSeconds() != 60 || !got.GetRetainAckedMessages() ||
		got.GetMessageRetentionDuration().AsDuration() != time.Hour || got.GetDeadLetterPolicy().GetMaxDeliveryAttempts() != 7 {
		t.Errorf("created %v", got)
	}
	// All is acknowledged, and retained: the next job gets it again.
	must(t, r.run(within(t, time.Minute)))
	if arrived := client.Drain(outSub); len(arrived) != 40 {
		t.Errorf("%d messages arrived, want each of 20 twice", len(arrived))
	}
}

// awaitSubscription waits until there is a subscription.
func awaitSubscription(t *testing.T, client *emulator.Client, name string) {
	t.Helper()
	ctx := within(t, 30*time.Second)
	for {
		_, err := client.Subscriber.GetSubscription(ctx, &pubsubpb.GetSubscriptionRequest{Subscription: name})
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		work(ctx, 20*time.Millisecond)
	}
}
