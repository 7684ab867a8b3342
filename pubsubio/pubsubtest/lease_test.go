package pubsubtest_test

import (
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

func TestLease_LapsesAndIsRedelivered(t *testing.T) {
	f := newFixture(t, fastLeases)
	f.Publish(topicA, data("x")...)
	stream := f.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: subA})
	first, second := f.Receive(stream, 1)[0], f.Receive(stream, 1)[0]
	if first.GetMessage().GetMessageId() != second.GetMessage().GetMessageId() || first.GetAckId() == second.GetAckId() {
		t.Errorf("first %v, then %v", first, second)
	}
	f.Acknowledge(subA, second.GetAckId())
	if s := f.srv.Stats(subA); s.Lapsed == 0 || s.Redelivered == 0 || s.Acknowledged != 1 {
		t.Errorf("stats %+v", s)
	}
}

func TestLease_ExtensionHoldsIt(t *testing.T) {
	srv := pubsubtest.New(t, fastLeases)
	srv.MustCreateTopic(topicA)
	srv.MustCreateSubscription(subA, topicA, pubsubtest.AckDeadline(100)) // 1 s: time to extend
	f := fixture{Client: newClient(t, srv), srv: srv}
	f.Publish(topicA, data("kept", "let go")...)
	got := f.Pull(subA, 2, true)
	f.Extend(subA, 600, got[0].GetAckId())
	f.await(t, func(s pubsubtest.Stats) bool { return s.Lapsed == 1 })
	if s := f.srv.Stats(subA); s.Extensions != 1 || s.Outstanding != 1 || s.Backlog != 1 {
		t.Errorf("stats %+v", s)
	}
	again := f.Pull(subA, 2, true)
	if len(again) != 1 || string(again[0].GetMessage().GetData()) != "let go" {
		t.Errorf("redelivered %v", again)
	}
}

func TestLease_StreamDeadlineIsUsedAndCanChange(t *testing.T) {
	f := newFixture(t, fastLeases)
	stream := f.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: subA, StreamAckDeadlineSeconds: 600})
	f.Publish(topicA, data("long")...)
	f.Receive(stream, 1)
	if err := stream.Send(&pubsubpb.StreamingPullRequest{StreamAckDeadlineSeconds: 10}); err != nil {
		t.Fatal(err)
	}
	// Requests of a stream take effect in their order: that of the return below
	// is seen in the counts.
	f.Publish(topicA, data("short")...)
	got := f.Receive(stream, 1)
	if err := stream.Send(&pubsubpb.StreamingPullRequest{ModifyDeadlineAckIds: ackIDs(got), ModifyDeadlineSeconds: []int32{0}}); err != nil {
		t.Fatal(err)
	}
	f.Receive(stream, 1)
	f.await(t, func(s pubsubtest.Stats) bool { return s.Lapsed > 0 })
	for _, e := range f.srv.Events() {
		if e.Kind == pubsubtest.Lapse && string(e.Message().Data) != "short" {
			t.Errorf("the lease of %q lapsed", e.Message().Data)
		}
	}
}

func TestLease_ReturnedMessageComesAtOnce(t *testing.T) {
	f := newFixture(t)
	f.Publish(topicA, data("x")...)
	for attempt := 1; attempt <= 3; attempt++ {
		got := f.Pull(subA, 1, true)
		if len(got) != 1 {
			t.Fatalf("attempt %d: %d messages", attempt, len(got))
		}
		f.Extend(subA, 0, got[0].GetAckId())
		f.Extend(subA, 0, got[0].GetAckId()) // no longer leased: does nothing
	}
	if s := f.srv.Stats(subA); s.Returned != 3 || s.Redelivered != 2 || s.Backlog != 1 || s.Outstanding != 0 {
		t.Errorf("stats %+v", s)
	}
}

// Case C05: which of two acknowledgement ids of a message counts.
func TestAcknowledge_StaleIDCountsUnlessIgnored(t *testing.T) {
	for name, ignore := range map[string]bool{"counts": false, "ignored": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(c *pubsubtest.Config) { c.IgnoreStaleAcks = ignore })
			f.Publish(topicA, data("x")...)
			old := f.Pull(subA, 1, true)[0].GetAckId()
			f.Extend(subA, 0, old)
			latest := f.Pull(subA, 1, true)[0].GetAckId()
			f.Extend(subA, 60, old) // of an earlier delivery: does nothing
			f.Acknowledge(subA, old)
			want := int64(1)
			if ignore {
				want = 0
			}
			if s := f.srv.Stats(subA); s.Acknowledged != want || s.StaleAcks != 1 || s.Outstanding != 1-want || s.Extensions != 0 {
				t.Errorf("stats %+v", s)
			}
			f.Acknowledge(subA, latest)
			f.Acknowledge(subA, latest)
			if s := f.srv.Stats(subA); s.Acknowledged != 1 || s.StaleAcks != 1 {
				t.Errorf("at the end: stats %+v", s)
			}
		})
	}
}

func TestAcknowledge_AfterTheLeaseRemovesTheMessage(t *testing.T) {
	f := newFixture(t, fastLeases)
	f.Publish(topicA, data("x")...)
	got := f.Pull(subA, 1, true)
	f.await(t, func(s pubsubtest.Stats) bool { return s.Lapsed == 1 })
	f.Acknowledge(subA, got[0].GetAckId())
	if s := f.srv.Stats(subA); s.Acknowledged != 1 || s.StaleAcks != 1 || s.Backlog != 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestDeadLetters_AttemptsAreToldAndTheLastForwards(t *testing.T) {
	srv := pubsubtest.New(t)
	srv.MustCreateTopic(topicA)
	srv.MustCreateTopic(topicB)
	srv.MustCreateSubscription(subA, topicA, pubsubtest.DeadLetters(topicB, 5))
	srv.MustCreateSubscription(subB, topicB)
	f := fixture{Client: newClient(t, srv), srv: srv}
	f.Publish(topicA, &pubsubpb.PubsubMessage{Data: []byte("x"), Attributes: map[string]string{"k": "v"}})
	for attempt := int32(1); attempt <= 5; attempt++ {
		got := f.Pull(subA, 1, true)
		if got[0].GetDeliveryAttempt() != attempt {
			t.Errorf("attempt %d told as %d", attempt, got[0].GetDeliveryAttempt())
		}
		f.Extend(subA, 0, got[0].GetAckId())
	}
	letters := f.Drain(subB)
	if len(letters) != 1 {
		t.Fatalf("%d dead letters", len(letters))
	}
	a := letters[0].GetAttributes()
	if string(letters[0].GetData()) != "x" || a["k"] != "v" || a["CloudPubSubDeadLetterSourceDeliveryCount"] != "5" ||
		a["CloudPubSubDeadLetterSourceSubscription"] != "aaa" || a["CloudPubSubDeadLetterSourceSubscriptionProject"] != "p" {
		t.Errorf("dead letter %v", letters[0])
	}
	if s := srv.Stats(subA); s.DeadLettered != 1 || s.Backlog != 0 || s.Acknowledged != 0 {
		t.Errorf("stats %+v", s)
	}
}

// Case C13: without the permission to forward, deliveries go on for ever.
func TestDeadLetters_WithoutTheTopicDeliveriesGoOn(t *testing.T) {
	srv := pubsubtest.New(t)
	srv.MustCreateTopic(topicA)
	srv.MustCreateSubscription(subA, topicA, pubsubtest.DeadLetters(topicB, 5))
	f := fixture{Client: newClient(t, srv), srv: srv}
	f.Publish(topicA, data("x")...)
	for range 7 {
		f.Extend(subA, 0, ackIDs(f.Pull(subA, 1, true))...)
	}
	if got := f.Pull(subA, 1, true); got[0].GetDeliveryAttempt() != 8 {
		t.Errorf("attempt %d, want 8", got[0].GetDeliveryAttempt())
	}
}
