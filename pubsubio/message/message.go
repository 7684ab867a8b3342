package message

import (
	"maps"
	"strings"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
)

// A Message is one Pub/Sub message, received or to be published.
//
// A sink reads Data, Attributes and OrderingKey and ignores the rest, which the
// service assigns.
type Message struct {
	// ID is the id that the service gave the message when it was published,
	// unique within its topic.
	ID string

	// Data is the payload, any bytes. A message to be published needs data or
	// at least one attribute.
	Data []byte

	// Attributes are the message's labels, at most 100. Keys have 1 to 256
	// bytes, values up to 1,024, both valid UTF-8.
	Attributes map[string]string

	// OrderingKey groups messages that a subscription with message ordering
	// delivers in the order in which the service received them.
	OrderingKey string

	// PublishTime is when the service received the message.
	PublishTime time.Time

	// DeliveryAttempt counts the deliveries of the message on its subscription,
	// from 1. The service counts only where the subscription has a dead-letter
	// policy; elsewhere it is zero.
	DeliveryAttempt int
}

// Republishable returns a message with m's data, ordering key and those of m's
// attributes that the service accepts from a publisher: it strips the ones for
// which [ReservedAttribute] is true, which the service or its clients add on
// delivery. m is not changed; the result shares its data and, where nothing is
// stripped, its attributes.
//
// A sink that does not publish in order refuses a message with an ordering key:
// clear the result's OrderingKey where the order does not matter.
func (m *Message) Republishable() *Message {
	out := &Message{Data: m.Data, Attributes: m.Attributes, OrderingKey: m.OrderingKey}
	for key := range m.Attributes {
		if ReservedAttribute(key) {
			out.Attributes = maps.Clone(m.Attributes)
			maps.DeleteFunc(out.Attributes, func(k, _ string) bool { return ReservedAttribute(k) })
			break
		}
	}
	return out
}

// reservedExcept is the one attribute with the reserved prefix that a publisher
// may set: the client libraries propagate trace context in it.
const reservedExcept = "googclient_traceparent"

// ReservedAttribute reports whether the service refuses an attribute of that key
// from a publisher: keys that begin with "goog", in any case, belong to it.
func ReservedAttribute(key string) bool {
	return len(key) >= 4 && strings.EqualFold(key[:4], "goog") && key != reservedExcept
}

// FromProto returns the message that the service sent as p, delivered for the
// attempt-th time. It shares p's data and attributes.
func FromProto(p *pubsubpb.PubsubMessage, attempt int) *Message {
	m := &Message{
		ID:              p.GetMessageId(),
		Data:            p.GetData(),
		Attributes:      p.GetAttributes(),
		OrderingKey:     p.GetOrderingKey(),
		DeliveryAttempt: attempt,
	}
	if t := p.GetPublishTime(); t != nil {
		m.PublishTime = t.AsTime()
	}
	return m
}

// PublishProto returns m as a publisher sends it: data, attributes and ordering
// key. It shares m's data and attributes.
func (m *Message) PublishProto() *pubsubpb.PubsubMessage {
	return &pubsubpb.PubsubMessage{Data: m.Data, Attributes: m.Attributes, OrderingKey: m.OrderingKey}
}

// New returns a message with that payload, which it shares. Together with
// WithAttribute and WithOrderingKey it makes an encoder of a line:
//
//	return message.New(payload).WithAttribute("country", o.Country).WithOrderingKey(o.Customer), nil
func New(data []byte) *Message { return &Message{Data: data} }

// WithAttribute sets an attribute of m and returns m. An empty key or value adds
// nothing: what a record does not have is no attribute.
func (m *Message) WithAttribute(key, value string) *Message {
	if key == "" || value == "" {
		return m
	}
	if m.Attributes == nil {
		m.Attributes = make(map[string]string)
	}
	m.Attributes[key] = value
	return m
}

// WithAttributes is WithAttribute for each of attributes, which m does not keep.
func (m *Message) WithAttributes(attributes map[string]string) *Message {
	for key, value := range attributes {
		m.WithAttribute(key, value)
	}
	return m
}

// WithOrderingKey sets m's ordering key and returns m. An empty key adds nothing.
func (m *Message) WithOrderingKey(key string) *Message {
	if key != "" {
		m.OrderingKey = key
	}
	return m
}
