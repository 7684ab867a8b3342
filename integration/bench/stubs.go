package main

import (
	"context"
	"errors"
	"io"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// What a request by hand holds at most, and how many are under way at once.
const (
	stubMessages = 1000
	stubBytes    = 5_000_000
	stubRequests = 4
)

func dialStubs(endpoint string) (*grpc.ClientConn, error) {
	return grpc.NewClient(endpoint,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
}

// pull hands what a stream brings to f, in pieces that fit a request, and
// acknowledges each piece when f has returned. Several run at once.
func pull(ctx context.Context, conn *grpc.ClientConn, j job, f func(context.Context, []*pubsubpb.ReceivedMessage) error) error {
	service := pubsubpb.NewSubscriberClient(conn)
	stream, err := service.StreamingPull(ctx)
	if err != nil {
		return err
	}
	err = stream.Send(&pubsubpb.StreamingPullRequest{
		Subscription: j.phase.subscription(), StreamAckDeadlineSeconds: 60,
		MaxOutstandingMessages: 20_000, MaxOutstandingBytes: 200_000_000,
	})
	if err != nil && !errors.Is(err, io.EOF) { // then Recv has the reason
		return err
	}
	group, requests := errgroup.WithContext(ctx)
	group.SetLimit(stubRequests)
	for {
		response, err := stream.Recv()
		if err != nil {
			return errors.Join(group.Wait(), ended(err))
		}
		for messages := response.GetReceivedMessages(); len(messages) > 0; {
			n := min(len(messages), piece(j.load.Size))
			part := messages[:n]
			messages = messages[n:]
			group.Go(func() error {
				if err := f(requests, part); err != nil {
					return ended(err)
				}
				ids := make([]string, len(part))
				for i, m := range part {
					ids[i] = m.GetAckId()
				}
				_, err := service.Acknowledge(requests, &pubsubpb.AcknowledgeRequest{Subscription: j.phase.subscription(), AckIds: ids})
				return ended(err)
			})
		}
	}
}

// ended is nil for what the end of the context does to a call.
func ended(err error) error {
	if status.Code(err) == codes.Canceled {
		return nil
	}
	return err
}

// piece is how many messages of that size go into a request.
func piece(size int) int { return max(1, min(stubMessages, stubBytes/size)) }

// publishAll publishes one request. fill makes its messages.
func publishAll(ctx context.Context, service pubsubpb.PublisherClient, topic string, n int, fill func(i int, m *pubsubpb.PubsubMessage)) error {
	slab := make([]pubsubpb.PubsubMessage, n)
	request := &pubsubpb.PublishRequest{Topic: topic, Messages: make([]*pubsubpb.PubsubMessage, n)}
	for i := range slab {
		fill(i, &slab[i])
		request.Messages[i] = &slab[i]
	}
	_, err := service.Publish(ctx, request)
	return err
}

// relayStubs publishes what a response brings as a request.
func relayStubs(ctx context.Context, j job) error {
	conn, err := dialStubs(j.endpoint)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	service := pubsubpb.NewPublisherClient(conn)
	return pull(ctx, conn, j, func(ctx context.Context, messages []*pubsubpb.ReceivedMessage) error {
		return publishAll(ctx, service, j.phase.outputTopic(0), len(messages), func(i int, m *pubsubpb.PubsubMessage) {
			m.Data, m.Attributes = messages[i].GetMessage().GetData(), messages[i].GetMessage().GetAttributes()
		})
	})
}

// pullStubs acknowledges everything.
func pullStubs(ctx context.Context, j job) error {
	conn, err := dialStubs(j.endpoint)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return pull(ctx, conn, j, func(context.Context, []*pubsubpb.ReceivedMessage) error { return nil })
}

// stubAhead is how many messages a sink by hand sees at once.
const stubAhead = 100_000

// publishStubs publishes what is made in memory, in requests as full as the next
// messages allow: it makes the messages in the order in which requests want them.
// The messages of a lane have one topic and, where there are keys, one key, and go
// one request at a time.
func publishStubs(ctx context.Context, j job) error {
	conn, err := dialStubs(j.endpoint)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	service := pubsubpb.NewPublisherClient(conn)
	d := j.load.deck(j.phase)
	lanes := d.cycle
	if j.load.Keys == 0 {
		lanes *= (stubRequests + lanes - 1) / lanes
	}
	for at := 0; at < j.messages; at += stubAhead {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(stubRequests)
		end := min(at+stubAhead, j.messages)
		for first := at; first < min(at+lanes, end); first++ {
			group.Go(func() error { return publishLane(ctx, service, j.load, d, first, end, lanes) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// publishLane publishes every stride-th message from first to before end.
func publishLane(ctx context.Context, service pubsubpb.PublisherClient, l load, d *deck, first, end, stride int) error {
	for first < end {
		n := min((end-first+stride-1)/stride, piece(l.Size))
		err := publishAll(ctx, service, d.topic(first), n, func(i int, m *pubsubpb.PubsubMessage) {
			m.Data, m.OrderingKey = d.data(first+i*stride), d.key(first+i*stride)
		})
		if err != nil {
			return err
		}
		first += n * stride
	}
	return nil
}
