package pubsubtest

import (
	"context"
	"errors"
	"io"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// streamingPull is one stream, from its opening to its end. gRPC runs it.
func (s *Server) streamingPull(_ any, stream grpc.ServerStream) error {
	first := new(pubsubpb.StreamingPullRequest)
	if err := stream.RecvMsg(first); err != nil {
		return err
	}
	var sub *subscription
	_, err := s.call(stream.Context(), s.methods["StreamingPull"], first, func() (any, error) {
		var err error
		sub, err = s.resources.subscription(first.GetSubscription())
		if err != nil {
			return nil, err
		}
		if err := sub.settings.Load().unpullable; err != nil {
			return nil, err
		}
		return nil, checkAckDeadline(first.GetStreamAckDeadlineSeconds())
	})
	if err != nil {
		return err
	}
	c := newConsumer(first.GetStreamAckDeadlineSeconds(), first.GetMaxOutstandingMessages(), first.GetMaxOutstandingBytes())
	c.number, c.clientID = s.streams.Add(1), first.GetClientId()
	sub.openStream(c)
	err = s.runStream(stream, sub, c, first)
	sub.closeStream(c, err)
	return err
}

func (q *subscription) openStream(c *consumer) {
	q.server.events.stream(StreamOpen, q, c, nil)
	q.join(c)
	q.countStream(+1)
}

func (q *subscription) closeStream(c *consumer, err error) {
	q.leave(c)
	q.server.events.stream(StreamClose, q, c, err)
	q.countStream(-1)
}

func (q *subscription) countStream(by int64) {
	q.mu.Lock()
	q.stats.Streams += by
	q.stats.StreamsOpened += max(by, 0)
	q.mu.Unlock()
	q.server.changes.notify()
}

// runStream delivers until the stream ends, and returns its status.
func (s *Server) runStream(stream grpc.ServerStream, sub *subscription, c *consumer, first *pubsubpb.StreamingPullRequest) error {
	if err := sub.apply(first); err != nil {
		return err
	}
	// receive ends with the stream, which is over only after this has returned:
	// the server's stop waits for it.
	pinging := first.GetProtocolVersion() >= 1
	s.serving.Go(func() { c.end(sub.receive(stream, c, pinging)) })

	ctx := stream.Context()
	resp := s.pullResponse(sub, make([]delivery, 0, maxBatch))
	var current *settings
	for {
		if now := sub.settings.Load(); now != current {
			current = now
			resp.attempts, resp.properties = now.deadLetterTopic != "", sub.properties(now)
		}
		select {
		case err := <-c.ended:
			return err
		case <-ctx.Done():
			return streamContextError(ctx)
		default:
		}
		resp.deliveries = sub.take(c, maxBatch, resp.deliveries[:0])
		if len(resp.deliveries) > 0 {
			if err := stream.SendMsg(resp); err != nil {
				return err
			}
			clear(resp.deliveries) // hold on to no message while waiting
			continue
		}
		select {
		case <-c.wake:
		case <-c.pings:
			if err := s.answerPing(stream); err != nil {
				return err
			}
		case err := <-c.ended:
			return err
		case <-ctx.Done():
			return streamContextError(ctx)
		}
	}
}

// KeepAlives says whether the pings of streams with protocol version 1 or above
// are answered, as the service does and as is the default. Without answers an
// idle stream looks as one whose server is gone.
func (s *Server) KeepAlives(on bool) { s.silent.Store(!on) }

// answerPing sends an empty response. A stream that sends messages needs none:
// the client sees that it lives.
func (s *Server) answerPing(stream grpc.ServerStream) error {
	if s.silent.Load() {
		return nil
	}
	return stream.SendMsg(&pullResponse{})
}

func streamContextError(ctx context.Context) error {
	return status.FromContextError(ctx.Err()).Err()
}

// receive applies the requests of a stream after the first, until the client has
// no more, the stream ends or one is invalid. It returns what the stream ends
// with. Requests that say nothing are pings, of a client that wants an answer.
func (q *subscription) receive(stream grpc.ServerStream, c *consumer, pinging bool) error {
	for {
		req := new(pubsubpb.StreamingPullRequest)
		if err := stream.RecvMsg(req); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if req.GetSubscription() != "" || req.GetMaxOutstandingMessages() != 0 || req.GetMaxOutstandingBytes() != 0 || req.GetProtocolVersion() != 0 {
			return invalid("Only the first request of a stream may name a subscription or a protocol version, or set flow control.")
		}
		if pinging && proto.Size(req) == 0 {
			c.ping()
			continue
		}
		if d := req.GetStreamAckDeadlineSeconds(); d != 0 {
			if err := checkAckDeadline(d); err != nil {
				return err
			}
			q.setDeadline(c, d)
		}
		if err := q.apply(req); err != nil {
			return err
		}
	}
}

func (q *subscription) setDeadline(c *consumer, seconds int32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c.deadline = seconds
}

// apply settles what a request of a stream says. A request that says nothing is
// a client's sign of life.
func (q *subscription) apply(req *pubsubpb.StreamingPullRequest) error {
	if len(req.GetModifyDeadlineSeconds()) != len(req.GetModifyDeadlineAckIds()) {
		return invalid("There are %d deadlines for %d ack IDs.", len(req.GetModifyDeadlineSeconds()), len(req.GetModifyDeadlineAckIds()))
	}
	acks, err := parseAckIDs(req.GetAckIds(), q.number)
	if err != nil {
		return err
	}
	extended, err := parseAckIDs(req.GetModifyDeadlineAckIds(), q.number)
	if err != nil {
		return err
	}
	for _, seconds := range req.GetModifyDeadlineSeconds() {
		if err := checkExtension(seconds); err != nil {
			return err
		}
	}
	if len(acks) > 0 {
		q.acknowledge(acks)
	}
	for len(extended) > 0 { // in runs of equal deadlines, mostly one
		seconds, n := req.GetModifyDeadlineSeconds(), 1
		seconds = seconds[len(seconds)-len(extended):]
		for n < len(extended) && seconds[n] == seconds[0] {
			n++
		}
		q.extend(extended[:n], seconds[0])
		extended = extended[n:]
	}
	return nil
}

// properties returns the subscription's properties as they end each response.
func (q *subscription) properties(now *settings) []byte {
	var wire []byte
	wire = protowire.AppendTag(wire, 1, protowire.VarintType) // exactly_once_delivery_enabled
	wire = protowire.AppendVarint(wire, protowire.EncodeBool(now.exactlyOnce))
	wire = protowire.AppendTag(wire, 2, protowire.VarintType) // message_ordering_enabled
	wire = protowire.AppendVarint(wire, protowire.EncodeBool(q.ordered))
	b := protowire.AppendTag(nil, 4, protowire.BytesType)
	return protowire.AppendBytes(b, wire)
}
