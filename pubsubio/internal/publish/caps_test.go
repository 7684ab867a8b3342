package publish

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// patience is what only a failing test waits for.
const patience = time.Minute

// A worker has a pool over real connections.
type worker struct {
	srv    *pubsubtest.Server
	config Config
}

func newWorker(t *testing.T, o options.Publisher) *worker {
	t.Helper()
	w := &worker{srv: pubsubtest.New(t), config: Config{Nonce: t.Name(), Publisher: o}}
	w.config.Connection.EmulatorEndpoint = w.srv.Endpoint()
	t.Cleanup(func() {
		if err := Close(w.config); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *worker) open(t *testing.T, h Handlers) *Bundle {
	t.Helper()
	b, err := Open(w.config, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Drop)
	return b
}

func (w *worker) published(topics int) map[string]int {
	got := map[string]int{}
	for i := range topics {
		for _, m := range w.srv.Messages(nthTopic(i)) {
			got[string(m.Data)]++
		}
	}
	return got
}

// Sixteen bundles at once and two hundred topics: the server never has more of the
// worker than the caps allow, refused messages and requests that fail at times
// included, and all of the caps is there again at the end.
func TestCaps_SixteenBundlesAndTwoHundredTopics(t *testing.T) {
	const bundles, topics, each = 16, 200, 400
	const maxMessages, maxBytes = 60, 12_000
	w := newWorker(t, options.Publisher{
		MaxInFlightMessages: maxMessages, MaxInFlightBytes: maxBytes, BatchElementCount: 8, BatchBytes: 2000,
		RetryInitialDelay: time.Millisecond, RetryMaxDelay: 4 * time.Millisecond, MaxConsecutiveRejections: options.Unbounded,
	})
	for i := range topics {
		w.srv.MustCreateTopic(nthTopic(i))
	}
	w.srv.Order(pubsubtest.Rule{Method: "Publish"}, pubsubtest.WaitBetween(0, 2*time.Millisecond))
	w.srv.Order(pubsubtest.Rule{Method: "Publish", Attribute: "poison"}, pubsubtest.Fail(status.Error(codes.InvalidArgument, "poison")))
	w.srv.Order(pubsubtest.Rule{Method: "Publish", Probability: 0.05, Seed: 1}, pubsubtest.Fail(status.Error(codes.Unavailable, "away")))
	var routed sync.Map
	var begun, ended sync.WaitGroup
	begun.Add(bundles)
	for i := range bundles {
		ended.Go(func() {
			b := w.open(t, Handlers{Reject: func(_ context.Context, r Rejection) error {
				routed.Store(string(r.Message.Data), true)
				return nil
			}})
			begun.Done()
			begun.Wait() // all are open
			for j := range each {
				m := &message.Message{Data: fmt.Appendf(nil, "%d/%d %s", i, j, strings.Repeat("x", j%300))}
				if j%100 == 50 {
					m.Attributes = map[string]string{"poison": "y"}
				}
				if err := b.Add(t.Context(), nthTopic((i*each+j*7)%topics), m, 0); err != nil {
					t.Error(err)
					return
				}
			}
			if err := b.Finish(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	ended.Wait()
	load := w.srv.PublishLoad("")
	if load.MaxMessages > maxMessages || load.MaxBytes > maxBytes {
		t.Errorf("the server had %d messages and %d bytes at once, more than the caps of %d and %d", load.MaxMessages, load.MaxBytes, maxMessages, maxBytes)
	}
	if load.MaxMessages < maxMessages/2 {
		t.Errorf("the server had at most %d messages at once: the caps were not put to the test", load.MaxMessages)
	}
	got, refused := w.published(topics), 0
	routed.Range(func(any, any) bool { refused++; return true })
	if want := bundles * each; len(got)+refused != want || refused != want/100 {
		t.Errorf("%d published and %d refused of %d", len(got), refused, want)
	}
	w.expectEmpty(t)
}

// expectEmpty checks that the pool holds nothing, and takes as much as ever.
func (w *worker) expectEmpty(t *testing.T) {
	t.Helper()
	b := w.open(t, Handlers{})
	if l := b.Load(); l != (Load{}) {
		t.Errorf("the pool still holds %+v", l)
	}
	b.Drop()
}

// A message larger than the cap is sent, and nothing beside it (C36).
func TestCaps_AMessageAboveTheCapIsAloneOnTheWire_C36(t *testing.T) {
	w := newWorker(t, options.Publisher{MaxInFlightBytes: 1 << 20})
	w.srv.MustCreateTopic(topic)
	w.srv.MustCreateTopic(otherTopic)
	huge := &message.Message{Data: bytes.Repeat([]byte{7}, 9_900_000)}
	gate := make(chan struct{})
	isHuge := func(m *message.Message) bool { return len(m.Data) == len(huge.Data) }
	held := w.srv.Order(pubsubtest.Rule{Method: "Publish", Message: isHuge}, pubsubtest.WaitFor(gate))
	before := w.srv.Order(pubsubtest.Rule{Method: "Publish", Topic: otherTopic, Times: 1}, pubsubtest.Wait(time.Millisecond))
	var bundles sync.WaitGroup
	for i := range 4 {
		bundles.Go(func() {
			b := w.open(t, Handlers{})
			add := func(topic string, m *message.Message) {
				if err := b.Add(t.Context(), topic, m, 0); err != nil {
					t.Error(err)
				}
			}
			for j := range 300 {
				add(otherTopic, &message.Message{Data: bytes.Repeat([]byte{byte(i)}, 5000)})
				if i == 0 && j == 150 {
					add(topic, huge)
				}
			}
			if err := b.Finish(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := held.AwaitFired(ctx, 1); err != nil {
		t.Fatal(err)
	}
	load := w.srv.PublishLoad("")
	if load.Calls != 1 || load.Messages != 1 {
		t.Errorf("%d requests with %d messages are under way beside a message above the cap", load.Calls-1, load.Messages-1)
	}
	if load.MaxBytes != load.Bytes || w.srv.PublishLoad(otherTopic).MaxBytes > 1<<20 {
		t.Errorf("at most %d bytes, those of small messages %d", load.MaxBytes, w.srv.PublishLoad(otherTopic).MaxBytes)
	}
	close(gate)
	bundles.Wait()
	if before.Fired() == 0 || w.srv.Published(topic) != 1 || w.srv.Published(otherTopic) != 4*300 {
		t.Errorf("%d and %d published", w.srv.Published(topic), w.srv.Published(otherTopic))
	}
	w.expectEmpty(t)
}

// A bundle fails with requests in flight. Until these are answered, they count in the
// caps and their keys are busy, for the retry too; their answers fail nobody.
func TestCaps_HoldForTheRetryOfABundleThatFailedInFlight(t *testing.T) {
	const keys = 8
	for name, verdict := range map[string]pubsubtest.Action{
		"stored":      pubsubtest.CarryOut(),
		"denied":      pubsubtest.Fail(status.Error(codes.PermissionDenied, "no")),
		"rejected":    pubsubtest.Fail(status.Error(codes.InvalidArgument, "bad")),
		"unavailable": pubsubtest.Fail(status.Error(codes.Unavailable, "away")),
		"missing":     pubsubtest.Fail(status.Error(codes.NotFound, "Resource not found.")),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorker(t, options.Publisher{
				EnableMessageOrdering: true, MaxInFlightMessages: keys, BatchElementCount: 1, MaxConsecutiveRejections: 1,
			})
			w.srv.MustCreateTopic(topic)
			gate := make(chan struct{})
			held := w.srv.Order(pubsubtest.Rule{Method: "Publish", Times: keys / 2}, pubsubtest.WaitFor(gate), verdict)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			add := func(b *Bundle, numbers ...int) error {
				for _, n := range numbers {
					for k := range keys / 2 {
						if err := b.Add(ctx, topic, keyed(fmt.Sprint("k", k), fmt.Sprintf("k%d %d", k, n)), 0); err != nil {
							return err
						}
					}
				}
				return nil
			}
			failing := w.open(t, Handlers{})
			if err := add(failing, 1, 2); err != nil {
				t.Fatal(err)
			}
			if err := held.AwaitFired(ctx, keys/2); err != nil {
				t.Fatal(err)
			}
			failing.Drop()

			retry, beside := w.open(t, Handlers{}), w.open(t, Handlers{})
			if l := retry.Load(); l.Messages != keys/2 {
				t.Errorf("%d messages are counted, want the %d on the wire", l.Messages, keys/2)
			}
			if err := beside.Add(ctx, topic, keyed("other", "beside"), 0); err != nil {
				t.Fatal(err)
			}
			if err := beside.Finish(ctx); err != nil {
				t.Errorf("a bundle beside it: %v", err)
			}
			ended := make(chan error, 1)
			go func() {
				if err := add(retry, 1, 2, 3); err != nil {
					ended <- err
					return
				}
				ended <- retry.Finish(ctx)
			}()
			close(gate)
			if err := <-ended; err != nil {
				t.Errorf("the retry: %v", err)
			}
			load := w.srv.PublishLoad(topic)
			if load.MaxKeyCalls != 1 || load.MaxMessages > keys {
				t.Errorf("%d requests of key %q and %d messages at once", load.MaxKeyCalls, load.BusiestKey, load.MaxMessages)
			}
			w.expectFirstCopies(t, keys/2, 3)
			w.expectEmpty(t)
		})
	}
}

// expectFirstCopies checks that of each key the messages 1 to each were stored, first
// copies in order.
func (w *worker) expectFirstCopies(t *testing.T, keys, each int) {
	t.Helper()
	got, seen := map[string][]string{}, map[string]bool{}
	for _, m := range w.srv.Messages(topic) {
		if s := string(m.Data); !seen[s] && m.OrderingKey != "other" {
			seen[s] = true
			got[m.OrderingKey] = append(got[m.OrderingKey], s)
		}
	}
	for k := range keys {
		var want []string
		for n := range each {
			want = append(want, fmt.Sprintf("k%d %d", k, n+1))
		}
		if key := fmt.Sprint("k", k); strings.Join(got[key], ",") != strings.Join(want, ",") {
			t.Errorf("key %s: stored %v", key, got[key])
		}
	}
}
