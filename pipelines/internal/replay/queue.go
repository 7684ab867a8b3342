package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/check"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// lookUp returns s with the subscription's own topic, where it may be known, and the one
// that letters go to which fail again: where no flag says so, the same. The error is that of
// the check, and says what is wrong with what the flags name.
func lookUp(ctx context.Context, s settings) (settings, error) {
	found, err := program.Check(ctx, s.use())
	if topic := resource(found, s.subscription).Topic; topic != "" {
		if _, err := message.ParseTopic(topic); err == nil {
			s.ownTopic = topic
		}
	}
	s.queueTopic = cmp.Or(s.queueTopic, s.ownTopic)
	return s, err
}

// withQueue is lookUp before a read: it is an error where letters that fail again would
// go round in circles, or where nobody can say where they go.
func withQueue(ctx context.Context, s settings, screen *program.Console) (settings, error) {
	s, err := lookUp(ctx, s)
	if err != nil {
		return s, err
	}
	if s.queueTopic == "" {
		return s, fmt.Errorf("what fails again goes to the topic of %s, of which the service has told nothing, or which the account may not look up (pubsub.subscriptions.get); grant roles/pubsub.viewer, or give --dead_letter_topic", s.subscription)
	}
	found, err := program.Check(ctx, s.use())
	if err = errors.Join(err, s.validate()); err != nil {
		return s, err
	}
	if n := resource(found, s.subscription).MaxDeliveryAttempts; n > 0 {
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
