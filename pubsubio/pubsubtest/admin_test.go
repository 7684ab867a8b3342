package pubsubtest_test

import (
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

func TestAdmin_ConfigurationComesBack(t *testing.T) {
	f := newFixture(t)
	topic, err := f.Publisher.CreateTopic(t.Context(), &pubsubpb.Topic{Name: topicB, Labels: map[string]string{"k": "v"}})
	if err != nil || topic.GetLabels()["k"] != "v" {
		t.Fatalf("created %v, %v", topic, err)
	}
	f.CreateSubscription(subB, topicB, func(s *pubsubpb.Subscription) {
		s.AckDeadlineSeconds = 33
		s.EnableMessageOrdering = true
		s.MessageRetentionDuration = durationpb.New(700e9)
	})
	sub, err := f.Subscriber.GetSubscription(t.Context(), &pubsubpb.GetSubscriptionRequest{Subscription: subB})
	if err != nil || sub.GetTopic() != topicB || sub.GetAckDeadlineSeconds() != 33 || !sub.GetEnableMessageOrdering() || sub.GetMessageRetentionDuration().GetSeconds() != 700 {
		t.Errorf("got %v, %v", sub, err)
	}
	topic, err = f.Publisher.GetTopic(t.Context(), &pubsubpb.GetTopicRequest{Topic: topicB})
	if err != nil || topic.GetLabels()["k"] != "v" {
		t.Errorf("got %v, %v", topic, err)
	}
}

func TestAdmin_ListsInPages(t *testing.T) {
	f := newFixture(t)
	f.srv.MustCreateTopic("projects/other/topics/ttt")
	f.srv.MustCreateTopic(topicB)
	f.srv.MustCreateSubscription(subB, topicA)
	var topics []string
	for token, more := "", true; more; more = token != "" {
		resp, err := f.Publisher.ListTopics(t.Context(), &pubsubpb.ListTopicsRequest{Project: "projects/p", PageSize: 1, PageToken: token})
		if err != nil || len(resp.GetTopics()) != 1 {
			t.Fatalf("%v, %v", resp, err)
		}
		topics = append(topics, resp.GetTopics()[0].GetName())
		token = resp.GetNextPageToken()
	}
	if !slices.Equal(topics, []string{topicA, topicB}) {
		t.Errorf("topics %v", topics)
	}
	subs, err := f.Subscriber.ListSubscriptions(t.Context(), &pubsubpb.ListSubscriptionsRequest{Project: "projects/p"})
	if err != nil || len(subs.GetSubscriptions()) != 2 {
		t.Errorf("subscriptions %v, %v", subs, err)
	}
	of, err := f.Publisher.ListTopicSubscriptions(t.Context(), &pubsubpb.ListTopicSubscriptionsRequest{Topic: topicA})
	if err != nil || !slices.Equal(of.GetSubscriptions(), []string{subA, subB}) {
		t.Errorf("subscriptions of the topic %v, %v", of, err)
	}
}

func TestAdmin_UnknownAndExistingNames(t *testing.T) {
	f := newFixture(t)
	ctx := t.Context()
	_, err := f.Publisher.Publish(ctx, &pubsubpb.PublishRequest{Topic: topicB, Messages: data("x")})
	wantCode(t, "publish", err, codes.NotFound)
	if want := "Resource not found (resource=bbb)."; status.Convert(err).Message() != want {
		t.Errorf("message %q, want %q", status.Convert(err).Message(), want)
	}
	_, err = f.Publisher.GetTopic(ctx, &pubsubpb.GetTopicRequest{Topic: topicB})
	wantCode(t, "get topic", err, codes.NotFound)
	_, err = f.Publisher.DeleteTopic(ctx, &pubsubpb.DeleteTopicRequest{Topic: topicB})
	wantCode(t, "delete topic", err, codes.NotFound)
	_, err = f.Subscriber.GetSubscription(ctx, &pubsubpb.GetSubscriptionRequest{Subscription: subB})
	wantCode(t, "get subscription", err, codes.NotFound)
	_, err = f.Subscriber.DeleteSubscription(ctx, &pubsubpb.DeleteSubscriptionRequest{Subscription: subB})
	wantCode(t, "delete subscription", err, codes.NotFound)
	_, err = f.Subscriber.Pull(ctx, &pubsubpb.PullRequest{Subscription: subB, MaxMessages: 1})
	wantCode(t, "pull", err, codes.NotFound)
	_, err = f.Subscriber.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{Subscription: subB, AckIds: []string{"1.0.1."}})
	wantCode(t, "acknowledge", err, codes.NotFound)
	_, err = f.Subscriber.ModifyAckDeadline(ctx, &pubsubpb.ModifyAckDeadlineRequest{Subscription: subB, AckIds: []string{"1.0.1."}})
	wantCode(t, "modify ack deadline", err, codes.NotFound)
	wantCode(t, "subscription of no topic", f.srv.CreateSubscription(subB, topicB), codes.NotFound)
	wantCode(t, "topic again", f.srv.CreateTopic(topicA), codes.AlreadyExists)
	wantCode(t, "subscription again", f.srv.CreateSubscription(subA, topicA), codes.AlreadyExists)
	wantCode(t, "a bad topic name", f.srv.CreateTopic("projects/p/topics/goog1"), codes.InvalidArgument)
	wantCode(t, "a bad subscription name", f.srv.CreateSubscription("projects/p/subscriptions/1ab", topicA), codes.InvalidArgument)
	wantCode(t, "a short deadline", f.srv.CreateSubscription(subB, topicA, pubsubtest.AckDeadline(9)), codes.InvalidArgument)
	wantCode(t, "few attempts", f.srv.CreateSubscription(subB, topicA, pubsubtest.DeadLetters(topicA, 4)), codes.InvalidArgument)
	_, err = f.Subscriber.CreateSubscription(ctx, &pubsubpb.Subscription{
		Name: subB, Topic: topicA, PushConfig: &pubsubpb.PushConfig{PushEndpoint: "https://example.com"}, BigqueryConfig: &pubsubpb.BigQueryConfig{},
	})
	wantCode(t, "two ways to deliver", err, codes.InvalidArgument)
}

// Case C21: a subscription outlives its topic.
func TestAdmin_DeletedTopicLeavesItsSubscription(t *testing.T) {
	f := newFixture(t)
	f.Publish(topicA, data("x")...)
	if err := f.srv.DeleteTopic(topicA); err != nil {
		t.Fatal(err)
	}
	sub, err := f.Subscriber.GetSubscription(t.Context(), &pubsubpb.GetSubscriptionRequest{Subscription: subA})
	if err != nil || sub.GetTopic() != "_deleted-topic_" {
		t.Errorf("got %v, %v", sub, err)
	}
	if got := f.Drain(subA); len(got) != 1 {
		t.Errorf("%d messages left, want 1", len(got))
	}
	f.srv.MustCreateTopic(topicA) // a new topic of the name is another topic
	f.Publish(topicA, data("y")...)
	if got := f.Drain(subA); len(got) != 0 {
		t.Errorf("%d messages of the new topic, want 0", len(got))
	}
}

func TestAcknowledge_Refuses(t *testing.T) {
	f := newFixture(t)
	f.srv.MustCreateSubscription(subB, topicA)
	f.Publish(topicA, data("x")...)
	id := f.Pull(subA, 1, true)[0].GetAckId()
	many := slices.Repeat([]string{strings.Repeat("a", 1000)}, 525)
	for name, c := range map[string]struct {
		sub string
		ids []string
	}{
		"another subscription's": {subB, []string{id}},
		"malformed":              {subA, []string{id, "nonsense"}},
		"over 512 KiB":           {subA, many},
	} {
		_, err := f.Subscriber.Acknowledge(t.Context(), &pubsubpb.AcknowledgeRequest{Subscription: c.sub, AckIds: c.ids})
		wantCode(t, "acknowledge "+name, err, codes.InvalidArgument)
		_, err = f.Subscriber.ModifyAckDeadline(t.Context(), &pubsubpb.ModifyAckDeadlineRequest{Subscription: c.sub, AckIds: c.ids})
		wantCode(t, "modify "+name, err, codes.InvalidArgument)
	}
	_, err := f.Subscriber.ModifyAckDeadline(t.Context(), &pubsubpb.ModifyAckDeadlineRequest{Subscription: subA, AckIds: []string{id}, AckDeadlineSeconds: 601})
	wantCode(t, "modify by 601 s", err, codes.InvalidArgument)
	_, err = f.Subscriber.Pull(t.Context(), &pubsubpb.PullRequest{Subscription: subA})
	wantCode(t, "pull no messages", err, codes.InvalidArgument)
	if s := f.srv.Stats(subA); s.Acknowledged != 0 || s.Outstanding != 1 {
		t.Errorf("stats %+v", s)
	}
}

func TestConfig_AckIDsAreAsLongAsAsked(t *testing.T) {
	f := newFixture(t, func(c *pubsubtest.Config) { c.AckIDBytes = 220 })
	f.Publish(topicA, data("x")...)
	got := f.Pull(subA, 1, true)
	if n := len(got[0].GetAckId()); n != 220 {
		t.Errorf("ack id of %d bytes, want 220", n)
	}
	f.Acknowledge(subA, ackIDs(got)...)
	if s := f.srv.Stats(subA); s.Acknowledged != 1 {
		t.Errorf("stats %+v", s)
	}
}
