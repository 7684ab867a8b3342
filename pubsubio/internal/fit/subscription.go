package fit

import (
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/gcloud"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// A Read is what a read asks of its subscriptions.
type Read struct {
	// Ordered is set where the order of a key is kept.
	Ordered bool
	// Nacks is set where messages are returned that would come again for ever without
	// a dead-letter policy.
	Nacks bool
	// Letters is the topic of the dead-letter queue; "" if there is none.
	Letters string
}

// Faults says all that keeps a subscription from being read so.
func (r Read) Faults(s *pubsubpb.Subscription) []Fault {
	var faults []Fault
	add := func(wrong bool, text, remedy string, commands ...string) {
		if wrong {
			faults = append(faults, Fault{text, remedy, commands})
		}
	}
	name := s.GetName()
	another := gcloud.CreateSubscription(beside(name, "-pull"), r.likeIt(s))
	add(s.GetDetached(), "is detached from its topic: it holds no messages and gets none", "create another subscription and read that", another)
	add(s.GetTopic() == DeletedTopic, "its topic is deleted: it gets no messages any more, also if a topic of that name is created", "create another subscription and read that", another)
	if way := deliversBy(s); way != "" {
		add(true, "delivers by "+way+", so that nothing can be pulled from it", "read a subscription that delivers by pull", another)
	} else {
		add(broken(s.GetState()), "is in state "+s.GetState().String()+", in which it delivers nothing", "mend what the service tells of it, as by gcloud pubsub subscriptions describe", gcloud.Describe(name))
	}
	add(s.GetEnableExactlyOnceDelivery(), "has exactly-once delivery, with which the service refuses acknowledgements that come late, as a runner's commit may",
		"turn it off with gcloud pubsub subscriptions update --no-enable-exactly-once-delivery", gcloud.UpdateSubscription(name, "--no-enable-exactly-once-delivery"))
	add(r.Ordered && !s.GetEnableMessageOrdering(), "has no message ordering, which Ordering options.PerKey needs and which cannot be added",
		"create another subscription with options.SubscriptionCreate.EnableMessageOrdering, or read with options.Unordered", gcloud.CreateSubscription(beside(name, "-ordered"), r.likeIt(s)))
	add(r.Nacks && s.GetDeadLetterPolicy().GetDeadLetterTopic() == "", "has no dead-letter policy, so that with OnDecodeFailure source.Nack() what cannot be decoded would come again for ever",
		"add one with gcloud pubsub subscriptions update --dead-letter-topic, or choose another policy", forwarding(s)...)
	add(r.Letters != "" && s.GetTopic() == r.Letters, "its topic is that of the dead-letter queue of OnDecodeFailure, so that what cannot be decoded would come again for ever, as its own dead letter",
		"send dead letters to another topic than "+r.Letters)
	return faults
}

// Assumed is what Faults would have checked of a subscription that nobody may look up:
// the end of a sentence that begins with its name.
func (r Read) Assumed() string {
	text := "exists, is attached to a topic, delivers by pull and not exactly once"
	if r.Ordered {
		text += ", has message ordering"
	}
	if r.Nacks {
		text += ", has a dead-letter policy"
	}
	if r.Letters != "" {
		text += ", is not one of " + r.Letters + ", where its dead letters go"
	}
	return text
}

// likeIt are the settings of a subscription in the place of s.
func (r Read) likeIt(s *pubsubpb.Subscription) options.SubscriptionCreate {
	c := options.SubscriptionCreate{
		Topic:                 s.GetTopic(),
		EnableMessageOrdering: r.Ordered || s.GetEnableMessageOrdering(),
		RetainAckedMessages:   s.GetRetainAckedMessages(),
		Filter:                s.GetFilter(),
	}
	if c.Topic == DeletedTopic {
		c.Topic = "TOPIC" // Nobody knows which.
	}
	if p := s.GetDeadLetterPolicy(); p.GetDeadLetterTopic() != "" {
		c.DeadLetterPolicy = &options.DeadLetterPolicy{Topic: p.GetDeadLetterTopic(), MaxDeliveryAttempts: int(p.GetMaxDeliveryAttempts())}
	}
	return c
}

// forwarding are the commands that give s a dead-letter policy, and the service's own
// account what that needs: without the grants nothing is forwarded.
func forwarding(s *pubsubpb.Subscription) []string {
	letters := beside("projects/"+project(s.GetName())+"/topics/"+id(s.GetName()), "-dead-letters")
	commands := append(newLetters(letters), gcloud.UpdateSubscription(s.GetName(), "--dead-letter-topic="+letters))
	return append(commands, Forwards(s.GetName(), letters)...)
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
