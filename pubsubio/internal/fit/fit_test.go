package fit_test

import (
	"fmt"
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/fit"
)

const (
	topic   = "projects/p/topics/orders"
	letters = "projects/p/topics/letters"
	sub     = "projects/p/subscriptions/orders"
)

// What is wrong is said by the tests of package source; here is what mends it.
func TestRead_CommandsAreWhole(t *testing.T) {
	for name, c := range map[string]struct {
		read fit.Read
		s    *pubsubpb.Subscription
		want []string
	}{
		"detached": {s: &pubsubpb.Subscription{Detached: true, Topic: topic, Filter: "attributes:a", RetainAckedMessages: true}, want: []string{
			"gcloud pubsub subscriptions create orders-pull --project=p --topic=" + topic + " --retain-acked-messages --message-filter=attributes:a",
		}},
		"its topic is deleted": {s: &pubsubpb.Subscription{Topic: fit.DeletedTopic, EnableMessageOrdering: true}, want: []string{
			"gcloud pubsub subscriptions create orders-pull --project=p --topic=TOPIC --enable-message-ordering",
		}},
		"push": {s: &pubsubpb.Subscription{Topic: topic, PushConfig: &pubsubpb.PushConfig{PushEndpoint: "https://e.com"}, DeadLetterPolicy: &pubsubpb.DeadLetterPolicy{DeadLetterTopic: letters, MaxDeliveryAttempts: 5}}, want: []string{
			"gcloud pubsub subscriptions create orders-pull --project=p --topic=" + topic + " --dead-letter-topic=" + letters + " --max-delivery-attempts=5",
		}},
		"a state": {s: &pubsubpb.Subscription{Topic: topic, State: pubsubpb.Subscription_RESOURCE_ERROR}, want: []string{
			"gcloud pubsub subscriptions describe orders --project=p",
		}},
		"exactly once": {s: &pubsubpb.Subscription{Topic: topic, EnableExactlyOnceDelivery: true}, want: []string{
			"gcloud pubsub subscriptions update orders --project=p --no-enable-exactly-once-delivery",
		}},
		"no order": {read: fit.Read{Ordered: true}, s: &pubsubpb.Subscription{Topic: topic}, want: []string{
			"gcloud pubsub subscriptions create orders-ordered --project=p --topic=" + topic + " --enable-message-ordering",
		}},
		"no dead-letter policy": {read: fit.Read{Nacks: true}, s: &pubsubpb.Subscription{Topic: topic}, want: []string{
			"gcloud pubsub topics create orders-dead-letters --project=p",
			"gcloud pubsub subscriptions create orders-dead-letters --project=p --topic=projects/p/topics/orders-dead-letters --expiration-period=never",
			"gcloud pubsub subscriptions update orders --project=p --dead-letter-topic=projects/p/topics/orders-dead-letters",
			`gcloud pubsub topics add-iam-policy-binding orders-dead-letters --project=p --member="serviceAccount:service-$(gcloud projects describe p --format='value(projectNumber)')@gcp-sa-pubsub.iam.gserviceaccount.com" --role=roles/pubsub.publisher`,
			`gcloud pubsub subscriptions add-iam-policy-binding orders --project=p --member="serviceAccount:service-$(gcloud projects describe p --format='value(projectNumber)')@gcp-sa-pubsub.iam.gserviceaccount.com" --role=roles/pubsub.subscriber`,
		}},
		"its own letters": {read: fit.Read{Letters: topic}, s: &pubsubpb.Subscription{Topic: topic}},
	} {
		t.Run(name, func(t *testing.T) {
			c.s.Name = sub
			faults := c.read.Faults(c.s)
			if len(faults) != 1 || faults[0].Text == "" || faults[0].Remedy == "" {
				t.Fatalf("%+v", faults)
			}
			if got := strings.Join(faults[0].Commands, "\n"); got != strings.Join(c.want, "\n") {
				t.Errorf("commands:\n%s\nwant:\n%s", got, strings.Join(c.want, "\n"))
			}
		})
	}
}

// The id of a resource has 255 bytes at most.
func TestRead_ANameBesideALongOneIsAName(t *testing.T) {
	long := sub + strings.Repeat("x", 255-len("orders"))
	faults := fit.Read{Ordered: true}.Faults(&pubsubpb.Subscription{Name: long, Topic: topic})
	if len(faults) != 1 || !strings.Contains(faults[0].Commands[0], "create "+long[len("projects/p/subscriptions/"):len(long)-len("-ordered")]+"-ordered ") {
		t.Errorf("%q", faults)
	}
}

func ExampleRead_Faults() {
	read := fit.Read{Ordered: true}
	for _, f := range read.Faults(&pubsubpb.Subscription{Name: sub, Topic: topic}) {
		fmt.Println(f)
		fmt.Println(f.Commands[0])
	}
	// Output:
	// has no message ordering, which Ordering options.PerKey needs and which cannot be added; create another subscription with options.SubscriptionCreate.EnableMessageOrdering, or read with options.Unordered
	// gcloud pubsub subscriptions create orders-ordered --project=p --topic=projects/p/topics/orders --enable-message-ordering
}
