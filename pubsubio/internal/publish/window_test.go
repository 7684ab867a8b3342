package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

func TestAdd_AtTheCapSendsWhatIsBatchingThenWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, release := hold()
		f := &fakeService{answer: answer}
		p := newTestPool(t, f, options.Publisher{MaxInFlightMessages: 5, BatchElementCount: 10, BatchDelay: time.Hour})
		b := open(t, p)
		done := make(chan struct{})
		go func() {
			defer close(done)
			mustAdd(t, b, numbered(7)...)
			mustFinish(t, b)
		}()
		synctest.Wait()
		if f.calls != 1 || f.inFlight != 5 {
			t.Errorf("%d requests with %d messages at the cap, want 1 with 5", f.calls, f.inFlight)
		}
		for range 2 {
			release(nil)
		}
		<-done
		if f.most > 5 {
			t.Errorf("%d messages in flight", f.most)
		}
		if got := f.data(); !slices.Equal(got, numbered(7)) {
			t.Errorf("published %v", got)
		}
	})
}

// At the cap everything that was batching was sent: of many topics, or keys, each
// request had one message then, whose answer made room for one more.
func TestAdd_AtTheCapRequestsOfManyTopicsStayFull(t *testing.T) {
	for name, add := range map[string]func(ctx context.Context, b *Bundle, i int) error{
		"topics": func(ctx context.Context, b *Bundle, i int) error { return b.Add(ctx, nthTopic(i%100), text("x"), 0) },
		"keys": func(ctx context.Context, b *Bundle, i int) error {
			return b.Add(ctx, topic, keyed(fmt.Sprint(i%100), "x"), 0)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeService{answer: func(context.Context, *pubsubpb.PublishRequest) error { pass(10 * time.Millisecond); return nil }}
			p := newTestPool(t, f, options.Publisher{EnableMessageOrdering: name == "keys"})
			b := open(t, p)
			const n = 100_000
			for i := range n {
				if err := add(t.Context(), b, i); err != nil {
					t.Fatal(err)
				}
			}
			mustFinish(t, b)
			if each := n / f.calls; each < 5 {
				t.Errorf("%s: %d messages a request, want half of the room over 100 at least", name, each)
			}
			if f.most > 1000 {
				t.Errorf("%s: %d messages in flight", name, f.most)
			}
		})
	}
}

// What fills one half of the room does not keep the other half waiting.
func TestAdd_AtTheCapASlowTopicHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, release := hold()
		f := &fakeService{}
		f.answer = func(ctx context.Context, r *pubsubpb.PublishRequest) error {
			if r.Topic == otherTopic {
				return answer(ctx, r)
			}
			return nil
		}
		p := newTestPool(t, f, options.Publisher{MaxInFlightMessages: 10})
		slow, quick := open(t, p), open(t, p)
		for range 8 {
			mustAddTo(t, slow, otherTopic, "x")
		}
		pass(time.Second)
		began := time.Now()
		for range 100 {
			mustAdd(t, quick, "y")
		}
		mustFinish(t, quick)
		if took := time.Since(began); took > time.Second {
			t.Errorf("100 messages took %v: 2 fit beside the slow topic, and wait BatchDelay at most", took)
		}
		release(nil)
		mustFinish(t, slow)
	})
}

func TestAdd_AMessageAboveTheCapGoesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, release := hold()
		f := &fakeService{answer: answer}
		p := newTestPool(t, f, options.Publisher{MaxInFlightBytes: 1000, BatchBytes: 500})
		b := open(t, p)
		done := make(chan struct{})
		go func() {
			defer close(done)
			mustAdd(t, b, "a")
			if err := b.Add(t.Context(), topic, &message.Message{Data: make([]byte, 2000)}, 0); err != nil {
				t.Error(err)
			}
			mustAdd(t, b, "b")
			mustFinish(t, b)
		}()
		for range 3 {
			synctest.Wait()
			if f.inFlight != 1 {
				t.Errorf("%d messages in flight beside one above the cap", f.inFlight)
			}
			release(nil)
		}
		<-done
	})
}

// Small messages that find room overtook a large one, for ever.
func TestAdd_WaitsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, release := hold()
		f := &fakeService{answer: answer}
		p := newTestPool(t, f, options.Publisher{MaxInFlightBytes: 1000, BatchBytes: 1, BatchDelay: time.Hour})
		first, large, small := open(t, p), open(t, p), open(t, p)
		add := func(b *Bundle, size int) chan struct{} {
			done := make(chan struct{})
			go func() {
				defer close(done)
				if err := b.Add(t.Context(), topic, &message.Message{Data: make([]byte, size)}, 0); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
			return done
		}
		<-add(first, 500)
		largeDone, smallDone := add(large, 800), add(small, 10)
		select {
		case <-smallDone:
			t.Error("a small message overtook a large one")
		default:
		}
		release(nil)
		<-largeDone
		<-smallDone // fits beside it
		release(nil)
		release(nil)
		for _, b := range []*Bundle{first, large, small} {
			mustFinish(t, b)
		}
	})
}

func TestAdd_AWaiterThatGivesUpLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, release := hold()
		f := &fakeService{answer: answer}
		p := newTestPool(t, f, options.Publisher{MaxInFlightMessages: 1})
		a, b := open(t, p), open(t, p)
		mustAdd(t, a, "a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Add(ctx, topic, text("b"), 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Add: %v", err)
		}
		b.Drop()
		release(nil)
		mustFinish(t, a)
	})
}

func TestWait_StallsAfterPublishProgressTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{answer: func(context.Context, *pubsubpb.PublishRequest) error {
			return status.Error(codes.ResourceExhausted, "quota of p")
		}}
		p := newTestPool(t, f, options.Publisher{PublishProgressTimeout: 100 * time.Second})
		var warnings []string
		b, _ := p.begin(Handlers{Warn: func(_ context.Context, text string) { warnings = append(warnings, text) }}.withDefaults())
		mustAdd(t, b, "a")
		began := time.Now()
		err := b.Finish(t.Context())
		if took := time.Since(began); took != 100*time.Second {
			t.Errorf("stalled after %v", took)
		}
		for _, want := range []string{"no publish has completed for 1m40s", "options.Publisher.PublishProgressTimeout is 1m40s", "1 messages in flight", topic, "ResourceExhausted: quota of p", "attempts over"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Finish: %v, want %q", err, want)
			}
		}
		if status.Code(err) != codes.ResourceExhausted {
			t.Errorf("the error's code is %v", status.Code(err))
		}
		if len(warnings) != 9 || !strings.Contains(warnings[0], "no publish has completed for 10s") || !strings.Contains(warnings[8], "quota of p") {
			t.Errorf("%d warnings: %q", len(warnings), warnings)
		}
	})
}

// It bounds a stall, not a slow topic.
func TestWait_ProgressRestartsTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, release := hold()
		f := &fakeService{answer: answer}
		p := newTestPool(t, f, options.Publisher{PublishProgressTimeout: 10 * time.Second, BatchElementCount: 1})
		b := open(t, p)
		mustAdd(t, b, numbered(4)...)
		go func() {
			for range 4 {
				pass(9 * time.Second)
				release(nil)
			}
		}()
		mustFinish(t, b)
	})
}

// At the cap, too, and while another bundle is the one whose request hangs.
func TestAdd_StallsAtTheCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, release := hold()
		f := &fakeService{answer: answer}
		p := newTestPool(t, f, options.Publisher{PublishProgressTimeout: time.Second, MaxInFlightMessages: 1})
		a, b := open(t, p), open(t, p)
		mustAdd(t, a, "a")
		err := b.Add(t.Context(), topic, text("b"), 0)
		var stall *stallError
		if !errors.As(err, &stall) {
			t.Errorf("Add: %v", err)
		}
		b.Drop()
		release(nil)
		mustFinish(t, a)
	})
}
