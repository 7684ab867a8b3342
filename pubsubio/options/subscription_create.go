package options

import (
	"fmt"
	"time"
	"unicode/utf8"
)

// Bounds of a subscription's settings, from "Subscription properties" in the
// Pub/Sub documentation
// (https://cloud.google.com/pubsub/docs/subscription-properties) and the comments
// of its API.
const (
	minAckDeadline           = 10 * time.Second
	maxAckDeadline           = 10 * time.Minute
	minSubscriptionRetention = 10 * time.Minute
	maxSubscriptionRetention = 31 * 24 * time.Hour
	minExpirationTTL         = 24 * time.Hour
	minDeliveryAttempts      = 5
	maxDeliveryAttempts      = 100
	maxFilterBytes           = 256
)

// SubscriptionCreate holds the settings of a subscription that a read creates when
// it starts and the subscription does not exist. They are applied at creation only:
// a subscription that exists keeps its own, and is never compared with these.
//
// The workers' account needs pubsub.subscriptions.create on the subscription's
// project and pubsub.topics.attachSubscription on the topic, both of which
// roles/pubsub.editor has.
//
// A subscription gets what is published after its creation, and what the topic
// itself retains from before where the read starts at [EarliestRetained] or
// [FromTimestamp]. Nobody deletes it when the job has ended: it goes on collecting
// messages until it expires. Exactly-once delivery is not offered, since a read
// refuses a subscription that has it.
type SubscriptionCreate struct {
	// Topic is the full name of the topic, projects/<project>/topics/<id>, which must
	// exist. Required. Its project may be another than the subscription's.
	Topic string

	// AckDeadline is how long the service waits for an acknowledgement before it
	// delivers a message again, in whole seconds, 10 s to 10 min. Default: the
	// service's 10 s. It is for other consumers of the subscription: the streams of a
	// read bring their own.
	AckDeadline time.Duration

	// EnableMessageOrdering has messages of an ordering key delivered in the order in
	// which they were published. Default false. Ordering PerKey needs it, and it
	// cannot be changed once the subscription exists.
	EnableMessageOrdering bool

	// MessageRetention is how long the subscription keeps messages that are not
	// acknowledged, from their publishing on, 10 min to 31 days. Default: the
	// service's 7 days. With RetainAckedMessages it is how long any message is kept.
	MessageRetention time.Duration

	// RetainAckedMessages keeps acknowledged messages, too, for MessageRetention, so
	// that a later read that starts at [EarliestRetained] or [FromTimestamp] gets them
	// again. Default false. The service charges for their storage.
	RetainAckedMessages bool

	// ExpirationTTL is how long the subscription may go without use before the service
	// deletes it, with all that it holds, at least 24 h. Default: the service's 31
	// days. An open stream is use; a job that is stopped for longer loses the
	// subscription. The service may ask for more than MessageRetention. Refused beside
	// NeverExpire.
	ExpirationTTL time.Duration

	// NeverExpire keeps the subscription until somebody deletes it. Default false.
	NeverExpire bool

	// DeadLetterPolicy forwards a message that was delivered too often to another
	// topic. Default: none, and a message that is never acknowledged comes again until
	// its retention ends. OnDecodeFailure Nack needs it.
	DeadLetterPolicy *DeadLetterPolicy

	// Filter is an expression of the service's filter language over attributes, as
	// attributes.region = "eu", of at most 256 bytes
	// (https://cloud.google.com/pubsub/docs/subscription-message-filter). The service
	// acknowledges what does not match, and nobody reads it. Default: every message is
	// delivered. It cannot be changed once the subscription exists.
	Filter string
}

// A DeadLetterPolicy says when the service gives up delivering a message, and where
// it then publishes it.
type DeadLetterPolicy struct {
	// Topic is the full name of the topic that takes the messages,
	// projects/<project>/topics/<id>, which must exist. Required. It needs a
	// subscription, or what is forwarded is lost. The service's own account of the
	// subscription's project,
	// service-<project number>@gcp-sa-pubsub.iam.gserviceaccount.com, needs
	// roles/pubsub.publisher on it and roles/pubsub.subscriber on the subscription:
	// without them nothing is forwarded, and the message is delivered for ever.
	Topic string

	// MaxDeliveryAttempts is how many deliveries a message gets at most, counted by the
	// service as well as it can, 5 to 100. Default: the service's 5. Deliveries count
	// that a failed bundle or a stopped read has returned.
	MaxDeliveryAttempts int
}

// Faults records in f each rule that c breaks; field is how its user names it. The
// names of topics are the caller's to check.
func (c SubscriptionCreate) Faults(f *Faults, field string) {
	in := field + "."
	if d := c.AckDeadline; d != 0 && (d < minAckDeadline || d > maxAckDeadline || d%time.Second != 0) {
		f.Add(in+"AckDeadline", d, fmt.Sprintf("must be whole seconds, %v to %v", minAckDeadline, maxAckDeadline))
	}
	if d := c.MessageRetention; d != 0 && (d < minSubscriptionRetention || d > maxSubscriptionRetention) {
		f.Add(in+"MessageRetention", d, fmt.Sprintf("must be %v to %v", minSubscriptionRetention, maxSubscriptionRetention))
	}
	if d := c.ExpirationTTL; d != 0 && d < minExpirationTTL {
		f.Add(in+"ExpirationTTL", d, fmt.Sprintf("must be at least %v; NeverExpire is for a subscription that stays", minExpirationTTL))
	}
	if c.ExpirationTTL != 0 && c.NeverExpire {
		f.Add(in+"ExpirationTTL", c.ExpirationTTL, "must be unset beside NeverExpire")
	}
	if p := c.DeadLetterPolicy; p != nil {
		if n := p.MaxDeliveryAttempts; n != 0 && (n < minDeliveryAttempts || n > maxDeliveryAttempts) {
			f.Add(in+"DeadLetterPolicy.MaxDeliveryAttempts", n, fmt.Sprintf("must be %d to %d", minDeliveryAttempts, maxDeliveryAttempts))
		}
	}
	switch {
	case len(c.Filter) > maxFilterBytes:
		f.Add(in+"Filter", fmt.Sprintf("(%d bytes)", len(c.Filter)), fmt.Sprintf("must have at most %d bytes", maxFilterBytes))
	case !utf8.ValidString(c.Filter):
		f.Add(in+"Filter", fmt.Sprintf("%q", c.Filter), "must be valid UTF-8")
	}
}
