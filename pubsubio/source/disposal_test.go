package source

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

func init() { RegisterDecoder(picky) }

// picky refuses message m2, after it has emitted it, and panics at m4.
func picky(m *message.Message, emit func(*message.Message)) error {
	if m.ID == "m4" {
		panic("four is right out")
	}
	emit(m)
	if m.ID == "m2" {
		m.Attributes, m.ID = nil, "changed"
		return errors.New("two is refused")
	}
	return nil
}

// newPickyHarness is newReadHarness with that decoder and a policy.
func newPickyHarness(t *testing.T, p FailurePolicy) *harness {
	t.Helper()
	h := newReadHarness(t, run.Finalized)
	name, err := checkDecoder(Config{}, picky)
	if err != nil {
		t.Fatal(err)
	}
	h.fn.Decoder, h.fn.Nonce, h.fn.Config.OnDecodeFailure = name, nonceOf(t), p
	h.group.counts = h.fn.newDisposal(nil).counts
	h.counts = h.group.counts
	return h
}

func TestReadFn_FailFailsTheBundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newPickyHarness(t, Fail())
		defer h.close(t.Context())
		p := h.process(h.opened(first, 3))
		want := "source: decode message m2 of " + testSubscription + ": two is refused; the bundle fails and the message stays unacknowledged; source.Config.OnDecodeFailure may drop, return or emit such messages instead"
		if p.err == nil || p.err.Error() != want {
			t.Errorf("error %v, want %s", p.err, want)
		}
		p.end(p.err.Error())
		synctest.Wait()
		h.service.want(t, nil, []string{"a1", "a2", "a3"})
	})
}

// A dropped message is acknowledged at once, and exactly once, whatever becomes of
// its bundle.
func TestReadFn_DropAcknowledgesAtOnce(t *testing.T) {
	for _, failure := range []string{"", "a later step failed"} {
		t.Run("bundle "+failure, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newPickyHarness(t, Drop())
				defer h.close(t.Context())
				p := h.process(h.opened(first, 5))
				p.want("m1", "m2", "m3", "m5")
				synctest.Wait()
				h.service.want(t, []string{"a2", "a4"}, nil)
				p.end(failure)
				if failure == "" {
					p.finalize()
					h.service.want(t, []string{"a1", "a2", "a3", "a4", "a5"}, nil)
				} else {
					synctest.Wait()
					h.service.want(t, []string{"a2", "a4"}, []string{"a1", "a3", "a5"})
				}
				c := h.group.counts
				if c.DecodeFailures.Load() != 2 || c.Dropped.Load() != 2 || c.Emitted.Load() != 3 {
					t.Errorf("%d failures, %d dropped, %d emitted", c.DecodeFailures.Load(), c.Dropped.Load(), c.Emitted.Load())
				}
			})
		})
	}
}

// A bundle that has lost the reader acknowledged a message that was already returned.
func TestReader_AFencedAttemptDisposesOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		lost := f.emitting(2, 2)
		f.begin()
		if err := f.acknowledgeNow(lost, "m1"); !errors.Is(err, errFenced) {
			t.Errorf("error %v", err)
		}
		if err := f.nack(lost, "m2", time.Second); !errors.Is(err, errFenced) {
			t.Errorf("error %v", err)
		}
		synctest.Wait()
		f.service.want(t, nil, []string{"a1", "a2"})
	})
}

// A message that came again while it is decoded is acknowledged by its newest id.
func TestReader_DropUsesTheNewestAckID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		a := f.emitting(1, 1)
		f.service.send <- []*pubsubpb.ReceivedMessage{received("b1", "m1", time.Now())}
		synctest.Wait()
		if err := f.acknowledgeNow(a, "m1"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		f.service.want(t, []string{"b1"}, nil)
	})
}

func TestReadFn_DropIsLoggedSeldomAndWithoutContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newPickyHarness(t, Drop())
		defer h.close(t.Context())
		a := h.begin()
		var lines []string
		refused := h.fn.newDisposal(nil)
		refused.counts = new(stats.Source) // The Read's would go on where the test runs again.
		refused.warn = func(text string, args ...any) { lines = append(lines, text+" "+fmt.Sprint(args...)) }
		v := &visit{group: h.group, reader: h.reader, attempt: a, emit: &emitter{}}
		const n = 20
		var ms []*pubsubpb.ReceivedMessage
		for i := range n {
			m := received(fmt.Sprint("a", i), fmt.Sprint("id", i), time.Now())
			m.Message.Data, m.Message.Attributes = []byte("secret"), map[string]string{"k": "secret"}
			ms = append(ms, m)
		}
		h.service.send <- ms
		synctest.Wait()
		ds, err := h.take(a, nil, n, 1<<30)
		if err != nil || len(ds) != n {
			t.Fatal(len(ds), err)
		}
		for i := range ds {
			if err := refused.take(t.Context(), v, &ds[i], errors.New("no such word")); err != nil {
				t.Fatal(err)
			}
		}
		if len(lines) != 7 { // 1 to 5, 8, 16
			t.Fatalf("%d lines: %v", len(lines), lines)
		}
		if got, want := lines[6], "dropped a message so far16error"; !strings.HasPrefix(strings.ReplaceAll(got, " 16 ", "16"), want) {
			t.Errorf("the last is %s", got)
		}
		for _, line := range lines {
			if strings.Contains(line, "secret") || !strings.Contains(line, "no such word") || !strings.Contains(line, testSubscription) {
				t.Errorf("logged %s", line)
			}
		}
	})
}

// A nacked message has left the bundle: it goes back at once, with its delay, and is
// not returned again with the bundle.
func TestReadFn_NackReturnsWithADelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newPickyHarness(t, Nack())
		defer h.close(t.Context())
		h.config.NackDelay = 20 * time.Second
		r := h.opened(first, 0)
		m := received("a2", "m2", time.Now())
		m.DeliveryAttempt = 3
		h.service.send <- []*pubsubpb.ReceivedMessage{received("a1", "m1", time.Now()), m, received("a4", "m4", time.Now())}
		synctest.Wait()
		p := h.process(r)
		p.want("m1", "m2")
		synctest.Wait()
		if diff := cmp.Diff(map[time.Duration][]string{80 * time.Second: {"a2"}, 20 * time.Second: {"a4"}}, h.service.modified); diff != "" {
			t.Errorf("returned (-want +got):\n%s", diff)
		}
		if h.saturated() || h.owed() != 1 {
			t.Errorf("saturated %v, owed %d", h.saturated(), h.owed())
		}
		p.end("")
		p.finalize()
		h.service.want(t, []string{"a1"}, nil)
		if c := h.group.counts; c.Nacked.Load() != 2 || c.Returned.Load() != 2 {
			t.Errorf("%d nacked, %d returned", c.Nacked.Load(), c.Returned.Load())
		}
		// Away, it holds nothing back.
		pass(h.config.WatermarkIdleTimeout + time.Second)
		h.wantFollowing()
	})
}

func TestNackDelay(t *testing.T) {
	for setting, want := range map[time.Duration][]time.Duration{ // by delivery attempt, from 0
		0:                 {10 * time.Second, 0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second},
		options.Disabled:  {0, 0, 0, 0, 0, 0},
		30 * time.Second:  {30 * time.Second, 30 * time.Second, 60 * time.Second, 120 * time.Second, 240 * time.Second, 480 * time.Second},
		600 * time.Second: {600 * time.Second, 600 * time.Second, 600 * time.Second, 600 * time.Second, 600 * time.Second, 600 * time.Second},
	} {
		for attempt, d := range want {
			if got := nackDelay(setting, attempt); got != d {
				t.Errorf("NackDelay %v, attempt %d: %v, want %v", setting, attempt, got, d)
			}
		}
		if got := nackDelay(setting, 1_000_000); setting != options.Disabled && got != 600*time.Second {
			t.Errorf("NackDelay %v, in the end: %v", setting, got)
		}
	}
}

func TestReadFn_EmitFailedEmitsTheWholeMessage_C25(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newPickyHarness(t, EmitFailed())
		defer h.close(t.Context())
		r := h.opened(first, 1)
		m := received("a2", "m2", time.UnixMilli(5000))
		m.DeliveryAttempt, m.Message.OrderingKey, m.Message.Attributes = 4, "key", map[string]string{"k": "a?z"}
		h.service.onWire = func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("a?z"), []byte("a\xc5z")) }
		h.service.send <- []*pubsubpb.ReceivedMessage{m, received("a3", "m3", time.Now())}
		synctest.Wait()
		refused := time.Now().UTC()
		p := h.process(r)
		p.want("m1", "m2", "m3")
		want := []Failed{{
			Message: &message.Message{
				ID: "m2", Data: []byte("data of m2"), Attributes: map[string]string{"k": "a\xc5z"}, OrderingKey: "key",
				PublishTime: time.UnixMilli(5000).UTC(), DeliveryAttempt: 4,
			},
			Subscription: testSubscription, Error: "decode message m2 of " + testSubscription + ": two is refused",
			Time: refused, EventTime: time.UnixMilli(5000).UTC(),
		}}
		if diff := cmp.Diff(want, p.failed); diff != "" {
			t.Errorf("failed (-want +got):\n%s", diff)
		}
		p.end("")
		h.service.want(t, nil, nil)
		p.finalize()
		h.service.want(t, []string{"a1", "a2", "a3"}, nil)
		got, err := decodeFailed(encodeFailed(p.failed[0]))
		if diff := cmp.Diff(want[0], got); diff != "" || err != nil {
			t.Errorf("coded, error %v (-want +got):\n%s", err, diff)
		}
	})
}

func TestDecodeFailed_MalformedIsAnError(t *testing.T) {
	whole := encodeFailed(Failed{Message: &message.Message{ID: "1", Data: []byte("x")}, Error: "e", Time: epoch})
	for n := range whole {
		_, _ = decodeFailed(whole[:n]) // Nothing panics.
	}
	if _, err := decodeFailed([]byte{0xff}); !errors.Is(err, errMalformedFailed) {
		t.Errorf("error %v", err)
	}
	if got, err := decodeFailed(append(slices.Clone(whole), 0x78, 1)); err != nil || got.Error != "e" { // field 15
		t.Errorf("a later field: %+v, error %v", got, err)
	}
}

// The letters are durable before anything of the bundle can be acknowledged.
func TestReadFn_SendToFlushesBeforeTheBundleEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, log := queueFor(t, "")
		h := newPickyHarness(t, SendTo(q))
		defer h.close(t.Context())
		p := h.process(h.opened(first, 5))
		p.want("m1", "m2", "m3", "m5")
		if want := []string{"open", "offer", "offer", "flush"}; !slices.Equal(log.calls, want) {
			t.Errorf("asked of the queue: %v, want %v", log.calls, want)
		}
		h.service.want(t, nil, nil)
		p.end("")
		p.finalize()
		h.service.want(t, []string{"a1", "a2", "a3", "a4", "a5"}, nil)
		want := dlq.Letter{
			Connector: "pubsubio.source", Destination: testSubscription,
			Message: &message.Message{ID: "m2", Data: []byte("data of m2"), PublishTime: time.Now().UTC()},
			Error:   "decode message m2 of " + testSubscription + ": two is refused",
			Time:    time.Now().UTC(), EventTime: time.Now().UTC(),
		}
		if diff := cmp.Diff(want, log.durable[0], cmpopts.EquateApproxTime(time.Second)); diff != "" {
			t.Errorf("the first letter (-want +got):\n%s", diff)
		}
		if !strings.Contains(log.durable[1].Error, "panicked at disposal_test.go:") || log.durable[1].Message.ID != "m4" {
			t.Errorf("the second letter: %+v", log.durable[1])
		}
		next := h.process(*p.residual)
		next.end("")
		if len(log.calls) != 4 {
			t.Errorf("a bundle without failures asks: %v", log.calls)
		}
	})
}

func TestReadFn_AQueueThatFailsFailsTheBundle(t *testing.T) {
	for failAt, c := range map[string]struct {
		want  string
		calls []string
	}{
		"open":           {"source: a message of " + testSubscription + ": OnDecodeFailure source.SendTo(source.fakeQueue): open the dead-letter queue: the queue is out of order", []string{"open"}},
		"offer":          {"source: a message of " + testSubscription + ": OnDecodeFailure source.SendTo(source.fakeQueue): hand a failed record to the dead-letter queue: the queue is out of order", []string{"open", "offer", "drop"}},
		"flush":          {"source: OnDecodeFailure source.SendTo(source.fakeQueue): flush the dead-letter queue: the queue is out of order", []string{"open", "offer", "flush", "drop"}},
		"panic in open":  {"source: a message of " + testSubscription + ": OnDecodeFailure source.SendTo(source.fakeQueue): open the dead-letter queue: dead-letter queue source.fakeQueue panicked at fake_queue_test.go:", []string{"open"}},
		"panic in offer": {"source: a message of " + testSubscription + ": OnDecodeFailure source.SendTo(source.fakeQueue): hand a failed record to the dead-letter queue: dead-letter queue source.fakeQueue panicked at fake_queue_test.go:", []string{"open", "offer", "drop"}},
		"panic in flush": {"source: OnDecodeFailure source.SendTo(source.fakeQueue): flush the dead-letter queue: dead-letter queue source.fakeQueue panicked at fake_queue_test.go:", []string{"open", "offer", "flush", "drop"}},
	} {
		t.Run(failAt, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, log := queueFor(t, failAt)
				h := newPickyHarness(t, SendTo(q))
				defer h.close(t.Context())
				p := h.process(h.opened(first, 2))
				if p.err == nil || !strings.HasPrefix(p.err.Error(), c.want) {
					t.Fatalf("error %v, want %s", p.err, c.want)
				}
				p.end(p.err.Error())
				synctest.Wait()
				h.service.want(t, nil, []string{"a1", "a2"})
				if !slices.Equal(log.calls, c.calls) || len(log.durable) > 0 {
					t.Errorf("asked of the queue: %v, want %v", log.calls, c.calls)
				}
			})
		})
	}
}

// A service that may not forward a message delivers it without end.
func TestReadFn_C13_WarnsOnceOfAMessageThatShouldBeADeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newPickyHarness(t, Nack())
		defer h.close(t.Context())
		h.a.MaxDelivery = 5
		r := h.opened(first, 0)
		deliver := func(attempt int32) string {
			m := received(fmt.Sprint("a", attempt), "m2", time.Now())
			m.DeliveryAttempt = attempt
			return logged(t, func() {
				h.service.send <- []*pubsubpb.ReceivedMessage{m}
				synctest.Wait()
				p := h.process(r)
				p.end("")
				r = *p.residual
			})
		}
		for attempt := range int32(5) {
			if got := deliver(attempt + 1); got != "" {
				t.Errorf("attempt %d: warned of %s", attempt+1, got)
			}
		}
		got := deliver(6)
		if again := deliver(7); again != "" {
			t.Errorf("warned again of %s", again)
		}
		for _, want := range []string{"roles/pubsub.publisher on the dead-letter topic", "roles/pubsub.subscriber on the subscription", "service-<project number>@gcp-sa-pubsub.iam.gserviceaccount.com", testSubscription} {
			if !strings.Contains(got, want) {
				t.Errorf("warned of %s, without %s", got, want)
			}
		}
	})
}
