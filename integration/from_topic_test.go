package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/internal/emulator"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// Subscriptions that were made for a topic were never deleted, and thousands were left.
func TestC23_BoundedReadsOfATopicLeaveNoSubscription(t *testing.T) {
	for _, runner := range []string{"prism", "direct"} {
		t.Run(runner, func(t *testing.T) {
			onRunner(t, runner)
			srv := newServer(t)
			seen := map[string]bool{inSub: true}
			for n := range 3 {
				r := relayOf(srv, options.Limit{MaxMessages: 10})
				r.source.Subscriptions = source.FromTopic("elsewhere", inTopic)
				j := start(t, time.Minute, r.run)
				awaitReadOf(within(t, time.Minute), t, srv, seen)
				publish(t, srv, inTopic, 10*n, 10)
				must(t, j.wait())
				if got := srv.Subscriptions(); len(got) != 1 || got[0] != inSub {
					t.Errorf("run %d left %v", n, got)
				}
			}
			expectArrived(t, srv, true)
		})
	}
}

// A pipeline whose topic does not exist says so, and has nothing to delete.
func TestC23_AReadOfAMissingTopicFails(t *testing.T) {
	long(t)
	srv := newServer(t)
	r := relayOf(srv, options.Limit{})
	r.source.Subscriptions = source.FromTopic("integration", "projects/integration/topics/missing")
	expectError(t, r.run(within(t, time.Minute)), "cannot be created: NotFound", "create the topic projects/integration/topics/missing first")
	if n := srv.Calls("DeleteSubscription"); n != 0 {
		t.Errorf("%d deletions", n)
	}
}

// Google's emulator takes the same creation and the same deletion.
func TestC23_ABoundedReadOfATopicOnTheEmulator(t *testing.T) {
	endpoint := emulator.Start(t)
	client := emulator.Dial(t, endpoint)
	client.CreateTopic(inTopic)
	client.CreateTopic(outTopic)
	r := relayAt(endpoint, options.Limit{MaxMessages: 20})
	r.source.Subscriptions = source.FromTopic("elsewhere", inTopic)
	name := r.source.Subscriptions[0].Name
	j := start(t, time.Minute, r.run)
	awaitSubscription(t, client, name)
	var all []*pubsubpb.PubsubMessage
	for i := range 20 {
		all = append(all, &pubsubpb.PubsubMessage{Data: fmt.Appendf(nil, "%07d", i)})
	}
	client.Publish(inTopic, all...)
	must(t, j.wait())
	if _, err := client.Subscriber.GetSubscription(t.Context(), &pubsubpb.GetSubscriptionRequest{Subscription: name}); status.Code(err) != codes.NotFound {
		t.Errorf("%s is left, or unknown: %v", name, err)
	}
}

// awaitReadOf waits until a subscription is read that is not among those seen.
func awaitReadOf(ctx context.Context, t *testing.T, srv *pubsubtest.Server, seen map[string]bool) {
	t.Helper()
	var name string
	must(t, srv.AwaitEvent(ctx, func(e pubsubtest.Event) bool {
		name = e.Subscription
		return e.Kind == pubsubtest.StreamOpen && !seen[name]
	}))
	seen[name] = true
}
