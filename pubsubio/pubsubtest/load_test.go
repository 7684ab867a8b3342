package pubsubtest_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

func TestPublishLoad_CountsWhatIsUnanswered(t *testing.T) {
	f := newFixture(t)
	f.CreateTopic(topicB)
	gate := make(chan struct{})
	held := f.srv.Order(pubsubtest.Rule{Method: "Publish"}, pubsubtest.WaitFor(gate))
	requests := []*pubsubpb.PublishRequest{
		{Topic: topicA, Messages: []*pubsubpb.PubsubMessage{{Data: make([]byte, 1000), OrderingKey: "k"}, {Data: []byte("x"), OrderingKey: "k"}}},
		{Topic: topicA, Messages: []*pubsubpb.PubsubMessage{{Data: []byte("y"), OrderingKey: "k"}}},
		{Topic: topicA, Messages: []*pubsubpb.PubsubMessage{{Data: []byte("z"), OrderingKey: "l"}}},
		{Topic: topicA, Messages: data("1", "2", "3")},
		{Topic: topicB, Messages: data("1", "2", "3", "4")},
		{Topic: topicB, Messages: []*pubsubpb.PubsubMessage{{Data: []byte("another key of the name"), OrderingKey: "k"}}},
	}
	bytes := make(map[string]int64)
	var wg sync.WaitGroup
	for _, req := range requests {
		bytes[req.GetTopic()] += int64(proto.Size(&pubsubpb.PublishRequest{Messages: req.GetMessages()}))
		wg.Go(func() {
			_, err := f.Publisher.Publish(limited(t), req)
			wantCode(t, "publish", err, codes.OK)
		})
	}
	if err := held.AwaitFired(limited(t), int64(len(requests))); err != nil {
		t.Fatal(err)
	}
	want := map[string]pubsubtest.Load{
		topicA: {Calls: 4, Messages: 7, Bytes: bytes[topicA], MaxKeyCalls: 2, BusiestKey: "k"},
		topicB: {Calls: 2, Messages: 5, Bytes: bytes[topicB], MaxKeyCalls: 1, BusiestKey: "k"},
		"":     {Calls: 6, Messages: 12, Bytes: bytes[topicA] + bytes[topicB], MaxKeyCalls: 2, BusiestKey: "k"},
	}
	check := func(when string) {
		t.Helper()
		for topic, w := range want {
			if got := f.srv.PublishLoad(topic); got != w {
				t.Errorf("%s, load of %q\n got %+v\nwant %+v", when, topic, got, w)
			}
		}
	}
	for topic, w := range want {
		w.MaxCalls, w.MaxMessages, w.MaxBytes = w.Calls, w.Messages, w.Bytes
		want[topic] = w
	}
	check("held")
	close(gate)
	wg.Wait()
	for topic, w := range want {
		w.Calls, w.Messages, w.Bytes = 0, 0, 0
		want[topic] = w
	}
	check("answered")
	if got := f.srv.PublishLoad("projects/p/topics/none"); got != (pubsubtest.Load{}) {
		t.Errorf("load of no topic: %+v", got)
	}
}

// A client that gives a call up and makes the next has one under way at every
// instant, whatever the server still holds.
func TestPublishLoad_GivenUpCallsCountNoMore(t *testing.T) {
	f := newFixture(t)
	never := make(chan struct{})
	defer close(never)
	f.srv.Order(pubsubtest.Rule{Method: "Publish"}, pubsubtest.WaitFor(never))
	req := &pubsubpb.PublishRequest{Topic: topicA, Messages: []*pubsubpb.PubsubMessage{{Data: []byte("x"), OrderingKey: "k"}}}
	for range 50 {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
		_, _ = f.Publisher.Publish(ctx, req) // gives up
		cancel()
	}
	if l := f.srv.PublishLoad(topicA); l.MaxCalls > 1 || l.MaxMessages > 1 || l.MaxKeyCalls > 1 {
		t.Errorf("load %+v", l)
	}
}

func TestConnections_AreCounted(t *testing.T) {
	f := newFixture(t)
	f.Pull(subA, 1, false)
	other := newClient(t, f.srv)
	other.Pull(subA, 1, false)
	if open, most := f.srv.Connections(); open != 2 || most != 2 {
		t.Errorf("%d connections, at most %d, want 2 and 2", open, most)
	}
	stream := f.OpenStream(openRequest)
	f.await(t, func(s pubsubtest.Stats) bool { return s.Streams == 1 })
	if n := f.srv.BreakConnections(); n != 2 {
		t.Errorf("broke %d connections, want 2", n)
	}
	_, err := stream.Recv()
	wantCode(t, "a stream on it", err, codes.Unavailable)
	f.srv.Stop()
	if open, most := f.srv.Connections(); open != 0 || most < 2 {
		t.Errorf("%d connections, at most %d, want 0 and at least 2", open, most)
	}
}

// Case C16: a network that loses everything ends nothing.
func TestSilence_LosesWhatIsSent(t *testing.T) {
	f := newFixture(t)
	stream := f.OpenStream(openRequest)
	f.await(t, func(s pubsubtest.Stats) bool { return s.Streams == 1 })
	if n := f.srv.Silence(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got := f.tryPublish(ctx, topicA); got != codes.DeadlineExceeded {
		t.Errorf("publish: %v", got)
	}
	if n := f.srv.Published(topicA); n != 0 {
		t.Errorf("%d messages stored, want 0", n)
	}
	newClient(t, f.srv).Publish(topicA, data("x")...)
	if _, most := f.srv.Connections(); most < 2 {
		t.Errorf("at most %d connections, want 2", most)
	}
	f.srv.Stop()
	_, err := stream.Recv()
	wantCode(t, "the stream on it", err, codes.Unavailable)
}

// A front end that is replaced: open streams go on, new calls come on a new
// connection, and none of them fails.
func TestGoAway_CallsGoOnElsewhere(t *testing.T) {
	f := newFixture(t)
	stream := f.OpenStream(openRequest)
	f.await(t, func(s pubsubtest.Stats) bool { return s.Streams == 1 })
	for range 3 {
		f.srv.GoAway()
		f.Publish(topicA, data("x")...)
		f.Acknowledge(subA, ackIDs(f.Receive(stream, 1))...)
	}
	if _, most := f.srv.Connections(); most < 2 {
		t.Errorf("at most %d connections, want 2 or more", most)
	}
	f.srv.Stop()
	f.srv.GoAway()
	_, err := stream.Recv()
	wantCode(t, "stream of a stopped server", err, codes.Unavailable)
}
