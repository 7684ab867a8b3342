package pubsubtest_test

import (
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

func TestDeny_NamesThePermission(t *testing.T) {
	f := newFixture(t)
	f.srv.MustCreateTopic(topicB)
	create := f.srv.Deny("CreateTopic")
	_, err := f.Publisher.CreateTopic(t.Context(), &pubsubpb.Topic{Name: topicB + "b"})
	wantCode(t, "create", err, codes.PermissionDenied)
	if want := "User not authorized to perform this action. Permission pubsub.topics.create is required."; status.Convert(err).Message() != want {
		t.Errorf("message %q, want %q", status.Convert(err).Message(), want)
	}
	create.Remove()
	f.CreateTopic(topicB + "b")

	publish := f.srv.Deny("Publish", topicA)
	if got := f.tryPublish(t.Context(), topicA); got != codes.PermissionDenied {
		t.Errorf("publish to the denied topic: %v", got)
	}
	if got := f.tryPublish(t.Context(), topicB); got != codes.OK {
		t.Errorf("publish to another topic: %v", got)
	}
	if n := publish.Fired(); n != 1 {
		t.Errorf("fired %d times, want 1", n)
	}
}

func TestDeny_TakesFromTestIamPermissions(t *testing.T) {
	f := newFixture(t)
	f.CreateTopic(topicB)
	conn, err := grpc.NewClient(f.srv.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	test := func(resource string) []string {
		t.Helper()
		// The messages of this service look like these.
		req := &pubsubpb.AcknowledgeRequest{Subscription: resource, AckIds: []string{"pubsub.topics.publish", "pubsub.topics.get"}}
		resp := new(pubsubpb.PublishResponse)
		if err := conn.Invoke(t.Context(), "/google.iam.v1.IAMPolicy/TestIamPermissions", req, resp); err != nil {
			t.Fatal(err)
		}
		return resp.GetMessageIds()
	}
	f.srv.Deny("Publish", topicA)
	all := f.srv.Deny("GetTopic")
	for resource, want := range map[string][]string{topicA: nil, topicB: {"pubsub.topics.publish"}, topicB + "b": nil} {
		if got := test(resource); !slices.Equal(got, want) {
			t.Errorf("permissions on %s: %q, want %q", resource, got, want)
		}
	}
	all.Remove()
	if got := test(topicB); len(got) != 2 {
		t.Errorf("permissions granted again: %q, want both", got)
	}
}

// Case C35: a topic with a schema refuses every message.
func TestRefuseMessages_IsASchema(t *testing.T) {
	f := newFixture(t)
	schema := f.srv.RefuseMessages(topicA, func(m *message.Message) bool { return len(m.Data) > 1 })
	_, err := f.Publisher.Publish(t.Context(), &pubsubpb.PublishRequest{Topic: topicA, Messages: data("x", "xx")})
	wantCode(t, "publish", err, codes.InvalidArgument)
	f.Publish(topicA, data("x")...)
	if schema.Fired() != 1 || f.srv.Published(topicA) != 1 {
		t.Errorf("fired %d times, %d messages stored", schema.Fired(), f.srv.Published(topicA))
	}
}

func TestHideNewTopics_ByCallsAndByTime(t *testing.T) {
	f := newFixture(t)
	hidden := f.srv.HideNewTopics(0, 2)
	f.CreateTopic(topicB)
	for i, want := range []codes.Code{codes.NotFound, codes.NotFound, codes.OK} {
		if got := f.tryPublish(t.Context(), topicB); got != want {
			t.Errorf("call %d to the new topic: %v, want %v", i, got, want)
		}
	}
	if got := f.tryPublish(t.Context(), topicA); got != codes.OK {
		t.Errorf("call to the old topic: %v", got)
	}
	if err := f.srv.DeleteTopic(topicB); err != nil {
		t.Fatal(err)
	}
	f.CreateTopic(topicB)
	if got := f.tryPublish(t.Context(), topicB); got != codes.NotFound {
		t.Errorf("call to the topic that was created again: %v", got)
	}
	if n := hidden.Fired(); n != 3 {
		t.Errorf("fired %d times, want 3", n)
	}
	hidden.Remove()
	f.srv.HideNewTopics(time.Hour, 0)
	f.CreateTopic(topicB + "b")
	if got := f.tryPublish(t.Context(), topicB+"b"); got != codes.NotFound {
		t.Errorf("call to the new topic: %v", got)
	}
	if _, err := f.Publisher.GetTopic(t.Context(), &pubsubpb.GetTopicRequest{Topic: topicB + "b"}); err != nil {
		t.Errorf("get topic: %v", err)
	}
}

// java#81 in case C20: a subscription is not found right after it was created.
func TestHideNewSubscriptions_ByCalls(t *testing.T) {
	f := newFixture(t)
	f.srv.HideNewSubscriptions(0, 1)
	f.CreateSubscription(subB, topicA)
	_, err := f.OpenStream(&pubsubpb.StreamingPullRequest{Subscription: subB}).Recv()
	wantCode(t, "the first stream", err, codes.NotFound)
	f.Pull(subB, 1, false)
	f.Pull(subA, 1, false)
}
