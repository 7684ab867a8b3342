package source

import (
	"fmt"
	"strings"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// deletedTopic is what a subscription names as its topic once that is deleted.
const deletedTopic = "_deleted-topic_"

// unfit says all that keeps a subscription from being read as c says, each with what
// mends it.
func (c Config) unfit(s *pubsubpb.Subscription) []string {
	var faults []string
	add := func(wrong bool, text string) {
		if wrong {
			faults = append(faults, text)
		}
	}
	add(s.GetDetached(), "is detached from its topic: it holds no messages and gets none; create another subscription and read that")
	add(s.GetTopic() == deletedTopic, "its topic is deleted: it gets no messages any more, also if a topic of that name is created; create another subscription and read that")
	if way := deliversBy(s); way != "" {
		add(true, "delivers by "+way+", so that nothing can be pulled from it; read a subscription that delivers by pull")
	} else {
		add(broken(s.GetState()), "is in state "+s.GetState().String()+", in which it delivers nothing; mend what the service tells of it, as by gcloud pubsub subscriptions describe")
	}
	add(s.GetEnableExactlyOnceDelivery(), "has exactly-once delivery, with which the service refuses acknowledgements that come late, as a runner's commit may; turn it off with gcloud pubsub subscriptions update --no-enable-exactly-once-delivery")
	add(c.Ordering == options.PerKey && !s.GetEnableMessageOrdering(), "has no message ordering, which Ordering options.PerKey needs and which cannot be added; create another subscription with options.SubscriptionCreate.EnableMessageOrdering, or read with options.Unordered")
	add(c.OnDecodeFailure.kind == nack && s.GetDeadLetterPolicy().GetDeadLetterTopic() == "", "has no dead-letter policy, so that with OnDecodeFailure source.Nack() what cannot be decoded would come again for ever; add one with gcloud pubsub subscriptions update --dead-letter-topic, or choose another policy")
	letters := c.OnDecodeFailure.topic()
	add(letters != "" && s.GetTopic() == letters, "its topic is that of the dead-letter queue of OnDecodeFailure, so that what cannot be decoded would come again for ever, as its own dead letter; send dead letters to another topic than "+letters)
	return faults
}

// deliversBy names the way by which a subscription delivers, if it is not pull.
func deliversBy(s *pubsubpb.Subscription) string {
	switch {
	case s.GetPushConfig().GetPushEndpoint() != "":
		return "push"
	case s.GetBigqueryConfig() != nil:
		return "export to BigQuery"
	case s.GetCloudStorageConfig() != nil:
		return "export to Cloud Storage"
	case s.GetBigtableConfig() != nil:
		return "export to Bigtable"
	}
	return ""
}

// broken reports whether a subscription in that state delivers nothing. Servers that
// tell no state are emulators.
func broken(state pubsubpb.Subscription_State) bool {
	return state != pubsubpb.Subscription_ACTIVE && state != pubsubpb.Subscription_STATE_UNSPECIFIED
}

// maxNamed is how many names a warning holds.
const maxNamed = 5

// warnUnseen says once what was assumed of subscriptions that may not be looked up.
// It is no fault to read with roles/pubsub.subscriber alone, which may pull and may
// not look.
func (s *startup) warnUnseen() {
	var names []string
	for _, c := range s.candidates {
		if c.unseen {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	n := len(names)
	if n > maxNamed {
		names = append(names[:maxNamed], fmt.Sprintf("and %d more", n-maxNamed))
	}
	warn("subscriptions may not be looked up, so nothing of them was checked; grant pubsub.subscriptions.get, as roles/pubsub.viewer has it",
		"subscriptions", strings.Join(names, ", "), "assumed", s.config.assumption())
}

// assumption is what unfit would have checked.
func (c Config) assumption() string {
	text := "each exists, is attached to a topic, delivers by pull and not exactly once"
	if c.Ordering == options.PerKey {
		text += ", has message ordering"
	}
	if c.OnDecodeFailure.kind == nack {
		text += ", has a dead-letter policy"
	}
	if letters := c.OnDecodeFailure.topic(); letters != "" {
		text += ", is not one of " + letters + ", where its dead letters go"
	}
	return text
}
