package pubsubtest

import (
	"slices"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// A Rule says which calls an order applies to. The zero value is every call of
// every method; each field that is set leaves fewer.
//
// Skip, Every, Probability and Times choose, in this order, among the calls that
// all the other fields leave.
type Rule struct {
	// Method is the method, such as "Publish"; all if empty. "StreamingPull" is
	// the opening of a stream.
	Method string

	// Topic is the full name of the topic that the request is about: any if
	// empty. For CreateSubscription it is the topic that is subscribed to.
	Topic string

	// Subscription is the full name of the subscription that the request is
	// about: any if empty.
	Subscription string

	// OrderingKey, Attribute and Message choose publish requests by their
	// messages: those that hold at least one for which all that is set is true.
	// Other methods then have no part in the rule.
	//
	// OrderingKey is the message's ordering key.
	OrderingKey string
	// Attribute is the key of an attribute that the message has.
	Attribute string
	// Message is asked about the message as it was published, without an id and a
	// publish time. It must not change or keep it, and may be called by several
	// goroutines at once.
	Message func(*message.Message) bool

	// FirstAttempt leaves of the publish requests that have the same messages the
	// first: a client that makes it again gets through.
	FirstAttempt bool

	// Skip is how many of the calls pass first, as if there were no rule.
	Skip int

	// Every leaves of the rest each n-th call: with 3, the third, the sixth. Zero
	// and 1 leave each.
	Every int

	// Probability is the chance of each of the rest, above 0 and at most 1. Zero
	// means always. The same Seed draws the same sequence.
	Probability float64

	// Times is how many calls the rule applies to at most; after them it applies
	// to none. Zero means without limit.
	Times int

	// Seed is what Probability and WaitBetween draw from.
	Seed uint64

	// resource is a topic or subscription, for For.
	resource string
	// when is what the orders of this package ask besides.
	when func(*incoming) bool
	// denial is what an order of Deny takes away, nil for others.
	denial *denial
}

// validate ends a test whose rule can apply to no call, or says no sense.
func (r *Rule) validate(s *Server) {
	switch {
	case r.Skip < 0 || r.Every < 0 || r.Times < 0:
		panicMisuse("a rule with Skip %d, Every %d, Times %d: want 0 or more", r.Skip, r.Every, r.Times)
	case r.Probability < 0 || r.Probability > 1:
		panicMisuse("a rule with Probability %v: want 0 to 1", r.Probability)
	case r.Method == "":
		return
	}
	m := s.method(r.Method)
	switch {
	case r.ofMessages() && m.name != "Publish":
		panicMisuse("a rule for messages of %s: only the requests of Publish have messages", r.Method)
	case r.Topic != "" && !m.topics:
		panicMisuse("a rule for %s of a topic: its requests name none", r.Method)
	case r.Subscription != "" && !m.subscriptions:
		panicMisuse("a rule for %s of a subscription: its requests name none", r.Method)
	}
}

// ofMessages reports whether the rule asks about the messages of a request.
func (r *Rule) ofMessages() bool {
	return r.OrderingKey != "" || r.Attribute != "" || r.Message != nil || r.FirstAttempt
}

// matches reports whether all holds but what counts the calls.
func (r *Rule) matches(in *incoming) bool {
	switch {
	case r.Topic != "" && r.Topic != in.topic,
		r.Subscription != "" && r.Subscription != in.subscription,
		r.resource != "" && r.resource != in.resource,
		r.when != nil && !r.when(in):
		return false
	case r.OrderingKey != "" || r.Attribute != "" || r.Message != nil:
		return slices.ContainsFunc(in.messages(), r.matchesMessage)
	}
	return true
}

func (r *Rule) matchesMessage(m *message.Message) bool {
	if r.OrderingKey != "" && m.OrderingKey != r.OrderingKey {
		return false
	}
	if r.Attribute != "" {
		if _, ok := m.Attributes[r.Attribute]; !ok {
			return false
		}
	}
	return r.Message == nil || r.Message(m)
}
