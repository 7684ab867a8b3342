package program

import (
	"context"
	"errors"
	"fmt"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/check"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// TopicOf asks the service for the topic of a subscription. A service that cannot be
// reached is given five seconds.
func TopicOf(ctx context.Context, c options.Connection, subscription string) (string, error) {
	r, err := Check(ctx, Use{Sources: []source.Config{{
		Subscriptions:         source.From(subscription),
		EmulatorEndpoint:      c.EmulatorEndpoint,
		Endpoint:              c.Endpoint,
		ServiceAccountKeyFile: c.ServiceAccountKeyFile,
	}}})
	switch {
	case len(r.Resources) == 0: // Nothing was found out.
		return "", err
	case r.Resources[0].State == check.Unseen:
		return "", errors.New("the account may not look (pubsub.subscriptions.get); grant roles/pubsub.viewer")
	case r.Resources[0].Topic == "":
		return "", err
	}
	topic := r.Resources[0].Topic
	if _, err := message.ParseTopic(topic); err != nil {
		return "", fmt.Errorf("the subscription's topic is %s", topic)
	}
	return topic, nil
}
