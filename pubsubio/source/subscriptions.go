package source

import (
	"fmt"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// subscriptionFaults records what is wrong with Subscriptions as far as c alone
// tells; what the service knows of them, the startup finds out.
func (c Config) subscriptionFaults(f *options.Faults) {
	if len(c.Subscriptions) == 0 {
		f.Add("source.Config.Subscriptions", "[]", "must name at least one subscription")
	}
	seen := make(map[string]bool)
	for i, s := range c.Subscriptions {
		field := fmt.Sprintf("source.Config.Subscriptions[%d]", i)
		if _, err := message.ParseSubscription(s.Name); err != nil {
			f.AddError(fmt.Errorf("%s: %w", field, err))
		} else if seen[s.Name] {
			f.Add(field, fmt.Sprintf("%q", s.Name), "must not be named twice: its messages are shared between the two, not doubled; use Splits to read it in parallel")
		}
		seen[s.Name] = true
		if s.Create != nil {
			c.createFaults(f, field+".Create", *s.Create)
		}
	}
}

// createFaults records what is wrong with the settings of a subscription, also
// beside those of the read: what would be created and then refused.
func (c Config) createFaults(f *options.Faults, field string, create options.SubscriptionCreate) {
	if _, err := message.ParseTopic(create.Topic); err != nil {
		f.AddError(fmt.Errorf("%s.Topic: %w", field, err))
	}
	create.Faults(f, field)
	if p := create.DeadLetterPolicy; p != nil {
		if _, err := message.ParseTopic(p.Topic); err != nil {
			f.AddError(fmt.Errorf("%s.DeadLetterPolicy.Topic: %w", field, err))
		}
	}
	if letters := c.OnDecodeFailure.topic(); letters != "" && create.Topic == letters {
		f.Add(field+".Topic", fmt.Sprintf("%q", create.Topic), "must be another topic than that of the dead-letter queue of OnDecodeFailure, or what cannot be decoded comes again for ever, as its own dead letter")
	}
	if c.Ordering == options.PerKey && !create.EnableMessageOrdering {
		f.Add(field+".EnableMessageOrdering", false, "must be true beside Ordering options.PerKey")
	}
	if c.OnDecodeFailure.kind == nack && create.DeadLetterPolicy == nil {
		f.Add(field+".DeadLetterPolicy", "(unset)", "must be set beside OnDecodeFailure source.Nack(), or what cannot be decoded comes again for ever")
	}
}
