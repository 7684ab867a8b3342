package pubsubtest_test

import (
	"slices"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// orderedFixture is a fixture whose subscription has message ordering.
func orderedFixture(t *testing.T, adjust ...func(*pubsubtest.Config)) fixture {
	t.Helper()
	srv := pubsubtest.New(t, adjust...)
	srv.MustCreateTopic(topicA)
	srv.MustCreateSubscription(subA, topicA, pubsubtest.Ordered())
	return fixture{Client: newClient(t, srv), srv: srv}
}

// keyed is messages of one ordering key.
func keyed(key string, texts ...string) []*pubsubpb.PubsubMessage {
	msgs := data(texts...)
	for _, m := range msgs {
		m.OrderingKey = key
	}
	return msgs
}

func texts(msgs []*pubsubpb.ReceivedMessage) []string {
	var out []string
	for _, m := range msgs {
		out = append(out, string(m.GetMessage().GetData()))
	}
	return out
}

func wantTexts(t testing.TB, what string, got []*pubsubpb.ReceivedMessage, want ...string) {
	t.Helper()
	if !slices.Equal(texts(got), want) {
		t.Errorf("%s: %q, want %q", what, texts(got), want)
	}
}

// The service delivers a key's later messages again with one that comes back,
// "even acknowledged ones" (https://cloud.google.com/pubsub/docs/ordering).
func TestOrdering_RedeliveryBringsAllThatFollow(t *testing.T) {
	f := orderedFixture(t)
	f.Publish(topicA, keyed("k", "1", "2", "3", "4")...)
	f.Publish(topicA, keyed("l", "other")...)
	stream := f.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: subA, MaxOutstandingMessages: 5})
	got := f.Receive(stream, 5)
	byText := make(map[string]string)
	for i, text := range texts(got) {
		byText[text] = got[i].GetAckId()
	}
	f.Acknowledge(subA, byText["1"], byText["3"])
	f.Extend(subA, 0, byText["2"])
	again := f.Receive(stream, 3)
	wantTexts(t, "redelivered", again, "2", "3", "4")
	f.Acknowledge(subA, append(ackIDs(again), byText["other"])...)
	want := pubsubtest.Stats{
		Published: 5, Delivered: 8, Redelivered: 3, Acknowledged: 5, Returned: 1, Recalled: 1,
		MaxOutstanding: 5, MaxOutstandingBytes: f.srv.Stats(subA).MaxOutstandingBytes, Streams: 1, StreamsOpened: 1,
	}
	if s := f.srv.Stats(subA); s != want {
		t.Errorf("stats %+v, want %+v", s, want)
	}
}

func TestOrdering_LapseBringsAllThatFollow(t *testing.T) {
	f := orderedFixture(t, fastLeases)
	f.Publish(topicA, keyed("k", "1", "2", "3")...)
	got := f.Pull(subA, 10, true)
	wantTexts(t, "first", got, "1", "2", "3")
	f.Extend(subA, 600, got[0].GetAckId(), got[2].GetAckId()) // the second lapses
	f.await(t, func(s pubsubtest.Stats) bool { return s.Lapsed == 1 })
	if more := f.Pull(subA, 10, false); len(more) > 0 {
		t.Errorf("got %q while the first is outstanding with another pull", texts(more))
	}
	f.Acknowledge(subA, got[0].GetAckId())
	wantTexts(t, "again", f.Pull(subA, 10, true), "2", "3")
	if s := f.srv.Stats(subA); s.Recalled != 1 {
		t.Errorf("stats %+v", s)
	}
}

// What is outstanding of a key keeps the key from others; another key is not
// concerned.
func TestOrdering_KeyStaysWithItsStream(t *testing.T) {
	f := orderedFixture(t)
	first := f.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: subA, MaxOutstandingMessages: 1})
	f.Publish(topicA, keyed("k", "k1")...)
	held := f.Receive(first, 1)
	second := f.OpenStream(openRequest)
	f.await(t, func(s pubsubtest.Stats) bool { return s.Streams == 2 })
	f.Publish(topicA, keyed("k", "k2")...)
	f.Publish(topicA, keyed("l", "l1")...)
	f.Publish(topicA, data("no key")...)
	var got []*pubsubpb.ReceivedMessage
	for len(got) < 2 {
		resp, err := second.Recv()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, resp.GetReceivedMessages()...)
	}
	wantTexts(t, "the second stream", got, "l1", "no key")
	f.Acknowledge(subA, ackIDs(held)...)
	// Free again, and the first stream has room for it as well.
	f.await(t, func(s pubsubtest.Stats) bool { return s.Delivered == 4 })
}

// A stream that is opened again with its client id goes on with its keys; one
// with another id has to wait for the leases.
func TestOrdering_ClientIDKeepsTheKeys(t *testing.T) {
	f := orderedFixture(t)
	open := func(id string) pubsubpb.Subscriber_StreamingPullClient {
		return f.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: subA, ClientId: id, StreamAckDeadlineSeconds: 600})
	}
	closeStream := func(s pubsubpb.Subscriber_StreamingPullClient) {
		if err := s.CloseSend(); err != nil {
			t.Fatal(err)
		}
		f.await(t, func(s pubsubtest.Stats) bool { return s.Streams == 0 })
	}
	f.Publish(topicA, keyed("k", "1")...)
	stream := open("mine")
	held := f.Receive(stream, 1)
	closeStream(stream)
	f.Publish(topicA, keyed("k", "2")...)
	other := open("another")
	f.Publish(topicA, keyed("l", "other key")...)
	wantTexts(t, "another client", f.Receive(other, 1), "other key")
	closeStream(other)
	wantTexts(t, "the same client", f.Receive(open("mine"), 1), "2")
	f.Acknowledge(subA, ackIDs(held)...)
}

func TestOrdering_DeadLetteredMessageLeavesItsKey(t *testing.T) {
	srv := pubsubtest.New(t)
	srv.MustCreateTopic(topicA)
	srv.MustCreateTopic(topicB)
	srv.MustCreateSubscription(subA, topicA, pubsubtest.Ordered(), pubsubtest.DeadLetters(topicB, 5))
	f := fixture{Client: newClient(t, srv), srv: srv}
	f.Publish(topicA, keyed("k", "bad", "good")...)
	for attempt := range int32(5) {
		got := f.Pull(subA, 10, true)
		wantTexts(t, "delivered", got, "bad", "good")
		if n := got[0].GetDeliveryAttempt(); n != attempt+1 {
			t.Errorf("attempt %d, want %d", n, attempt+1)
		}
		f.Extend(subA, 0, got[0].GetAckId())
		if attempt == 4 {
			f.Acknowledge(subA, got[1].GetAckId())
		}
	}
	if got := f.Drain(subA); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
	if msgs := srv.Messages(topicB); len(msgs) != 1 || msgs[0].OrderingKey != "k" {
		t.Errorf("dead letters %v", msgs)
	}
}

// A dead letter that followed an outstanding message of its key was delivered
// again when that came back, and forwarded again.
func TestOrdering_DeadLetterDoesNotComeBackWithAnEarlierOne(t *testing.T) {
	srv := pubsubtest.New(t)
	srv.MustCreateTopic(topicA)
	srv.MustCreateTopic(topicB)
	srv.MustCreateSubscription(subA, topicA, pubsubtest.Ordered(), pubsubtest.DeadLetters(topicB, 5))
	f := fixture{Client: newClient(t, srv), srv: srv}
	f.Publish(topicA, keyed("k", "1", "2", "3")...)
	stream := f.OpenStream(openRequest)
	got := f.Receive(stream, 3)
	first, second := got[0], got[1]
	for range 4 {
		f.Extend(subA, 0, second.GetAckId())
		got = f.Receive(stream, 2)
		wantTexts(t, "again", got, "2", "3")
		second = got[0]
	}
	f.Extend(subA, 0, second.GetAckId()) // the fifth delivery
	f.Extend(subA, 0, first.GetAckId())
	wantTexts(t, "without the dead letter", f.Receive(stream, 2), "1", "3")
	if msgs := srv.Messages(topicB); len(msgs) != 1 || string(msgs[0].Data) != "2" {
		t.Errorf("dead letters %v", msgs)
	}
}

// The service sends about a batch of a key, and the next once that is acknowledged.
func TestOrdering_HeldKeysComeABatchAtATime(t *testing.T) {
	f := orderedFixture(t, func(c *pubsubtest.Config) { c.HoldKeys = true })
	f.Publish(topicA, keyed("k", "1", "2", "3")...)
	stream := f.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: subA})
	first := f.Receive(stream, 3)
	wantTexts(t, "the first batch", first, "1", "2", "3")
	f.Publish(topicA, keyed("k", "4", "5")...)
	f.Publish(topicA, keyed("l", "other")...)
	wantTexts(t, "meanwhile", f.Receive(stream, 1), "other")
	f.Acknowledge(subA, first[0].GetAckId(), first[2].GetAckId())
	f.Publish(topicA, keyed("m", "another")...)
	wantTexts(t, "with one unsettled", f.Receive(stream, 1), "another")
	f.Extend(subA, 0, first[1].GetAckId())
	second := f.Receive(stream, 4)
	wantTexts(t, "from what was returned on", second, "2", "3", "4", "5")
	f.Acknowledge(subA, ackIDs(second)...)
	if got := f.srv.Stats(subA); got.Outstanding != 2 || got.Acknowledged != 5 {
		t.Errorf("%d outstanding, %d acknowledged", got.Outstanding, got.Acknowledged)
	}
}
