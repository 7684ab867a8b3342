package pubsubtest_test

import (
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

var resourceCases = []contractCase{
	{name: "unknown and existing names", test: contractNames},
	{name: "names against the rules are refused", test: contractBadNames},
	{name: "uncommon names are accepted", test: contractUncommonNames},
	{name: "publishing to no topic's name is an invalid argument", test: contractUseOfBadNames},
	{name: "a topic keeps its settings", test: contractTopicSettings},
	{name: "a topic keeps its retention", test: contractTopicRetention},
	{name: "a topic is updated as its mask says", test: contractUpdateTopic},
	{name: "a subscription's defaults", test: contractSubscriptionDefaults},
	{name: "a subscription is updated as its mask says", test: contractUpdateSubscription},
	{name: "an update of the filter is refused", test: contractUpdateFilter},
	{name: "an update without a mask is refused", test: contractUpdateNothing},
	{name: "a deadline of 9 s is refused", test: contractShortDeadline},
	{name: "a retention of 9 min is refused", test: contractShortRetention},
	{name: "a topic that is deleted leaves its subscription", test: contractDeleteTopic},
	{name: "a detached subscription says so", test: contractDetach},
	{name: "a detached subscription refuses pulls", test: contractDetachedPull},
	{name: "a push subscription says so", test: contractPush},
	{name: "a push subscription refuses pulls", test: contractPushPull},
	{name: "an export subscription says so", test: contractExport},
	{name: "a subscription keeps its settings", test: contractSubscriptionSettings},
	{name: "a subscription may be of a topic in another project", test: contractOtherProject},
	{name: "lists of a project", test: contractLists},
}

func contractNames(c contract) {
	t := c.t
	ctx := t.Context()
	const noTopic, noSub = "projects/p/topics/no-such", "projects/p/subscriptions/no-such"
	_, err := c.Publisher.Publish(ctx, &pubsubpb.PublishRequest{Topic: noTopic, Messages: data("x")})
	wantCode(t, "publish", err, codes.NotFound)
	_, err = c.Publisher.GetTopic(ctx, &pubsubpb.GetTopicRequest{Topic: noTopic})
	wantCode(t, "get topic", err, codes.NotFound)
	_, err = c.Subscriber.GetSubscription(ctx, &pubsubpb.GetSubscriptionRequest{Subscription: noSub})
	wantCode(t, "get subscription", err, codes.NotFound)
	_, err = c.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: noSub}).Recv()
	wantCode(t, "streaming pull", err, codes.NotFound)
	_, err = c.Subscriber.CreateSubscription(ctx, &pubsubpb.Subscription{Name: noSub, Topic: noTopic})
	wantCode(t, "subscribe to no topic", err, codes.NotFound)
	_, err = c.Publisher.CreateTopic(ctx, &pubsubpb.Topic{Name: c.topic})
	wantCode(t, "topic again", err, codes.AlreadyExists)
	_, err = c.Subscriber.CreateSubscription(ctx, &pubsubpb.Subscription{Name: c.sub, Topic: c.topic})
	wantCode(t, "subscription again", err, codes.AlreadyExists)
}

func contractBadNames(c contract) {
	t := c.t
	for _, id := range []string{"ab", "1ab", "goog1", strings.Repeat("a", 256)} {
		_, err := c.Publisher.CreateTopic(t.Context(), &pubsubpb.Topic{Name: "projects/p/topics/" + id})
		wantCode(t, "topic id "+id, err, codes.InvalidArgument)
		_, err = c.Subscriber.CreateSubscription(t.Context(), &pubsubpb.Subscription{Name: "projects/p/subscriptions/" + id, Topic: c.topic})
		wantCode(t, "subscription id "+id, err, codes.InvalidArgument)
	}
}

func contractUncommonNames(c contract) {
	c.CreateTopic("projects/ex.com:p/topics/a.b~c%2B+d-e")
	c.CreateTopic("projects/p/topics/" + strings.Repeat("a", 255))
	c.CreateSubscription("projects/ex.com:p/subscriptions/a.b~c%2B+d-e", c.topic)
}

func contractUseOfBadNames(c contract) {
	t := c.t
	for _, name := range []string{"aaa", "projects/p/topics/goog1", c.sub} {
		_, err := c.Publisher.Publish(t.Context(), &pubsubpb.PublishRequest{Topic: name, Messages: data("x")})
		wantCode(t, "publish to "+name, err, codes.InvalidArgument)
	}
}

func contractTopicSettings(c contract) {
	t := c.t
	name := c.topic + "-settings"
	_, err := c.Publisher.CreateTopic(t.Context(), &pubsubpb.Topic{
		Name: name, Labels: map[string]string{"k": "v"}, KmsKeyName: "projects/p/locations/l/keyRings/r/cryptoKeys/k",
		MessageStoragePolicy: &pubsubpb.MessageStoragePolicy{AllowedPersistenceRegions: []string{"europe-west1"}, EnforceInTransit: true},
	})
	wantCode(t, "create", err, codes.OK)
	got, err := c.Publisher.GetTopic(t.Context(), &pubsubpb.GetTopicRequest{Topic: name})
	wantCode(t, "get", err, codes.OK)
	p := got.GetMessageStoragePolicy()
	if got.GetLabels()["k"] != "v" || got.GetKmsKeyName() == "" || !p.GetEnforceInTransit() || !slices.Equal(p.GetAllowedPersistenceRegions(), []string{"europe-west1"}) {
		t.Errorf("got %v", got)
	}
}

func contractTopicRetention(c contract) {
	t := c.t
	name := c.topic + "-retention"
	_, err := c.Publisher.CreateTopic(t.Context(), &pubsubpb.Topic{Name: name, MessageRetentionDuration: durationpb.New(time.Hour)})
	wantCode(t, "create", err, codes.OK)
	got, err := c.Publisher.GetTopic(t.Context(), &pubsubpb.GetTopicRequest{Topic: name})
	if err != nil || got.GetMessageRetentionDuration().AsDuration() != time.Hour {
		t.Errorf("got %v, %v", got, err)
	}
}

func contractUpdateTopic(c contract) {
	t := c.t
	got, err := c.Publisher.UpdateTopic(t.Context(), &pubsubpb.UpdateTopicRequest{
		Topic:      &pubsubpb.Topic{Name: c.topic, Labels: map[string]string{"k": "v"}, KmsKeyName: "not named"},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"labels"}},
	})
	wantCode(t, "update", err, codes.OK)
	if got.GetLabels()["k"] != "v" || got.GetKmsKeyName() != "" {
		t.Errorf("got %v", got)
	}
}

func contractSubscriptionDefaults(c contract) {
	t := c.t
	got, err := c.Subscriber.GetSubscription(t.Context(), &pubsubpb.GetSubscriptionRequest{Subscription: c.sub})
	wantCode(t, "get", err, codes.OK)
	if got.GetAckDeadlineSeconds() != 10 || got.GetMessageRetentionDuration().AsDuration() != 7*24*time.Hour ||
		got.GetExpirationPolicy().GetTtl().AsDuration() != 31*24*time.Hour || got.GetState() != pubsubpb.Subscription_ACTIVE {
		t.Errorf("got %v", got)
	}
}

func contractUpdateSubscription(c contract) {
	t := c.t
	got, err := c.Subscriber.UpdateSubscription(t.Context(), &pubsubpb.UpdateSubscriptionRequest{
		Subscription: &pubsubpb.Subscription{Name: c.sub, AckDeadlineSeconds: 77, Labels: map[string]string{"not": "named"}},
		UpdateMask:   &fieldmaskpb.FieldMask{Paths: []string{"ack_deadline_seconds"}},
	})
	wantCode(t, "update", err, codes.OK)
	if got.GetAckDeadlineSeconds() != 77 || len(got.GetLabels()) != 0 || got.GetTopic() != c.topic {
		t.Errorf("got %v", got)
	}
}

func contractUpdateFilter(c contract) {
	_, err := c.Subscriber.UpdateSubscription(c.t.Context(), &pubsubpb.UpdateSubscriptionRequest{
		Subscription: &pubsubpb.Subscription{Name: c.sub, Filter: "attributes:k"},
		UpdateMask:   &fieldmaskpb.FieldMask{Paths: []string{"filter"}},
	})
	wantCode(c.t, "update", err, codes.InvalidArgument)
}

func contractUpdateNothing(c contract) {
	_, err := c.Subscriber.UpdateSubscription(c.t.Context(), &pubsubpb.UpdateSubscriptionRequest{
		Subscription: &pubsubpb.Subscription{Name: c.sub}, UpdateMask: &fieldmaskpb.FieldMask{},
	})
	wantCode(c.t, "update", err, codes.InvalidArgument)
}

func contractShortDeadline(c contract) {
	_, err := c.Subscriber.CreateSubscription(c.t.Context(), &pubsubpb.Subscription{Name: c.sub + "-short", Topic: c.topic, AckDeadlineSeconds: 9})
	wantCode(c.t, "create", err, codes.InvalidArgument)
}

func contractShortRetention(c contract) {
	_, err := c.Subscriber.CreateSubscription(c.t.Context(), &pubsubpb.Subscription{
		Name: c.sub + "-short", Topic: c.topic, MessageRetentionDuration: durationpb.New(9 * time.Minute),
	})
	wantCode(c.t, "create", err, codes.InvalidArgument)
}

func contractDeleteTopic(c contract) {
	t := c.t
	c.Publish(c.topic, data("x")...)
	_, err := c.Publisher.DeleteTopic(t.Context(), &pubsubpb.DeleteTopicRequest{Topic: c.topic})
	wantCode(t, "delete", err, codes.OK)
	sub, err := c.Subscriber.GetSubscription(t.Context(), &pubsubpb.GetSubscriptionRequest{Subscription: c.sub})
	if err != nil || sub.GetTopic() != "_deleted-topic_" {
		t.Errorf("got %v, %v", sub, err)
	}
	if got := c.Drain(c.sub); len(got) != 1 {
		t.Errorf("%d messages left, want 1", len(got))
	}
}

func contractDetach(c contract) {
	t := c.t
	_, err := c.Publisher.DetachSubscription(t.Context(), &pubsubpb.DetachSubscriptionRequest{Subscription: c.sub})
	wantCode(t, "detach", err, codes.OK)
	sub, err := c.Subscriber.GetSubscription(t.Context(), &pubsubpb.GetSubscriptionRequest{Subscription: c.sub})
	if err != nil || !sub.GetDetached() {
		t.Errorf("got %v, %v", sub, err)
	}
}

func contractDetachedPull(c contract) {
	t := c.t
	_, err := c.Publisher.DetachSubscription(t.Context(), &pubsubpb.DetachSubscriptionRequest{Subscription: c.sub})
	wantCode(t, "detach", err, codes.OK)
	_, err = c.Subscriber.Pull(t.Context(), &pubsubpb.PullRequest{Subscription: c.sub, MaxMessages: 1})
	wantCode(t, "pull", err, codes.FailedPrecondition)
}

func withPush(s *pubsubpb.Subscription) {
	s.PushConfig = &pubsubpb.PushConfig{PushEndpoint: "http://127.0.0.1:1/push"}
}

func contractPush(c contract) {
	t := c.t
	c.CreateSubscription(c.sub+"-push", c.topic, withPush)
	got, err := c.Subscriber.GetSubscription(t.Context(), &pubsubpb.GetSubscriptionRequest{Subscription: c.sub + "-push"})
	if err != nil || got.GetPushConfig().GetPushEndpoint() != "http://127.0.0.1:1/push" {
		t.Errorf("got %v, %v", got, err)
	}
}

func contractPushPull(c contract) {
	t := c.t
	c.CreateSubscription(c.sub+"-push", c.topic, withPush)
	_, err := c.Subscriber.Pull(t.Context(), &pubsubpb.PullRequest{Subscription: c.sub + "-push", MaxMessages: 1})
	wantCode(t, "pull", err, codes.FailedPrecondition)
	_, err = c.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: c.sub + "-push"}).Recv()
	wantCode(t, "streaming pull", err, codes.FailedPrecondition)
}

func contractExport(c contract) {
	t := c.t
	for name, change := range map[string]func(*pubsubpb.Subscription){
		"-bigquery": func(s *pubsubpb.Subscription) { s.BigqueryConfig = &pubsubpb.BigQueryConfig{Table: "p.d.t"} },
		"-storage":  func(s *pubsubpb.Subscription) { s.CloudStorageConfig = &pubsubpb.CloudStorageConfig{Bucket: "bucket"} },
	} {
		c.CreateSubscription(c.sub+name, c.topic, change)
		got, err := c.Subscriber.GetSubscription(t.Context(), &pubsubpb.GetSubscriptionRequest{Subscription: c.sub + name})
		if err != nil || got.GetBigqueryConfig() == nil && got.GetCloudStorageConfig() == nil {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

func contractSubscriptionSettings(c contract) {
	t := c.t
	c.CreateSubscription(c.sub+"-set", c.topic, func(s *pubsubpb.Subscription) {
		s.AckDeadlineSeconds = 77
		s.EnableMessageOrdering = true
		s.RetainAckedMessages = true
		s.MessageRetentionDuration = durationpb.New(time.Hour)
		s.ExpirationPolicy = &pubsubpb.ExpirationPolicy{Ttl: durationpb.New(48 * time.Hour)}
		s.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{DeadLetterTopic: c.topic, MaxDeliveryAttempts: 7}
		s.Filter = `attributes:k`
	})
	c.CreateSubscription(c.sub+"-never", c.topic, func(s *pubsubpb.Subscription) { s.ExpirationPolicy = &pubsubpb.ExpirationPolicy{} })
	get := func(name string) *pubsubpb.Subscription {
		got, err := c.Subscriber.GetSubscription(t.Context(), &pubsubpb.GetSubscriptionRequest{Subscription: name})
		wantCode(t, "get", err, codes.OK)
		return got
	}
	got := get(c.sub + "-set")
	if p := got.GetDeadLetterPolicy(); got.GetAckDeadlineSeconds() != 77 || !got.GetEnableMessageOrdering() || !got.GetRetainAckedMessages() ||
		got.GetMessageRetentionDuration().AsDuration() != time.Hour || got.GetExpirationPolicy().GetTtl().AsDuration() != 48*time.Hour ||
		p.GetDeadLetterTopic() != c.topic || p.GetMaxDeliveryAttempts() != 7 || got.GetFilter() != `attributes:k` {
		t.Errorf("got %v", got)
	}
	if got := get(c.sub + "-never"); got.GetExpirationPolicy() == nil || got.GetExpirationPolicy().GetTtl() != nil {
		t.Errorf("never: got %v", got)
	}
}

func contractOtherProject(c contract) {
	t := c.t
	name := "projects/ex.com:other/subscriptions/a.b~c%2B+d-e"
	c.CreateSubscription(name, c.topic)
	c.Publish(c.topic, data("x")...)
	if got := c.Drain(name); len(got) != 1 {
		t.Errorf("%d messages, want 1", len(got))
	}
}

func contractLists(c contract) {
	t := c.t
	topics, err := c.Publisher.ListTopics(t.Context(), &pubsubpb.ListTopicsRequest{Project: "projects/p"})
	if err != nil || !slices.ContainsFunc(topics.GetTopics(), func(topic *pubsubpb.Topic) bool { return topic.GetName() == c.topic }) {
		t.Errorf("topics %v, %v", topics, err)
	}
	subs, err := c.Publisher.ListTopicSubscriptions(t.Context(), &pubsubpb.ListTopicSubscriptionsRequest{Topic: c.topic})
	if err != nil || !slices.Equal(subs.GetSubscriptions(), []string{c.sub}) {
		t.Errorf("subscriptions %v, %v", subs, err)
	}
}
