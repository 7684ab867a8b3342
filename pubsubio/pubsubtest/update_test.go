package pubsubtest_test

import (
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

func TestAdmin_TopicKeepsAllFields(t *testing.T) {
	f := newFixture(t)
	want := &pubsubpb.Topic{
		Name:                     topicB,
		Labels:                   map[string]string{"k": "v"},
		KmsKeyName:               "projects/p/locations/l/keyRings/r/cryptoKeys/k",
		MessageRetentionDuration: durationpb.New(time.Hour),
		MessageStoragePolicy:     &pubsubpb.MessageStoragePolicy{AllowedPersistenceRegions: []string{"europe-west1"}, EnforceInTransit: true},
		SchemaSettings:           &pubsubpb.SchemaSettings{Schema: "projects/p/schemas/s", Encoding: pubsubpb.Encoding_JSON},
	}
	created, err := f.Publisher.CreateTopic(t.Context(), want)
	wantCode(t, "create", err, codes.OK)
	got, err := f.Publisher.GetTopic(t.Context(), &pubsubpb.GetTopicRequest{Topic: topicB})
	wantCode(t, "get", err, codes.OK)
	for _, topic := range []*pubsubpb.Topic{created, got} {
		if diff := cmp.Diff(want, topic, protocmp.Transform()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	f.CreateSubscription(subB, topicB)
	sub, err := f.Subscriber.GetSubscription(t.Context(), &pubsubpb.GetSubscriptionRequest{Subscription: subB})
	if err != nil || sub.GetTopicMessageRetentionDuration().AsDuration() != time.Hour {
		t.Errorf("subscription %v, %v", sub, err)
	}
}

func TestAdmin_BadConfigurationsAreRefused(t *testing.T) {
	f := newFixture(t)
	for name, config := range map[string]*pubsubpb.Topic{
		"short retention": {MessageRetentionDuration: durationpb.New(10*time.Minute - 1)},
		"long retention":  {MessageRetentionDuration: durationpb.New(31*24*time.Hour + 1)},
		"no region":       {MessageStoragePolicy: &pubsubpb.MessageStoragePolicy{}},
	} {
		config.Name = topicB
		_, err := f.Publisher.CreateTopic(t.Context(), config)
		wantCode(t, name, err, codes.InvalidArgument)
	}
	for name, config := range map[string]*pubsubpb.Subscription{
		"deadline of 9 s":    {AckDeadlineSeconds: 9},
		"deadline of 601 s":  {AckDeadlineSeconds: 601},
		"short retention":    {MessageRetentionDuration: durationpb.New(10*time.Minute - 1)},
		"long retention":     {MessageRetentionDuration: durationpb.New(31*24*time.Hour + 1)},
		"short life":         {ExpirationPolicy: &pubsubpb.ExpirationPolicy{Ttl: durationpb.New(24*time.Hour - 1)}},
		"long backoff":       {RetryPolicy: &pubsubpb.RetryPolicy{MaximumBackoff: durationpb.New(601 * time.Second)}},
		"4 attempts":         {DeadLetterPolicy: &pubsubpb.DeadLetterPolicy{DeadLetterTopic: topicA, MaxDeliveryAttempts: 4}},
		"101 attempts":       {DeadLetterPolicy: &pubsubpb.DeadLetterPolicy{DeadLetterTopic: topicA, MaxDeliveryAttempts: 101}},
		"no such topic name": {DeadLetterPolicy: &pubsubpb.DeadLetterPolicy{DeadLetterTopic: "aaa"}},
	} {
		config.Name, config.Topic = subB, topicA
		_, err := f.Subscriber.CreateSubscription(t.Context(), config)
		wantCode(t, name, err, codes.InvalidArgument)
	}
	for _, name := range []string{"", "aaa", "projects/p/topics/ab", "projects/p/topics/goog1", "projects/p/topics/a b", subA} {
		_, err := f.Publisher.Publish(t.Context(), &pubsubpb.PublishRequest{Topic: name, Messages: data("x")})
		wantCode(t, "publish to "+name, err, codes.InvalidArgument)
		_, err = f.Publisher.GetTopic(t.Context(), &pubsubpb.GetTopicRequest{Topic: name})
		wantCode(t, "get "+name, err, codes.InvalidArgument)
	}
	_, err := f.Subscriber.GetSubscription(t.Context(), &pubsubpb.GetSubscriptionRequest{Subscription: "projects/p/subscriptions/1"})
	wantCode(t, "get subscription", err, codes.InvalidArgument)
	_, err = f.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: topicA}).Recv()
	wantCode(t, "stream of a topic", err, codes.InvalidArgument)
}

func TestUpdateSubscription_ChangesWhatTheMaskNames(t *testing.T) {
	f := newFixture(t)
	f.CreateTopic(topicB)
	before, err := f.Subscriber.GetSubscription(t.Context(), &pubsubpb.GetSubscriptionRequest{Subscription: subA})
	wantCode(t, "get", err, codes.OK)
	got, err := f.Subscriber.UpdateSubscription(t.Context(), &pubsubpb.UpdateSubscriptionRequest{
		Subscription: &pubsubpb.Subscription{
			Name: subA, AckDeadlineSeconds: 77, Labels: map[string]string{"not": "named"}, EnableExactlyOnceDelivery: true,
			DeadLetterPolicy: &pubsubpb.DeadLetterPolicy{DeadLetterTopic: topicB},
		},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"ack_deadline_seconds", "enable_exactly_once_delivery", "dead_letter_policy"}},
	})
	wantCode(t, "update", err, codes.OK)
	want := proto.CloneOf(before)
	want.AckDeadlineSeconds, want.EnableExactlyOnceDelivery = 77, true
	want.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{DeadLetterTopic: topicB, MaxDeliveryAttempts: 5}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f.Publish(topicA, data("x")...)
	if got := f.Pull(subA, 1, true); got[0].GetDeliveryAttempt() != 1 {
		t.Errorf("delivered as %v", got)
	}
}

func TestUpdate_Refuses(t *testing.T) {
	f := newFixture(t)
	for name, paths := range map[string][]string{
		"no mask": nil, "unknown": {"no_such_field"}, "filter": {"filter"}, "ordering": {"enable_message_ordering"}, "topic": {"topic"},
		"a part": {"dead_letter_policy.max_delivery_attempts"}, "an invalid value": {"ack_deadline_seconds"},
	} {
		_, err := f.Subscriber.UpdateSubscription(t.Context(), &pubsubpb.UpdateSubscriptionRequest{
			Subscription: &pubsubpb.Subscription{Name: subA, AckDeadlineSeconds: 5}, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths},
		})
		wantCode(t, name, err, codes.InvalidArgument)
	}
	_, err := f.Publisher.UpdateTopic(t.Context(), &pubsubpb.UpdateTopicRequest{
		Topic: &pubsubpb.Topic{Name: topicA}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"name"}},
	})
	wantCode(t, "a topic's name", err, codes.InvalidArgument)
	_, err = f.Publisher.UpdateTopic(t.Context(), &pubsubpb.UpdateTopicRequest{
		Topic: &pubsubpb.Topic{Name: topicB}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"labels"}},
	})
	wantCode(t, "no topic", err, codes.NotFound)
	_, err = f.Subscriber.UpdateSubscription(t.Context(), &pubsubpb.UpdateSubscriptionRequest{
		Subscription: &pubsubpb.Subscription{Name: subB}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"labels"}},
	})
	wantCode(t, "no subscription", err, codes.NotFound)
	if s := f.srv.Stats(subA); s != (pubsubtest.Stats{}) {
		t.Errorf("stats %+v", s)
	}
}

func TestDetachSubscription_EndsItsDelivery(t *testing.T) {
	f := newFixture(t)
	f.Publish(topicA, data("held", "waiting")...)
	stream := f.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: subA, MaxOutstandingMessages: 1})
	f.Receive(stream, 1)
	_, err := f.Publisher.DetachSubscription(t.Context(), &pubsubpb.DetachSubscriptionRequest{Subscription: subA})
	wantCode(t, "detach", err, codes.OK)
	_, err = stream.Recv()
	wantCode(t, "the open stream", err, codes.FailedPrecondition)
	f.Publish(topicA, data("later")...)
	_, err = f.OpenStream(openRequest).Recv()
	wantCode(t, "another stream", err, codes.FailedPrecondition)
	_, err = f.Subscriber.Pull(t.Context(), &pubsubpb.PullRequest{Subscription: subA, MaxMessages: 1})
	wantCode(t, "pull", err, codes.FailedPrecondition)
	sub, err := f.Subscriber.GetSubscription(t.Context(), &pubsubpb.GetSubscriptionRequest{Subscription: subA})
	if err != nil || !sub.GetDetached() {
		t.Errorf("got %v, %v", sub, err)
	}
	if s := f.srv.Stats(subA); s.Outstanding != 0 || s.Backlog != 0 || s.Published != 2 {
		t.Errorf("stats %+v", s)
	}
	_, err = f.Publisher.DetachSubscription(t.Context(), &pubsubpb.DetachSubscriptionRequest{Subscription: subB})
	wantCode(t, "detach none", err, codes.NotFound)
}

// Protocol version 1 asks for answers to pings; a client that gets none takes the
// stream for dead.
func TestStream_PingsAreAnswered(t *testing.T) {
	f := newFixture(t)
	stream := f.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: subA, ProtocolVersion: 1})
	ping := func() {
		t.Helper()
		if err := stream.Send(&pubsubpb.StreamingPullRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		ping()
		resp, err := stream.Recv()
		if err != nil || proto.Size(resp) != 0 {
			t.Fatalf("got %v, %v", resp, err)
		}
	}
	f.srv.KeepAlives(false)
	ping()
	// Requests of a stream take effect in their order: with the acknowledgement,
	// the ping has been seen.
	f.Publish(topicA, data("x")...)
	got := f.Receive(stream, 1)
	if err := stream.Send(&pubsubpb.StreamingPullRequest{AckIds: ackIDs(got)}); err != nil {
		t.Fatal(err)
	}
	f.await(t, func(s pubsubtest.Stats) bool { return s.Acknowledged == 1 })
	f.Publish(topicA, data("y")...)
	if resp, err := stream.Recv(); err != nil || len(resp.GetReceivedMessages()) != 1 {
		t.Errorf("got %v, %v, want the message and no answer to the ping", resp, err)
	}
	old := f.OpenStream(openRequest)
	f.srv.KeepAlives(true)
	if err := old.Send(&pubsubpb.StreamingPullRequest{ProtocolVersion: 1}); err != nil {
		t.Fatal(err)
	}
	_, err := old.Recv()
	wantCode(t, "a protocol version later", err, codes.InvalidArgument)
}
