package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
)

// calls are the reader's calls to the service, about its subscription.
type calls struct {
	// pull opens a stream, whose RecvMsg reads a response. The service sends nothing on
	// it until it was sent first, to which each stream adds what is its own.
	pull   func(ctx context.Context) (pubsubpb.Subscriber_StreamingPullClient, error)
	first  *pubsubpb.StreamingPullRequest
	ack    func(ctx context.Context, ids []string) error
	modify func(ctx context.Context, ids []string, deadline time.Duration) error
	// get returns what the subscription is.
	get   func(ctx context.Context) (*pubsubpb.Subscription, error)
	close func()
}

// counted returns c with its failed calls counted. Streams are counted by what
// becomes of them.
func (c calls) counted(counts *stats.Source) calls {
	count := func(ctx context.Context, err error) error {
		if err != nil && !errors.Is(ctx.Err(), context.Canceled) { // One that was cut off says nothing.
			counts.Errors.Add(status.Code(err))
		}
		return err
	}
	ack, modify := c.ack, c.modify
	c.ack = func(ctx context.Context, ids []string) error { return count(ctx, ack(ctx, ids)) }
	c.modify = func(ctx context.Context, ids []string, deadline time.Duration) error {
		return count(ctx, modify(ctx, ids, deadline))
	}
	return c
}

// dial connects a reader. Its streams have a connection that they share with few
// others, and what settles messages goes over another one: a server limits the
// streams of a connection, and a call would wait behind them for ever.
func dial(subscription, clientID string, cfg Config) (calls, error) {
	pulling, err := transport.DialStreams(cfg.connection(), cfg.Subscriber.Streams)
	if err != nil {
		return calls{}, err
	}
	settling, err := transport.Dial(cfg.connection(), transport.Settling)
	if err != nil {
		_ = pulling.Close()
		return calls{}, err
	}
	c := callsOver(pulling.Subscriber(), settling.Subscriber(), subscription, clientID)
	c.close = func() { // Nothing is under way on them.
		_ = pulling.Close()
		_ = settling.Close()
	}
	return c, nil
}

// callsOver returns the calls about a subscription.
func callsOver(streams, unary pubsubpb.SubscriberClient, subscription, clientID string) calls {
	codec := grpc.ForceCodecV2(newPullCodec())
	route := func(ctx context.Context) context.Context { return transport.WithSubscription(ctx, subscription) }
	return calls{
		pull: func(ctx context.Context) (pubsubpb.Subscriber_StreamingPullClient, error) {
			stream, err := streams.StreamingPull(route(ctx), codec)
			if err != nil {
				return nil, fmt.Errorf("open stream: %w", err)
			}
			return stream, nil
		},
		first: &pubsubpb.StreamingPullRequest{
			Subscription: subscription,
			ClientId:     clientID,
		},
		ack: func(ctx context.Context, ids []string) error {
			_, err := unary.Acknowledge(route(ctx), &pubsubpb.AcknowledgeRequest{Subscription: subscription, AckIds: ids})
			return err
		},
		modify: func(ctx context.Context, ids []string, deadline time.Duration) error {
			_, err := unary.ModifyAckDeadline(route(ctx), &pubsubpb.ModifyAckDeadlineRequest{
				Subscription: subscription, AckIds: ids, AckDeadlineSeconds: int32(deadline / time.Second),
			})
			return err
		},
		get: func(ctx context.Context) (*pubsubpb.Subscription, error) {
			return unary.GetSubscription(route(ctx), &pubsubpb.GetSubscriptionRequest{Subscription: subscription})
		},
	}
}
