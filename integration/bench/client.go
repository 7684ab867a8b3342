package main

import (
	"context"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// newClient connects as the client itself does to an emulator.
func newClient(ctx context.Context, endpoint string) (*pubsub.Client, error) {
	return pubsub.NewClient(ctx, "bench",
		option.WithEndpoint(endpoint),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
		option.WithoutAuthentication(),
		option.WithTelemetryDisabled(),
	)
}

// clientSettings are those of a program on the client.
type clientSettings struct {
	// Window is how many messages are published and not yet answered.
	Window int
	pubsub.PublishSettings
	Receive pubsub.ReceiveSettings
}

// bestClient returns the best settings for a load that were found: full requests,
// with no more than 100,000 messages unanswered. --client repeats the trials, all
// with messages of 1 KB; of settings that cost the same CPU, within 10 %, the one
// with the higher rate is taken.
//
//   - One topic, no keys: DelayThreshold from 2 to 50 ms, NumGoroutines from 1 to
//     10, ByteThreshold from 1 to 9 MB and a second connection changed nothing that
//     could be told from the noise; the default CountThreshold, 100, costs more. At
//     10 ms of latency neither did a Window from 10,000 to 100,000, nor NumGoroutines.
//   - 100 topics or keys: a Window of 30,000 and 50 ms took 3.7 µs, 10,000 and 10 ms
//     4.7 µs, 100,000 and 50 ms 4.8 µs.
//   - 1,000 topics: a Window of 100,000 and 10, 50, 200, 500, 1,000 ms took 23, 14,
//     8.6, 6.5 and 5.9 µs, at 22,000, 38,000, 55,000, 74,000 and 61,000 a second;
//     NumGoroutines made no difference. A message then waits half a second.
//   - 10,000 keys: a Window of 10,000, 30,000 and 100,000 took 65, 47 and 18 µs; with
//     the last 50, 200, 500 and 1,000 ms took 18, 18, 15 and 13 µs, of which 500 ms
//     had the highest rate.
func bestClient(l load) clientSettings {
	s := clientSettings{Window: 10_000, PublishSettings: pubsub.DefaultPublishSettings, Receive: pubsub.DefaultReceiveSettings}
	s.Receive.MaxOutstandingMessages = clientWindow
	s.Receive.NumGoroutines = l.Splits
	s.CountThreshold = 1000
	s.ByteThreshold = 5_000_000
	switch queues := max(l.Topics, l.Keys); {
	case queues > 100:
		s.Window, s.DelayThreshold = 100_000, 500*time.Millisecond
	case queues > 1:
		s.Window, s.DelayThreshold = 30_000, 50*time.Millisecond
	case l.Latency > 0:
		s.Window = 30_000
	}
	return s
}

// publishers returns one for each topic.
func (j job) publishers(c *pubsub.Client, s clientSettings) []*pubsub.Publisher {
	var all []*pubsub.Publisher
	for _, topic := range j.phase.outputTopics(j.load.Topics) {
		p := c.Publisher(topic)
		p.PublishSettings = s.PublishSettings
		p.EnableMessageOrdering = j.load.Keys > 0
		all = append(all, p)
	}
	return all
}

// flush sends what is waiting for its request to fill, and waits for the answers.
func flush(publishers []*pubsub.Publisher) {
	var flushing sync.WaitGroup
	for _, p := range publishers {
		flushing.Go(p.Flush)
	}
	flushing.Wait()
}

// stop waits for what was published.
func stop(publishers []*pubsub.Publisher) {
	for _, p := range publishers {
		p.Stop()
	}
}

// clientWindow is how many messages are in the hands of a program by hand. The
// client sends acknowledgements every 100 ms, so that MaxOutstandingMessages
// bounds the rate: 1,000, its default, allows 10,000 messages a second. From
// 50,000 on nothing is gained, nor by a second stream.
const clientWindow = 50_000

// receive calls f with every message.
func (s clientSettings) receive(ctx context.Context, c *pubsub.Client, subscription string, f func(context.Context, *pubsub.Message)) error {
	sub := c.Subscriber(subscription)
	sub.ReceiveSettings = s.Receive
	return sub.Receive(ctx, f)
}

// relayClient publishes each message in its callback, which does not wait for the
// answer: one goroutine waits for the answers, in order, and acknowledges. To wait
// in the callbacks, as most programs do, costs 1.4 times the CPU.
func relayClient(ctx context.Context, j job) error {
	settings, err := j.settings.client(j.load)
	if err != nil {
		return err
	}
	c, err := newClient(ctx, j.endpoint)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // nothing is under way
	publishers := j.publishers(c, settings)
	defer stop(publishers)
	p := publishers[0]
	type sent struct {
		message *pubsub.Message
		result  *pubsub.PublishResult
	}
	unanswered := make(chan sent, clientWindow)
	var acknowledging sync.WaitGroup
	acknowledging.Go(func() { // ends with Receive, whose callbacks fill the channel
		for s := range unanswered {
			if _, err := s.result.Get(ctx); err != nil {
				s.message.Nack()
				continue
			}
			s.message.Ack()
		}
	})
	err = settings.receive(ctx, c, j.phase.subscription(), func(ctx context.Context, m *pubsub.Message) {
		r := p.Publish(ctx, &pubsub.Message{Data: m.Data, Attributes: m.Attributes, OrderingKey: m.OrderingKey})
		unanswered <- sent{m, r}
	})
	close(unanswered)
	acknowledging.Wait()
	return err
}

// receiveClient acknowledges everything.
func receiveClient(ctx context.Context, j job) error {
	settings, err := j.settings.client(j.load)
	if err != nil {
		return err
	}
	c, err := newClient(ctx, j.endpoint)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // nothing is under way
	return settings.receive(ctx, c, j.phase.subscription(), func(_ context.Context, m *pubsub.Message) { m.Ack() })
}

// publishClient publishes what is made in memory.
func publishClient(ctx context.Context, j job) error {
	settings, err := j.settings.client(j.load)
	if err != nil {
		return err
	}
	c, err := newClient(ctx, j.endpoint)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // nothing is under way
	publishers := j.publishers(c, settings)
	defer stop(publishers)
	d := j.load.deck(j.phase)
	// A ring of what is not yet answered bounds it, at no cost.
	ring := make([]*pubsub.PublishResult, settings.Window)
	for i := range j.messages + len(ring) {
		if r := ring[i%len(ring)]; r != nil {
			if _, err := r.Get(ctx); err != nil {
				return err
			}
			ring[i%len(ring)] = nil
		}
		if i < j.messages {
			p := publishers[i%len(publishers)]
			ring[i%len(ring)] = p.Publish(ctx, &pubsub.Message{Data: d.data(i), OrderingKey: d.key(i)})
		}
		if i == j.messages {
			flush(publishers)
		}
	}
	return nil
}
