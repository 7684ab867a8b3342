package emulator

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
)

// callTimeout bounds each call of a Client.
const callTimeout = 30 * time.Second

// impatient connects again soon: the server is on this machine.
var impatient = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, MaxDelay: 500 * time.Millisecond},
	MinConnectTimeout: time.Second,
}

// maxMessageBytes is above what a response of the service may have.
const maxMessageBytes = 64 << 20

// A Client calls a Pub/Sub endpoint in plaintext, once per call and without
// retries. Publisher and Subscriber are the whole API; the methods are what most
// tests need of it, and end the test if they fail.
type Client struct {
	Publisher  pubsubpb.PublisherClient
	Subscriber pubsubpb.SubscriberClient

	t testing.TB
}

// Dial returns a client of an endpoint, host:port, that is closed when t ends.
func Dial(t testing.TB, endpoint string) *Client {
	t.Helper()
	conn, err := grpc.NewClient(endpoint,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(impatient),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes), grpc.MaxCallSendMsgSize(maxMessageBytes)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &Client{Publisher: pubsubpb.NewPublisherClient(conn), Subscriber: pubsubpb.NewSubscriberClient(conn), t: t}
}

// CreateTopic creates a topic, by full name.
func (c *Client) CreateTopic(name string) {
	c.t.Helper()
	ctx, cancel := c.context()
	defer cancel()
	if _, err := c.Publisher.CreateTopic(ctx, &pubsubpb.Topic{Name: name}); err != nil {
		c.t.Fatalf("create topic %s: %v", name, err)
	}
}

// CreateSubscription creates a subscription of a topic, both by full name, with
// an acknowledgement deadline of 10 s; change may alter its configuration.
func (c *Client) CreateSubscription(name, topic string, change ...func(*pubsubpb.Subscription)) {
	c.t.Helper()
	config := &pubsubpb.Subscription{Name: name, Topic: topic, AckDeadlineSeconds: 10}
	for _, f := range change {
		f(config)
	}
	ctx, cancel := c.context()
	defer cancel()
	if _, err := c.Subscriber.CreateSubscription(ctx, config); err != nil {
		c.t.Fatalf("create subscription %s: %v", name, err)
	}
}

// batchSize is how many messages Publish puts into a request.
const batchSize = 500

// Publish publishes messages, in requests of at most 500, and returns their ids.
func (c *Client) Publish(topic string, msgs ...*pubsubpb.PubsubMessage) []string {
	c.t.Helper()
	var ids []string
	for len(msgs) > 0 {
		n := min(len(msgs), batchSize)
		ctx, cancel := c.context()
		resp, err := c.Publisher.Publish(ctx, &pubsubpb.PublishRequest{Topic: topic, Messages: msgs[:n]})
		cancel()
		if err != nil {
			c.t.Fatalf("publish to %s: %v", topic, err)
		}
		ids = append(ids, resp.GetMessageIds()...)
		msgs = msgs[n:]
	}
	return ids
}

// Pull returns what one pull of at most limit messages gives: it may be fewer,
// or none. With wait it waits until the server has a message or gives up.
func (c *Client) Pull(subscription string, limit int32, wait bool) []*pubsubpb.ReceivedMessage {
	c.t.Helper()
	ctx, cancel := c.context()
	defer cancel()
	resp, err := c.Subscriber.Pull(ctx, &pubsubpb.PullRequest{
		Subscription:      subscription,
		MaxMessages:       limit,
		ReturnImmediately: !wait, //nolint:staticcheck // deprecated for its cost to the service, of no concern here
	})
	if err != nil {
		c.t.Fatalf("pull from %s: %v", subscription, err)
	}
	return resp.GetReceivedMessages()
}

// emptyPulls is how many pulls in a row must give nothing for a subscription to
// count as empty: a single one may, while messages are on their way.
const emptyPulls = 3

// Drain pulls and acknowledges until the subscription gives nothing more, and
// returns the messages. What others hold leased is not seen.
func (c *Client) Drain(subscription string) []*pubsubpb.PubsubMessage {
	c.t.Helper()
	var msgs []*pubsubpb.PubsubMessage
	for empty := 0; empty < emptyPulls; {
		got := c.Pull(subscription, 1000, false)
		if len(got) == 0 {
			empty++
			continue
		}
		empty = 0
		ids := make([]string, len(got))
		for i, m := range got {
			msgs = append(msgs, m.GetMessage())
			ids[i] = m.GetAckId()
		}
		c.Acknowledge(subscription, ids...)
	}
	return msgs
}

// Acknowledge acknowledges messages.
func (c *Client) Acknowledge(subscription string, ackIDs ...string) {
	c.t.Helper()
	ctx, cancel := c.context()
	defer cancel()
	_, err := c.Subscriber.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{Subscription: subscription, AckIds: ackIDs})
	if err != nil {
		c.t.Fatalf("acknowledge to %s: %v", subscription, err)
	}
}

// Extend lets the leases of messages end so many seconds from now; zero returns
// them at once.
func (c *Client) Extend(subscription string, seconds int32, ackIDs ...string) {
	c.t.Helper()
	ctx, cancel := c.context()
	defer cancel()
	_, err := c.Subscriber.ModifyAckDeadline(ctx, &pubsubpb.ModifyAckDeadlineRequest{
		Subscription: subscription, AckIds: ackIDs, AckDeadlineSeconds: seconds,
	})
	if err != nil {
		c.t.Fatalf("modify ack deadlines of %s: %v", subscription, err)
	}
}

// OpenStream opens a streaming pull that ends when t does. A stream deadline of
// zero becomes 10 s.
func (c *Client) OpenStream(first *pubsubpb.StreamingPullRequest) pubsubpb.Subscriber_StreamingPullClient {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	c.t.Cleanup(cancel)
	stream, err := c.Subscriber.StreamingPull(ctx)
	if err != nil {
		c.t.Fatalf("open a stream of %s: %v", first.GetSubscription(), err)
	}
	if first.GetStreamAckDeadlineSeconds() == 0 {
		first.StreamAckDeadlineSeconds = 10
	}
	if err := stream.Send(first); err != nil {
		c.t.Fatalf("open a stream of %s: %v", first.GetSubscription(), err)
	}
	return stream
}

// Receive returns the next n messages of a stream; more in its last response
// ends the test.
func (c *Client) Receive(stream pubsubpb.Subscriber_StreamingPullClient, n int) []*pubsubpb.ReceivedMessage {
	c.t.Helper()
	var got []*pubsubpb.ReceivedMessage
	for len(got) < n {
		resp, err := stream.Recv()
		if err != nil {
			c.t.Fatalf("stream ended after %d of %d messages: %v", len(got), n, err)
		}
		got = append(got, resp.GetReceivedMessages()...)
	}
	if len(got) > n {
		c.t.Fatalf("stream gave %d messages, want %d", len(got), n)
	}
	return got
}

func (c *Client) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.t.Context(), callTimeout)
}
