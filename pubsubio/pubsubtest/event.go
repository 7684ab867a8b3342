package pubsubtest

import (
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// A Kind says what an event is about.
type Kind int

// What the event log tells of.
const (
	// Publish: a message was stored, and the request is about to be answered.
	// It comes before every delivery of the message. Latency set with Delay lies
	// before it, so that a client that does not wait for the answer is found out.
	Publish Kind = iota
	// Deliver: a message was leased to a stream or a pull.
	Deliver
	// Acknowledge: a message was acknowledged.
	Acknowledge
	// Extend: a message's lease was given a new end.
	Extend
	// Return: the client gave a message back.
	Return
	// Lapse: a message's lease ended.
	Lapse
	// StreamOpen: a streaming pull began.
	StreamOpen
	// StreamClose: a streaming pull ended.
	StreamClose
	// Refused: a call was answered with an error, or a stream was not opened.
	Refused
	// Recall: a message's lease ended because an earlier message of its ordering
	// key came back.
	Recall
	// Seek: a subscription was moved to a time.
	Seek
)

var kinds = [...]string{"Publish", "Deliver", "Acknowledge", "Extend", "Return", "Lapse", "StreamOpen", "StreamClose", "Refused", "Recall", "Seek"}

// String returns the name of the kind.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kinds) {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return kinds[k]
}

// An Event is something that happened on the server.
type Event struct {
	// Seq numbers the events in the order in which they happened, from 1.
	Seq uint64
	// Time is when it happened.
	Time time.Time
	// Kind says what happened. The fields below are set where they apply.
	Kind Kind
	// Method is the method that was refused, such as "Publish".
	Method string
	// Topic is the name of the topic of a Publish.
	Topic string
	// Subscription is the name of the subscription of anything but a Publish.
	// For a Refused event it is the resource that the request named.
	Subscription string
	// MessageID is the id of the message.
	MessageID string
	// Attempt counts the deliveries of the message on the subscription, from 1,
	// with or without a dead-letter policy. That of an Acknowledge, an Extend or
	// a Return is the delivery whose acknowledgement id was used.
	Attempt int
	// Stale is true for an Acknowledge that used the id of an earlier delivery,
	// or came after the end of the lease.
	Stale bool
	// Seconds is the new deadline of an Extend, in lease seconds.
	Seconds int
	// Stream numbers the streaming pull of a Deliver, a StreamOpen and a
	// StreamClose, from 1; it is zero for a delivery to a unary pull.
	Stream uint64
	// Code is the status of a Refused or a StreamClose.
	Code codes.Code

	msg *stored
}

// Message returns the message that the event is about, nil if there is none. It
// is decoded at each call.
func (e Event) Message() *message.Message {
	if e.msg == nil {
		return nil
	}
	return e.msg.message(e.Attempt)
}

// Events returns the latest events, as many as Config.Events keeps, in their
// order. It is empty where none are kept.
func (s *Server) Events() []Event { return s.events.since(0) }

// EventsDropped returns how many events are no longer kept. A test that reasons
// from the absence of an event must find it zero.
func (s *Server) EventsDropped() uint64 {
	l := s.events
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seq - uint64(len(l.ring.values))
}
