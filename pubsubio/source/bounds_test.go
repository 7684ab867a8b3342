package source

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// Each of the bounds was once ignored on purpose, and no other test noticed.

func TestReader_C07_BufferedBytesHoldTheStreamBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { c.Subscriber.BufferMaxBytes = 10 })
		defer f.end()
		a := f.begin()
		f.service.deliver(1)
		synctest.Wait()
		if f.service.offer() {
			t.Error("received with the buffer full in bytes")
		}
		f.takeIDs(a, 1)
		synctest.Wait()
		if !f.service.offer() {
			t.Error("nothing is received with the buffer empty")
		}
	})
}

func TestReader_OutstandingBytesHoldTheStreamBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { c.Subscriber.MaxOutstandingBytes = 10 })
		defer f.end()
		a := f.begin()
		f.service.deliver(1)
		synctest.Wait()
		f.takeIDs(a, 1)
		f.finish(a, 1)
		synctest.Wait()
		if f.service.offer() {
			t.Error("received with all that may be outstanding emitted")
		}
		f.signal(a, signalAt(1, 2))
		synctest.Wait()
		f.wantReading(f.begin())
	})
}

func TestLeases_PeriodsStayWithinTheirBounds(t *testing.T) {
	for _, held := range []time.Duration{100 * time.Millisecond, time.Hour} {
		ls := newLeases(options.Subscriber{MinExtensionPeriod: 30 * time.Second, MaxExtensionPeriod: 40 * time.Second}.WithDefaults())
		l := &lease{received: time.Now()}
		ls.holds.add(l, 1000, l.received.Add(held))
		for _, got := range []time.Duration{ls.period(), ls.extension(l, l.received), ls.extension(l, l.received.Add(10*time.Minute))} {
			if got < 30*time.Second || got > 40*time.Second {
				t.Errorf("held for %v: %v", held, got)
			}
		}
	}
}

func TestReader_FirstCommitTimeoutDisabled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { c.Subscriber.FirstCommitTimeout = options.Disabled })
		defer f.end()
		a := f.emitting(1, 1)
		f.finish(a, 1)
		f.begin()
		pass(24 * time.Hour)
		if err := f.failNext(); err != nil {
			t.Error(err)
		}
	})
}

// The lease of a message that was emitted ends while its bundle is being committed.
func TestReader_AMessageThatLapsesOnceEmittedIsAcknowledgedAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { c.Subscriber.MaxExtension = options.Disabled })
		defer f.end()
		a := f.emitting(2, 2)
		pass(firstPeriod + 5*tendInterval)
		f.finish(a, 2)
		f.signal(a, signalAt(1, 2))
		synctest.Wait()
		f.service.want(t, []string{"a1", "a2"}, nil)
		if n, dropped := f.counts.LapsedEmitted.Load(), f.counts.Lapsed.Load(); n != 2 || dropped != 0 {
			t.Errorf("%d counted as lapsed once emitted and %d as dropped, want 2 and 0", n, dropped)
		}
	})
}

// A runner that neither finalizes nor comes back: the stream stops at its flow
// control, and the end is told.
func TestReader_ARunnerThatNeitherFinalizesNorResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.TwoRounds, func(c *Config) { c.Subscriber.MaxOutstandingMessages = 5 })
		warnings := logged(t, func() {
			a := f.emitting(5, 5)
			f.finish(a, 5)
			synctest.Wait()
			if f.service.offer() {
				t.Error("received beyond what may be outstanding")
			}
			pass(minPatience + time.Minute)
			f.awaitClosed()
		})
		f.service.want(t, nil, []string{"a1", "a2", "a3", "a4", "a5"})
		if !strings.Contains(warnings, "never committed") || !strings.Contains(warnings, "messages=5") || !strings.Contains(warnings, testSubscription) {
			t.Errorf("warned: %s", warnings)
		}
	})
}

func TestWatermark_IsInWholeSecondsWhereTheRunnerCutsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.TwoRounds, nil)
		defer f.end()
		a := f.begin()
		e := newEstimator(int64(minWatermark))
		e.bind((&readFn{}).watermark(f.group, f.reader, a))
		pass(f.config.WatermarkIdleTimeout + 1234*time.Millisecond)
		if at := e.state(); at%1000 != 0 || at == int64(minWatermark) {
			t.Errorf("the watermark is %d ms", at)
		}
	})
}

func TestWatermark_ALullLastsWatermarkIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { c.WatermarkIdleTimeout = 20 * time.Second })
		defer f.end()
		f.begin()
		pass(19 * time.Second)
		if w := f.watermark(time.Now()); !w.IsZero() {
			t.Errorf("drained after 19 s: %v", w)
		}
		pass(2 * time.Second)
		f.wantFollowing()
	})
}

// A bundle whose records take long ends on time.
func TestVisit_TakesNothingAfterMaxBundleDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		a := f.begin()
		f.service.deliver(100)
		synctest.Wait()
		slow := registration{name: "slow", bind: func(*emitter) boundDecoder {
			return func(*message.Message) error { pass(5 * time.Millisecond); return nil }
		}}
		v := &visit{
			group: f.group, reader: f.reader, attempt: a, size: 1,
			budget:  newBudget(options.Subscriber{MaxBundleDuration: 20 * time.Millisecond}.WithDefaults()),
			emit:    newEmitter(slow, nil),
			refused: (&settings{}).newDisposal(nil),
		}
		if err := v.drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if v.emitted < 2 || v.emitted > 10 {
			t.Errorf("%d messages of 5 ms in 20 ms", v.emitted)
		}
	})
}
