package publish

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

func TestDrop_QueuedMessagesLeaveTheirBatchesAndTheCaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{}
		p := newTestPool(t, f, options.Publisher{BatchDelay: time.Hour})
		a, b := open(t, p), open(t, p)
		mustAdd(t, a, "a1")
		mustAdd(t, b, "b1", "b2")
		mustAdd(t, a, "a2")
		mustAdd(t, b, "b3")
		if err := b.Add(t.Context(), otherTopic, text("b4"), 0); err != nil {
			t.Fatal(err)
		}
		b.Drop()
		b.Drop()
		if n, bytes := inFlight(a); n != 2 || bytes != 2*6 {
			t.Errorf("%d messages, %d bytes in the caps after the drop, want 2 and 12", n, bytes)
		}
		mustAdd(t, a, "a3")
		mustFinish(t, a)
		if got, want := f.data(), []string{"a1", "a2", "a3"}; !slices.Equal(got, want) {
			t.Errorf("published %v, want %v", got, want)
		}
		if err := b.Add(t.Context(), topic, text("late"), 0); err == nil {
			t.Error("a dropped bundle took a message")
		}
	})
}

func TestDrop_AnEmptiedBatchIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{}
		p := newTestPool(t, f, options.Publisher{})
		a := open(t, p)
		mustAdd(t, a, "a")
		a.Drop()
		pass(time.Second)
		synctest.Wait()
		if f.calls != 0 {
			t.Errorf("%d requests", f.calls)
		}
	})
}

func TestDrop_RequestsOnTheWireKeepTheirShareAndFailNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, release := hold()
		f := &fakeService{answer: answer}
		p := newTestPool(t, f, options.Publisher{BatchElementCount: 1, MaxInFlightMessages: 2})
		a := open(t, p)
		mustAdd(t, a, "a1", "a2")
		synctest.Wait()
		a.Drop()
		b := open(t, p)
		if n, _ := inFlight(b); n != 2 {
			t.Errorf("%d messages in the caps, want the 2 on the wire", n)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			mustAdd(t, b, "b1")
			mustFinish(t, b)
		}()
		synctest.Wait()
		release(status.Error(codes.PermissionDenied, "no"))
		release(nil)
		release(nil)
		<-done
		if a.Counts().DestinationCounts != (DestinationCounts{}) || b.Counts().Published != 1 {
			t.Errorf("counts: %+v of the dropped bundle, %+v of the other", a.Counts(), b.Counts())
		}
		if got := p.stats.Published.Load(); got != 1 {
			t.Errorf("%d published by the counters of the run, want 1", got)
		}
	})
}

// A dropped bundle's request went on retrying, with its share of the caps.
func TestDrop_NobodyRetriesForADroppedBundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{answer: always(status.Error(codes.Unavailable, "away"))}
		p := newTestPool(t, f, options.Publisher{})
		a, b := open(t, p), open(t, p)
		mustAdd(t, a, "a")
		pass(5 * time.Second) // several attempts
		a.Drop()
		pass(2 * time.Minute) // longer than any pause
		synctest.Wait()
		if n, _ := inFlight(b); n != 0 {
			t.Errorf("%d messages in the caps", n)
		}
		mustFinish(t, b)
	})
}

// The hook that drops a bundle may run while its goroutine is in a call.
func TestDrop_EndsACallThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, release := hold()
		f := &fakeService{answer: answer}
		p := newTestPool(t, f, options.Publisher{MaxInFlightMessages: 1})
		a := open(t, p)
		mustAdd(t, a, "a")
		done := make(chan error)
		go func() { done <- a.Add(t.Context(), topic, text("b"), 0) }()
		synctest.Wait()
		a.Drop()
		if err := <-done; err == nil {
			t.Error("a dropped bundle took a message")
		}
		release(nil)
	})
}

func TestFinish_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, release := hold()
		f := &fakeService{answer: answer}
		p := newTestPool(t, f, options.Publisher{})
		a := open(t, p)
		mustAdd(t, a, "a")
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := errors.New("stopped")
		time.AfterFunc(time.Second, func() { cancel(stopped) })
		if err := a.Finish(ctx); !errors.Is(err, stopped) {
			t.Errorf("Finish: %v", err)
		}
		release(nil)
	})
}
