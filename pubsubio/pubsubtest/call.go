package pubsubtest

import (
	"context"
	"strings"
	"sync/atomic"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/proto"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// A method is one method of the service, and what tests asked of it.
type method struct {
	name                  string
	permission            string // that the service asks for
	topics, subscriptions bool   // what its requests name

	calls  atomic.Int64
	orders atomic.Pointer[[]*Order]

	answer, delay atomic.Pointer[Order] // those of Answer and Delay
}

// methodTable is the methods that the server has.
var methodTable = []method{
	{name: "CreateTopic", permission: "pubsub.topics.create", topics: true},
	{name: "UpdateTopic", permission: "pubsub.topics.update", topics: true},
	{name: "GetTopic", permission: "pubsub.topics.get", topics: true},
	{name: "ListTopics", permission: "pubsub.topics.list"},
	{name: "ListTopicSubscriptions", permission: "pubsub.topics.get", topics: true},
	{name: "DeleteTopic", permission: "pubsub.topics.delete", topics: true},
	{name: "DetachSubscription", permission: "pubsub.topics.detachSubscription", subscriptions: true},
	{name: "Publish", permission: "pubsub.topics.publish", topics: true},
	{name: "CreateSubscription", permission: "pubsub.subscriptions.create", topics: true, subscriptions: true},
	{name: "UpdateSubscription", permission: "pubsub.subscriptions.update", subscriptions: true},
	{name: "GetSubscription", permission: "pubsub.subscriptions.get", subscriptions: true},
	{name: "ListSubscriptions", permission: "pubsub.subscriptions.list"},
	{name: "DeleteSubscription", permission: "pubsub.subscriptions.delete", subscriptions: true},
	{name: "Seek", permission: "pubsub.subscriptions.consume", subscriptions: true},
	{name: "Pull", permission: "pubsub.subscriptions.consume", subscriptions: true},
	{name: "StreamingPull", permission: "pubsub.subscriptions.consume", subscriptions: true},
	{name: "Acknowledge", permission: "pubsub.subscriptions.consume", subscriptions: true},
	{name: "TestIamPermissions", topics: true, subscriptions: true},
	{name: "ModifyAckDeadline", permission: "pubsub.subscriptions.consume", subscriptions: true},
}

func newMethods() map[string]*method {
	m := make(map[string]*method, len(methodTable))
	for i := range methodTable {
		t := &methodTable[i]
		one := &method{name: t.name, permission: t.permission, topics: t.topics, subscriptions: t.subscriptions}
		one.orders.Store(new([]*Order))
		m[t.name] = one
	}
	return m
}

// method finds a method for a test. A name that does not exist is an error in
// the test that would else have no effect.
func (s *Server) method(name string) *method {
	m := s.methods[name]
	if m == nil {
		names := make([]string, len(methodTable))
		for i := range methodTable {
			names[i] = methodTable[i].name
		}
		panicMisuse("no method %q: want one of %s", name, strings.Join(names, ", "))
	}
	return m
}

// Calls returns how many calls of a method reached the server, refused ones
// included; for "StreamingPull", how many streams were asked for. A name that is
// no method of the server panics.
func (s *Server) Calls(name string) int64 { return s.method(name).calls.Load() }

// An incoming call is what rules ask about.
type incoming struct {
	method              *method
	resource            string // the one that the request is about
	topic, subscription string // as rules mean them
	publish             *publishRequest
	decoded             []*message.Message
}

func newIncoming(m *method, resource string, req any) *incoming {
	in := &incoming{method: m, resource: resource}
	switch r := req.(type) {
	case *publishRequest:
		in.topic, in.publish = r.topic, r
	case *pubsubpb.Subscription: // to be created
		in.topic, in.subscription = r.GetTopic(), r.GetName()
	default:
		if m.topics {
			in.topic = resource
		}
		if m.subscriptions {
			in.subscription = resource
		}
	}
	return in
}

// messages returns the messages of a publish request. They are decoded once, and
// only where a rule asks.
func (in *incoming) messages() []*message.Message {
	if in.publish == nil {
		return nil
	}
	if in.decoded == nil {
		in.decoded = make([]*message.Message, len(in.publish.messages))
		for i := range in.publish.messages {
			p := new(pubsubpb.PubsubMessage)
			_ = proto.Unmarshal(in.publish.messages[i].wire, p) // well-formed: it was read
			in.decoded[i] = &message.Message{Data: p.GetData(), Attributes: p.GetAttributes(), OrderingKey: p.GetOrderingKey()}
		}
	}
	return in.decoded
}

// call carries out a call of m, as tests asked for it.
func (s *Server) call(ctx context.Context, m *method, req any, do func() (any, error)) (resp any, err error) {
	resource := resourceOf(req)
	defer func() {
		if err != nil {
			s.events.refused(m.name, resource, err)
		}
		s.changes.notify()
	}()
	m.calls.Add(1)
	if len(*m.orders.Load()) == 0 {
		return do()
	}
	p := m.plan(newIncoming(m, resource, req))
	if p.fired {
		s.changes.notify()
	}
	return p.run(ctx, do)
}
