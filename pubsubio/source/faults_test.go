package source

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// What was on its way on a stream that was being closed has lost its data. A
// claim that opened the next stream meanwhile let it into the buffer: it was
// emitted empty, and acknowledged.
func TestReader_LateMessagesNeverReachTheBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		a := f.begin()
		synctest.Wait()
		f.service.set(func(s *fakeService) {
			s.onItsWay = []*pubsubpb.ReceivedMessage{received("a9", "m9", time.Now())}
		})
		f.stop()
		f.finish(a, 0)
		b := f.begin() // Before the old stream has ended.
		synctest.Wait()
		if got := f.takeIDs(b, 9); len(got) != 0 {
			t.Errorf("emitted %v, whose data is gone", got)
		}
		f.service.want(t, nil, []string{"a9"})
	})
}

// On the direct runner nothing claims a reader after it has read, and its
// pipeline may go on for hours.
func TestReader_WaitsForItsPipelineHoweverLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Pipeline, func(c *Config) { c.Subscriber.FirstCommitTimeout = options.Disabled })
		defer f.end()
		a := f.emitting(2, 2)
		f.finish(a, 2)
		f.stop()
		pass(50 * time.Minute)
		f.service.want(t, nil, nil)
		f.commit()
		synctest.Wait()
		f.service.want(t, []string{"a1", "a2"}, nil)
	})
}

// A committed message must not come again: until it is acknowledged its lease is
// extended, and a redelivery renews its ack id.
func TestReader_CommittedMessagesAreHeldUntilAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		f.committing(2, errDown)
		for range 10 {
			pass(30 * time.Second)
			f.finish(f.begin(), 0)
		}
		f.service.send <- []*pubsubpb.ReceivedMessage{received("b1", "m1", time.Now())}
		synctest.Wait()
		if got := f.takeIDs(f.begin(), 9); len(got) != 0 {
			t.Errorf("emitted %v again, which are committed", got)
		}
		f.service.set(func(s *fakeService) {
			s.ackErr = nil
			if s.extended["a2"] == 0 {
				t.Error("the lease of a committed message was not extended")
			}
		})
		pass(10 * time.Second)
		f.service.want(t, []string{"a1", "a2", "b1"}, nil) // a1 was in the request under way.
	})
}

func TestReader_CloseCountsWhatItCouldNotAcknowledge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, r := newRunFixture(t)
		f.committing(3, errDown)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := r.End(ctx); err == nil || !strings.Contains(err.Error(), "3 messages were committed and not acknowledged") ||
			!strings.Contains(err.Error(), "Unavailable: down") || !strings.Contains(err.Error(), testSubscription) {
			t.Errorf("the run ended with %v", err)
		}
		if n := f.counts.Unacknowledged.Load(); n != 3 {
			t.Errorf("%d are counted", n)
		}
		if _, err := groupOf("late", Config{}, r.Binding, f.counts); !errors.Is(err, errRunEnded) {
			t.Errorf("a bundle that starts after its run has ended gets %v", err)
		}
	})
}

func TestReader_RefusedAcknowledgementIsReportedByItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, r := newRunFixture(t)
		f.committing(1, status.Error(codes.PermissionDenied, "no"))
		synctest.Wait()
		if err := r.End(t.Context()); status.Code(errors.Unwrap(err)) == codes.OK && !strings.Contains(err.Error(), "PermissionDenied") {
			t.Errorf("the run ended with %v", err)
		}
	})
}

// One ack id that the service calls invalid is no reason to fail the pipeline.
func TestReader_RejectedAcknowledgementIsDroppedWithAWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		warnings := logged(t, func() {
			f.committing(1, status.Error(codes.InvalidArgument, "invalid ack id"))
			synctest.Wait()
		})
		if err := f.failNext(); err != nil || !strings.Contains(warnings, "invalid ack id") {
			t.Errorf("the next bundle fails with %v; warned:\n%s", err, warnings)
		}
	})
}

// A stall longer than the lease: what lapsed comes again, and must not be late.
func TestWatermark_LapsedMessagesHoldItBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { c.Subscriber.MaxExtension = 30 * time.Second })
		defer f.end()
		a := f.begin()
		published := time.Now()
		f.service.deliver(3)
		pass(firstPeriod + 2*tendInterval)
		f.takeIDs(a, 9)
		if w := f.watermark(time.Now()); w.After(published) {
			t.Errorf("the watermark is %v past messages that are to come again", w.Sub(published))
		}
		pass(awaitFor)
		if w := f.watermark(time.Now()); !w.After(published) {
			t.Error("messages that another worker has hold the watermark for ever")
		}
	})
}

// A bundle has not ended when ProcessElement returns: other restrictions and the
// sink still work in it.
func TestReader_IsNotIdleWhileItsBundleIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { c.Subscriber.FirstCommitTimeout = options.Disabled })
		defer f.end()
		a := f.emitting(3, 1)
		if _, err := f.leave(a, 1); err != nil {
			t.Fatal(err)
		}
		pass(20 * time.Minute)
		f.service.want(t, nil, nil)
		f.finished(a)
		f.signal(a, signalAt(1, 2))
		synctest.Wait()
		f.service.want(t, []string{"a1"}, nil)
	})
}

// A first bundle that takes longer than FirstCommitTimeout proves nothing about
// the runner.
func TestReader_FirstCommitTimeoutBeginsWhenTheBundleHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { c.Subscriber.FirstCommitTimeout = time.Minute })
		defer f.end()
		a := f.emitting(1, 1)
		pass(10 * time.Minute)
		f.finish(a, 1)
		if err := f.failNext(); err != nil {
			t.Errorf("the bundle after a long one fails: %v", err)
		}
	})
}

func TestReader_FencedBundleCannotLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		old := f.begin()
		f.begin()
		if _, err := f.leave(old, 3); !errors.Is(err, errFenced) {
			t.Errorf("a fenced bundle leaves with %v and would resume", err)
		}
	})
}

// A returned message may come to another split of its subscription.
func TestGroup_AwaitsReturnedMessagesForAllSplitsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		other := fixtureIn(t, f.group, "other split")
		defer other.end()
		a, b := f.begin(), other.begin()
		f.service.send <- []*pubsubpb.ReceivedMessage{received("a1", "m1", time.Now().Add(-time.Hour))}
		synctest.Wait()
		f.takeIDs(a, 1)
		f.fail(a)
		if f.awaiting.oldest(time.Now()).IsZero() {
			t.Fatal("nothing is awaited after a bundle failed")
		}
		other.service.send <- []*pubsubpb.ReceivedMessage{received("b1", "m1", time.Now().Add(-time.Hour))}
		synctest.Wait()
		if !f.awaiting.oldest(time.Now()).IsZero() {
			t.Error("still awaited though the other split has it")
		}
		if got := other.takeIDs(b, 1); !slices.Equal(got, []string{"m1"}) {
			t.Errorf("the other split took %v", got)
		}
	})
}

// A reader that retires between being looked up and being claimed takes its
// group with it; the claim must not open a reader that nobody finds again.
func TestEnter_TakesANewGroupWhereTheOldOneHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.TwoRounds, nil)
		f.end()
		if !f.group.gone {
			t.Fatal("a group without readers is still there")
		}
		young := fixtureIn(t, newGroup("young", Config{}, run.Binding{}, new(stats.Source)), "reader")
		defer young.end()
		groups := []*group{f.group, young.group}
		v, err := enter(func() (*group, error) {
			g := groups[0]
			groups = groups[1:]
			return g, nil
		}, assignment{ReaderNonce: "reader", Subscription: testSubscription}, restriction{Left: -1}, "token")
		if err != nil || v.group != young.group || v.reader != young.reader {
			t.Errorf("entered %+v, error %v", v, err)
		}
	})
}

// A pipeline that was cut off may leave a service that does not answer, and
// bundles that still start.
func TestGroup_CloseEndsSoonAfterItsContextAndOpensNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		f.service.set(func(s *fakeService) { s.deaf = true })
		f.committing(1, errDown)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		f.group.Close(ctx)
		if took := time.Since(start); took > 5*time.Second+f.hangUpTimeout() {
			t.Errorf("closing took %v", took)
		}
		if _, err := f.group.reader("another", testSubscription); !errors.Is(err, errEnded) {
			t.Errorf("a closed group opens another reader: %v", err)
		}
	})
}

// Finalizations may be outstanding for an hour: what their callbacks hold must
// not keep messages alive.
func TestLedger_LetsGoOfWhatItGivesOut(t *testing.T) {
	l := ledger{rule: run.Finalized}
	a, _ := l.attempt("", "", "A", "1", "2")
	b, _ := l.attempt("A", "", "B", "3")
	l.signal("A", signalAt(1, 2))
	l.fail(b)
	if a.items != nil || b.items != nil {
		t.Errorf("attempts still hold %d and %d messages", len(a.items), len(b.items))
	}
}

// A message that comes twice within a moment stood twice under one lease: when
// that lapsed it was dropped twice, the counts went below zero, and the reader
// never counted as drained again.
func TestReader_MessageThatComesTwiceLapsesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { c.Subscriber.MaxExtension = options.Disabled })
		defer f.end()
		a := f.begin()
		f.service.deliver(3)
		f.service.send <- []*pubsubpb.ReceivedMessage{received("b2", "m2", time.Now()), received("c2", "m2", time.Now())}
		pass(2 * firstPeriod)
		f.takeIDs(a, 9)
		if f.fifo.messages != 0 || f.fifo.bytes != 0 || f.bytes != 0 || f.group.gate.messages.Load() != 0 {
			t.Errorf("%d messages and %d bytes buffered, %d bytes held, %d in the gate, want none", f.fifo.messages, f.fifo.bytes, f.bytes, f.group.gate.messages.Load())
		}
		if n := f.counts.Lapsed.Load(); n != 3 {
			t.Errorf("%d messages lapsed, want 3", n)
		}
	})
}

// A reader that retires while its restriction is claimed must not take the
// successor's hold on the watermark with it.
func TestGroup_RetiringReaderLeavesForItselfOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := newFixture(t, run.Finalized, nil)
		defer old.end()
		old.group.remove(old.reader)
		young := fixtureIn(t, old.group, "reader")
		defer young.end()
		old.group.leave(old.reader)
		if _, ok := old.group.live["reader"]; !ok {
			t.Error("the restriction holds the watermark no more")
		}
	})
}

// An old attempt whose restriction is settling must not close the stream of the
// bundle that has the reader now.
func TestReader_FencedBundleStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		old := f.begin()
		young := f.begin()
		if err := f.stopFor(old); !errors.Is(err, errFenced) {
			t.Errorf("stopping for a fenced bundle: %v", err)
		}
		if f.endFor(old) {
			t.Error("a fenced bundle ended the reader")
		}
		f.wantReading(young)
	})
}

// One ack id that the service refuses is found by halving; its neighbours are
// acknowledged.
func TestSettler_RejectedIDIsFoundAmongMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var good []string
		requests := 0
		s, ends := newTestSettler(0, func(_ context.Context, ids []string) error {
			requests++
			if slices.Contains(ids, "bad") {
				return status.Error(codes.InvalidArgument, "invalid ack id")
			}
			good = append(good, ids...)
			return nil
		})
		for i := range 1000 {
			id := string(rune('A' + i%50))
			if i == 617 {
				id = "bad"
			}
			s.add([]string{id})
		}
		settle(t, s)
		failed := 0
		for _, err := range *ends {
			if err != nil {
				failed++
			}
		}
		if len(good) != 999 || failed != 1 || requests > 40 {
			t.Errorf("%d acknowledged, %d requests given up, %d sent", len(good), failed, requests)
		}
	})
}

// What is returned while the stream is still open comes again on it, and counts
// another delivery.
func TestReader_ReturnsItsBufferOnceTheStreamHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		f.service.set(func(s *fakeService) { s.deaf = true })
		f.emitting(3, 1)
		f.stop()
		pass(f.hangUpTimeout() / 2)
		f.service.want(t, nil, nil)
		if f.owed() != 3 {
			t.Errorf("%d messages are owed, want the emitted one and two to be returned", f.owed())
		}
		pass(f.hangUpTimeout())
		f.service.want(t, nil, []string{"a2", "a3"})
	})
}

// What a reader held counted for ever as pending, once it had closed.
func TestReader_CountsOfTheMomentEndWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		a := f.emitting(5, 2)
		f.reportOwed()
		c := f.counts
		if p, b, s := c.PendingAcks.Load(), c.Buffered.Load(), c.OpenStreams.Load(); p != 2 || b != 3 || s != 1 {
			t.Errorf("%d are pending, %d buffered, %d streams open", p, b, s)
		}
		f.finish(a, 2)
		pass(3 * time.Second)
		f.signal(a, signalAt(1, 2))
		synctest.Wait()
		if n, total, _ := c.Commits.Load(); n != 1 || total != 3*time.Second || c.ByFinalization.Load() != 2 {
			t.Errorf("%d commits took %v, of %d messages", n, total, c.ByFinalization.Load())
		}
		f.begin()
		f.end()
		f.reportOwed() // A bundle may still be about to.
		if p, b, y, s := c.PendingAcks.Load(), c.Buffered.Load(), c.BufferedBytes.Load(), c.OpenStreams.Load(); p != 0 || b != 0 || y != 0 || s != 0 {
			t.Errorf("closed, %d are pending, %d buffered (%d bytes), %d streams open", p, b, y, s)
		}
		if c.ShutdownsAbandoned.Load() != 0 {
			t.Error("a reader that has closed in time counts as abandoned")
		}
	})
}

// C15: Receive never returned. A service that answers nothing does not keep a reader
// beyond its time, and the counter says what is left to the leases.
func TestReader_C15_CloseThatOverrunsIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		f.service.set(func(s *fakeService) { s.deaf = true })
		f.emitting(3, 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		f.close(ctx)
		if took := time.Since(began); took > time.Second || f.counts.ShutdownsAbandoned.Load() != 1 {
			t.Errorf("closed after %v, %d abandoned", took, f.counts.ShutdownsAbandoned.Load())
		}
	})
}
