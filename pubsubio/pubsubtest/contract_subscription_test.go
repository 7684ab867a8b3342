package pubsubtest_test

import (
	"slices"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func withOrdering(s *pubsubpb.Subscription) { s.EnableMessageOrdering = true }

func retaining(s *pubsubpb.Subscription) { s.RetainAckedMessages = true }

func filtered(expression string) []func(*pubsubpb.Subscription) {
	return []func(*pubsubpb.Subscription){func(s *pubsubpb.Subscription) { s.Filter = expression }}
}

var subscriptionCases = []contractCase{
	{name: "responses tell the subscription's properties", test: contractProperties, change: []func(*pubsubpb.Subscription){withOrdering}},
	{name: "messages of a key come in their order", test: contractOrder, change: []func(*pubsubpb.Subscription){withOrdering}},
	{name: "a returned message brings all later ones of its key", test: contractOrderedReturn, change: []func(*pubsubpb.Subscription){withOrdering}},
	{name: "also those that were acknowledged", test: contractOrderedReturnAcknowledged, change: []func(*pubsubpb.Subscription){withOrdering}},
	{name: "a key stays with its stream", test: contractKeyStays, change: []func(*pubsubpb.Subscription){withOrdering}},
	{name: "a message is forwarded after its deliveries", test: contractDeadLetter},
	{name: "4 delivery attempts are refused", test: contractFewAttempts},
	{name: "seek to the future acknowledges all", test: contractSeekForward},
	{name: "seek to the future with message ordering", test: contractSeekForward, change: []func(*pubsubpb.Subscription){withOrdering}},
	{name: "seek back brings what is retained", test: contractSeekBack, change: []func(*pubsubpb.Subscription){retaining}},
	{name: "seek to no snapshot is not found", test: contractSeekSnapshot},
	{name: "filter by key", change: filtered(`attributes:name`), test: deliversOf("com", "co", "org")},
	{name: "filter by no key", change: filtered(`NOT attributes:name`), test: deliversOf("none")},
	{name: "filter by minus key", change: filtered(`-attributes:name`), test: deliversOf("none")},
	{name: "filter by value", change: filtered(`attributes.name = "com"`), test: deliversOf("com")},
	{name: "filter by other value", change: filtered(`attributes.name != "com"`), test: deliversOf("co", "org", "none")},
	{name: "filter by prefix", change: filtered(`hasPrefix(attributes.name, "co")`), test: deliversOf("com", "co")},
	{name: "filter by quoted key", change: filtered(`attributes:"iana.org/tag"`), test: deliversOf("org")},
	{name: "filter with AND", change: filtered(`attributes:name AND NOT attributes:lang`), test: deliversOf("co", "org")},
	{name: "filter with OR", change: filtered(`attributes.name = "com" OR attributes.name = "org"`), test: deliversOf("com", "org")},
	{name: "filter with parentheses", change: filtered(`(attributes:lang OR attributes.name="co") AND NOT (attributes:"iana.org/tag")`), test: deliversOf("com", "co")},
	{name: "filters that are none are refused", test: contractBadFilters},
}

func contractProperties(c contract) {
	t := c.t
	stream := c.open()
	for range 2 {
		c.Publish(c.topic, data("x")...)
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if p := resp.GetSubscriptionProperties(); !p.GetMessageOrderingEnabled() || p.GetExactlyOnceDeliveryEnabled() {
			t.Errorf("properties %v", p)
		}
	}
}

func contractOrder(c contract) {
	want := []string{"1", "2", "3", "4", "5", "6"}
	for _, text := range want {
		c.Publish(c.topic, keyed("k", text)...)
	}
	got := c.Receive(c.open(), len(want))
	wantTexts(c.t, "delivered", got, want...)
}

func contractOrderedReturn(c contract) {
	stream := c.open()
	c.Publish(c.topic, keyed("k", "1", "2", "3")...)
	got := c.Receive(stream, 3)
	c.Acknowledge(c.sub, got[0].GetAckId())
	c.Extend(c.sub, 0, got[1].GetAckId())
	again := c.Receive(stream, 2)
	wantTexts(c.t, "again", again, "2", "3")
}

func contractOrderedReturnAcknowledged(c contract) {
	stream := c.open()
	c.Publish(c.topic, keyed("k", "1", "2")...)
	got := c.Receive(stream, 2)
	c.Acknowledge(c.sub, got[1].GetAckId())
	c.Extend(c.sub, 0, got[0].GetAckId())
	again := c.Receive(stream, 2)
	wantTexts(c.t, "again", again, "1", "2")
}

func contractKeyStays(c contract) {
	t := c.t
	first := c.open(func(r *pubsubpb.StreamingPullRequest) { r.MaxOutstandingMessages = 1 })
	c.Publish(c.topic, keyed("k", "k1")...)
	held := c.Receive(first, 1)
	c.Publish(c.topic, keyed("k", "k2")...)
	c.Publish(c.topic, keyed("l", "l1")...)
	second := c.open()
	wantTexts(t, "the second stream", c.Receive(second, 1), "l1")
	c.Acknowledge(c.sub, ackIDs(held)...)
}

func contractDeadLetter(c contract) {
	t := c.t
	letters, lettersSub, sub := c.topic+"-letters", c.sub+"-letters", c.sub+"-policy"
	c.CreateTopic(letters)
	c.CreateSubscription(lettersSub, letters)
	c.CreateSubscription(sub, c.topic, func(s *pubsubpb.Subscription) {
		s.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{DeadLetterTopic: letters, MaxDeliveryAttempts: 5}
	})
	ids := c.Publish(c.topic, &pubsubpb.PubsubMessage{Data: []byte("x"), Attributes: map[string]string{"k": "v"}})
	for attempt := int32(1); attempt <= 5; attempt++ {
		got := c.Pull(sub, 1, true)
		if len(got) != 1 || got[0].GetDeliveryAttempt() != attempt {
			t.Fatalf("delivery %d: %v", attempt, got)
		}
		c.Extend(sub, 0, ackIDs(got)...)
	}
	if more := c.Pull(sub, 1, false); len(more) != 0 {
		t.Errorf("delivered again: %v", more)
	}
	got := c.Pull(lettersSub, 1, true)
	if len(got) != 1 {
		t.Fatalf("dead letters %v", got)
	}
	m := got[0].GetMessage()
	a := m.GetAttributes()
	if string(m.GetData()) != "x" || m.GetMessageId() == ids[0] || a["k"] != "v" || a["CloudPubSubDeadLetterSourceDeliveryCount"] != "5" ||
		a["CloudPubSubDeadLetterSourceSubscription"] == "" || a["CloudPubSubDeadLetterSourceSubscriptionProject"] != "p" ||
		a["CloudPubSubDeadLetterSourceTopicPublishTime"] == "" {
		t.Errorf("dead letter %v", m)
	}
}

func contractFewAttempts(c contract) {
	_, err := c.Subscriber.CreateSubscription(c.t.Context(), &pubsubpb.Subscription{
		Name: c.sub + "-few", Topic: c.topic, DeadLetterPolicy: &pubsubpb.DeadLetterPolicy{DeadLetterTopic: c.topic, MaxDeliveryAttempts: 4},
	})
	wantCode(c.t, "create", err, codes.InvalidArgument)
}

func (c contract) seek(to time.Time) {
	c.t.Helper()
	_, err := c.Subscriber.Seek(c.t.Context(), &pubsubpb.SeekRequest{Subscription: c.sub, Target: &pubsubpb.SeekRequest_Time{Time: timestamppb.New(to)}})
	wantCode(c.t, "seek", err, codes.OK)
}

func contractSeekForward(c contract) {
	c.Publish(c.topic, data("held", "waiting")...)
	c.Pull(c.sub, 1, true)
	c.seek(time.Now().Add(time.Minute))
	c.wantEmpty()
}

func contractSeekBack(c contract) {
	c.Publish(c.topic, data("1", "2")...)
	if got := c.Drain(c.sub); len(got) != 2 {
		c.t.Errorf("%d messages, want 2", len(got))
	}
	c.seek(time.Now().Add(-time.Minute))
	var again []string
	for _, m := range c.Drain(c.sub) {
		again = append(again, string(m.GetData()))
	}
	slices.Sort(again)
	if !slices.Equal(again, []string{"1", "2"}) {
		c.t.Errorf("brought back %q", again)
	}
}

func contractSeekSnapshot(c contract) {
	_, err := c.Subscriber.Seek(c.t.Context(), &pubsubpb.SeekRequest{
		Subscription: c.sub, Target: &pubsubpb.SeekRequest_Snapshot{Snapshot: "projects/p/snapshots/no-such"},
	})
	wantCode(c.t, "seek", err, codes.NotFound)
}

// deliversOf is a case of a filter that leaves those of four messages.
func deliversOf(want ...string) func(contract) {
	return func(c contract) {
		c.Publish(c.topic,
			&pubsubpb.PubsubMessage{Data: []byte("com"), Attributes: map[string]string{"name": "com", "lang": "en"}},
			&pubsubpb.PubsubMessage{Data: []byte("co"), Attributes: map[string]string{"name": "co"}},
			&pubsubpb.PubsubMessage{Data: []byte("org"), Attributes: map[string]string{"name": "org", "iana.org/tag": "en"}},
			&pubsubpb.PubsubMessage{Data: []byte("none")})
		var got []string
		for _, m := range c.Drain(c.sub) {
			got = append(got, string(m.GetData()))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			c.t.Errorf("got %q, want %q", got, want)
		}
	}
}

func contractBadFilters(c contract) {
	for _, filter := range []string{`attributes.name = `, `attributes.name = com`, `(attributes:name`, `attributes:name AND`, `hasSuffix(attributes.name, "x")`} {
		_, err := c.Subscriber.CreateSubscription(c.t.Context(), &pubsubpb.Subscription{Name: c.sub + "-filter", Topic: c.topic, Filter: filter})
		wantCode(c.t, filter, err, codes.InvalidArgument)
	}
}
