package source

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
)

// A fakeQueue notes what is asked of it in queueLogs, under its name, and fails, or
// panics in, the call that FailAt names.
type fakeQueue struct{ Name, FailAt string }

type queueLog struct {
	sync.Mutex
	calls   []string
	durable []dlq.Letter
}

var queueLogs sync.Map // of *queueLog, by name

func init() { dlq.Register[fakeQueue]() }

// queueFor returns a queue of its own for the test, and its log.
func queueFor(t *testing.T, failAt string) (fakeQueue, *queueLog) {
	t.Helper()
	q := fakeQueue{Name: t.Name(), FailAt: failAt}
	t.Cleanup(func() { queueLogs.Delete(q.Name) })
	return q, q.log()
}

func (q fakeQueue) log() *queueLog {
	l, _ := queueLogs.LoadOrStore(q.Name, new(queueLog))
	return l.(*queueLog)
}

func (q fakeQueue) note(call string) error {
	l := q.log()
	l.Lock()
	defer l.Unlock()
	l.calls = append(l.calls, call)
	switch q.FailAt {
	case call:
		return errors.New("the queue is out of order")
	case "panic in " + call:
		panic("the queue is broken")
	}
	return nil
}

func (q fakeQueue) Validate() error {
	if q.Name == "invalid" {
		return errors.New("fakeQueue.Name: must be valid")
	}
	return nil
}

func (q fakeQueue) Open(_ context.Context, owner string) (dlq.Writer, error) {
	if owner == "" {
		return nil, errors.New("nobody opens it")
	}
	if err := q.note("open"); err != nil {
		return nil, err
	}
	return &fakeWriter{queue: q}, nil
}

func (q fakeQueue) Close(string) error { return q.note("close") }

type fakeWriter struct {
	queue   fakeQueue
	letters []dlq.Letter
}

func (w *fakeWriter) Offer(_ context.Context, l dlq.Letter) error {
	w.letters = append(w.letters, l)
	return w.queue.note("offer")
}

func (w *fakeWriter) Flush(context.Context) error {
	if err := w.queue.note("flush"); err != nil {
		return err
	}
	l := w.queue.log()
	l.Lock()
	defer l.Unlock()
	l.durable = append(l.durable, w.letters...)
	return nil
}

func (w *fakeWriter) Drop() { _ = w.queue.note("drop") }

type unregisteredQueue struct{ fakeQueue }
