package program

import (
	"context"
	"errors"
	"fmt"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// TopicOf asks the service for the topic of a subscription. A service that cannot be
// reached is given five seconds.
func TopicOf(ctx context.Context, c options.Connection, subscription string) (string, error) {
	conn, err := dial(ctx, c)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	var found *pubsubpb.Subscription
	err = checker{conn: conn, endpoint: endpoint(c)}.persist(ctx, func(ctx context.Context) (err error) {
		found, err = pubsubpb.NewSubscriberClient(conn).GetSubscription(ctx, &pubsubpb.GetSubscriptionRequest{Subscription: subscription})
		return err
	})
	switch code := status.Code(err); {
	case code == codes.PermissionDenied:
		return "", errors.New("the account may not look (pubsub.subscriptions.get); grant roles/pubsub.viewer")
	case err != nil:
		return "", err
	}
	if _, err := message.ParseTopic(found.GetTopic()); err != nil {
		return "", fmt.Errorf("the subscription's topic is %s", found.GetTopic())
	}
	return found.GetTopic(), nil
}
