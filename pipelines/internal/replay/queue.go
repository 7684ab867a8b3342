package replay

import (
	"context"
	"fmt"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/check"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// withQueue returns s with the subscription's own topic, where it may be known, and the one
// that letters go to which fail again: where no flag says so, the same. It is an error where
// they would be lost there, or go round in circles.
func withQueue(ctx context.Context, s settings, screen *program.Console) (settings, error) {
	found, err := program.Check(ctx, s.use())
	if err != nil {
		return s, err
	}
	subscription := resource(found, s.subscription)
	if _, err := message.ParseTopic(subscription.Topic); err == nil {
		s.ownTopic = subscription.Topic
	}
	if s.queueTopic == "" {
		if s.ownTopic == "" {
			return s, fmt.Errorf("what fails again goes to the topic of %s, which the account may not look up (pubsub.subscriptions.get); grant roles/pubsub.viewer, or give --dead_letter_topic", s.subscription)
		}
		s.queueTopic = s.ownTopic
		if found, err = program.Check(ctx, s.use()); err != nil {
			return s, err
		}
	}
	if err := s.validate(); err != nil {
		return s, err
	}
	if resource(found, s.queueTopic).Unread {
		return s, fmt.Errorf("--dead_letter_topic: %s has no subscription, so that what fails again would be lost; create one, or leave the flag out", s.queueTopic)
	}
	if n := subscription.MaxDeliveryAttempts; n > 0 {
		fmt.Fprintf(screen, "warning: the subscription's own dead-letter policy forwards what was delivered %d times; each run, and each --dry_run, is a delivery of every letter that it leaves\n", n)
	}
	return s, nil
}

// resource is the one of that name, or nothing.
func resource(r check.Report, name string) check.Resource {
	for _, res := range r.Resources {
		if res.Name == name {
			return res
		}
	}
	return check.Resource{}
}
