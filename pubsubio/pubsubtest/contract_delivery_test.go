package pubsubtest_test

import (
	"strings"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

var deliveryCases = []contractCase{
	{name: "publish, stream, acknowledge", test: contractDelivery},
	{name: "a returned message comes again", test: contractReturn},
	{name: "a lease that lapses brings the message again", test: contractLapse},
	{name: "an extended lease holds", test: contractExtend},
	{name: "flow control by messages holds", test: contractFlowControl},
	{name: "flow control by bytes holds", test: contractFlowControlBytes},
	{name: "settling on the stream", test: contractSettleOnStream},
	{name: "two subscriptions each get all", test: contractTwoSubscriptions},
	{name: "a pull gives at most what it asks for", test: contractPull},
	{name: "a pull waits for a message", test: contractPullWaits},
	{name: "a pull of nothing is refused", test: contractPullNothing},
	{name: "an old ack id settles nothing new", test: contractOldReturn},
	{name: "ack ids that are none are refused", test: contractBadAckIDs},
	{name: "an extension beyond 600 s is refused", test: contractLongExtension},
	{name: "an acknowledgement over 512 KiB is refused", test: contractLargeAcknowledgement},
	{name: "a stream's deadline of 9 s is refused", test: contractShortStreamDeadline},
	{name: "a stream names its subscription once", test: contractSubscriptionTwice},
	{name: "a stream's pings are answered", test: contractPings},
	{name: "a stream without a protocol version gets no pings", test: contractNoPings},
}

func (c contract) open(change ...func(*pubsubpb.StreamingPullRequest)) pubsubpb.Subscriber_StreamingPullClient {
	first := &pubsubpb.StreamingPullRequest{Subscription: c.sub}
	for _, f := range change {
		f(first)
	}
	return c.OpenStream(first)
}

// wantEmpty finds nothing more in the subscription.
func (c contract) wantEmpty() {
	c.t.Helper()
	if left := c.Drain(c.sub); len(left) > 0 {
		c.t.Errorf("%d messages left: %v", len(left), left)
	}
}

func contractDelivery(c contract) {
	t := c.t
	stream := c.open()
	ids := c.Publish(c.topic, &pubsubpb.PubsubMessage{
		Data: []byte{0, 0xff}, Attributes: map[string]string{"k": "ü", "empty": ""}, OrderingKey: "o",
	})
	got := c.Receive(stream, 1)
	m := got[0].GetMessage()
	if m.GetMessageId() != ids[0] || string(m.GetData()) != "\x00\xff" || m.GetOrderingKey() != "o" ||
		len(m.GetAttributes()) != 2 || m.GetAttributes()["k"] != "ü" {
		t.Errorf("got %v, published as %s", m, ids[0])
	}
	if age := time.Since(m.GetPublishTime().AsTime()); age < -time.Minute || age > time.Minute {
		t.Errorf("published %v ago", age)
	}
	if got[0].GetAckId() == "" || got[0].GetDeliveryAttempt() != 0 {
		t.Errorf("delivered as %v", got[0])
	}
	c.Acknowledge(c.sub, ackIDs(got)...)
	c.Acknowledge(c.sub, ackIDs(got)...) // again: no error
	c.wantEmpty()
}

func contractReturn(c contract) {
	t := c.t
	stream := c.open()
	ids := c.Publish(c.topic, data("x")...)
	for range 3 {
		got := c.Receive(stream, 1)
		if got[0].GetMessage().GetMessageId() != ids[0] {
			t.Errorf("got %v", got)
		}
		c.Extend(c.sub, 0, ackIDs(got)...)
	}
	c.Acknowledge(c.sub, ackIDs(c.Receive(stream, 1))...)
	c.wantEmpty()
}

func contractLapse(c contract) {
	t := c.t
	stream := c.open()
	c.Publish(c.topic, data("x")...)
	start := time.Now()
	c.Extend(c.sub, 1, ackIDs(c.Receive(stream, 1))...)
	got := c.Receive(stream, 1)
	if after := time.Since(start); after < 900*time.Millisecond || after > 10*time.Second {
		t.Errorf("redelivered after %v, want 1s", after)
	}
	c.Acknowledge(c.sub, ackIDs(got)...)
	c.wantEmpty()
}

func contractExtend(c contract) {
	t := c.t
	stream := c.open(func(r *pubsubpb.StreamingPullRequest) { r.MaxOutstandingMessages = 2 })
	c.Publish(c.topic, data("held", "lapses")...)
	got := c.Receive(stream, 2)
	held, lapses := got[0], got[1]
	c.Extend(c.sub, 1, held.GetAckId(), lapses.GetAckId())
	c.Extend(c.sub, 60, held.GetAckId())
	again := c.Receive(stream, 1)
	if again[0].GetMessage().GetMessageId() != lapses.GetMessage().GetMessageId() {
		t.Errorf("got %v again, want %v", again[0], lapses)
	}
	c.Acknowledge(c.sub, held.GetAckId(), again[0].GetAckId())
	c.wantEmpty()
}

func contractFlowControl(c contract) {
	t := c.t
	const maximum, total = 5, 50
	c.Publish(c.topic, data(strings.Split(strings.Repeat("x", total), "")...)...)
	stream := c.open(func(r *pubsubpb.StreamingPullRequest) { r.MaxOutstandingMessages = maximum })
	for received := 0; received < total; {
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		// All that came before is acknowledged: a response holds at most the
		// maximum.
		if n := len(resp.GetReceivedMessages()); n > maximum {
			t.Errorf("%d messages at once, want at most %d", n, maximum)
		}
		received += len(resp.GetReceivedMessages())
		c.Acknowledge(c.sub, ackIDs(resp.GetReceivedMessages())...)
	}
	c.wantEmpty()
}

func contractSettleOnStream(c contract) {
	t := c.t
	stream := c.open()
	c.Publish(c.topic, data("acknowledged", "returned")...)
	got := c.Receive(stream, 2)
	for _, req := range []*pubsubpb.StreamingPullRequest{
		{},
		{AckIds: ackIDs(got[:1]), ModifyDeadlineAckIds: ackIDs(got[1:]), ModifyDeadlineSeconds: []int32{0}},
	} {
		if err := stream.Send(req); err != nil {
			t.Fatal(err)
		}
	}
	again := c.Receive(stream, 1)
	if again[0].GetMessage().GetMessageId() != got[1].GetMessage().GetMessageId() {
		t.Errorf("got %v again, want %v", again[0], got[1])
	}
	c.Acknowledge(c.sub, ackIDs(again)...)
	c.wantEmpty()
}

func contractTwoSubscriptions(c contract) {
	t := c.t
	second := c.sub + "-second"
	c.CreateSubscription(second, c.topic)
	c.Publish(c.topic, data("1", "2", "3")...)
	a, b := c.Drain(c.sub), c.Drain(second)
	if len(a) != 3 || len(b) != 3 {
		t.Errorf("%d and %d messages, want 3 and 3", len(a), len(b))
	}
}

func contractFlowControlBytes(c contract) {
	t := c.t
	c.Publish(c.topic, data(strings.Repeat("x", 1000), strings.Repeat("x", 1000), strings.Repeat("x", 1000))...)
	stream := c.open(func(r *pubsubpb.StreamingPullRequest) { r.MaxOutstandingBytes = 900 })
	for range 3 {
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if n := len(resp.GetReceivedMessages()); n != 1 {
			t.Fatalf("%d messages at once, want 1", n)
		}
		c.Acknowledge(c.sub, ackIDs(resp.GetReceivedMessages())...)
	}
	c.wantEmpty()
}

func contractPull(c contract) {
	t := c.t
	c.Publish(c.topic, data("1", "2", "3")...)
	seen := 0
	for range 10 {
		got := c.Pull(c.sub, 2, true)
		if len(got) > 2 {
			t.Errorf("%d messages, want at most 2", len(got))
		}
		if seen += len(got); seen >= 3 {
			break
		}
	}
	if seen != 3 {
		t.Errorf("%d messages, want 3: what is outstanding is not given twice", seen)
	}
	if got := c.Pull(c.sub, 2, false); len(got) != 0 {
		t.Errorf("got %v of nothing", got)
	}
}

func contractPullWaits(c contract) {
	t := c.t
	got := make(chan []*pubsubpb.ReceivedMessage)
	go func() { // ends with the pull
		defer close(got)
		for {
			resp, err := c.Subscriber.Pull(t.Context(), &pubsubpb.PullRequest{Subscription: c.sub, MaxMessages: 1})
			if err != nil {
				return
			}
			if len(resp.GetReceivedMessages()) > 0 {
				got <- resp.GetReceivedMessages()
				return
			}
		}
	}()
	c.Publish(c.topic, data("x")...)
	if msgs := <-got; len(msgs) != 1 {
		t.Errorf("got %v", msgs)
	}
}

func contractPullNothing(c contract) {
	_, err := c.Subscriber.Pull(c.t.Context(), &pubsubpb.PullRequest{Subscription: c.sub})
	wantCode(c.t, "pull of 0 messages", err, codes.InvalidArgument)
}

func contractOldReturn(c contract) {
	t := c.t
	stream := c.open()
	c.Publish(c.topic, data("x")...)
	first := c.Receive(stream, 1)
	c.Extend(c.sub, 0, ackIDs(first)...)
	second := c.Receive(stream, 1)
	if first[0].GetAckId() == second[0].GetAckId() {
		t.Error("two deliveries have the same ack id")
	}
	c.Extend(c.sub, 0, ackIDs(first)...)
	c.Extend(c.sub, 60, ackIDs(second)...)
	c.wantEmpty()
	c.Acknowledge(c.sub, ackIDs(second)...)
}

func contractBadAckIDs(c contract) {
	_, err := c.Subscriber.Acknowledge(c.t.Context(), &pubsubpb.AcknowledgeRequest{Subscription: c.sub, AckIds: []string{"nonsense"}})
	wantCode(c.t, "acknowledge", err, codes.InvalidArgument)
	_, err = c.Subscriber.ModifyAckDeadline(c.t.Context(), &pubsubpb.ModifyAckDeadlineRequest{Subscription: c.sub, AckIds: []string{"nonsense"}, AckDeadlineSeconds: 10})
	wantCode(c.t, "modify ack deadline", err, codes.InvalidArgument)
}

func contractLongExtension(c contract) {
	c.Publish(c.topic, data("x")...)
	ids := ackIDs(c.Receive(c.open(), 1))
	_, err := c.Subscriber.ModifyAckDeadline(c.t.Context(), &pubsubpb.ModifyAckDeadlineRequest{Subscription: c.sub, AckIds: ids, AckDeadlineSeconds: 601})
	wantCode(c.t, "extend by 601 s", err, codes.InvalidArgument)
}

func contractLargeAcknowledgement(c contract) {
	c.Publish(c.topic, data("x")...)
	id := c.Receive(c.open(), 1)[0].GetAckId()
	ids := make([]string, 600<<10/len(id))
	for i := range ids {
		ids[i] = id
	}
	_, err := c.Subscriber.Acknowledge(c.t.Context(), &pubsubpb.AcknowledgeRequest{Subscription: c.sub, AckIds: ids})
	wantCode(c.t, "acknowledge", err, codes.InvalidArgument)
}

func contractShortStreamDeadline(c contract) {
	_, err := c.open(func(r *pubsubpb.StreamingPullRequest) { r.StreamAckDeadlineSeconds = 9 }).Recv()
	wantCode(c.t, "stream", err, codes.InvalidArgument)
}

func contractSubscriptionTwice(c contract) {
	stream := c.open()
	if err := stream.Send(&pubsubpb.StreamingPullRequest{Subscription: c.sub}); err != nil {
		c.t.Fatal(err)
	}
	_, err := stream.Recv()
	wantCode(c.t, "stream", err, codes.InvalidArgument)
}

func contractPings(c contract) {
	t := c.t
	stream := c.open(func(r *pubsubpb.StreamingPullRequest) { r.ProtocolVersion = 1 })
	for range 3 {
		if err := stream.Send(&pubsubpb.StreamingPullRequest{}); err != nil {
			t.Fatal(err)
		}
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if proto.Size(resp) != 0 {
			t.Errorf("answered with %v", resp)
		}
	}
}

func contractNoPings(c contract) {
	t := c.t
	stream := c.open()
	if err := stream.Send(&pubsubpb.StreamingPullRequest{}); err != nil {
		t.Fatal(err)
	}
	c.Publish(c.topic, data("x")...)
	resp, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if len(resp.GetReceivedMessages()) != 1 {
		t.Errorf("got %v, want the message", resp)
	}
}
