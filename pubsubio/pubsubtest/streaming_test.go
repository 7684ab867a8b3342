package pubsubtest_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

func TestStream_FlowControlByMessagesHolds(t *testing.T) {
	f := newFixture(t)
	f.Publish(topicA, data(strings.Split(strings.Repeat("x", 100), "")...)...)
	stream := f.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: subA, MaxOutstandingMessages: 7})
	for received := 0; received < 100; {
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		received += len(resp.GetReceivedMessages())
		f.Acknowledge(subA, ackIDs(resp.GetReceivedMessages())...)
	}
	if s := f.srv.Stats(subA); s.MaxOutstanding != 7 || s.Acknowledged != 100 {
		t.Errorf("stats %+v", s)
	}
}

func TestStream_FlowControlByBytesHolds(t *testing.T) {
	f := newFixture(t)
	for range 10 {
		f.Publish(topicA, data(strings.Repeat("x", 1000))...)
	}
	stream := f.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: subA, MaxOutstandingBytes: 2500})
	got := f.Receive(stream, 3) // the third passes the bound, none follows
	for range 7 {
		f.Extend(subA, 60, got[0].GetAckId())
		f.Acknowledge(subA, got[0].GetAckId())
		got = append(got[1:], f.Receive(stream, 1)...)
	}
	if s := f.srv.Stats(subA); s.MaxOutstanding != 3 || s.Delivered != 10 || s.Outstanding != 3 {
		t.Errorf("stats %+v", s)
	}
}

// What lapses or is returned makes room, as what is acknowledged does.
func TestStream_LapsedAndReturnedMessagesMakeRoom(t *testing.T) {
	f := newFixture(t, fastLeases)
	f.Publish(topicA, data("1", "2", "3")...)
	stream := f.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: subA, MaxOutstandingMessages: 1})
	f.Receive(stream, 1)
	lapsed := f.Receive(stream, 1)[0]
	f.Extend(subA, 0, lapsed.GetAckId())
	f.Receive(stream, 1)
	if s := f.srv.Stats(subA); s.MaxOutstanding != 1 || s.Lapsed == 0 {
		t.Errorf("stats %+v", s)
	}
}

// A collector counts and acknowledges what a stream gives it, until the test ends.
type collector struct {
	mu  sync.Mutex // guards got
	got int
}

func collect(t *testing.T, stream pubsubpb.Subscriber_StreamingPullClient, acknowledge func(...string)) *collector {
	t.Helper()
	c := new(collector)
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	wg.Go(func() {
		for {
			resp, err := stream.Recv()
			if err != nil {
				return
			}
			c.mu.Lock()
			c.got += len(resp.GetReceivedMessages())
			c.mu.Unlock()
			acknowledge(ackIDs(resp.GetReceivedMessages())...)
		}
	})
	return c
}

func (c *collector) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got
}

func TestStream_SeveralShareTheLoad(t *testing.T) {
	f := newFixture(t)
	const streams, messages = 4, 200
	var collectors []*collector
	for range streams {
		stream := f.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: subA})
		collectors = append(collectors, collect(t, stream, func(ids ...string) {
			_, _ = f.Subscriber.Acknowledge(context.WithoutCancel(t.Context()), &pubsubpb.AcknowledgeRequest{Subscription: subA, AckIds: ids})
		}))
	}
	f.await(t, func(s pubsubtest.Stats) bool { return s.Streams == streams })
	for i := range int64(messages) {
		f.Publish(topicA, data("x")...)
		f.await(t, func(s pubsubtest.Stats) bool { return s.Acknowledged == i+1 })
	}
	for i, c := range collectors {
		if n := c.count(); n < messages/streams/2 || n > messages/streams*2 {
			t.Errorf("stream %d got %d of %d messages", i, n, messages)
		}
	}
}

// Case C06: one reader must not have it all while another has nothing.
func TestStream_SecondReaderGetsWork(t *testing.T) {
	f := newFixture(t)
	f.Publish(topicA, data(strings.Split(strings.Repeat("x", 60), "")...)...)
	first := f.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: subA, MaxOutstandingMessages: 1})
	f.Receive(first, 1)
	second := f.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: subA, MaxOutstandingMessages: 1})
	f.Receive(second, 1)
}

func TestStream_SettlesAndTakesPings(t *testing.T) {
	f := newFixture(t)
	f.Publish(topicA, data("ack", "return", "extend", "extend more")...)
	stream := f.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: subA, MaxOutstandingMessages: 4})
	ids := ackIDs(f.Receive(stream, 4))
	for _, req := range []*pubsubpb.StreamingPullRequest{
		{},
		{AckIds: ids[:1], ModifyDeadlineAckIds: ids[1:], ModifyDeadlineSeconds: []int32{0, 60, 90}},
		{},
	} {
		if err := stream.Send(req); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.Receive(stream, 1); string(got[0].GetMessage().GetData()) != "return" {
		t.Errorf("got %v", got)
	}
	if s := f.srv.Stats(subA); s.Acknowledged != 1 || s.Returned != 1 || s.Extensions != 2 {
		t.Errorf("stats %+v", s)
	}
}

func TestStream_PropertiesComeWithEveryResponse(t *testing.T) {
	srv := pubsubtest.New(t)
	srv.MustCreateTopic(topicA)
	srv.MustCreateSubscription(subA, topicA, pubsubtest.Ordered(), pubsubtest.ExactlyOnce())
	f := fixture{Client: newClient(t, srv), srv: srv}
	stream := f.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: subA})
	for range 2 {
		f.Publish(topicA, data("x")...)
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if p := resp.GetSubscriptionProperties(); !p.GetMessageOrderingEnabled() || !p.GetExactlyOnceDeliveryEnabled() {
			t.Errorf("properties %v", p)
		}
	}
}

func TestStream_InvalidRequestsEndIt(t *testing.T) {
	f := newFixture(t)
	for name, req := range map[string]*pubsubpb.StreamingPullRequest{
		"subscription again": {Subscription: subA},
		"flow control again": {MaxOutstandingMessages: 5},
		"deadline too short": {StreamAckDeadlineSeconds: 9},
		"no such ack id":     {AckIds: []string{"nonsense"}},
		"uneven deadlines":   {ModifyDeadlineAckIds: []string{"1.0.1."}},
		"negative deadline":  {ModifyDeadlineAckIds: []string{"1.0.1."}, ModifyDeadlineSeconds: []int32{-1}},
	} {
		stream := f.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: subA})
		if err := stream.Send(req); err != nil {
			t.Fatal(err)
		}
		_, err := stream.Recv()
		wantCode(t, name, err, codes.InvalidArgument)
	}
	for name, c := range map[string]struct {
		req  *pubsubpb.StreamingPullRequest
		want codes.Code
	}{
		"deadline too long":    {&pubsubpb.StreamingPullRequest{Subscription: subA, StreamAckDeadlineSeconds: 601}, codes.InvalidArgument},
		"unknown subscription": {&pubsubpb.StreamingPullRequest{Subscription: subB}, codes.NotFound},
	} {
		_, err := f.OpenStream(c.req).Recv()
		wantCode(t, name, err, c.want)
	}
}

func TestStream_EndsAsAsked(t *testing.T) {
	f := newFixture(t)
	opened := func() pubsubpb.Subscriber_StreamingPullClient {
		stream := f.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: subA})
		f.await(t, func(s pubsubtest.Stats) bool { return s.Streams == 1 })
		return stream
	}
	closed := func() { f.await(t, func(s pubsubtest.Stats) bool { return s.Streams == 0 }) }

	stream := opened()
	if err := f.srv.EndStreams(subA, status.Error(codes.Unavailable, "routine")); err != nil {
		t.Fatal(err)
	}
	_, err := stream.Recv()
	wantCode(t, "ended with a status", err, codes.Unavailable)
	closed()

	stream = opened()
	if err := f.srv.EndStreams(subA, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("ended with nil: %v, want EOF", err)
	}
	closed()

	stream = opened()
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("ended by the client: %v, want EOF", err)
	}
	closed()

	stream = opened()
	if err := f.srv.DeleteSubscription(subA); err != nil {
		t.Fatal(err)
	}
	_, err = stream.Recv()
	wantCode(t, "subscription deleted", err, codes.NotFound)
	wantCode(t, "no such subscription", f.srv.EndStreams(subA, nil), codes.NotFound)
}

// Case C15: streams that are opened and closed leave nothing behind.
func TestStream_HundredCyclesLeaveNothing(t *testing.T) {
	f := newFixture(t, fastLeases)
	f.Publish(topicA, data("x")...)
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := f.Subscriber.StreamingPull(ctx)
		if err == nil {
			err = stream.Send(&pubsubpb.StreamingPullRequest{Subscription: subA, StreamAckDeadlineSeconds: 10})
		}
		if err != nil {
			t.Fatal(err)
		}
		cancel()
	}
	f.await(t, func(s pubsubtest.Stats) bool { return s.Streams == 0 && s.Outstanding == 0 })
	f.Receive(f.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: subA}), 1)
}

// Many publishers, streams that come and go, and clients that acknowledge,
// return, extend or forget: nothing is lost and nothing stays.
func TestStream_NothingIsLostUnderLoad(t *testing.T) {
	f := newFixture(t, fastLeases)
	const publishers, requests, perRequest = 4, 25, 40
	total := int64(publishers * requests * perRequest)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	for range publishers {
		wg.Go(func() {
			for range requests {
				msgs := make([]*message.Message, perRequest)
				for i := range msgs {
					msgs[i] = &message.Message{Data: []byte("x")}
				}
				if _, err := f.srv.Publish(topicA, msgs...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var responses atomic.Int64
	for range 3 {
		wg.Go(func() {
			for ctx.Err() == nil && f.srv.Stats(subA).Acknowledged < total {
				consumeSome(ctx, f, &responses)
			}
		})
	}
	if err := f.srv.Await(ctx, subA, func(s pubsubtest.Stats) bool { return s.Acknowledged == total }); err != nil {
		t.Fatal(err)
	}
	s := f.srv.Stats(subA)
	if s.Backlog != 0 || s.Outstanding != 0 || s.OutstandingBytes != 0 || s.Published != total {
		t.Errorf("stats %+v", s)
	}
	if s.Delivered != s.Acknowledged-s.StaleAcks+s.Returned+s.Lapsed {
		t.Errorf("deliveries do not add up: %+v", s)
	}
}

// consumeSome opens a stream, treats what it gives in one way after the other,
// and closes it.
func consumeSome(ctx context.Context, f fixture, responses *atomic.Int64) {
	ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	stream, err := f.Subscriber.StreamingPull(ctx)
	if err != nil {
		return
	}
	if stream.Send(&pubsubpb.StreamingPullRequest{Subscription: subA, StreamAckDeadlineSeconds: 10, MaxOutstandingMessages: 100}) != nil {
		return
	}
	for {
		resp, err := stream.Recv()
		if err != nil {
			return
		}
		ids := ackIDs(resp.GetReceivedMessages())
		switch responses.Add(1) % 8 {
		case 0: // forgets
		case 1:
			_, _ = f.Subscriber.ModifyAckDeadline(ctx, &pubsubpb.ModifyAckDeadlineRequest{Subscription: subA, AckIds: ids})
		case 2:
			_, _ = f.Subscriber.ModifyAckDeadline(ctx, &pubsubpb.ModifyAckDeadlineRequest{Subscription: subA, AckIds: ids, AckDeadlineSeconds: 20})
		default:
			_, _ = f.Subscriber.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{Subscription: subA, AckIds: ids})
		}
	}
}
