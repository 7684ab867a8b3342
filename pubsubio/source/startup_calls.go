package source

import (
	"context"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// startupCalls are the startup's calls to the service, each about one subscription.
type startupCalls struct {
	get    func(ctx context.Context, name string) (*pubsubpb.Subscription, error)
	create func(ctx context.Context, name string, with options.SubscriptionCreate) (*pubsubpb.Subscription, error)
	seek   func(ctx context.Context, name string, to time.Time) error
	remove func(ctx context.Context, name string) error // when all is over, see FromTopic
	close  func()
}

// dialStartup connects a startup, however many subscriptions it has: over the one
// connection that the readers of this process settle messages on.
func dialStartup(cfg Config) (startupCalls, error) {
	conn, err := transport.Dial(cfg.connection(), transport.Settling)
	if err != nil {
		return startupCalls{}, err
	}
	c := startupCallsOver(conn.Subscriber())
	c.close = func() { _ = conn.Close() } // Nothing is under way on it.
	return c, nil
}

func startupCallsOver(client pubsubpb.SubscriberClient) startupCalls {
	return startupCalls{
		get: func(ctx context.Context, name string) (*pubsubpb.Subscription, error) {
			return client.GetSubscription(transport.WithSubscription(ctx, name), &pubsubpb.GetSubscriptionRequest{Subscription: name})
		},
		create: func(ctx context.Context, name string, with options.SubscriptionCreate) (*pubsubpb.Subscription, error) {
			ctx = transport.WithName(transport.WithSubscription(ctx, name), name)
			return client.CreateSubscription(ctx, subscriptionWith(name, with))
		},
		seek: func(ctx context.Context, name string, to time.Time) error {
			_, err := client.Seek(transport.WithSubscription(ctx, name), &pubsubpb.SeekRequest{
				Subscription: name, Target: &pubsubpb.SeekRequest_Time{Time: timestamppb.New(to)},
			})
			return err
		},
		remove: func(ctx context.Context, name string) error {
			_, err := client.DeleteSubscription(transport.WithSubscription(ctx, name), &pubsubpb.DeleteSubscriptionRequest{Subscription: name})
			return err
		},
	}
}

// subscriptionWith returns the subscription of that name and those settings as the
// service is asked for it. What is unset stays the service's to choose.
func subscriptionWith(name string, c options.SubscriptionCreate) *pubsubpb.Subscription {
	s := &pubsubpb.Subscription{
		Name:                  name,
		Topic:                 c.Topic,
		AckDeadlineSeconds:    int32(c.AckDeadline / time.Second),
		EnableMessageOrdering: c.EnableMessageOrdering,
		RetainAckedMessages:   c.RetainAckedMessages,
		Filter:                c.Filter,
	}
	if c.MessageRetention != 0 {
		s.MessageRetentionDuration = durationpb.New(c.MessageRetention)
	}
	switch {
	case c.NeverExpire:
		s.ExpirationPolicy = &pubsubpb.ExpirationPolicy{} // Without a TTL it is never.
	case c.ExpirationTTL != 0:
		s.ExpirationPolicy = &pubsubpb.ExpirationPolicy{Ttl: durationpb.New(c.ExpirationTTL)}
	}
	if p := c.DeadLetterPolicy; p != nil {
		s.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{DeadLetterTopic: p.Topic, MaxDeliveryAttempts: int32(p.MaxDeliveryAttempts)}
	}
	return s
}
