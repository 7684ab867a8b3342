package pubsubtest

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// panicMisuse ends a test that is wrong in itself and would otherwise test nothing.
func panicMisuse(format string, args ...any) {
	panic(fmt.Sprintf("pubsubtest: "+format, args...)) //nolint:forbidigo // a mistake in the text of a test, which no test can handle
}

// An AnswerOption says to which calls an answer is given.
type AnswerOption func(*answer)

// An answer is an order in the making.
type answer struct {
	rule        Rule
	none        bool // given to no call
	afterEffect bool
}

// Times gives the answer to n calls; after them the method works again. Zero
// gives it to none; a negative n panics. Without Times all calls get the answer.
func Times(n int) AnswerOption {
	if n < 0 {
		panicMisuse("Times(%d): want 0 or more", n)
	}
	return func(a *answer) { a.rule.Times, a.none = n, n == 0 }
}

// Skip lets n calls through before the answer is given.
func Skip(n int) AnswerOption { return func(a *answer) { a.rule.Skip = n } }

// For gives the answer only to calls about that topic or subscription, by full
// name. Other calls count neither for Times nor for Skip.
func For(resource string) AnswerOption { return func(a *answer) { a.rule.resource = resource } }

// AfterEffect does what the call asks before giving the answer, as a server
// whose answer is lost.
func AfterEffect() AnswerOption { return func(a *answer) { a.afterEffect = true } }

// Answer makes calls of a method, such as "Publish", fail with the status of err:
// all of them, or those that the options say. It replaces the method's previous
// Answer; a nil err makes the method work again. [Server.Order] can do more, and
// its orders are neither replaced nor ended.
//
// "StreamingPull" fails when a stream is opened; EndStreams ends open ones. An
// error without a status counts as Unknown. A name that is no method of the
// server panics, as does an err with the status OK.
func (s *Server) Answer(name string, err error, opts ...AnswerOption) {
	m := s.method(name)
	if err == nil {
		replace(&m.answer, nil)
		return
	}
	a := answer{rule: Rule{Method: name}}
	for _, o := range opts {
		o(&a)
	}
	actions := []Action{Fail(err)}
	if a.afterEffect {
		actions = []Action{CarryOut(), Fail(err)}
	}
	replace(&m.answer, nil)
	if !a.none {
		replace(&m.answer, s.Order(a.rule, actions...))
	}
}

// Delay makes every call of a method take effect and be answered that much
// later. It replaces the method's previous Delay; zero ends it. A name that is no
// method of the server panics.
func (s *Server) Delay(name string, d time.Duration) {
	m := s.method(name)
	replace(&m.delay, nil)
	if d > 0 {
		replace(&m.delay, s.Order(Rule{Method: name}, Wait(d)))
	}
}

// replace puts an order, or none, in the place of one that it removes.
func replace(place *atomic.Pointer[Order], o *Order) {
	if old := place.Swap(o); old != nil {
		old.Remove()
	}
}

// Deny takes a permission away: calls of a method fail with PERMISSION_DENIED,
// those about the given topics and subscriptions, by full name, or without any
// all of them. The status names the permission, and TestIamPermissions no longer
// returns it. A name that is no method of the server panics.
//
// [Order.Remove] grants it again.
func (s *Server) Deny(name string, resources ...string) *Order {
	d := &denial{permission: s.method(name).permission, resources: slices.Clone(resources)}
	rule := Rule{Method: name, denial: d, when: func(in *incoming) bool { return d.covers(in.resource) }}
	return s.Order(rule, Fail(status.Errorf(codes.PermissionDenied,
		"User not authorized to perform this action. Permission %s is required.", d.permission)))
}

// RefuseMessages is a topic with a schema: a publish request to it that holds a
// message of which refuse is true fails with INVALID_ARGUMENT, and none of its
// messages is published. Rule.Message says what refuse may do.
func (s *Server) RefuseMessages(topic string, refuse func(*message.Message) bool) *Order {
	return s.Order(Rule{Method: "Publish", Topic: topic, Message: refuse},
		Fail(invalid("Invalid data in message: Message failed schema validation.")))
}
