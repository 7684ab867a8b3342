package pubsubtest_test

import (
	"fmt"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// batch is how many messages a request of a benchmark carries, size their data.
const (
	batch = 900
	size  = 1024
)

// rawCodec leaves requests and responses as bytes: what a benchmark measures is
// to be the server, not a client that decodes.
type rawCodec struct{ encoding.CodecV2 }

func (c rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	if b, ok := v.([]byte); ok {
		return mem.BufferSlice{mem.SliceBuffer(b)}, nil
	}
	return c.CodecV2.Marshal(v)
}

// rawResponse is a response as it came; its owner frees it.
type rawResponse struct{ data mem.Buffer }

func (c rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	if r, ok := v.(*rawResponse); ok {
		r.data = data.MaterializeToBuffer(mem.DefaultBufferPool())
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}

func rawConn(b *testing.B, endpoint string) *grpc.ClientConn {
	b.Helper()
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithInitialWindowSize(4<<20), grpc.WithInitialConnWindowSize(16<<20),
		grpc.WithReadBufferSize(128<<10), grpc.WithWriteBufferSize(128<<10),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{encoding.GetCodecV2("proto")}), grpc.MaxCallRecvMsgSize(16<<20)))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	return conn
}

func benchServer(b *testing.B) *pubsubtest.Server {
	b.Helper()
	srv := pubsubtest.New(b, func(c *pubsubtest.Config) { c.Events, c.KeepPublished = 0, 0 })
	srv.MustCreateTopic(topicA)
	return srv
}

func reportRate(b *testing.B, messages int) {
	b.Helper()
	b.ReportMetric(float64(messages)/b.Elapsed().Seconds(), "msgs/s")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(messages), "ns/msg")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkPublish is requests of 900 messages of 1 KB over gRPC, some at once.
func BenchmarkPublish(b *testing.B) {
	srv := benchServer(b)
	conn := rawConn(b, srv.Endpoint())
	req := &pubsubpb.PublishRequest{Topic: topicA}
	for range batch {
		req.Messages = append(req.Messages, &pubsubpb.PubsubMessage{Data: make([]byte, size), Attributes: map[string]string{"key": "value"}})
	}
	wire, err := proto.Marshal(req)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetParallelism(4)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			var resp rawResponse
			if err := conn.Invoke(b.Context(), pubsubpb.Publisher_Publish_FullMethodName, wire, &resp); err != nil {
				b.Error(err)
				return
			}
			resp.data.Free()
		}
	})
	reportRate(b, b.N*batch)
}

// BenchmarkStreamingPull is the delivery and acknowledgement of messages of 1 KB
// over gRPC, in front of backlogs of different length: the cost of a message
// must not depend on it.
func BenchmarkStreamingPull(b *testing.B) {
	for _, backlog := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("backlog=%d", backlog), func(b *testing.B) {
			srv := benchServer(b)
			srv.MustCreateSubscription(subA, topicA)
			m := &message.Message{Data: make([]byte, size), Attributes: map[string]string{"key": "value"}}
			if err := srv.Preload(topicA, backlog, m); err != nil {
				b.Fatal(err)
			}
			conn := rawConn(b, srv.Endpoint())
			stream, err := conn.NewStream(b.Context(), &pubsubpb.Subscriber_ServiceDesc.Streams[0], pubsubpb.Subscriber_StreamingPull_FullMethodName)
			if err != nil {
				b.Fatal(err)
			}
			if err := stream.SendMsg(&pubsubpb.StreamingPullRequest{Subscription: subA, StreamAckDeadlineSeconds: 60, MaxOutstandingMessages: 10_000}); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				var resp rawResponse
				if err := stream.RecvMsg(&resp); err != nil {
					b.Fatal(err)
				}
				acks, got := acknowledgement(resp.data.ReadOnlyData())
				resp.data.Free()
				n += got
				if err := srv.Preload(topicA, got, m); err != nil { // keeps the backlog as long
					b.Fatal(err)
				}
				if err := conn.Invoke(b.Context(), pubsubpb.Subscriber_Acknowledge_FullMethodName, acks, &resp); err != nil {
					b.Fatal(err)
				}
				resp.data.Free()
			}
			reportRate(b, n)
		})
	}
}

// acknowledgement returns an AcknowledgeRequest in wire form for the messages of
// a StreamingPullResponse, and their number.
func acknowledgement(resp []byte) (wire []byte, messages int) {
	wire = protowire.AppendTag(make([]byte, 0, 32*batch), 1, protowire.BytesType)
	wire = protowire.AppendString(wire, subA)
	for len(resp) > 0 {
		num, _, n := protowire.ConsumeTag(resp)
		received, m := protowire.ConsumeBytes(resp[n:])
		resp = resp[n+m:]
		if num != 1 {
			continue
		}
		_, _, n = protowire.ConsumeTag(received) // the ack id comes first
		id, _ := protowire.ConsumeBytes(received[n:])
		wire = protowire.AppendTag(wire, 2, protowire.BytesType)
		wire = protowire.AppendBytes(wire, id)
		messages++
	}
	return wire, messages
}
