package gcloud_test

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/gcloud"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/iam"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

const (
	topic = "projects/shop/topics/orders"
	sub   = "projects/shop/subscriptions/orders"
)

func TestCommands_AreWhole(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{gcloud.CreateTopic(topic, options.TopicCreate{}), "gcloud pubsub topics create orders --project=shop"},
		{gcloud.CreateTopic(topic, options.TopicCreate{
			MessageRetention: 24 * time.Hour, KMSKeyName: "projects/k/locations/l/keyRings/r/cryptoKeys/c",
			AllowedPersistenceRegions: []string{"europe-west1", "europe-west4"}, EnforceInTransit: true,
		}), "gcloud pubsub topics create orders --project=shop --message-retention-duration=86400s" +
			" --topic-encryption-key=projects/k/locations/l/keyRings/r/cryptoKeys/c" +
			" --message-storage-policy-allowed-regions=europe-west1,europe-west4 --message-storage-policy-enforce-in-transit"},
		{gcloud.CreateSubscription(sub, options.SubscriptionCreate{Topic: topic}), "gcloud pubsub subscriptions create orders --project=shop --topic=" + topic},
		{gcloud.CreateSubscription(sub, options.SubscriptionCreate{
			Topic: topic, AckDeadline: time.Minute, EnableMessageOrdering: true, MessageRetention: time.Hour, RetainAckedMessages: true,
			ExpirationTTL: 48 * time.Hour, DeadLetterPolicy: &options.DeadLetterPolicy{Topic: topic + "-dead", MaxDeliveryAttempts: 7},
			Filter: `attributes.region = "eu"`,
		}), "gcloud pubsub subscriptions create orders --project=shop --topic=" + topic + " --ack-deadline=60 --enable-message-ordering" +
			" --message-retention-duration=3600s --retain-acked-messages --expiration-period=172800s --dead-letter-topic=" + topic + "-dead" +
			` --max-delivery-attempts=7 --message-filter='attributes.region = "eu"'`},
		{gcloud.CreateSubscription(sub, options.SubscriptionCreate{Topic: topic, NeverExpire: true}), "gcloud pubsub subscriptions create orders --project=shop --topic=" + topic + " --expiration-period=never"},
		{gcloud.UpdateSubscription(sub, "--no-enable-exactly-once-delivery"), "gcloud pubsub subscriptions update orders --project=shop --no-enable-exactly-once-delivery"},
		{gcloud.Describe(sub), "gcloud pubsub subscriptions describe orders --project=shop"},
		{gcloud.Bind(topic, iam.Publish, "user:a@b.c"), "gcloud pubsub topics add-iam-policy-binding orders --project=shop --member=user:a@b.c --role=roles/pubsub.publisher"},
		{gcloud.Bind(sub, iam.Consume, "user:a@b.c"), "gcloud pubsub subscriptions add-iam-policy-binding orders --project=shop --member=user:a@b.c --role=roles/pubsub.subscriber"},
		{gcloud.Bind(topic, iam.CreateTopic, "user:a@b.c"), "gcloud projects add-iam-policy-binding shop --member=user:a@b.c --role=roles/pubsub.editor --condition=None"},
		{gcloud.Bind(topic, iam.Publish, gcloud.ServiceAgent(sub)), "gcloud pubsub topics add-iam-policy-binding orders --project=shop" +
			` --member="serviceAccount:service-$(gcloud projects describe shop --format='value(projectNumber)')@gcp-sa-pubsub.iam.gserviceaccount.com" --role=roles/pubsub.publisher`},
	} {
		if c.got != c.want {
			t.Errorf("%s\nwant %s", c.got, c.want)
		}
	}
}

// A value goes through a shell as it is.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "a", "it's", "a b", "$HOME", "`id`", "~", "a\nb", `\`, "é", "*"} {
		f.Add(s)
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		f.Skip("no shell")
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range s {
			if r == 0 {
				t.Skip("no argument holds a zero byte")
			}
		}
		out, err := exec.CommandContext(t.Context(), sh, "-c", "printf %s "+gcloud.Quote(s)).Output()
		if err != nil || string(out) != s {
			t.Errorf("%q came out as %q, %v", s, out, err)
		}
	})
}

func ExampleBind() {
	fmt.Println(gcloud.Bind("projects/shop/topics/orders", iam.Publish, "user:jo@example.com"))
	// Output:
	// gcloud pubsub topics add-iam-policy-binding orders --project=shop --member=user:jo@example.com --role=roles/pubsub.publisher
}
