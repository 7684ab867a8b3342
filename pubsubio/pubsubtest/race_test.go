package pubsubtest_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

var openRequest = &pubsubpb.StreamingPullRequest{Subscription: subA, StreamAckDeadlineSeconds: 10}

// A subscription that was created while its topic was deleted was attached to
// the topic that was gone, and named it for ever.
func TestCreateSubscription_BesideDeleteTopicLeavesNoneBehind(t *testing.T) {
	srv := pubsubtest.New(t)
	client := newClient(t, srv)
	for range 200 {
		srv.MustCreateTopic(topicB)
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() { _ = srv.CreateSubscription(fmt.Sprint(subB, i), topicB) }) // or the topic was gone first
		}
		all.Go(func() { _ = srv.DeleteTopic(topicB) })
		all.Wait()
		for _, name := range srv.Subscriptions() {
			got, err := client.Subscriber.GetSubscription(t.Context(), &pubsubpb.GetSubscriptionRequest{Subscription: name})
			if err != nil {
				t.Fatal(err)
			}
			if got.GetTopic() != "_deleted-topic_" {
				t.Fatalf("the topic of %s is %s, which is deleted", name, got.GetTopic())
			}
			if err := srv.DeleteSubscription(name); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// The goroutine that reads a stream's requests was sometimes still there when
// Close returned, and then a leak to the test that looked for one.
func TestClose_WaitsForTheStreamsGoroutines(t *testing.T) {
	for range 50 {
		f := newFixture(t)
		for range 4 {
			f.OpenStream(openRequest)
		}
		f.await(t, func(s pubsubtest.Stats) bool { return s.Streams == 4 })
		f.srv.Close()
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		if strings.Contains(string(stacks), "pubsubtest.(*subscription).receive") {
			t.Fatal("Close returned before a stream's goroutine had ended")
		}
	}
}

// A server without the limit let code pass that opens a hundred streams on one
// connection, and then cannot acknowledge on it.
func TestConfig_MaxConcurrentStreamsHoldsBackACall(t *testing.T) {
	for name, c := range map[string]struct {
		limit, streams int
		want           codes.Code
	}{
		"as a front end": {0, 100, codes.DeadlineExceeded},
		"below it":       {0, 99, codes.OK},
		"a limit":        {3, 3, codes.DeadlineExceeded},
		"none":           {pubsubtest.Unlimited, 110, codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(cfg *pubsubtest.Config) { cfg.MaxConcurrentStreams = c.limit })
			for range c.streams {
				f.OpenStream(openRequest)
			}
			f.await(t, func(s pubsubtest.Stats) bool { return s.Streams == int64(c.streams) })
			wait := 100 * time.Millisecond
			if c.want == codes.OK {
				wait = 30 * time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			_, err := f.Publisher.GetTopic(ctx, &pubsubpb.GetTopicRequest{Topic: topicA})
			if got := status.Code(err); got != c.want {
				t.Errorf("a call beside %d streams: %v, want %v", c.streams, got, c.want)
			}
		})
	}
}
