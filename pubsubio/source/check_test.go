package source

import (
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

func detached(s *pubsubpb.Subscription)     { s.Detached = true }
func exactlyOnce(s *pubsubpb.Subscription)  { s.EnableExactlyOnceDelivery = true }
func ordered(s *pubsubpb.Subscription)      { s.EnableMessageOrdering = true }
func topicDeleted(s *pubsubpb.Subscription) { s.Topic = "_deleted-topic_" }

func pushed(s *pubsubpb.Subscription) {
	s.PushConfig = &pubsubpb.PushConfig{PushEndpoint: "https://example.com"}
}

func deadLettered(s *pubsubpb.Subscription) {
	s.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{DeadLetterTopic: deadTopic}
}

func TestCheck_SaysWhatIsWrongAndWhatMendsIt(t *testing.T) {
	perKey, nacking := Config{Ordering: options.PerKey}, Config{OnDecodeFailure: Nack()}
	sending := Config{OnDecodeFailure: SendTo(dlq.Config{Topic: deadTopic})}
	for name, c := range map[string]struct {
		config Config
		change func(*pubsubpb.Subscription)
		want   []string // parts of the text, none where nothing is wrong
	}{
		"fine":                       {},
		"detached":                   {change: detached, want: []string{"is detached from its topic", "create another subscription"}},
		"C21 its topic is deleted":   {change: topicDeleted, want: []string{"its topic is deleted", "create another subscription"}},
		"push":                       {change: pushed, want: []string{"delivers by push", "delivers by pull"}},
		"an empty push config":       {change: func(s *pubsubpb.Subscription) { s.PushConfig = &pubsubpb.PushConfig{} }},
		"BigQuery":                   {change: func(s *pubsubpb.Subscription) { s.BigqueryConfig = &pubsubpb.BigQueryConfig{} }, want: []string{"delivers by export to BigQuery"}},
		"Cloud Storage":              {change: func(s *pubsubpb.Subscription) { s.CloudStorageConfig = &pubsubpb.CloudStorageConfig{} }, want: []string{"delivers by export to Cloud Storage"}},
		"Bigtable":                   {change: func(s *pubsubpb.Subscription) { s.BigtableConfig = &pubsubpb.BigtableConfig{} }, want: []string{"delivers by export to Bigtable"}},
		"a state of error":           {change: func(s *pubsubpb.Subscription) { s.State = pubsubpb.Subscription_RESOURCE_ERROR }, want: []string{"is in state RESOURCE_ERROR", "gcloud pubsub subscriptions describe"}},
		"no state, as an emulator":   {change: func(s *pubsubpb.Subscription) { s.State = pubsubpb.Subscription_STATE_UNSPECIFIED }},
		"exactly-once":               {change: exactlyOnce, want: []string{"has exactly-once delivery", "--no-enable-exactly-once-delivery"}},
		"PerKey, unordered":          {config: perKey, want: []string{"has no message ordering", "options.SubscriptionCreate.EnableMessageOrdering", "options.Unordered"}},
		"PerKey, ordered":            {config: perKey, change: ordered},
		"Unordered, ordered":         {change: ordered},
		"Nack, no dead letters":      {config: nacking, want: []string{"has no dead-letter policy", "--dead-letter-topic", "another policy"}},
		"Nack, an empty policy":      {config: nacking, change: func(s *pubsubpb.Subscription) { s.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{} }, want: []string{"has no dead-letter policy"}},
		"Nack, dead letters":         {config: nacking, change: deadLettered},
		"dead letters without Nack":  {change: deadLettered},
		"SendTo, another topic":      {config: sending},
		"SendTo, its own topic":      {config: sending, change: func(s *pubsubpb.Subscription) { s.Topic = deadTopic }, want: []string{"its topic is that of the dead-letter queue", "as its own dead letter", "another topic than " + deadTopic}},
		"a retention of their topic": {change: func(s *pubsubpb.Subscription) { s.RetainAckedMessages = true }},
	} {
		t.Run(name, func(t *testing.T) {
			s := pullable(subA)
			if c.change != nil {
				c.change(s)
			}
			got := c.config.unfit(s)
			if len(c.want) == 0 && len(got) == 0 {
				return
			}
			if len(c.want) == 0 || len(got) != 1 {
				t.Fatalf("got %q", got)
			}
			for _, part := range c.want {
				if !strings.Contains(got[0], part) {
					t.Errorf("%q lacks %q", got[0], part)
				}
			}
		})
	}
}

// Every refusal of every subscription is in one error, so that they are mended
// together.
func TestStartup_ReportsEveryRefusalInOneError(t *testing.T) {
	a := adminWith(
		pullable(subA, exactlyOnce, topicDeleted),
		pullable(subB, ordered, deadLettered),
		pullable(subC, pushed, ordered),
	)
	cfg := reads([]string{subA, subB, subC})
	cfg.Ordering, cfg.OnDecodeFailure = options.PerKey, Nack()
	wantError(t, a.start(t, cfg), `source: 2 of 3 subscriptions cannot be read as configured:
source: projects/p/subscriptions/aaa: its topic is deleted: it gets no messages any more, also if a topic of that name is created; create another subscription and read that
source: projects/p/subscriptions/aaa: has exactly-once delivery, with which the service refuses acknowledgements that come late, as a runner's commit may; turn it off with gcloud pubsub subscriptions update --no-enable-exactly-once-delivery
source: projects/p/subscriptions/aaa: has no message ordering, which Ordering options.PerKey needs and which cannot be added; create another subscription with options.SubscriptionCreate.EnableMessageOrdering, or read with options.Unordered
source: projects/p/subscriptions/aaa: has no dead-letter policy, so that with OnDecodeFailure source.Nack() what cannot be decoded would come again for ever; add one with gcloud pubsub subscriptions update --dead-letter-topic, or choose another policy
source: projects/p/subscriptions/ccc: delivers by push, so that nothing can be pulled from it; read a subscription that delivers by pull
source: projects/p/subscriptions/ccc: has no dead-letter policy, so that with OnDecodeFailure source.Nack() what cannot be decoded would come again for ever; add one with gcloud pubsub subscriptions update --dead-letter-topic, or choose another policy`)
}
