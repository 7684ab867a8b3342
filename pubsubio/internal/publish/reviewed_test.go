package publish

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// A publisher that was cut off stayed where the bundle that needed its place gave up.
func TestPlace_ACutOffPublisherWhoseHeirGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		f := &fakeService{}
		f.answer = func(ctx context.Context, r *pubsubpb.PublishRequest) error {
			if string(r.Messages[0].Data) == "dropped" {
				<-stuck
			}
			return ctx.Err()
		}
		p := newTestPool(t, f, options.Publisher{MaxActivePublishers: 1, BatchElementCount: 1})
		a := open(t, p)
		mustAdd(t, a, "dropped")
		synctest.Wait()
		a.Drop()
		b := open(t, p)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Add(ctx, otherTopic, text("b"), 0); err == nil {
			t.Fatal("added")
		}
		b.Drop()
		close(stuck)
		synctest.Wait()
		for range 3 {
			c := open(t, p)
			err := c.Add(t.Context(), topic, text("c"), 0)
			if err == nil {
				err = c.Finish(t.Context())
			}
			c.Drop()
			if err != nil {
				t.Errorf("the service is well, and the bundle fails: %v", err)
			}
			pass(time.Minute)
		}
	})
}

// Nobody woke the first in line when a publisher became unwanted by an answer.
func TestPlace_AnAnswerCanMakeAPublisherUnwanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{}
		f.answer = func(ctx context.Context, r *pubsubpb.PublishRequest) error {
			switch string(r.Messages[0].Data) {
			case "dropped":
				<-ctx.Done()
				return status.FromContextError(ctx.Err()).Err()
			case "slow":
				pass(time.Second)
			case "slower":
				pass(10 * time.Minute / 12)
			}
			return nil
		}
		p := newTestPool(t, f, options.Publisher{MaxActivePublishers: 2, BatchElementCount: 1})
		dropped, b := open(t, p), open(t, p)
		mustAddTo(t, dropped, nthTopic(0), "dropped")
		mustAddTo(t, b, nthTopic(0), "slow")
		mustAddTo(t, b, nthTopic(1), "slower")
		synctest.Wait()
		dropped.Drop()
		began := time.Now()
		mustAddTo(t, b, nthTopic(2), "x")
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("waited %v for a place that could be made after 1 s", took)
		}
		mustFinish(t, b)
	})
}

// The lane of a key stayed whose messages were of no more use when its turn came.
func TestOrder_LanesOfFailedBundlesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{}
		f.answer = func(ctx context.Context, r *pubsubpb.PublishRequest) error {
			if r.Topic == otherTopic {
				return status.Error(codes.PermissionDenied, "no")
			}
			return nil
		}
		f.answer = afterAdding(f.answer)
		p := newTestPool(t, f, options.Publisher{EnableMessageOrdering: true})
		for i := range 100 {
			b := open(t, p)
			if err := b.Add(t.Context(), topic, keyed(nthTopic(i), "x"), 0); err != nil {
				t.Fatal(err)
			}
			mustAddTo(t, b, otherTopic, "y")
			if b.Finish(t.Context()) == nil {
				t.Fatal("finished")
			}
		}
		synctest.Wait()
		n := len(p.topics.byTopic[topic].keyed)
		if n != 0 {
			t.Errorf("finish: %d lanes stay", n)
		}
		for i := range 100 {
			b := open(t, p)
			mustAddTo(t, b, otherTopic, "y")
			p.mu.Lock()
			p.sealAllLocked()
			p.mu.Unlock()
			if err := b.Add(t.Context(), topic, keyed(nthTopic(i), "x"), 0); err != nil {
				t.Fatal(err)
			}
			pass(time.Second) // a slow producer: the bundle's goroutine has not looked
			b.Drop()
		}
		n = len(p.topics.byTopic[topic].keyed)
		if n != 0 {
			t.Errorf("delay: %d lanes stay", n)
		}
	})
}

// An outage after the creation used up the budget that is for NOT_FOUND.
func TestRecover_AnOutageAfterTheCreationIsNoIncident(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Pointer[time.Time] // nil until the topic is created
		f := &fakeService{}
		f.answer = afterAdding(func(context.Context, *pubsubpb.PublishRequest) error {
			switch up := up.Load(); {
			case up == nil:
				return status.Error(codes.NotFound, "no topic")
			case time.Now().Before(*up):
				return status.Error(codes.Unavailable, "away")
			}
			return nil
		})
		w := f.wire()
		w.create = func(context.Context, string) error {
			later := time.Now().Add(90 * time.Second)
			up.Store(&later)
			return nil
		}
		c := Config{Publisher: options.Publisher{BatchElementCount: 1}, Nonce: "n", Disposition: options.CreateIfNeeded}
		p := newPool(c.withDefaults(), w, func() {})
		defer func() { p.closeIf(func() bool { return true }); p.shutDown() }()
		b := open(t, p)
		for i := range 20 {
			mustAdd(t, b, fmt.Sprint(i))
		}
		mustFinish(t, b) // 90 s without the service, RetryTotalTimeout is 600 s
	})
}

// An incident that nobody went on with kept its used budget for the next bundle.
func TestRecover_AnIncidentOfADroppedBundleCostsTheNextOneNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var state atomic.Value
		state.Store("missing")
		f := &fakeService{}
		f.answer = func(context.Context, *pubsubpb.PublishRequest) error {
			switch state.Load() {
			case "missing":
				return status.Error(codes.NotFound, "no")
			case "away":
				return status.Error(codes.Unavailable, "away")
			}
			return nil
		}
		w := f.wire()
		w.create = func(context.Context, string) error { state.Store("away"); return nil }
		c := Config{Publisher: options.Publisher{BatchElementCount: 1, RecoveryMaxAttempts: 1}, Nonce: "n2", Disposition: options.CreateIfNeeded}
		p := newPool(c.withDefaults(), w, func() {})
		defer func() { p.closeIf(func() bool { return true }); p.shutDown() }()
		b := open(t, p)
		mustAdd(t, b, "x")
		pass(5 * time.Second)
		b.Drop()
		state.Store("well")
		pass(time.Hour)
		b = open(t, p)
		mustAdd(t, b, "x")
		mustFinish(t, b)
	})
}

// A panic of a handler, as of a user's dead-letter queue, ended the process: the lock
// was unlocked twice.
func TestReject_APanicLeavesThePoolAlone(t *testing.T) {
	p := newTestPool(t, &fakeService{}, options.Publisher{})
	b := openWith(t, p, Handlers{Reject: func(context.Context, Rejection) error { panic("boom") }})
	defer b.Drop()
	defer func() {
		if r := recover(); r != "boom" {
			t.Errorf("recovered %v", r)
		}
	}()
	_ = b.Add(t.Context(), topic, text(""), 0)
}

// Of a request that was sent eight times, Attempts told of the last one.
func TestIsolate_AttemptsCountThoseWithOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{answer: poisoned}
		var got []Rejection
		p := newTestPool(t, f, options.Publisher{})
		b := openWith(t, p, Handlers{Reject: collect(&got)})
		mustAdd(t, b, numbered(64)...)
		mustAdd(t, b, "bad")
		mustFinish(t, b)
		sent := len(f.refused)
		if len(got) != 1 || got[0].Attempts != sent {
			t.Errorf("%d rejected, the first after %d attempts, it was sent %d times", len(got), got[0].Attempts, sent)
		}
	})
}

// A request that was never sent was counted as failed with OK, and the attempts of
// others twice.
func TestCounts_OfARefusedCreation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{answer: always(status.Error(codes.NotFound, "no topic"))}
		w := f.wire()
		w.create = func(context.Context, string) error {
			pass(time.Second)
			return status.Error(codes.PermissionDenied, "no")
		}
		c := Config{Publisher: options.Publisher{BatchElementCount: 1}, Nonce: t.Name()}
		p := newPool(c.withDefaults(), w, func() {})
		defer func() { p.closeIf(func() bool { return true }); p.shutDown() }()
		a, b := open(t, p), open(t, p)
		mustAdd(t, a, "a")
		synctest.Wait()
		mustAdd(t, b, "b") // parked before it is ever sent
		for _, in := range []*Bundle{a, b} {
			if err := in.Finish(t.Context()); status.Code(err) != codes.PermissionDenied {
				t.Errorf("Finish: %v", err)
			}
		}
		if got := fmt.Sprint(a.Counts().ErrorsByCode, b.Counts().ErrorsByCode); got != "map[NotFound:1 PermissionDenied:1] map[]" && got != "map[NotFound:1] map[]" {
			t.Errorf("errors by code: %s", got)
		}
	})
}

// Of a bundle that is sure to fail, for a rejected message, what comes after that on
// its key was stored, before the message itself came with the bundle's next run.
func TestOrder_NothingFollowsARejectionThatFailsTheBundle(t *testing.T) {
	for name, tc := range map[string]struct {
		o options.Publisher
		h Handlers
	}{
		"policy":    {options.Publisher{}, Handlers{}},
		"guardrail": {options.Publisher{MaxConsecutiveRejections: 1}, Handlers{Reject: func(context.Context, Rejection) error { pass(time.Second); return nil }}},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeService{answer: afterAdding(poisoned)}
			tc.o.EnableMessageOrdering, tc.o.BatchElementCount = true, 1
			p := newTestPool(t, f, tc.o)
			b := openWith(t, p, tc.h)
			for _, s := range []string{"bad", "2", "3"} {
				if err := b.Add(t.Context(), topic, keyed("k", s), 0); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.Finish(t.Context()); !errors.Is(err, errPoison) {
				t.Errorf("%s: Finish: %v", name, err)
			}
			synctest.Wait()
			if got := f.inOrder(); len(got) > 0 {
				t.Errorf("%s: stored after the rejection: %v", name, got)
			}
		})
	}
}

// The rejections of a bundle that fails for another reason come again with it: they
// counted twice.
func TestGuardrail_AFailedBundleTakesItsRejectionsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPool(t, &fakeService{answer: poisoned}, options.Publisher{MaxConsecutiveRejections: 10, BatchElementCount: 1})
		for range 5 {
			var routed []Rejection
			b := openWith(t, p, Handlers{Reject: collect(&routed)})
			for range 6 {
				mustAdd(t, b, "bad")
			}
			synctest.Wait()
			mustAdd(t, b, "bad")
			b.Drop()
		}
		if p.guard.count != 0 {
			t.Errorf("%d counted", p.guard.count)
		}
	})
}

// While a topic is being created nothing is on the wire: what is dropped gives its
// room back.
func TestRecover_ADropDuringTheCreation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTopicService()
		slow := make(chan struct{})
		p := newTestPool(t, &s.fakeService, options.Publisher{})
		p.create = func(ctx context.Context, topic string) error { <-slow; return s.createTopic(ctx, topic) }
		a, b := open(t, p), open(t, p)
		mustAdd(t, a, "a")
		pass(time.Second)
		a.Drop()
		if n, _ := inFlight(b); n != 0 {
			t.Errorf("%d messages hold room", n)
		}
		close(slow)
		mustFinish(t, b)
	})
}
