package pubsubtest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/beam-pubsub/beam-pubsub-go/internal/emulator"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

const (
	topicA = "projects/p/topics/aaa"
	topicB = "projects/p/topics/bbb"
	subA   = "projects/p/subscriptions/aaa"
	subB   = "projects/p/subscriptions/bbb"
)

// A fixture is a server with topicA, its subscription subA, and a client.
type fixture struct {
	*emulator.Client
	srv *pubsubtest.Server
}

func newFixture(t *testing.T, adjust ...func(*pubsubtest.Config)) fixture {
	t.Helper()
	srv := pubsubtest.New(t, adjust...)
	srv.MustCreateTopic(topicA)
	srv.MustCreateSubscription(subA, topicA)
	return fixture{Client: newClient(t, srv), srv: srv}
}

// fastLeases makes a lease second last 10 ms.
func fastLeases(c *pubsubtest.Config) { c.LeaseSecond = 10 * time.Millisecond }

// await waits for the counts of subA.
func (f fixture) await(t *testing.T, ok func(pubsubtest.Stats) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := f.srv.Await(ctx, subA, ok); err != nil {
		t.Fatal(err)
	}
}

func data(texts ...string) []*pubsubpb.PubsubMessage {
	msgs := make([]*pubsubpb.PubsubMessage, len(texts))
	for i, text := range texts {
		msgs[i] = &pubsubpb.PubsubMessage{Data: []byte(text)}
	}
	return msgs
}

func ackIDs(msgs []*pubsubpb.ReceivedMessage) []string {
	ids := make([]string, len(msgs))
	for i, m := range msgs {
		ids[i] = m.GetAckId()
	}
	return ids
}

func wantCode(t testing.TB, what string, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func TestServer_PublishedMessageIsStreamedAndAcknowledged(t *testing.T) {
	f := newFixture(t)
	ids := f.Publish(topicA, &pubsubpb.PubsubMessage{Data: []byte("one"), Attributes: map[string]string{"k": "v"}, OrderingKey: "o"})
	f.Publish(topicA, &pubsubpb.PubsubMessage{Data: []byte{0xff}})
	got := f.Receive(f.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: subA}), 2)
	m := got[0].GetMessage()
	if string(m.GetData()) != "one" || m.GetAttributes()["k"] != "v" || m.GetOrderingKey() != "o" || m.GetMessageId() != ids[0] {
		t.Errorf("got %v, published as %s", m, ids[0])
	}
	if age := time.Since(m.GetPublishTime().AsTime()); age < 0 || age > time.Minute {
		t.Errorf("publish time %v", m.GetPublishTime())
	}
	if n := got[0].GetDeliveryAttempt(); n != 0 {
		t.Errorf("delivery attempt %d without a dead-letter policy", n)
	}
	f.Acknowledge(subA, ackIDs(got)...)
	want := pubsubtest.Stats{
		Published: 2, Delivered: 2, Acknowledged: 2, MaxOutstanding: 2,
		MaxOutstandingBytes: f.srv.Stats(subA).MaxOutstandingBytes, Streams: 1, StreamsOpened: 1,
	}
	if s := f.srv.Stats(subA); s != want {
		t.Errorf("stats %+v, want %+v", s, want)
	}
}

// A publisher must not be able to choose what the service assigns.
func TestServer_PublishersIDAndTimeAreReplaced(t *testing.T) {
	f := newFixture(t)
	ids := f.Publish(topicA, &pubsubpb.PubsubMessage{
		Data: []byte("x"), MessageId: "mine", PublishTime: timestamppb.New(time.Unix(5, 999_999_999)),
	})
	m := f.Pull(subA, 1, true)[0].GetMessage()
	if m.GetMessageId() != ids[0] || ids[0] == "mine" || time.Since(m.GetPublishTime().AsTime()) > time.Minute {
		t.Errorf("got %v, published as %s", m, ids[0])
	}
}

func TestServer_CompressedRequestIsAccepted(t *testing.T) {
	f := newFixture(t)
	_, err := f.Publisher.Publish(t.Context(), &pubsubpb.PublishRequest{Topic: topicA, Messages: data("x")}, grpc.UseCompressor("gzip"))
	wantCode(t, "publish", err, codes.OK)
}

func TestServer_SubscriptionsOfATopicEachGetAll(t *testing.T) {
	f := newFixture(t)
	f.srv.MustCreateSubscription(subB, topicA)
	f.Publish(topicA, data("1", "2", "3")...)
	a, b := f.Drain(subA), f.Drain(subB)
	if len(a) != 3 || len(b) != 3 {
		t.Errorf("%d and %d messages, want 3 and 3", len(a), len(b))
	}
}

func TestServer_RestartKeepsEverything(t *testing.T) {
	f := newFixture(t)
	f.Publish(topicA, data("held", "waiting")...)
	stream := f.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: subA, MaxOutstandingMessages: 1})
	held := f.Receive(stream, 1)

	f.srv.Stop()
	f.srv.Stop()
	if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("stream of a stopped server: %v, want Unavailable", err)
	}
	_, err := f.Publisher.Publish(t.Context(), &pubsubpb.PublishRequest{Topic: topicA, Messages: data("x")})
	wantCode(t, "publish to a stopped server", err, codes.Unavailable)
	if s := f.srv.Stats(subA); s.Streams != 0 || s.Outstanding != 1 {
		t.Errorf("stopped: %+v", s)
	}

	if err := f.srv.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := f.srv.Resume(); err != nil {
		t.Errorf("resume of a running server: %v", err)
	}
	c := newClient(t, f.srv)
	c.Acknowledge(subA, held[0].GetAckId())
	if got := c.Drain(subA); len(got) != 1 || string(got[0].GetData()) != "waiting" {
		t.Errorf("drained %v", got)
	}
	f.srv.Close()
	f.srv.Close()
	if err := f.srv.Resume(); err == nil {
		t.Error("a closed server resumed")
	}
}

func TestStart_ReportsEveryFault(t *testing.T) {
	_, err := pubsubtest.Start(pubsubtest.Config{Events: -2, KeepPublished: -2, LeaseSecond: 1, AckIDBytes: -1})
	for _, field := range []string{"Events", "KeepPublished", "LeaseSecond", "AckIDBytes"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("error %v does not name %s", err, field)
		}
	}
	if _, err := pubsubtest.Start(pubsubtest.Config{Addr: "127.0.0.1:-1"}); err == nil {
		t.Error("an address that does not exist was listened on")
	}
}

func newClient(t *testing.T, srv *pubsubtest.Server) *emulator.Client {
	t.Helper()
	return emulator.Dial(t, srv.Endpoint())
}
