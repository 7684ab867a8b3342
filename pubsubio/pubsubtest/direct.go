package pubsubtest

import (
	"fmt"
	"math"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/proto"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// CreateTopic creates a topic. The error is that of the service, with its status.
func (s *Server) CreateTopic(name string) error {
	_, err := s.createTopic(&pubsubpb.Topic{Name: name})
	return during(err, "create topic %s", name)
}

// MustCreateTopic is CreateTopic, for tests: an error panics.
func (s *Server) MustCreateTopic(name string) { panicIf(s.CreateTopic(name)) }

// A SubscriptionOption changes a subscription that is about to be created.
type SubscriptionOption func(*pubsubpb.Subscription)

// AckDeadline sets the acknowledgement deadline of deliveries to unary pulls, in
// lease seconds, 10 to 600. The default is 10. Streams bring their own.
func AckDeadline(seconds int32) SubscriptionOption {
	return func(s *pubsubpb.Subscription) { s.AckDeadlineSeconds = seconds }
}

// DeadLetters forwards a message to a topic once it was delivered maxAttempts
// times, 5 to 100, and not acknowledged. Deliveries then tell their attempt. A
// topic that does not exist gets nothing, and deliveries go on, as with the
// service where it lacks permission.
func DeadLetters(topic string, maxAttempts int32) SubscriptionOption {
	return func(s *pubsubpb.Subscription) {
		s.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{DeadLetterTopic: topic, MaxDeliveryAttempts: maxAttempts}
	}
}

// Ordered gives the subscription message ordering: what is published with an
// ordering key is delivered in its order, to one stream as long as any of the key
// is outstanding, and when a message comes back, all later ones of its key do.
func Ordered() SubscriptionOption {
	return func(s *pubsubpb.Subscription) { s.EnableMessageOrdering = true }
}

// Filter lets the subscription get only messages whose attributes match an
// expression of the service's filter language, of at most 256 bytes, such as
// attributes:key or attributes.key = "value".
func Filter(expression string) SubscriptionOption {
	return func(s *pubsubpb.Subscription) { s.Filter = expression }
}

// RetainAcked keeps acknowledged messages for a [Server.Seek], seven days of
// publish time, and so keeps them in memory for as long as the server lives.
func RetainAcked() SubscriptionOption {
	return func(s *pubsubpb.Subscription) { s.RetainAckedMessages = true }
}

// ExactlyOnce makes the subscription say that it has exactly-once delivery. It
// is not enforced, nor are acknowledgements on a stream confirmed.
func ExactlyOnce() SubscriptionOption {
	return func(s *pubsubpb.Subscription) { s.EnableExactlyOnceDelivery = true }
}

// CreateSubscription creates a subscription of a topic, which gets what is
// published from now on. The error is that of the service, with its status.
func (s *Server) CreateSubscription(name, topic string, opts ...SubscriptionOption) error {
	config := &pubsubpb.Subscription{Name: name, Topic: topic}
	for _, o := range opts {
		o(config)
	}
	_, err := s.createSubscription(config)
	return during(err, "create subscription %s", name)
}

// MustCreateSubscription is CreateSubscription, for tests: an error panics.
func (s *Server) MustCreateSubscription(name, topic string, opts ...SubscriptionOption) {
	panicIf(s.CreateSubscription(name, topic, opts...))
}

// DeleteTopic deletes a topic. Its subscriptions stay, with what they hold. The
// error is that of the service, with its status.
func (s *Server) DeleteTopic(name string) error {
	_, err := s.deleteTopic(&pubsubpb.DeleteTopicRequest{Topic: name})
	return during(err, "delete topic %s", name)
}

// DeleteSubscription deletes a subscription and ends its streams. The error is
// that of the service, with its status.
func (s *Server) DeleteSubscription(name string) error {
	_, err := s.deleteSubscription(&pubsubpb.DeleteSubscriptionRequest{Subscription: name})
	return during(err, "delete subscription %s", name)
}

// Seek makes what was published before a time acknowledged, and what was
// published since and is retained unacknowledged: by the subscription, see
// [RetainAcked], or by its topic, if that has a retention. The error is that of
// the service, with its status.
func (s *Server) Seek(subscription string, to time.Time) error {
	sub, err := s.resources.subscription(subscription)
	if err != nil {
		return during(err, "seek %s", subscription)
	}
	sub.seek(to)
	return nil
}

// EndStreams ends the open streams of a subscription with the status of err; nil
// ends them with OK. What they hold stays leased. It returns the service's error
// if there is no such subscription.
func (s *Server) EndStreams(subscription string, err error) error {
	sub, unknown := s.resources.subscription(subscription)
	if unknown != nil {
		return during(unknown, "end streams of %s", subscription)
	}
	sub.endStreams(err)
	return nil
}

// Publish publishes messages, without gRPC and without what Answer and Delay ask
// for, and returns their ids. Any number goes; otherwise the service's rules
// hold, and nothing is published if one message breaks them. A PublishTime that
// is not zero is kept, so that messages may be as old as a test needs them.
func (s *Server) Publish(topic string, msgs ...*message.Message) ([]string, error) {
	t, err := s.resources.topic(topic)
	if err != nil {
		return nil, during(err, "publish to %s", topic)
	}
	batch := make([]stored, len(msgs))
	for i, m := range msgs {
		if batch[i], err = storedFrom(m); err != nil {
			return nil, during(err, "publish message %d to %s", i, topic)
		}
	}
	t.publish(batch)
	ids := make([]string, len(batch))
	for i := range batch {
		ids[i] = batch[i].idString()
	}
	return ids, nil
}

// Preload publishes n copies of a message as Publish does. The copies share the
// payload: a backlog of millions is made in a moment and costs little memory.
func (s *Server) Preload(topic string, n int, m *message.Message) error {
	t, err := s.resources.topic(topic)
	if err != nil {
		return during(err, "preload %s", topic)
	}
	one, err := storedFrom(m)
	if err != nil {
		return during(err, "preload %s", topic)
	}
	for n > 0 {
		batch := make([]stored, min(n, maxPublishMessages))
		for i := range batch {
			batch[i] = one
		}
		t.publish(batch)
		n -= len(batch)
	}
	return nil
}

// storedFrom checks and encodes a message.
func storedFrom(m *message.Message) (stored, error) {
	wire, err := proto.Marshal(m.PublishProto())
	if err != nil {
		return stored{}, invalid("%v", err)
	}
	_, refusal, err := checkMessage(wire)
	switch {
	case err != nil:
		return stored{}, invalid("%v", err)
	case refusal != nil:
		return stored{}, refusal
	case framedSize(wire) > maxPublishBytes:
		return stored{}, tooLarge(maxPublishBytes)
	}
	out := stored{wire: wire}
	if !m.PublishTime.IsZero() {
		out.published = m.PublishTime.UnixNano()
	}
	return out, nil
}

// Published returns how many messages were published to a topic, zero if there
// is none of that name.
func (s *Server) Published(topic string) int64 {
	t, err := s.resources.topic(topic)
	if err != nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.published
}

// Messages returns the latest messages that were published to a topic, as many
// as Config.KeepPublished keeps, in their order.
func (s *Server) Messages(topic string) []*message.Message {
	t, err := s.resources.topic(topic)
	if err != nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var msgs []*message.Message
	t.kept.each(math.MaxUint64, func(m *stored) { msgs = append(msgs, m.message(0)) })
	return msgs
}

// Topics returns the names of all topics, sorted.
func (s *Server) Topics() []string { return s.resources.topicNames("") }

// Subscriptions returns the names of all subscriptions, sorted.
func (s *Server) Subscriptions() []string { return s.resources.subscriptionNames("") }

// during adds what was done to an error of the service; nil stays nil.
func during(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("pubsubtest: %s: %w", fmt.Sprintf(format, args...), err)
}

// panicIf is for the Must… functions.
func panicIf(err error) {
	if err != nil {
		panic(err) //nolint:forbidigo // what Must… promises
	}
}
