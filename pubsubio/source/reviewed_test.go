package source

import (
	"context"
	"fmt"
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

// A connection died with m1 on its way. The service took it for received, and went on
// with m2 for the same client, before m1's lease was over.
func TestOrder_AMessageThatIsLostOnItsWayIsNotOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newModelService(modelConduct{Ordered: true, Response: 100})
		s.acked = func(*modelMessage) {}
		c := &modelClient{service: s}
		cfg := Config{Ordering: options.PerKey}
		g := newGroup("test", cfg, run.Binding{Rule: run.Finalized}, new(stats.Source))
		made := callsOver(c, c, testSubscription, "client")
		made.close = func() {}
		r := g.openLocked("reader", testSubscription, made)
		defer r.close(context.Background())
		a, err := r.claim("", "", "t1", true)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		take := func() {
			synctest.Wait()
			ds, err := r.take(a, nil, 10, 1<<30)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range ds {
				got = append(got, d.msg.ID)
			}
		}
		s.publish("k", 0)
		take()
		s.publishIntoTheVoid("k")
		take()
		pass(5 * time.Second)
		s.publish("k", 0)
		take()
		r.finished(a)
		r.signal(a, signalAt(1, 2)) // m0 is acknowledged.
		if a, err = r.claim("t1", "", "t2", true); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Minute)
		take()
		if fmt.Sprint(got) != "[m0 m1 m2]" {
			t.Errorf("emitted %v", got)
		}
	})
}

// m1 came behind the watermark that a bundle had reported, and held nothing. The bundle
// failed, and so m1 was no longer late.
func TestWatermark_WhatIsBufferedIsJudgedAgainAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.TwoRounds, nil)
		defer f.end()
		start := time.Now()
		a := f.begin()
		f.tell(a, start.Add(-time.Hour))
		f.service.send <- []*pubsubpb.ReceivedMessage{received("a0", "m0", start.Add(-time.Second))}
		synctest.Wait()
		f.takeIDs(a, 1)
		f.tell(a, start.Add(-time.Second))
		old := start.Add(-30 * time.Minute)
		f.service.send <- []*pubsubpb.ReceivedMessage{received("a1", "m1", old)}
		synctest.Wait()
		f.fail(a)
		b := f.begin()
		f.tell(a, start) // The failed bundle's estimator is asked once more.
		f.tell(b, start.Add(-time.Hour))
		pass(20 * time.Second)
		if w := f.watermark(time.Now()); w.After(old) {
			t.Errorf("the watermark is %v while a message of %v is buffered", w, old)
		}
	})
}

// What was received while its stream was being closed was dropped as lapsed, and
// returned as well: the buffer had less than nothing in it.
func TestReader_WhatIsLeavingLapsesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) {
			c.Subscriber.ShutdownTimeout, c.Subscriber.MaxExtension = time.Minute, options.Disabled
		})
		defer f.end()
		f.service.set(func(s *fakeService) { s.deaf = true })
		f.begin()
		synctest.Wait()
		closed, cancel := context.WithCancel(f.ctx)
		cancel()
		f.accept(closed, arrivals(t, received("a1", "m1", time.Now())), grant{period: 10 * time.Second})
		f.stop()
		pass(45 * time.Second)
		if f.fifo.messages != 0 || f.bytes != 0 || f.group.gate.messages.Load() != 0 {
			t.Errorf("%d buffered, %d bytes held, %d at the gate", f.fifo.messages, f.bytes, f.group.gate.messages.Load())
		}
	})
}

// A runner that finalizes a checkpoint's bundles at once, ten thousand of them, held up
// its control stream for seconds.
func TestLedger_ManyBundlesAtOnceCostNoMoreThanTheirNumber(t *testing.T) {
	cost := func(n int) time.Duration {
		l := ledger{rule: run.TwoRounds}
		token, parent := "", ""
		for i := range n {
			name := fmt.Sprint(i)
			l.attempt(token, parent, name, "m")
			token, parent = name, token
		}
		began := time.Now()
		tick := uint64(1)
		for i := range n {
			tick++
			l.signal(fmt.Sprint(i), signalAt(1, tick))
		}
		return time.Since(began)
	}
	cost(1000)
	// Quadratic, it is a thousand times as much.
	if few, many := cost(1000), cost(32_000); many > 300*few+time.Second {
		t.Errorf("%v for 1,000 and %v for 32,000", few, many)
	}
}

// A message that joins a lease while that is being extended was taken for extended.
func TestLeases_NothingJoinsALeaseThatIsBeingExtended(t *testing.T) {
	ls := newLeases(options.Subscriber{}.WithDefaults())
	now := time.Now()
	g := grant{period: firstPeriod, waited: true}
	first, second := new(held), new(held)
	ls.add(first, g, now)
	l := ls.due(now)[0]
	l.ackIDs()
	ls.add(second, g, now)
	ls.add(first, g, now) // It comes again, with another id.
	if second.lease == l || first.lease == l {
		t.Error("joined while the extension was under way")
	}
}

func TestReader_ARejectedAcknowledgementIsARefusalToWhoAwaitsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { c.Subscriber.AwaitAckConfirmation = time.Minute })
		defer f.end()
		f.committing(1, status.Error(codes.InvalidArgument, "no such id"))
		synctest.Wait()
		if err := f.failNext(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("the next bundle's error is %v", err)
		}
	})
}
