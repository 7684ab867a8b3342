package pubsubtest

import (
	"context"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
)

// The services are described here and not taken from the generated code, whose
// handlers decode every message and have no place for what tests ask for.

func (s *Server) publisherService() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: pubsubpb.Publisher_ServiceDesc.ServiceName,
		Metadata:    pubsubpb.Publisher_ServiceDesc.Metadata,
		Methods: []grpc.MethodDesc{
			unary(s, "CreateTopic", atOnce(s.createTopic)),
			unary(s, "UpdateTopic", atOnce(s.updateTopic)),
			unary(s, "GetTopic", atOnce(s.getTopic)),
			unary(s, "ListTopics", atOnce(s.listTopics)),
			unary(s, "ListTopicSubscriptions", atOnce(s.listTopicSubscriptions)),
			unary(s, "DeleteTopic", atOnce(s.deleteTopic)),
			unary(s, "DetachSubscription", atOnce(s.detachSubscription)),
			unary(s, "Publish", atOnce(s.publish)),
		},
	}
}

func (s *Server) subscriberService() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: pubsubpb.Subscriber_ServiceDesc.ServiceName,
		Metadata:    pubsubpb.Subscriber_ServiceDesc.Metadata,
		Methods: []grpc.MethodDesc{
			unary(s, "CreateSubscription", atOnce(s.createSubscription)),
			unary(s, "UpdateSubscription", atOnce(s.updateSubscription)),
			unary(s, "GetSubscription", atOnce(s.getSubscription)),
			unary(s, "ListSubscriptions", atOnce(s.listSubscriptions)),
			unary(s, "DeleteSubscription", atOnce(s.deleteSubscription)),
			unary(s, "Seek", atOnce(s.seek)),
			unary(s, "Pull", s.pull),
			unary(s, "Acknowledge", atOnce(s.acknowledge)),
			unary(s, "ModifyAckDeadline", atOnce(s.modifyAckDeadline)),
		},
		Streams: []grpc.StreamDesc{{
			StreamName:    "StreamingPull",
			Handler:       s.streamingPull,
			ServerStreams: true,
			ClientStreams: true,
		}},
	}
}

// atOnce is a method that never waits, and so needs no context.
func atOnce[Req, Resp any](do func(*Req) (*Resp, error)) func(context.Context, *Req) (*Resp, error) {
	return func(_ context.Context, req *Req) (*Resp, error) { return do(req) }
}

// unary describes a method whose requests are of the type Req.
func unary[Req, Resp any](s *Server, name string, do func(context.Context, *Req) (*Resp, error)) grpc.MethodDesc {
	m := s.methods[name]
	return grpc.MethodDesc{
		MethodName: name,
		Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			req := new(Req)
			if err := decode(req); err != nil {
				return nil, err
			}
			if p, ok := any(req).(*publishRequest); ok {
				defer s.load.begin(ctx, p).end()
			}
			return s.call(ctx, m, req, func() (any, error) {
				resp, err := do(ctx, req)
				if err != nil {
					return nil, err
				}
				return resp, nil
			})
		},
	}
}

// resourceOf returns the name of the resource that a request is about.
func resourceOf(req any) string {
	switch r := req.(type) {
	case *pubsubpb.UpdateTopicRequest:
		return r.GetTopic().GetName()
	case *pubsubpb.UpdateSubscriptionRequest:
		return r.GetSubscription().GetName()
	case interface{ GetName() string }:
		return r.GetName()
	case interface{ GetSubscription() string }:
		return r.GetSubscription()
	case interface{ GetTopic() string }:
		return r.GetTopic()
	case interface{ GetProject() string }:
		return r.GetProject()
	}
	return ""
}
