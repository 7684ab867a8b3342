package publish

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// A message that was added after a wait at the cap stayed in its batch for
// BatchDelay, and the next in line waited for it.
func TestAdd_AtTheCapBatchesNothingThatOthersWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{answer: func(context.Context, *pubsubpb.PublishRequest) error { pass(time.Millisecond); return nil }}
		p := newTestPool(t, f, options.Publisher{MaxInFlightMessages: 1, BatchDelay: time.Minute})
		began := time.Now()
		bundles := make(chan *Bundle)
		for range 3 {
			go func() {
				b := open(t, p)
				mustAdd(t, b, "a")
				bundles <- b
			}()
		}
		for _, b := range []*Bundle{<-bundles, <-bundles, <-bundles} { // all three have added
			mustFinish(t, b)
		}
		if took := time.Since(began); took >= time.Minute {
			t.Errorf("three messages took %v", took)
		}
	})
}

// A service that answers nothing at all left an error without topic or endpoint.
func TestWait_AStallWithoutAnyAnswerTellsWhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, release := hold()
		o := options.Publisher{PublishProgressTimeout: time.Second}
		c := Config{Publisher: o, Nonce: t.Name(), Connection: options.Connection{EmulatorEndpoint: "127.0.0.1:8085"}}
		p := newPoolOf(t, &fakeService{answer: answer}, c)
		b := open(t, p)
		mustAdd(t, b, "a")
		err := b.Finish(t.Context())
		for _, want := range []string{"no publish has completed for 1s", topic, "127.0.0.1:8085", "no answer", "check that the workers reach the endpoint"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Finish: %v, want %q", err, want)
			}
		}
		release(nil)
		synctest.Wait()
	})
}

// The error of a wait that its context ended was "context canceled", and no more.
func TestWait_ACancelledWaitNamesTheTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, release := hold()
		p := newTestPool(t, &fakeService{answer: answer}, options.Publisher{})
		b := open(t, p)
		mustAdd(t, b, "a")
		reason := errors.New("the worker shuts down")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, reason)
		defer cancel()
		err := b.Finish(ctx)
		if !errors.Is(err, reason) || !strings.Contains(err.Error(), "publish to "+topic) {
			t.Errorf("Finish: %v", err)
		}
		release(nil)
		synctest.Wait()
	})
}

// The error of a wait with a deadline of its own told neither what the service had
// answered nor that it had answered nothing.
func TestWait_AWaitThatIsOverTellsWhatWasAnswered(t *testing.T) {
	for want, answer := range map[string]func(context.Context) error{
		"; the last attempt, for " + topic + ": Unavailable: down (": func(context.Context) error { return status.Error(codes.Unavailable, "down") },
		"; no answer at all from ":                                   func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newTestPool(t, &fakeService{answer: func(ctx context.Context, _ *pubsubpb.PublishRequest) error { return answer(ctx) }}, options.Publisher{})
			b := open(t, p)
			mustAdd(t, b, "a")
			ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, errors.New("time is over"))
			defer cancel()
			err := b.Finish(ctx)
			if err == nil || !strings.Contains(err.Error(), "publish to "+topic+": gave up waiting for answers: time is over"+want) {
				t.Errorf("Finish: %v, want %q", err, want)
			}
		})
	}
}
