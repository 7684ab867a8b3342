package dlq

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A notedQueue notes what is asked of it under its name, and fails, or panics in, the
// call that FailAt names.
type notedQueue struct{ Name, FailAt string }

type notes struct {
	sync.Mutex // guards all below

	calls   []string
	durable []Letter
}

var allNotes sync.Map // of *notes, by name

func (q notedQueue) notes() *notes {
	n, _ := allNotes.LoadOrStore(q.Name, new(notes))
	return n.(*notes)
}

func (q notedQueue) note(call string) error {
	n := q.notes()
	n.Lock()
	defer n.Unlock()
	n.calls = append(n.calls, call)
	switch q.FailAt {
	case call:
		return errors.New("out of order")
	case "panic in " + call:
		panic("broken")
	}
	return nil
}

func (q notedQueue) Validate() error {
	if q.Name == "" {
		return errors.New("notedQueue.Name: must be set")
	}
	return nil
}

func (q notedQueue) Check(context.Context, string) error { return q.note("check") }

func (q notedQueue) Open(context.Context, string) (Writer, error) {
	if err := q.note("open"); err != nil {
		return nil, err
	}
	return &notedWriter{queue: q}, nil
}

func (q notedQueue) Close(string) error { return q.note("close") }

type notedWriter struct {
	queue   notedQueue
	letters []Letter
}

func (w *notedWriter) Offer(_ context.Context, l Letter) error {
	w.letters = append(w.letters, l)
	return w.queue.note("offer")
}

func (w *notedWriter) Flush(context.Context) error {
	if err := w.queue.note("flush"); err != nil {
		return err
	}
	n := w.queue.notes()
	n.Lock()
	defer n.Unlock()
	n.durable = append(n.durable, w.letters...)
	return nil
}

func (w *notedWriter) Drop() { _ = w.queue.note("drop") }

func init() { Register[notedQueue]() }

// bundle is what a transform does in one that has two failures, and how it ends.
func bundle(ctx context.Context, s *Sender) error {
	err := s.Check(ctx)
	for range 2 {
		if err == nil {
			err = s.Send(ctx, Letter{Error: "why"})
		}
	}
	if err == nil {
		err = s.Flush(ctx)
	}
	s.Drop()
	s.Drop()
	return err
}

func TestSender_AsksTheQueueInOrder(t *testing.T) {
	for failAt, c := range map[string]struct {
		want  string
		calls []string
	}{
		"":               {"", []string{"check", "open", "offer", "offer", "flush"}},
		"check":          {"check the dead-letter queue: out of order", []string{"check"}},
		"open":           {"open the dead-letter queue: out of order", []string{"check", "open"}},
		"offer":          {"hand a failed record to the dead-letter queue: out of order", []string{"check", "open", "offer", "drop"}},
		"flush":          {"flush the dead-letter queue: out of order", []string{"check", "open", "offer", "offer", "flush", "drop"}},
		"panic in check": {"check the dead-letter queue: dead-letter queue dlq.notedQueue panicked at sender_test.go:", []string{"check"}},
		"panic in open":  {"open the dead-letter queue: dead-letter queue dlq.notedQueue panicked at sender_test.go:", []string{"check", "open"}},
		"panic in offer": {"hand a failed record to the dead-letter queue: dead-letter queue dlq.notedQueue panicked at sender_test.go:", []string{"check", "open", "offer", "drop"}},
		"panic in flush": {"flush the dead-letter queue: dead-letter queue dlq.notedQueue panicked at sender_test.go:", []string{"check", "open", "offer", "offer", "flush", "drop"}},
		"panic in drop":  {"", []string{"check", "open", "offer", "offer", "flush"}},
	} {
		q := notedQueue{Name: ownerOf(t) + failAt, FailAt: failAt}
		err := bundle(t.Context(), NewSender(q, q.Name))
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %q", failAt, err, c.want)
		}
		if n := q.notes(); !slices.Equal(n.calls, c.calls) || (len(n.durable) == 2) != (err == nil) {
			t.Errorf("%q: asked %v, %d durable", failAt, n.calls, len(n.durable))
		}
	}
}

// A transform that went on after a Send had failed, and flushed, was told that all was
// durable.
func TestSender_FlushFailsAfterASendThatFailed(t *testing.T) {
	for _, failAt := range []string{"open", "offer", "panic in offer"} {
		q := notedQueue{Name: ownerOf(t) + failAt, FailAt: failAt}
		s := NewSender(q, q.Name)
		failed := s.Send(t.Context(), Letter{})
		if err := s.Flush(t.Context()); err == nil || !errors.Is(err, failed) {
			t.Errorf("%s: Flush returned %v after %v", failAt, err, failed)
		}
		if n := q.notes(); slices.Contains(n.calls, "flush") {
			t.Errorf("%s: asked %v", failAt, n.calls)
		}
		s.Drop()
	}
}

func TestSender_WithoutALetterOpensNothing(t *testing.T) {
	q := notedQueue{Name: ownerOf(t)}
	s := NewSender(q, q.Name)
	if err := s.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	s.Drop()
	if n := q.notes(); len(n.calls) > 0 {
		t.Errorf("asked %v", n.calls)
	}
}

func TestSender_APanicOfDropAndCloseEndsNothing(t *testing.T) {
	q := notedQueue{Name: ownerOf(t), FailAt: "panic in drop"}
	s := NewSender(q, q.Name)
	if err := s.Send(t.Context(), Letter{}); err != nil {
		t.Fatal(err)
	}
	s.Drop()
	q.FailAt = "panic in close"
	expectError(t, NewSender(q, q.Name).Close(), "dead-letter queue dlq.notedQueue panicked at sender_test.go:")
}
