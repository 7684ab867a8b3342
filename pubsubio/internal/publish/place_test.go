package publish

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

func nthTopic(i int) string { return fmt.Sprintf("projects/p/topics/t%05d", i) }

func mustAddTo(t *testing.T, b *Bundle, topic, data string) {
	t.Helper()
	if err := b.Add(t.Context(), topic, text(data), 0); err != nil {
		t.Fatal(err)
	}
}

func openTopics(p *pool) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.topics.byTopic)
}

// Publishers were never released: memory grew with every topic (C34).
func TestPlace_TenThousandTopicsThroughAHundred_C34(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{answer: func(context.Context, *pubsubpb.PublishRequest) error { pass(10 * time.Millisecond); return nil }}
		p := newTestPool(t, f, options.Publisher{})
		most := 0
		began := time.Now()
		b := open(t, p)
		for i := range 10_000 {
			mustAddTo(t, b, nthTopic(i), fmt.Sprint(i))
			most = max(most, openTopics(p))
		}
		mustFinish(t, b)
		if most > 100 {
			t.Errorf("%d publishers at once", most)
		}
		if got := len(f.data()); got != 10_000 || b.Counts().Published != 10_000 {
			t.Errorf("%d published, %d counted", got, b.Counts().Published)
		}
		// A round trip for each hundred, not for each.
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestPlace_ReleasesTheLeastRecentlyUsedCleanOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, release := hold()
		f := &fakeService{}
		f.answer = func(ctx context.Context, r *pubsubpb.PublishRequest) error {
			if r.Topic == nthTopic(0) {
				return answer(ctx, r)
			}
			return nil
		}
		p := newTestPool(t, f, options.Publisher{MaxActivePublishers: 3, BatchElementCount: 1})
		b := open(t, p)
		for _, i := range []int{0, 1, 2, 1, 3} {
			mustAddTo(t, b, nthTopic(i), "x")
			synctest.Wait()
		}
		for i, want := range []bool{true, true, false, true} {
			if _, got := p.topics.byTopic[nthTopic(i)]; got != want {
				t.Errorf("topic %d is open: %t", i, got)
			}
		}
		release(nil)
		mustFinish(t, b)
	})
}

// With many topics a bundle's end costs one round trip for all of them together.
func TestFinish_OneRoundTripForAllTopics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{answer: func(context.Context, *pubsubpb.PublishRequest) error { pass(10 * time.Millisecond); return nil }}
		p := newTestPool(t, f, options.Publisher{BatchDelay: time.Minute, MaxActivePublishers: 200})
		b := open(t, p)
		for i := range 200 {
			mustAddTo(t, b, nthTopic(i), "x")
		}
		began := time.Now()
		mustFinish(t, b)
		if took := time.Since(began); took != 10*time.Millisecond {
			t.Errorf("took %v, want one round trip of 10 ms", took)
		}
	})
}

// A bundle that kept all publishers busy starved one that needed a place.
func TestPlace_NobodyIsStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{answer: func(context.Context, *pubsubpb.PublishRequest) error { pass(10 * time.Millisecond); return nil }}
		p := newTestPool(t, f, options.Publisher{MaxActivePublishers: 2, BatchElementCount: 1})
		var stopped atomic.Bool
		var busy sync.WaitGroup
		for i := range 2 {
			busy.Go(func() {
				b := open(t, p)
				for !stopped.Load() {
					mustAddTo(t, b, nthTopic(i), "x")
					pass(time.Millisecond)
				}
				mustFinish(t, b)
			})
		}
		b := open(t, p)
		pass(50 * time.Millisecond)
		began := time.Now()
		mustAddTo(t, b, nthTopic(2), "y")
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("waited %v for a place", took)
		}
		stopped.Store(true)
		mustFinish(t, b)
		busy.Wait()
	})
}

func TestPlace_AnOverrunOfShutdownTimeoutFailsTheWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		f := &fakeService{answer: func(_ context.Context, r *pubsubpb.PublishRequest) error {
			if r.Topic == topic {
				<-stuck // deaf to its context
			}
			return nil
		}}
		p := newTestPool(t, f, options.Publisher{MaxActivePublishers: 1, ShutdownTimeout: 7 * time.Second, BatchElementCount: 1})
		a := open(t, p)
		mustAdd(t, a, "a")
		synctest.Wait()
		a.Drop()
		b := open(t, p)
		began := time.Now()
		err := b.Add(t.Context(), otherTopic, text("b"), 0)
		if err == nil || !strings.Contains(err.Error(), "options.Publisher.ShutdownTimeout") {
			t.Errorf("Add: %v", err)
		}
		if took := time.Since(began); took != 7*time.Second {
			t.Errorf("took %v", took)
		}
		if n := b.Counts().ShutdownsAbandoned; n != 1 || p.stats.ShutdownsAbandoned.Load() != 1 {
			t.Errorf("%d abandoned", n)
		}
		b.Drop()
		close(stuck)
	})
}

// Requests that nobody waits for are cut off where their place is needed.
func TestPlace_AnUnwantedPublisherIsShutDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{answer: func(ctx context.Context, r *pubsubpb.PublishRequest) error {
			if r.Topic == topic {
				<-ctx.Done()
				return status.FromContextError(ctx.Err()).Err()
			}
			return nil
		}}
		p := newTestPool(t, f, options.Publisher{MaxActivePublishers: 1})
		a, b := open(t, p), open(t, p)
		mustAdd(t, a, "a")
		pass(time.Second)
		done := make(chan struct{})
		go func() {
			defer close(done)
			mustAddTo(t, b, otherTopic, "b")
			mustFinish(t, b)
		}()
		synctest.Wait()
		a.Drop()
		began := time.Now()
		<-done
		if took := time.Since(began); took != 0 {
			t.Errorf("waited %v", took)
		}
	})
}

func TestPlace_IdlePublishersAreReleasedAtASuccessfulEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{}
		p := newTestPool(t, f, options.Publisher{DestinationIdleTimeout: time.Minute})
		b := open(t, p)
		mustAddTo(t, b, nthTopic(0), "x")
		mustAddTo(t, b, nthTopic(1), "x")
		mustFinish(t, b)
		finishOther := func() {
			b := open(t, p)
			mustAddTo(t, b, nthTopic(1), "x")
			mustFinish(t, b)
		}
		pass(time.Minute)
		finishOther()
		if n := openTopics(p); n != 2 {
			t.Errorf("%d publishers after exactly the timeout, want 2", n)
		}
		pass(time.Millisecond)
		f.answer = always(status.Error(codes.PermissionDenied, "no"))
		b = open(t, p)
		mustAddTo(t, b, nthTopic(1), "x")
		if b.Finish(t.Context()) == nil || openTopics(p) != 2 {
			t.Errorf("%d publishers after a failed end, want 2", openTopics(p))
		}
		f.answer = nil
		finishOther()
		if n := openTopics(p); n != 1 {
			t.Errorf("%d publishers, want 1", n)
		}
	})
}

// Memory grew with every topic that a publisher was ever made for (C34).
func TestPlace_MemoryIsFlatAfterTheFirstHundred_C34(t *testing.T) {
	p := newPool(Config{Nonce: t.Name()}.withDefaults(), wire{
		send: func(context.Context, *payload, int) error { return nil }, hangUp: func() {},
	}, func() {})
	defer p.shutDown()
	publish := func(from, to int) (heap uint64) {
		b := open(t, p)
		for i := from; i < to; i++ {
			mustAddTo(t, b, nthTopic(i), "x")
		}
		mustFinish(t, b)
		p.closeIf(func() bool { return false }) // takes the lock: what the requests did last is done
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	publish(0, 1000) // the buffers, and what maps and stacks grow to
	before, goroutines := publish(1000, 1100), runtime.NumGoroutine()
	after := publish(1100, 20_000)
	const slack = 1 << 20 // a publisher that stayed would be some hundred bytes: 19,000 of them several MB
	if after > before+slack {
		t.Errorf("the heap grew from %d to %d bytes over 19,000 topics", before, after)
	}
	if n := runtime.NumGoroutine(); n > goroutines+10 {
		t.Errorf("%d goroutines, %d before", n, goroutines)
	}
	p.closeIf(func() bool { return true })
}
