package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/beam-pubsub/beam-pubsub-go/internal/emulator"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
)

// spread gives the messages topics, in turn, and returns those.
func spread(messages []*message.Message, topics int) []string {
	names := make([]string, topics)
	for i := range names {
		names[i] = fmt.Sprintf("projects/integration/topics/spread-%03d", i)
	}
	for i, m := range messages {
		m.Attributes = map[string]string{topicAttribute: names[i%topics]}
	}
	return names
}

// arrivedAt returns what was published to all of the topics.
func (at *place) arrivedAt(topics []string) []*pubsubMessage {
	var all []*pubsubMessage
	for _, topic := range topics {
		all = append(all, at.messages(topic)...)
	}
	return all
}

// A topic that was created a moment ago is not known everywhere: publishing goes on
// being answered by NOT_FOUND.
func TestSink_ATopicThatIsNotKnownForAWhileAfterItsCreation(t *testing.T) {
	parallel(t)
	const hidden = time.Second
	at := placeOf(pubsubtest.New(t))
	topic, route := newRoute(t)
	at.srv.HideNewTopics(hidden, 0)
	w := &writing{
		sink: sink.Config{
			Topic: topic, EmulatorEndpoint: at.endpoint, OnFailure: sink.HandleWith(routeToTest),
			Publisher: options.Publisher{
				BatchElementCount: 10, RecoveryInitialBackoff: 50 * time.Millisecond, RecoveryMaxBackoff: 200 * time.Millisecond, RecoveryMaxAttempts: 30,
			},
		},
		messages: numberedMessages(200),
	}
	began := time.Now()
	must(t, w.run(within(t, time.Minute)))
	if took := time.Since(began); took < hidden {
		t.Errorf("it took %v: the topic was never hidden", took)
	}
	expectGoodOnce(t, w.messages, at.messages(topic))
	if n := at.srv.Calls("CreateTopic"); n != 1 {
		t.Errorf("%d creations", n)
	}
	// Each of the 20 requests may find out for itself, and is stored once. Between
	// them one asks at a time: at 37.5 ms and more, 27 times in a second.
	if n := at.srv.Calls("Publish"); n > 20+20+27 {
		t.Errorf("%d publish calls", n)
	}
	if given := route.list(); len(given) != 0 {
		t.Errorf("a missing topic reached the policy: %+v", given)
	}
	if c := w.counts(); c.TopicsCreated != 1 || c.SendErrors == 0 || c.Published != 200 {
		t.Errorf("counts %+v", c)
	}
}

// RecoveryMaxAttempts bounds the wait for it.
func TestSink_ATopicThatStaysUnknownFailsTheBundle(t *testing.T) {
	parallel(t)
	at := placeOf(pubsubtest.New(t))
	topic, route := newRoute(t)
	at.srv.HideNewTopics(time.Hour, 0)
	o := oneRequest()
	o.RecoveryInitialBackoff, o.RecoveryMaxBackoff, o.RecoveryMaxAttempts = 10*time.Millisecond, 20*time.Millisecond, 4
	w := &writing{
		sink:     sink.Config{Topic: topic, EmulatorEndpoint: at.endpoint, OnFailure: sink.HandleWith(routeToTest), Publisher: o},
		messages: numberedMessages(100),
	}
	expectError(t, w.run(within(t, time.Minute)), topic, "NotFound", "options.Publisher.RecoveryMaxAttempts (4) is used up", "5 attempts", "first failure at")
	if n := at.srv.Calls("Publish"); n != 5 {
		t.Errorf("%d publish calls, not 1 and 4 after the creation", n)
	}
	if n := len(route.list()); n != 0 {
		t.Errorf("%d messages reached the policy", n)
	}
}

func TestSink_ARefusedCreationNamesThePermission(t *testing.T) {
	for policy, d := range disposals {
		t.Run(policy, func(t *testing.T) {
			parallel(t)
			at := placeOf(pubsubtest.New(t))
			topic, route := newRoute(t)
			at.srv.Deny("CreateTopic")
			w := &writing{
				sink:     sink.Config{Topic: topic, EmulatorEndpoint: at.endpoint, OnFailure: d.policy(topic)},
				messages: numberedMessages(500), failed: policy == "EmitFailed",
			}
			expectError(t, w.run(within(t, time.Minute)), "create "+topic, "PermissionDenied", "pubsub.topics.create", "roles/pubsub.editor")
			if n := at.srv.Calls("CreateTopic"); n != 1 {
				t.Errorf("%d creations were asked for", n)
			}
			if n := len(route.list()); n != 0 {
				t.Errorf("%d messages reached the policy", n)
			}
		})
	}
}

// A topic that is deleted under a running job: created again, or the job's end. What
// had been stored before is the deleted topic's.
func TestSink_ATopicDeletedInTheMiddle(t *testing.T) {
	const n, before = 1000, 500
	for _, disposition := range []options.CreateDisposition{options.CreateIfNeeded, options.CreateNever} {
		t.Run(fmt.Sprint(disposition), func(t *testing.T) {
			parallel(t)
			at := placeOf(pubsubtest.New(t))
			topic, route := newRoute(t)
			at.createTopic(topic)
			messages := numberedMessages(n)
			w := &writing{
				sink: sink.Config{
					Topic: topic, EmulatorEndpoint: at.endpoint, OnFailure: sink.HandleWith(routeToTest), CreateDisposition: disposition,
					Publisher: options.Publisher{RecoveryInitialBackoff: 10 * time.Millisecond},
				},
				messages: messages,
			}
			w.probe = &probe{before: func(ctx context.Context, m *message.Message) error {
				if string(m.Data) != string(messages[before].Data) {
					return nil
				}
				if err := at.srv.AwaitPublished(ctx, topic, before); err != nil {
					return err
				}
				return at.srv.DeleteTopic(topic)
			}}
			err := w.run(within(t, time.Minute))
			if given := route.list(); len(given) != 0 {
				t.Errorf("%d messages reached the policy", len(given))
			}
			if disposition == options.CreateNever {
				expectError(t, err, topic, "NotFound", "options.CreateNever")
				if calls := at.srv.Calls("CreateTopic"); calls != 0 {
					t.Errorf("%d creations", calls)
				}
				return
			}
			must(t, err)
			expectGoodOnce(t, messages[before:], at.messages(topic))
			if c := w.counts(); c.TopicsCreated != 1 || c.Published != n {
				t.Errorf("counts %+v", c)
			}
		})
	}
}

// The quota for creations is small: asking on and on uses it up.
func TestSink_C33_FiveHundredTopicsAreCreatedUnderQuota(t *testing.T) {
	long(t)
	parallel(t)
	const topics, outage = 500, 2 * time.Second
	at := placeOf(pubsubtest.New(t))
	quota := at.srv.Order(pubsubtest.Rule{Method: "CreateTopic"}, pubsubtest.Fail(status.Error(codes.ResourceExhausted, "Quota exceeded for administrator operations")))
	messages := numberedMessages(2 * topics)
	names := spread(messages, topics)
	_, route := newRoute(t)
	w := &writing{
		sink: sink.Config{
			Resolve: sink.ResolveWith(topicOfAttribute), EmulatorEndpoint: at.endpoint, OnFailure: sink.HandleWith(routeToTest),
			Publisher: options.Publisher{
				RetryInitialDelay: 100 * time.Millisecond, RetryDelayMultiplier: 2, RetryMaxDelay: time.Second, RecoveryInitialBackoff: 10 * time.Millisecond,
			},
		},
		messages: messages,
	}
	j := start(t, time.Minute, w.run)
	ctx := within(t, 30*time.Second)
	must(t, quota.AwaitFired(ctx, 1))
	work(ctx, outage) // of quota
	j.running(t)
	quota.Remove()
	must(t, j.wait())
	// A hundred publishers ask, at the most: on average eight times in two seconds,
	// with pauses drawn from up to 100, 200, 400, 800, 1000 ms.
	if n := quota.Fired(); n > 100*16 {
		t.Errorf("%d creations were asked for in %v without quota", n, outage)
	}
	if n := at.srv.Calls("CreateTopic") - quota.Fired(); n != topics {
		t.Errorf("%d creations succeeded, not %d", n, topics)
	}
	expectGoodOnce(t, messages, at.arrivedAt(names))
	if c := w.counts(); c.TopicsCreated != topics || c.Published != 2*topics || c.Failed != 0 {
		t.Errorf("counts %+v", c)
	}
	if n := len(route.list()); n != 0 {
		t.Errorf("%d messages reached the policy", n)
	}
}

// Existence checks burn the quota of administrators and need roles that a publisher
// should not have.
func TestSink_C33_APublishersRoleIsEnough(t *testing.T) {
	parallel(t)
	const n, topics = 10_000, 100
	others := []string{
		"CreateTopic", "UpdateTopic", "GetTopic", "ListTopics", "ListTopicSubscriptions", "DeleteTopic", "DetachSubscription",
		"CreateSubscription", "UpdateSubscription", "GetSubscription", "ListSubscriptions", "DeleteSubscription", "Seek", "Pull",
		"Acknowledge", "ModifyAckDeadline", "StreamingPull",
	}
	at := placeOf(pubsubtest.New(t))
	messages := numberedMessages(n)
	names := spread(messages, topics)
	for _, name := range names {
		at.createTopic(name)
	}
	for _, method := range others {
		at.srv.Deny(method)
	}
	all := at.srv.Order(pubsubtest.Rule{}, pubsubtest.Wait(0)) // counts the calls of every service
	w := &writing{
		sink:     sink.Config{Resolve: sink.ResolveWith(topicOfAttribute), EmulatorEndpoint: at.endpoint},
		messages: messages,
	}
	must(t, w.run(within(t, time.Minute)))
	expectGoodOnce(t, messages, at.arrivedAt(names))
	for _, method := range others {
		if calls := at.srv.Calls(method); calls != 0 {
			t.Errorf("%d calls of %s", calls, method)
		}
	}
	if all, publishes := all.Fired(), at.srv.Calls("Publish"); all != publishes || publishes == 0 {
		t.Errorf("%d calls, of which %d publish", all, publishes)
	}
}

// The topics that the sink creates have every setting of TopicCreate, and what is
// written goes there.
func TestWrite_CreatesAMissingTopicAsTopicCreateSays(t *testing.T) {
	want := &pubsubpb.Topic{
		MessageRetentionDuration: durationpb.New(36 * time.Hour),
		KmsKeyName:               "projects/integration/locations/europe-west3/keyRings/r/cryptoKeys/k",
		MessageStoragePolicy: &pubsubpb.MessageStoragePolicy{
			AllowedPersistenceRegions: []string{"europe-west3", "europe-west4"}, EnforceInTransit: true,
		},
	}
	every := options.TopicCreate{
		MessageRetention:          36 * time.Hour,
		KMSKeyName:                "projects/integration/locations/europe-west3/keyRings/r/cryptoKeys/k",
		AllowedPersistenceRegions: []string{"europe-west3", "europe-west4"},
		EnforceInTransit:          true,
	}
	onBoth(t, func(t *testing.T, at *place) {
		t.Helper()
		for name, c := range map[string]struct {
			create options.TopicCreate
			want   *pubsubpb.Topic
		}{
			"defaults":        {options.TopicCreate{}, &pubsubpb.Topic{}},
			"every setting":   {every, want},
			"regions at rest": {options.TopicCreate{AllowedPersistenceRegions: []string{"us-east1"}}, &pubsubpb.Topic{MessageStoragePolicy: &pubsubpb.MessageStoragePolicy{AllowedPersistenceRegions: []string{"us-east1"}}}},
		} {
			t.Run(name, func(t *testing.T) {
				topic, _ := newRoute(t)
				w := &writing{
					sink: sink.Config{
						Topic: topic, EmulatorEndpoint: at.endpoint, TopicCreate: c.create,
						Publisher: options.Publisher{RecoveryInitialBackoff: 10 * time.Millisecond},
					},
					messages: numberedMessages(150),
				}
				must(t, w.run(within(t, time.Minute)))
				got, err := emulator.Dial(t, at.endpoint).Publisher.GetTopic(t.Context(), &pubsubpb.GetTopicRequest{Topic: topic})
				must(t, err)
				c.want.Name = topic
				if at.srv == nil {
					// The emulator forgets these, and adds a state.
					c.want = &pubsubpb.Topic{Name: topic, MessageRetentionDuration: c.want.GetMessageRetentionDuration()}
					got = &pubsubpb.Topic{Name: got.GetName(), MessageRetentionDuration: got.GetMessageRetentionDuration()}
				}
				if diff := gocmp.Diff(c.want, got, protocmp.Transform(), protocmp.IgnoreFields(&pubsubpb.Topic{}, "state")); diff != "" {
					t.Errorf("the topic (-want +got):\n%s", diff)
				}
				if at.srv != nil {
					expectGoodOnce(t, w.messages, at.messages(topic))
				}
				if counts := w.counts(); counts.Published != 150 || counts.TopicsCreated != 1 {
					t.Errorf("counts %+v", counts)
				}
			})
		}
	})
}
