package pubsubtest

import (
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// settings are the part of a subscription that may change.
type settings struct {
	config      *pubsubpb.Subscription // as clients see it
	exactlyOnce bool
	retainAcked bool
	unpullable  error // the answer to pulls, nil where they get messages
	deadline    int32 // of a lease, in lease seconds
	// deadLetterTopic is empty without a dead-letter policy.
	deadLetterTopic string
	maxAttempts     uint32
}

func settingsOf(config *pubsubpb.Subscription) *settings {
	policy := config.GetDeadLetterPolicy()
	return &settings{
		config:          config,
		exactlyOnce:     config.GetEnableExactlyOnceDelivery(),
		retainAcked:     config.GetRetainAckedMessages(),
		unpullable:      unpullable(config),
		deadline:        config.GetAckDeadlineSeconds(),
		deadLetterTopic: policy.GetDeadLetterTopic(),
		maxAttempts:     uint32(policy.GetMaxDeliveryAttempts()),
	}
}

// deliversBy names the ways other than pulls by which a subscription is to deliver,
// of which it may have one.
func deliversBy(config *pubsubpb.Subscription) (ways []string) {
	if config.GetPushConfig().GetPushEndpoint() != "" {
		ways = append(ways, "push")
	}
	if config.GetBigqueryConfig() != nil {
		ways = append(ways, "BigQuery")
	}
	if config.GetCloudStorageConfig() != nil {
		ways = append(ways, "Cloud Storage")
	}
	if config.GetBigtableConfig() != nil {
		ways = append(ways, "Bigtable")
	}
	return ways
}

// unpullable is the answer to a pull from a subscription that is detached or that
// delivers in another way: this server then delivers nothing.
func unpullable(config *pubsubpb.Subscription) error {
	if config.GetDetached() {
		return errDetached
	}
	if ways := deliversBy(config); len(ways) > 0 {
		// The wording for push is the service's.
		return status.Errorf(codes.FailedPrecondition, "This method is not supported for %s subscriptions.", ways[0])
	}
	return nil
}

// topicDeleted makes the subscription say that its topic is gone.
func (q *subscription) topicDeleted() {
	_, _ = q.update(func(config *pubsubpb.Subscription) error {
		config.Topic = deletedTopic
		return nil
	})
}

// update replaces the settings by those that f makes of a copy, unless it fails,
// and returns the configuration that holds now.
func (q *subscription) update(f func(*pubsubpb.Subscription) error) (*pubsubpb.Subscription, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	config := proto.CloneOf(q.proto())
	if err := f(config); err != nil {
		return nil, err
	}
	q.settings.Store(settingsOf(config))
	if !config.GetRetainAckedMessages() {
		q.retained = nil
	}
	return config, nil
}

func (q *subscription) proto() *pubsubpb.Subscription { return q.settings.Load().config }
