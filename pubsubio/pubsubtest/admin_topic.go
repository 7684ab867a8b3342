package pubsubtest

import (
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

func (s *Server) createTopic(req *pubsubpb.Topic) (*pubsubpb.Topic, error) {
	if _, err := message.ParseTopic(req.GetName()); err != nil {
		return nil, badName(err)
	}
	if err := checkTopic(req); err != nil {
		return nil, err
	}
	t := newTopic(s, req)
	if err := s.resources.addTopic(t); err != nil {
		return nil, err
	}
	return t.proto(), nil
}

// checkTopic applies the service's rules to a topic's configuration.
func checkTopic(config *pubsubpb.Topic) error {
	if d := config.GetMessageRetentionDuration(); d != nil && (d.AsDuration() < minRetention || d.AsDuration() > maxRetention) {
		return outOfRange("message retention duration", d.AsDuration(), minRetention, maxRetention)
	}
	if p := config.GetMessageStoragePolicy(); p != nil && len(p.GetAllowedPersistenceRegions()) == 0 {
		return invalid("A message storage policy must allow at least one region.")
	}
	return nil
}

// topicUpdates are the fields that UpdateTopic may change.
var topicUpdates = []string{
	"labels", "message_storage_policy", "kms_key_name", "schema_settings", "message_retention_duration",
	"ingestion_data_source_settings", "message_transforms",
}

func (s *Server) updateTopic(req *pubsubpb.UpdateTopicRequest) (*pubsubpb.Topic, error) {
	t, err := s.resources.topic(req.GetTopic().GetName())
	if err != nil {
		return nil, err
	}
	return t.update(func(config *pubsubpb.Topic) error {
		if err := applyMask(config, req.GetTopic(), req.GetUpdateMask().GetPaths(), topicUpdates); err != nil {
			return err
		}
		return checkTopic(config)
	})
}

func (s *Server) getTopic(req *pubsubpb.GetTopicRequest) (*pubsubpb.Topic, error) {
	t, err := s.resources.topic(req.GetTopic())
	if err != nil {
		return nil, err
	}
	return t.proto(), nil
}

func (s *Server) listTopics(req *pubsubpb.ListTopicsRequest) (*pubsubpb.ListTopicsResponse, error) {
	names, next, err := page(s.resources.topicNames(req.GetProject()), req.GetPageToken(), req.GetPageSize())
	if err != nil {
		return nil, err
	}
	resp := &pubsubpb.ListTopicsResponse{NextPageToken: next}
	for _, name := range names {
		if t, err := s.resources.topic(name); err == nil {
			resp.Topics = append(resp.Topics, t.proto())
		}
	}
	return resp, nil
}

func (s *Server) listTopicSubscriptions(req *pubsubpb.ListTopicSubscriptionsRequest) (*pubsubpb.ListTopicSubscriptionsResponse, error) {
	t, err := s.resources.topic(req.GetTopic())
	if err != nil {
		return nil, err
	}
	names, next, err := page(t.subscriptionNames(), req.GetPageToken(), req.GetPageSize())
	if err != nil {
		return nil, err
	}
	return &pubsubpb.ListTopicSubscriptionsResponse{Subscriptions: names, NextPageToken: next}, nil
}

func (s *Server) deleteTopic(req *pubsubpb.DeleteTopicRequest) (*emptypb.Empty, error) {
	t, err := s.resources.removeTopic(req.GetTopic())
	if err != nil {
		return nil, err
	}
	for _, sub := range t.takeSubscriptions() {
		sub.topicDeleted()
	}
	return &emptypb.Empty{}, nil
}

func (s *Server) detachSubscription(req *pubsubpb.DetachSubscriptionRequest) (*pubsubpb.DetachSubscriptionResponse, error) {
	sub, err := s.resources.subscription(req.GetSubscription())
	if err != nil {
		return nil, err
	}
	if t, err := s.resources.topic(sub.proto().GetTopic()); err == nil {
		t.detach(sub)
	}
	sub.detach()
	return &pubsubpb.DetachSubscriptionResponse{}, nil
}
