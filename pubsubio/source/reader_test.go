package source

import (
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
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// pass lets virtual time go by.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // virtual time
	synctest.Wait()
}

func TestReader_AcknowledgesOnlyWhatIsCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		a := f.begin()
		f.service.deliver(3)
		synctest.Wait()
		if got := f.takeIDs(a, 2); !slices.Equal(got, []string{"m1", "m2"}) {
			t.Fatalf("took %v", got)
		}
		f.finish(a, 2)
		pass(time.Second)
		f.service.want(t, nil, nil)
		f.signal(a, signalAt(1, 2))
		synctest.Wait()
		f.service.want(t, []string{"a1", "a2"}, nil)
	})
}

func TestReader_FailedBundleReturnsItsMessagesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		a := f.emitting(3, 2)
		f.fail(a)
		synctest.Wait()
		f.service.want(t, nil, []string{"a1", "a2"})
		if _, err := f.take(a, nil, 1, 1<<20); !errors.Is(err, errFenced) {
			t.Errorf("a failed bundle took more: error %v", err)
		}
		// They come again and are emitted again: nothing remembers them.
		f.service.send <- []*pubsubpb.ReceivedMessage{received("b1", "m1", time.Now()), received("b2", "m2", time.Now())}
		synctest.Wait()
		if got := f.takeIDs(f.begin(), 9); !slices.Equal(got, []string{"m3", "m1", "m2"}) {
			t.Errorf("the next bundle took %v", got)
		}
	})
}

// The runner gave the restriction to another bundle while this one still runs.
func TestReader_NewerClaimFencesTheOlderOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		old := f.begin()
		f.service.deliver(4)
		synctest.Wait()
		f.takeIDs(old, 2)
		young := f.begin()
		if _, err := f.take(old, nil, 1, 1<<20); !errors.Is(err, errFenced) {
			t.Errorf("a fenced bundle took more: error %v", err)
		}
		if err := f.check(old); !errors.Is(err, errFenced) {
			t.Errorf("a fenced bundle may emit: error %v", err)
		}
		synctest.Wait()
		f.service.want(t, nil, []string{"a1", "a2"})
		f.signal(old, signalAt(1, 2)) // The late signal of a void attempt.
		f.takeIDs(young, 2)
		f.finish(young, 2)
		f.signal(young, signalAt(3, 4))
		synctest.Wait()
		f.service.want(t, []string{"a3", "a4"}, []string{"a1", "a2"})
	})
}

// C05: a copy arrives while the first is still held; which ack id counts?
func TestReader_C05_RedeliveryOfAHeldMessageReplacesItsAckID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		a := f.begin()
		f.service.deliver(2)
		synctest.Wait()
		f.takeIDs(a, 1) // m1 is staged, m2 buffered.
		f.service.send <- []*pubsubpb.ReceivedMessage{received("b1", "m1", time.Now()), received("b2", "m2", time.Now())}
		synctest.Wait()
		if got := f.takeIDs(a, 9); !slices.Equal(got, []string{"m2"}) {
			t.Errorf("took %v after m1, want m2 once", got)
		}
		f.finish(a, 2)
		f.signal(a, signalAt(1, 2))
		synctest.Wait()
		f.service.want(t, []string{"b1", "b2"}, nil)
		if n := f.counts.Redelivered.Load(); n != 2 {
			t.Errorf("%d redeliveries are counted, want 2", n)
		}
	})
}

// C02, C03: leases of what is staged and of what is buffered are extended, also
// in a bundle that takes several acknowledgement deadlines.
func TestReader_C02_C03_LongBundleLetsNoLeaseLapse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		a := f.emitting(3, 1)
		pass(3 * firstPeriod)
		if got := f.takeIDs(a, 9); !slices.Equal(got, []string{"m2", "m3"}) {
			t.Errorf("took %v after three lease periods", got)
		}
		f.service.set(func(s *fakeService) {
			for _, id := range []string{"a1", "a2", "a3"} {
				if n := s.extended[id]; n < 3 || n > 6 {
					t.Errorf("%s was extended %d times in three lease periods", id, n)
				}
			}
		})
		if n := f.counts.Lapsed.Load(); n != 0 {
			t.Errorf("%d messages lapsed", n)
		}
	})
}

// C04: a consumer that stalls past MaxExtension; nothing lapsed is emitted.
func TestReader_C04_LapsedMessagesAreDroppedAndTakenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { c.Subscriber.MaxExtension = 30 * time.Second })
		defer f.end()
		a := f.begin()
		f.service.deliver(3)
		pass(5 * time.Minute)
		if n := f.group.gate.messages.Load(); n != 0 {
			t.Errorf("the buffer still counts %d messages that the service delivers again", n)
		}
		if got := f.takeIDs(a, 9); len(got) != 0 {
			t.Errorf("emitted %v, whose leases have lapsed", got)
		}
		f.service.deliver(3)
		synctest.Wait()
		if got := f.takeIDs(a, 9); len(got) != 3 {
			t.Errorf("took %v of the second delivery, want all", got)
		}
	})
}

func TestReader_FailingExtensionsAreTriedAgainAndThenLapse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		a := f.begin()
		f.service.deliver(2)
		f.service.set(func(s *fakeService) { s.extErr = errDown })
		pass(leaseMargin + 2*tendInterval)
		f.service.set(func(s *fakeService) { s.extErr = nil })
		pass(2 * tendInterval)
		if got := f.takeIDs(a, 1); len(got) != 1 {
			t.Errorf("took %v, though the extension came in time", got)
		}
		f.service.set(func(s *fakeService) { s.extErr = errDown })
		pass(2 * firstPeriod)
		if got := f.takeIDs(a, 1); len(got) != 0 {
			t.Errorf("emitted %v after its lease had lapsed", got)
		}
	})
}

// An outage of acknowledgements is ridden out while the lease lives.
func TestReader_AcknowledgementsAreRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		f.committing(1, errDown)
		pass(10 * time.Second)
		if f.owed() != 1 {
			t.Errorf("%d messages are owed during the outage, want 1", f.owed())
		}
		f.service.set(func(s *fakeService) { s.ackErr = nil })
		pass(10 * time.Second)
		f.service.want(t, []string{"a1"}, nil)
		if f.owed() != 0 {
			t.Errorf("%d messages are owed after it", f.owed())
		}
	})
}

// C18: a permission that is revoked for acknowledgements only.
func TestReader_C18_RefusedAcknowledgementFailsTheNextBundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { c.Subscriber.AwaitAckConfirmation = time.Minute })
		defer f.end()
		f.committing(1, status.Error(codes.PermissionDenied, "no"))
		synctest.Wait()
		err := f.failNext()
		if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "pubsub.subscriptions.consume") || !strings.Contains(err.Error(), testSubscription) {
			t.Errorf("the next bundle's error is %v, want PermissionDenied naming subscription and permission", err)
		}
	})
}

func TestReader_C18_RefusedAcknowledgementIsTriedAgainWithAWarningAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		warnings := logged(t, func() {
			f.committing(1, status.Error(codes.PermissionDenied, "no"))
			f.begin()
			pass(150 * time.Second)
		})
		if n := strings.Count(warnings, "pubsub.subscriptions.consume"); n != 3 {
			t.Errorf("%d warnings that name the permission in two and a half minutes:\n%s", n, warnings)
		}
		if n := f.counts.Errors[codes.PermissionDenied].Load(); n < 10 {
			t.Errorf("%d failed attempts were counted", n)
		}
		if err := f.failNext(); err != nil {
			t.Errorf("the next bundle fails: %v", err)
		}
		f.service.set(func(s *fakeService) { s.ackErr = nil })
		pass(10 * time.Second)
		f.service.want(t, []string{"a1"}, nil)
	})
}

// A read that is to end waits for its acknowledgements: not for ever.
func TestReader_C18_RefusedAcknowledgementFailsAReadThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		f.committing(1, status.Error(codes.PermissionDenied, "no"))
		if err := f.stopFor(f.begin()); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Second)
		if err := f.failNext(); status.Code(err) != codes.PermissionDenied {
			t.Errorf("the next bundle's error is %v", err)
		}
	})
}

func TestReader_AcknowledgementIsConfirmedInTimeOrTheNextBundleFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { c.Subscriber.AwaitAckConfirmation = 5 * time.Second })
		defer f.end()
		f.committing(2, errDown)
		pass(4 * time.Second)
		if err := f.failNext(); err != nil {
			t.Errorf("in time, the next bundle fails: %v", err)
		}
		pass(time.Second)
		err := f.failNext()
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "options.Subscriber.AwaitAckConfirmation") || !strings.Contains(err.Error(), "2 messages") {
			t.Errorf("the next bundle's error is %v", err)
		}
		f.service.set(func(s *fakeService) { s.ackErr = nil })
	})
}

// C07: the buffer has a cap over all readers, and at the cap nothing is received.
func TestReader_C07_FullBufferHoldsTheStreamBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { c.Subscriber.BufferMaxMessages = 3 })
		defer f.end()
		a := f.begin()
		f.service.deliver(3)
		synctest.Wait()
		if f.service.offer() {
			t.Error("a fourth message was received into a buffer of three")
		}
		f.takeIDs(a, 1)
		synctest.Wait()
		if !f.service.offer() {
			t.Error("nothing is received though there is room")
		}
	})
}

func TestReader_UnclaimedReaderParksReturnsAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		a := f.begin()
		f.service.deliver(2)
		synctest.Wait()
		f.finish(a, 0)
		pass(idleTimeout + 2*tendInterval)
		f.service.want(t, nil, []string{"a1", "a2"})
		if _, err := f.claim(f.token, f.parent, "late", true); !errors.Is(err, errEnded) {
			t.Errorf("a reader nobody wanted for a minute can be claimed: %v", err)
		}
		f.awaitClosed()
	})
}

func TestReader_ParkedReaderKeepsWhatIsOwedAndOpensAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		a := f.emitting(2, 1)
		f.finish(a, 1)
		pass(2 * idleTimeout)
		f.service.want(t, nil, []string{"a2"}) // What was not emitted.
		f.signal(a, signalAt(1, 2))
		synctest.Wait()
		f.service.want(t, []string{"a1"}, []string{"a2"})
	})
}

func TestReader_ParkedReaderIsClaimedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.TwoRounds, nil)
		defer f.end()
		a := f.emitting(1, 1)
		f.finish(a, 1)
		pass(2 * idleTimeout)
		b := f.begin()
		f.service.deliver(3) // Blocks until the stream is open again.
		synctest.Wait()
		if got := f.takeIDs(b, 9); !slices.Equal(got, []string{"m2", "m3"}) {
			t.Errorf("took %v, want what is not held yet", got)
		}
	})
}

func TestReader_FirstCommitTimeoutSaysThatTheRunnerDoesNotFinalize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.TwoRounds, func(c *Config) { c.Subscriber.FirstCommitTimeout = time.Minute })
		defer f.end()
		a := f.emitting(1, 1)
		f.finish(a, 1)
		pass(30 * time.Second)
		f.finish(f.begin(), 0)
		pass(31 * time.Second)
		err := f.failNext()
		if err == nil || !strings.Contains(err.Error(), "FirstCommitTimeout") {
			t.Errorf("error %v, want one that names the option", err)
		}
	})
}

func TestReader_CloseReturnsWhatIsNotCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		a := f.emitting(4, 2)
		f.finish(a, 2)
		f.signal(a, signalAt(1, 2))
		b := f.begin()
		f.takeIDs(b, 1)
		f.end()
		f.end() // May be called twice.
		f.service.want(t, []string{"a1", "a2"}, []string{"a3", "a4"})
	})
}

func TestReader_DisabledExtensionNeverExtends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { c.Subscriber.MaxExtension = options.Disabled })
		defer f.end()
		f.begin()
		f.service.deliver(1)
		pass(2 * firstPeriod)
		f.service.set(func(s *fakeService) {
			if len(s.extended) != 0 {
				t.Errorf("extended %v", s.extended)
			}
		})
	})
}

// Google's emulator sends whatever the flow control says.
func TestReader_HoldsItsStreamBackWhereTheServerDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { c.Subscriber.MaxOutstandingMessages = 2 })
		defer f.end()
		a := f.begin()
		f.service.deliver(2)
		synctest.Wait()
		f.takeIDs(a, 2) // The buffer is empty, but nothing is acknowledged.
		f.finish(a, 2)
		synctest.Wait()
		if f.service.offer() {
			t.Error("a third message was received beside two outstanding")
		}
		f.signal(a, signalAt(1, 2))
		synctest.Wait()
		if !f.service.offer() {
			t.Error("nothing is received though everything is acknowledged")
		}
	})
}
