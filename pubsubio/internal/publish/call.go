package publish

import (
	"context"
	"fmt"
	"slices"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// A sendFunc sends a request of that many messages once. It must not keep the
// payload, other than by a view of it.
type sendFunc func(ctx context.Context, p *payload, messages int) error

// A createFunc creates a topic once.
type createFunc func(ctx context.Context, topic string) error

// wireOf returns what a pool with c needs of conn.
func wireOf(c Config, conn grpc.ClientConnInterface, hangUp func()) wire {
	return wire{
		send:   sender(conn, c.Publisher.Compression),
		create: creator(conn, c.TopicCreate),
		hangUp: hangUp,
	}
}

// sender returns the sendFunc of a connection. Requests of that many bytes or more
// are compressed; zero is none.
func sender(conn grpc.ClientConnInterface, compression int) sendFunc {
	plain := []grpc.CallOption{grpc.ForceCodecV2(rawCodec{})}
	compressed := append(slices.Clip(plain), grpc.UseCompressor(gzip.Name))
	return func(ctx context.Context, p *payload, messages int) error {
		var ids idCount
		opts := plain
		if compression > 0 && len(p.buf) >= compression {
			opts = compressed
		}
		if err := conn.Invoke(ctx, pubsubpb.Publisher_Publish_FullMethodName, p, &ids, opts...); err != nil {
			return err
		}
		if int(ids) != messages {
			// No loss may hide in an answer that does not cover the request.
			return fmt.Errorf("the answer names %d of %d messages", ids, messages)
		}
		return nil
	}
}

// creator returns the createFunc of a connection.
func creator(conn grpc.ClientConnInterface, o options.TopicCreate) createFunc {
	stub := pubsubpb.NewPublisherClient(conn)
	return func(ctx context.Context, topic string) error {
		_, err := stub.CreateTopic(ctx, newTopic(topic, o))
		return err
	}
}

// newTopic returns the topic as the service is asked to create it.
func newTopic(name string, o options.TopicCreate) *pubsubpb.Topic {
	t := &pubsubpb.Topic{Name: name, KmsKeyName: o.KMSKeyName}
	if o.MessageRetention != 0 {
		t.MessageRetentionDuration = durationpb.New(o.MessageRetention)
	}
	if len(o.AllowedPersistenceRegions) > 0 {
		t.MessageStoragePolicy = &pubsubpb.MessageStoragePolicy{
			AllowedPersistenceRegions: o.AllowedPersistenceRegions,
			EnforceInTransit:          o.EnforceInTransit,
		}
	}
	return t
}

// idCount is all that is read of a PublishResponse.
type idCount int

// rawCodec hands the bytes of a payload to gRPC as they are, and counts the ids
// of the answer. Encoding a request from generated types instead costs another
// copy of every payload and an allocation for every message and id.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	p, ok := v.(*payload)
	if !ok {
		return nil, fmt.Errorf("publish: cannot encode %T", v)
	}
	return mem.BufferSlice{p.view()}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	ids, ok := v.(*idCount)
	if !ok {
		return fmt.Errorf("publish: cannot decode %T", v)
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	n, err := countIDs(whole.ReadOnlyData())
	*ids = idCount(n)
	return err
}
