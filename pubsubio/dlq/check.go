package dlq

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/panics"
)

// A Checker is a [Queue] that can find out, before anything depends on it, that it
// cannot work. A queue need not be one.
type Checker interface {
	// Check returns what keeps the queue from working, and what mends it. What it
	// could not find out is no error: it warns of what it assumes instead. It takes a
	// few seconds at most. owner is as Open says.
	Check(ctx context.Context, owner string) error
}

// A TopicQueue is a [Queue] that publishes to one Pub/Sub topic, and says to which:
// so a transform can refuse one that would bring its letters back to it. A queue
// need not be one.
type TopicQueue interface {
	// DeadLetterTopic returns the topic's full name.
	DeadLetterTopic() string
}

// TopicOf returns the topic of a queue that publishes to one, "" of any other.
func TopicOf(queue Queue) string {
	if q, ok := queue.(TopicQueue); ok {
		return q.DeadLetterTopic()
	}
	return ""
}

// checked holds a *check for each owner. It is package state because bundles, and
// DoFn instances, come and go, and none of them is the first by itself.
var checked sync.Map

// A check is the one of an owner in this process.
type check struct {
	passed atomic.Bool
	turn   chan struct{} // holds a token while the queue is asked
}

// Check asks a queue that is a [Checker] whether it can work: for the first bundle of
// the owner in this process, while others that start wait, and again where it could
// not. An error fails the bundle.
func (s *Sender) Check(ctx context.Context) error {
	q, ok := s.queue.(Checker)
	if !ok {
		return nil
	}
	v, ok := checked.Load(s.owner)
	if !ok {
		v, _ = checked.LoadOrStore(s.owner, &check{turn: make(chan struct{}, 1)})
	}
	c := v.(*check)
	if c.passed.Load() {
		return nil
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return fmt.Errorf("check the dead-letter queue: %w", context.Cause(ctx))
	}
	if c.passed.Load() {
		return nil
	}
	if err := s.ask(ctx, q); err != nil {
		return fmt.Errorf("check the dead-letter queue: %w", err)
	}
	c.passed.Store(true)
	return nil
}

func (s *Sender) ask(ctx context.Context, q Checker) (err error) {
	defer panics.Recover(&err, "dead-letter queue", s.name())
	return q.Check(ctx, s.owner)
}
