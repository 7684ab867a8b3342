package pubsubtest

import (
	"strings"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

func (s *Server) createSubscription(req *pubsubpb.Subscription) (*pubsubpb.Subscription, error) {
	if _, err := message.ParseSubscription(req.GetName()); err != nil {
		return nil, badName(err)
	}
	if _, err := message.ParseTopic(req.GetTopic()); err != nil {
		return nil, badName(err)
	}
	f, err := parseFilter(req.GetFilter())
	if err != nil {
		return nil, err
	}
	config := proto.CloneOf(req)
	if config.GetAckDeadlineSeconds() == 0 {
		config.AckDeadlineSeconds = defaultAckDeadline
	}
	if config.GetMessageRetentionDuration() == nil {
		config.MessageRetentionDuration = durationpb.New(defaultRetention)
	}
	if config.GetExpirationPolicy() == nil {
		config.ExpirationPolicy = &pubsubpb.ExpirationPolicy{Ttl: durationpb.New(defaultExpiration)}
	}
	config.State, config.Detached = pubsubpb.Subscription_ACTIVE, false
	if err := checkSubscription(config); err != nil {
		return nil, err
	}
	sub := newSubscription(s, config, f)
	if err := s.resources.addSubscription(sub, config.GetTopic()); err != nil {
		return nil, err
	}
	return sub.proto(), nil
}

// checkSubscription applies the service's rules to a subscription's
// configuration, and fills in what a dead-letter policy leaves out.
func checkSubscription(config *pubsubpb.Subscription) error {
	if len(deliversBy(config)) > 1 {
		return invalid("A subscription delivers in one way: %s were asked for.", strings.Join(deliversBy(config), " and "))
	}
	if err := checkAckDeadline(config.GetAckDeadlineSeconds()); err != nil {
		return err
	}
	if d := config.GetMessageRetentionDuration().AsDuration(); d < minRetention || d > maxRetention {
		return outOfRange("message retention duration", d, minRetention, maxRetention)
	}
	if ttl := config.GetExpirationPolicy().GetTtl(); ttl != nil && ttl.AsDuration() < minExpiration {
		return invalid("Invalid expiration policy: (ttl=%v). It must be at least %v.", ttl.AsDuration(), minExpiration)
	}
	if p := config.GetRetryPolicy(); p != nil {
		for _, d := range []*durationpb.Duration{p.GetMinimumBackoff(), p.GetMaximumBackoff()} {
			if d.AsDuration() < 0 || d.AsDuration() > maxRetryBackoff {
				return outOfRange("retry backoff", d.AsDuration(), 0, maxRetryBackoff)
			}
		}
	}
	return checkDeadLetterPolicy(config.GetDeadLetterPolicy())
}

func checkDeadLetterPolicy(p *pubsubpb.DeadLetterPolicy) error {
	if p == nil {
		return nil
	}
	if p.GetMaxDeliveryAttempts() == 0 {
		p.MaxDeliveryAttempts = defaultDeliveryAttempts
	}
	if n := p.GetMaxDeliveryAttempts(); n < minDeliveryAttempts || n > maxDeliveryAttempts {
		return invalid("Invalid maximum delivery attempts (%d): must be between %d and %d.", n, minDeliveryAttempts, maxDeliveryAttempts)
	}
	if _, err := message.ParseTopic(p.GetDeadLetterTopic()); err != nil {
		return badName(err)
	}
	return nil
}

func checkAckDeadline(seconds int32) error {
	if seconds < minAckDeadline || seconds > maxAckDeadline {
		return invalid("Invalid ack deadline given: (ackDeadlineSeconds=%d). Ack deadline must be between %d and %d seconds.",
			seconds, minAckDeadline, maxAckDeadline)
	}
	return nil
}

// subscriptionUpdates are the fields that UpdateSubscription may change.
var subscriptionUpdates = []string{
	"ack_deadline_seconds", "retain_acked_messages", "message_retention_duration", "labels", "expiration_policy",
	"dead_letter_policy", "retry_policy", "enable_exactly_once_delivery", "push_config",
}

func (s *Server) updateSubscription(req *pubsubpb.UpdateSubscriptionRequest) (*pubsubpb.Subscription, error) {
	sub, err := s.resources.subscription(req.GetSubscription().GetName())
	if err != nil {
		return nil, err
	}
	return sub.update(func(config *pubsubpb.Subscription) error {
		if err := applyMask(config, req.GetSubscription(), req.GetUpdateMask().GetPaths(), subscriptionUpdates); err != nil {
			return err
		}
		return checkSubscription(config)
	})
}

func (s *Server) getSubscription(req *pubsubpb.GetSubscriptionRequest) (*pubsubpb.Subscription, error) {
	sub, err := s.resources.subscription(req.GetSubscription())
	if err != nil {
		return nil, err
	}
	return s.described(sub), nil
}

// described is a subscription's configuration with what its topic adds.
func (s *Server) described(sub *subscription) *pubsubpb.Subscription {
	config := sub.proto()
	t, err := s.resources.topic(config.GetTopic())
	if err != nil || t.proto().GetMessageRetentionDuration() == nil {
		return config
	}
	config = proto.CloneOf(config)
	config.TopicMessageRetentionDuration = t.proto().GetMessageRetentionDuration()
	return config
}

func (s *Server) listSubscriptions(req *pubsubpb.ListSubscriptionsRequest) (*pubsubpb.ListSubscriptionsResponse, error) {
	names, next, err := page(s.resources.subscriptionNames(req.GetProject()), req.GetPageToken(), req.GetPageSize())
	if err != nil {
		return nil, err
	}
	resp := &pubsubpb.ListSubscriptionsResponse{NextPageToken: next}
	for _, name := range names {
		if sub, err := s.resources.subscription(name); err == nil {
			resp.Subscriptions = append(resp.Subscriptions, s.described(sub))
		}
	}
	return resp, nil
}

func (s *Server) deleteSubscription(req *pubsubpb.DeleteSubscriptionRequest) (*emptypb.Empty, error) {
	sub, err := s.resources.removeSubscription(req.GetSubscription())
	if err != nil {
		return nil, err
	}
	if t, err := s.resources.topic(sub.proto().GetTopic()); err == nil {
		t.detach(sub)
	}
	sub.close()
	sub.endStreams(notFound(sub.name))
	return &emptypb.Empty{}, nil
}

func (s *Server) seek(req *pubsubpb.SeekRequest) (*pubsubpb.SeekResponse, error) {
	sub, err := s.resources.subscription(req.GetSubscription())
	if err != nil {
		return nil, err
	}
	switch target := req.GetTarget().(type) {
	case *pubsubpb.SeekRequest_Time:
		if err := target.Time.CheckValid(); err != nil {
			return nil, invalid("Invalid seek time: %v.", err)
		}
		sub.seek(target.Time.AsTime())
	case *pubsubpb.SeekRequest_Snapshot:
		return nil, notFound(target.Snapshot) // there are none
	default:
		return nil, invalid("A seek needs a time or a snapshot.")
	}
	return &pubsubpb.SeekResponse{}, nil
}
