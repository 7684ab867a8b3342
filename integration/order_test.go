package integration

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/beam-pubsub/beam-pubsub-go/internal/emulator"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// inOrder is a relay that keeps the order of keys from end to end.
func inOrder(endpoint string, limit options.Limit) *relay {
	r := relayAt(endpoint, limit)
	r.source.Ordering = options.PerKey
	r.source.Subscriber.MaxRecordsPerBundle = 50
	r.sink = orderedSink(endpoint, options.OrderInPlace)
	return r
}

// newOrderedServer is newServer with a subscription that keeps the order of keys.
func newOrderedServer(t *testing.T) *pubsubtest.Server {
	t.Helper()
	srv := pubsubtest.New(t)
	srv.MustCreateTopic(inTopic)
	srv.MustCreateTopic(outTopic)
	srv.MustCreateSubscription(inSub, inTopic, pubsubtest.Ordered())
	return srv
}

func TestPrism_PerKeyKeepsTheOrder(t *testing.T) {
	const keys, each = 20, 200
	srv := newOrderedServer(t)
	publishKeyed(t, srv, keys, 0, each)
	must(t, inOrder(srv.Endpoint(), options.Limit{MaxMessages: keys * each}).run(within(t, time.Minute)))
	expectOrder(t, srv.Messages(outTopic), keys, each, "")
	expectSettled(t, srv, inSub)
}

// Bundles fail in the middle of keys, again and again, and connections break: what went
// back comes again before what is behind it.
func TestPrism_PerKeyKeepsTheOrderThroughFailures(t *testing.T) {
	long(t)
	const keys, each = 10, 200
	srv := newOrderedServer(t)
	publishKeyed(t, srv, keys, 0, each)
	var passed atomic.Int64
	for try := range 8 {
		r := inOrder(srv.Endpoint(), options.Limit{StopWhenIdle: stretched(2 * time.Second)})
		end := passed.Load() + 157
		r.probe = &probe{after: func(context.Context, *message.Message) error {
			if passed.Add(1); try < 7 && passed.Load() >= end {
				return errors.New("the bundle fails")
			}
			return nil
		}}
		if try == 3 {
			srv.BreakConnections()
		}
		if err := r.run(within(t, time.Minute)); (err == nil) != (try == 7) {
			t.Fatalf("run %d: %v", try, err)
		}
	}
	expectOrder(t, srv.Messages(outTopic), keys, each, "")
	expectSettled(t, srv, inSub)
}

func TestPrism_PerKeyOnTheEmulator(t *testing.T) {
	const keys, each = 5, 50
	endpoint := emulator.Start(t)
	client := emulator.Dial(t, endpoint)
	client.CreateTopic(inTopic)
	client.CreateTopic(outTopic)
	client.CreateSubscription(inSub, inTopic, func(s *pubsubpb.Subscription) { s.EnableMessageOrdering = true })
	client.CreateSubscription(outSub, outTopic)
	for k := range keys {
		var messages []*pubsubpb.PubsubMessage
		for i := range each {
			messages = append(messages, &pubsubpb.PubsubMessage{Data: fmt.Appendf(nil, "k%d %d", k, i), OrderingKey: fmt.Sprint("k", k)})
		}
		client.Publish(inTopic, messages...)
	}
	must(t, inOrder(endpoint, options.Limit{MaxMessages: keys * each}).run(within(t, time.Minute)))
	var stored []*message.Message
	for _, m := range client.Drain(outSub) {
		stored = append(stored, &message.Message{Data: m.GetData(), OrderingKey: m.GetOrderingKey()})
	}
	expectOrder(t, stored, keys, each, "")
}
