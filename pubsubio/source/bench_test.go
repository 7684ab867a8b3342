package source

import (
	"context"
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
)

// BenchmarkReader is what the reader itself costs a message: taking it in,
// handing it out, and settling it. Neither the wire nor Beam is in it.
func BenchmarkReader(b *testing.B) {
	const batch = 1000
	g := newGroup("bench", Config{}, run.Binding{Rule: run.Finalized}, new(stats.Source))
	service := newFakeService()
	c := service.calls()
	c.ack = func(context.Context, []string) error { return nil }
	r := g.openLocked("reader", testSubscription, c)
	r.pulling = func() {}
	defer r.close(context.Background())
	now := timestamppb.New(time.Now())
	messages := make([]*pubsubpb.ReceivedMessage, batch)
	for i := range messages {
		messages[i] = &pubsubpb.ReceivedMessage{AckId: fmt.Sprintf("ack-%020d", i), Message: &pubsubpb.PubsubMessage{
			MessageId: fmt.Sprint(i), Data: make([]byte, 1000), PublishTime: now, Attributes: map[string]string{"kind": "order"},
		}}
	}
	arrived := arrivals(b, messages...)
	var out []delivery
	token, parent := "", ""
	b.ReportAllocs()
	for n := 0; n < b.N; n += batch {
		name := fmt.Sprint(n)
		a, err := r.claim(token, parent, name, true)
		if err != nil {
			b.Fatal(err)
		}
		r.accept(b.Context(), arrived, grant{period: firstPeriod})
		for taken := 0; taken < batch; taken += len(out) {
			if out, err = r.take(a, out[:0], maxChunk, 1<<30); err != nil {
				b.Fatal(err)
			}
		}
		r.finished(a)
		r.signal(a, signalAt(uint64(2*n+1), uint64(2*n+2)))
		r.acks.flush(b.Context()) // Until then, the same messages again are redeliveries.
		token, parent = name, token
	}
}
