package pubsubtest

import (
	"context"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
)

// pullWait is how long a Pull waits for a first message.
const pullWait = time.Second

func (s *Server) publish(req *publishRequest) (*publishResponse, error) {
	if req.refusal != nil {
		return nil, req.refusal
	}
	t, err := s.resources.topic(req.topic)
	if err != nil {
		return nil, err
	}
	return &publishResponse{first: t.publish(req.messages), n: len(req.messages)}, nil
}

func (s *Server) acknowledge(req *acknowledgeRequest) (*emptypb.Empty, error) {
	if req.refusal != nil {
		return nil, req.refusal
	}
	sub, err := s.resources.subscription(req.subscription)
	if err != nil {
		return nil, err
	}
	for _, id := range req.ids {
		if id.subscription != sub.number {
			return nil, invalidAckID(string(s.ackIDs().append(nil, id)))
		}
	}
	sub.acknowledge(req.ids)
	return &emptypb.Empty{}, nil
}

func (s *Server) modifyAckDeadline(req *pubsubpb.ModifyAckDeadlineRequest) (*emptypb.Empty, error) {
	if proto.Size(req) > maxAcknowledgeBytes {
		return nil, tooLarge(maxAcknowledgeBytes)
	}
	if err := checkExtension(req.GetAckDeadlineSeconds()); err != nil {
		return nil, err
	}
	sub, err := s.resources.subscription(req.GetSubscription())
	if err != nil {
		return nil, err
	}
	ids, err := parseAckIDs(req.GetAckIds(), sub.number)
	if err != nil {
		return nil, err
	}
	sub.extend(ids, req.GetAckDeadlineSeconds())
	return &emptypb.Empty{}, nil
}

func checkExtension(seconds int32) error {
	if seconds < 0 || seconds > maxAckDeadline {
		return invalid("Invalid ack deadline given: (ackDeadlineSeconds=%d). Ack deadline must be between 0 and %d seconds.", seconds, maxAckDeadline)
	}
	return nil
}

func (s *Server) pull(ctx context.Context, req *pubsubpb.PullRequest) (*pullResponse, error) {
	if req.GetMaxMessages() <= 0 {
		return nil, invalid("Invalid maximum messages given: (maxMessages=%d). It must be positive.", req.GetMaxMessages())
	}
	sub, err := s.resources.subscription(req.GetSubscription())
	if err != nil {
		return nil, err
	}
	if err := sub.settings.Load().unpullable; err != nil {
		return nil, err
	}
	c := newConsumer(sub.settings.Load().deadline, 0, 0)
	sub.join(c)
	defer sub.leave(c)
	limit := min(int(req.GetMaxMessages()), maxBatch)
	timer := time.NewTimer(pullWait)
	defer timer.Stop()
	for {
		deliveries := sub.take(c, limit, nil)
		if len(deliveries) > 0 || req.GetReturnImmediately() { //nolint:staticcheck // deprecated, not gone
			return s.pullResponse(sub, deliveries), nil
		}
		select {
		case <-c.wake:
		case err := <-c.ended:
			return nil, err
		case <-timer.C:
			return s.pullResponse(sub, nil), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *Server) ackIDs() ackIDFormat { return newAckIDFormat(s.cfg.AckIDBytes) }

func (s *Server) pullResponse(sub *subscription, deliveries []delivery) *pullResponse {
	return &pullResponse{
		deliveries:   deliveries,
		subscription: sub.number,
		ackIDs:       s.ackIDs(),
		attempts:     sub.settings.Load().deadLetterTopic != "",
	}
}
