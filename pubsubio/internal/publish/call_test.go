package publish

import (
	"bytes"
	"context"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// A transport may still be sending an attempt that was given up: its bytes went
// back to the pool, and the next request was written over them; and it cuts the
// buffer that it is given, so that the next attempt sent a part.
func TestSender_EveryAttemptSendsTheWholeRequest(t *testing.T) {
	srv := pubsubtest.New(t)
	srv.MustCreateTopic(topic)
	c := Config{
		Connection: options.Connection{EmulatorEndpoint: srv.Endpoint()},
		Publisher: options.Publisher{
			BatchBytes: 5_000_000, BatchElementCount: 4,
			RetryInitialRPCTimeout: 50 * time.Millisecond, RetryRPCTimeoutMultiplier: 2, RetryInitialDelay: time.Millisecond, RetryMaxDelay: time.Millisecond,
		},
		Nonce: t.Name(),
	}
	const rounds = 20
	srv.Delay("Publish", 100*time.Millisecond) // no attempt succeeds
	time.AfterFunc(300*time.Millisecond, func() { srv.Delay("Publish", 0) })
	b := mustOpen(t, c)
	for i := range rounds {
		m := &message.Message{Data: bytes.Repeat([]byte{byte(i)}, 100_000), Attributes: map[string]string{"i": string(rune('a' + i))}}
		if err := b.Add(t.Context(), topic, m, 0); err != nil {
			t.Fatal(err)
		}
	}
	mustFinish(t, b)
	seen := make(map[byte]bool)
	for _, m := range srv.Messages(topic) {
		i := m.Data[0]
		seen[i] = true
		if len(m.Data) != 100_000 || !bytes.Equal(m.Data, bytes.Repeat([]byte{i}, len(m.Data))) || m.Attributes["i"] != string(rune('a'+i)) {
			t.Errorf("message %d arrived as another one, with %d bytes", i, len(m.Data))
		}
	}
	if len(seen) != rounds {
		t.Errorf("%d messages of %d arrived", len(seen), rounds)
	}
	if n := b.Counts().Errors; n == 0 {
		t.Error("no attempt failed: the test shows nothing")
	}
	if err := Close(c); err != nil {
		t.Error(err)
	}
}

// An invoker answers a call with the encoded form of a response.
type invoker struct {
	grpc.ClientConnInterface
	response *pubsubpb.PublishResponse
}

func (i invoker) Invoke(_ context.Context, _ string, _, reply any, _ ...grpc.CallOption) error {
	b, err := proto.Marshal(i.response)
	if err != nil {
		return err
	}
	n, err := countIDs(b)
	*reply.(*idCount) = idCount(n)
	return err
}

func TestSender_AnAnswerMustCoverTheRequest(t *testing.T) {
	send := sender(invoker{response: &pubsubpb.PublishResponse{MessageIds: []string{"1", "2"}}}, 0)
	if err := send(t.Context(), nil, 2); err != nil {
		t.Error(err)
	}
	if err := send(t.Context(), nil, 3); err == nil {
		t.Error("an answer for 2 of 3 messages was accepted")
	}
}
