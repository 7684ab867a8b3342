package source

import (
	"context"
	"fmt"
	"log/slog"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/iam"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
)

// The acts of a startup, as its errors name them.
const (
	lookingUp = "look up"
	creating  = "create"
	seeking   = "seek"
)

// resolve finds a subscription, or creates it where it is missing and Create says
// so. One that may not be looked up is left to the assumption that it is as it
// should be.
func (s *startup) resolve(ctx context.Context, c *candidate) error {
	if !c.toCreate {
		done, err := s.lookUp(ctx, c)
		if done || err != nil {
			return err
		}
	}
	c.act = creating
	created, err := s.calls.create(ctx, c.Name, *c.Create)
	c.noteCreation(ctx, err)
	switch status.Code(err) { //nolint:exhaustive // any other is an error
	case codes.OK:
		c.found, c.unseen = created, false
		return nil
	case codes.AlreadyExists:
		// Somebody was quicker: another job, or this startup, whose answer was lost.
		c.toCreate, c.exists = false, true
		if c.unseen {
			return nil
		}
		_, err := s.lookUp(ctx, c)
		return err
	}
	return err
}

// noteCreation notes what the answer to a creation says of who has created c, and logs
// it once. An answer that was lost, or cut off, may have been a success; that c exists
// then says so.
func (c *candidate) noteCreation(ctx context.Context, err error) {
	exists := status.Code(err) == codes.AlreadyExists && c.created
	if err == nil || exists {
		slog.Info("source: subscription created", "subscription", c.Name, "topic", c.Create.Topic)
	}
	switch transport.Classify(ctx, err) {
	case transport.Retryable, transport.Ended:
		c.created = true
	default:
		c.created = c.created || err == nil
	}
}

// lookUp asks for a subscription, and reports whether that is all there is to do
// about it: without an error, and if not, it is to be created.
func (s *startup) lookUp(ctx context.Context, c *candidate) (done bool, err error) {
	c.act = lookingUp
	found, err := s.calls.get(ctx, c.Name)
	switch code := status.Code(err); {
	case code == codes.OK:
		c.found = found
		return true, nil
	case code == codes.PermissionDenied:
		c.unseen = true
	case code != codes.NotFound:
		return false, err
	}
	c.toCreate = c.Create != nil && !c.exists
	if c.toCreate {
		return false, nil
	}
	if c.unseen {
		return true, nil
	}
	return false, err
}

// explain says why the last step about c was refused, and what mends it.
func (c *candidate) explain() string {
	answer := transport.Describe(c.err)
	missing := status.Code(c.err) == codes.NotFound
	denied := status.Code(c.err) == codes.PermissionDenied
	switch {
	case missing && c.act == creating:
		return fmt.Sprintf("cannot be created: %s; create the topic %s first%s", answer, c.Create.Topic, orDeadLetterTopic(c))
	case missing && c.exists:
		return "exists, and is not found: " + answer + "; start the job again in a moment"
	case missing:
		return "does not exist: " + answer + "; check its name, create it, or set Create in its source.Subscription"
	case denied && c.act == creating:
		text := fmt.Sprintf("cannot be created: %s; grant roles/pubsub.editor (permissions pubsub.subscriptions.create on its project and pubsub.topics.attachSubscription on %s) to the account that the workers run as", answer, c.Create.Topic)
		if c.unseen {
			text += ", or, where the subscription exists, leave out Create or grant pubsub.subscriptions.get"
		}
		return text
	case c.act == creating:
		return "cannot be created: " + answer + "; change the options.SubscriptionCreate in its source.Subscription, or create it otherwise"
	case c.act == seeking:
		return "cannot be moved to source.Config.StartPosition: " + answer + clause(transport.Remedy(c.err, iam.Consume))
	default:
		return "cannot be looked up: " + answer + clause(transport.Remedy(c.err, iam.GetSubscription))
	}
}

func orDeadLetterTopic(c *candidate) string {
	if c.Create.DeadLetterPolicy == nil {
		return ""
	}
	return ", and that of its dead letters, " + c.Create.DeadLetterPolicy.Topic
}
