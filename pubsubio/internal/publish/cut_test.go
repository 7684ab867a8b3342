package publish

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// heldTopics returns an answer that holds the requests to each topic that has a gate
// until that is closed, deaf to their contexts, and then ends them by their contexts.
func heldTopics(gates map[string]chan struct{}) func(context.Context, *pubsubpb.PublishRequest) error {
	return func(ctx context.Context, r *pubsubpb.PublishRequest) error {
		if gate := gates[r.Topic]; gate != nil {
			<-gate
		}
		if err := ctx.Err(); err != nil {
			return status.FromContextError(err).Err()
		}
		return nil
	}
}

// A publisher was cut off for its place, and another one that came clean meanwhile
// was released in its stead: every later request to its topic was cancelled, and
// failed bundles that had nothing to do with it.
func TestPlace_ACutOffPublisherIsNotUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gates := map[string]chan struct{}{topic: make(chan struct{}), otherTopic: make(chan struct{})}
		f := &fakeService{answer: heldTopics(gates)}
		p := newTestPool(t, f, options.Publisher{MaxActivePublishers: 2, BatchElementCount: 1})
		a, b, c := open(t, p), open(t, p), open(t, p)
		mustAddTo(t, b, otherTopic, "b") // used least recently
		mustAdd(t, a, "a")
		synctest.Wait()
		a.Drop()
		added := make(chan struct{})
		go func() {
			defer close(added)
			mustAddTo(t, c, nthTopic(0), "c")
		}()
		synctest.Wait() // c waits for the cut off request of a
		close(gates[otherTopic])
		synctest.Wait()
		close(gates[topic])
		<-added
		mustFinish(t, b)
		mustFinish(t, c)
		d := open(t, p)
		mustAdd(t, d, "d")
		mustFinish(t, d)
	})
}

// A bundle that gave up while it waited for a publisher that it had cut off left it
// behind, cancelled: the next bundle of that topic failed.
func TestPlace_ACutOffPublisherIsLeftUsable(t *testing.T) {
	for name, tc := range map[string]struct {
		giveUp func(c *Bundle, cancel context.CancelCauseFunc)
		want   string
	}{
		"overrun":   {func(*Bundle, context.CancelCauseFunc) { pass(8 * time.Second) }, "options.Publisher.ShutdownTimeout"},
		"cancelled": {func(_ *Bundle, cancel context.CancelCauseFunc) { cancel(errors.New("enough")) }, "enough"},
		"dropped":   {func(c *Bundle, _ context.CancelCauseFunc) { c.Drop() }, "the bundle has ended"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gates := map[string]chan struct{}{topic: make(chan struct{}), otherTopic: make(chan struct{})}
				f := &fakeService{answer: heldTopics(gates)}
				p := newTestPool(t, f, options.Publisher{MaxActivePublishers: 2, ShutdownTimeout: 7 * time.Second, BatchElementCount: 1, EnableMessageOrdering: true})
				a, b, c := open(t, p), open(t, p), open(t, p)
				mustAddTo(t, b, otherTopic, "b")
				if err := a.Add(t.Context(), topic, keyed("k", "a"), 0); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				a.Drop()
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				added := make(chan error, 1)
				go func() { added <- c.Add(ctx, nthTopic(0), text("c"), 0) }()
				synctest.Wait()
				tc.giveUp(c, cancel)
				if err := <-added; err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("Add: %v, want %q", err, tc.want)
				}
				c.Drop()
				close(gates[otherTopic])
				mustFinish(t, b)

				d := open(t, p)
				done := make(chan error, 1)
				go func() {
					if err := d.Add(t.Context(), topic, keyed("k", "d"), 0); err != nil {
						done <- err
						return
					}
					done <- d.Finish(t.Context())
				}()
				synctest.Wait()
				if f.inFlight > 1 {
					t.Errorf("%d requests of one key at once", f.inFlight)
				}
				close(gates[topic])
				if err := <-done; err != nil {
					t.Errorf("the next bundle of the topic: %v", err)
				}
				d.Drop()
			})
		})
	}
}
