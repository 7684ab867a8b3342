package dlq

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/panics"
)

// A Sender is what a transform hands the letters of one bundle to: it opens a writer
// of the queue at the first, and makes a panic of the queue an error. Sink, source
// and [Write] use it, and so may a transform of one's own.
//
// A bundle calls Check as it starts, Send for each letter, and Flush before it ends;
// one that fails calls Drop. All but Drop are for the bundle's goroutine.
type Sender struct {
	queue  Queue
	owner  string
	writer Writer // nil before the first letter, and after the end
	failed error  // of the first Send that failed
}

// NewSender returns a sender for a bundle of owner, which is as Queue.Open says.
func NewSender(queue Queue, owner string) *Sender { return &Sender{queue: queue, owner: owner} }

// Send hands a letter to the queue. An error fails the bundle.
func (s *Sender) Send(ctx context.Context, l Letter) error {
	err := s.send(ctx, l)
	if s.failed == nil {
		s.failed = err
	}
	return err
}

func (s *Sender) send(ctx context.Context, l Letter) error {
	if s.writer == nil {
		if err := s.open(ctx); err != nil {
			return fmt.Errorf("open the dead-letter queue: %w", err)
		}
	}
	if err := s.offer(ctx, l); err != nil {
		return fmt.Errorf("hand a failed record to the dead-letter queue: %w", err)
	}
	return nil
}

// Flush returns once everything that was sent is durable. It ends the sender, and
// does nothing where nothing was sent. An error fails the bundle; after a Send that
// failed it is that one.
func (s *Sender) Flush(ctx context.Context) error {
	if s.failed != nil || s.writer == nil {
		return s.failed
	}
	if err := s.flush(ctx); err != nil {
		return fmt.Errorf("flush the dead-letter queue: %w", err)
	}
	s.writer = nil
	return nil
}

// Drop ends the sender of a bundle that fails, at once. It does nothing after Flush
// has succeeded, and may come twice, and from another goroutine once Send and Flush
// have returned.
func (s *Sender) Drop() {
	w := s.writer
	if w == nil {
		return
	}
	s.writer = nil
	if err := s.drop(w); err != nil {
		slog.Warn("dlq: " + err.Error()) // The bundle fails already.
	}
}

// Close lets go of what the queue keeps in this process for the owner, whatever its
// bundles have opened: when a run has ended. The next bundle checks the queue anew.
func (s *Sender) Close() (err error) {
	checked.Delete(s.owner)
	defer panics.Recover(&err, "dead-letter queue", s.name())
	return s.queue.Close(s.owner)
}

func (s *Sender) open(ctx context.Context) (err error) {
	defer panics.Recover(&err, "dead-letter queue", s.name())
	s.writer, err = s.queue.Open(ctx, s.owner)
	return err
}

func (s *Sender) offer(ctx context.Context, l Letter) (err error) {
	defer panics.Recover(&err, "dead-letter queue", s.name())
	return s.writer.Offer(ctx, l)
}

func (s *Sender) flush(ctx context.Context) (err error) {
	defer panics.Recover(&err, "dead-letter queue", s.name())
	return s.writer.Flush(ctx)
}

func (s *Sender) drop(w Writer) (err error) {
	defer panics.Recover(&err, "dead-letter queue", s.name())
	w.Drop()
	return nil
}

// name is the queue's type, for error texts.
func (s *Sender) name() string { return fmt.Sprintf("%T", s.queue) }
