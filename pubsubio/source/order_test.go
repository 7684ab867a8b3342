package source

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

func perKey(c *Config) { c.Ordering = options.PerKey }

// A bundle fails with m2, m3 and m4 were received behind it: they were emitted before
// it came again.
func TestOrder_WhatComesBehindAFailedBundleIsReturnedWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, perKey)
		defer f.end()
		a := f.emitting(4, 1)
		f.finish(a, 1)
		b := f.begin()
		f.takeIDs(b, 1)
		// On its way while the bundle fails.
		f.service.set(func(s *fakeService) { s.onItsWay = []*pubsubpb.ReceivedMessage{received("a5", "m5", time.Now())} })
		f.fail(b)
		c := f.begin()
		if got := f.takeIDs(c, 10); len(got) > 0 {
			t.Errorf("%v were emitted before what had failed", got)
		}
		pass(2 * time.Second)
		f.service.want(t, nil, []string{"a2", "a3", "a4", "a5"})
		f.service.deliver(2) // m1 is still held
		synctest.Wait()
		if got := f.takeIDs(c, 10); fmt.Sprint(got) != "[m2]" {
			t.Errorf("emitted %v, want m2", got)
		}
	})
}

// The stream was opened again while a return was under way: the service, which took m2
// for received, went on with m3.
func TestOrder_TheStreamOpensAgainOnceAllIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, perKey)
		defer f.end()
		a := f.emitting(2, 2)
		f.service.set(func(s *fakeService) { s.returnErr = errDown })
		f.fail(a)
		opened := func() (n int) {
			f.service.set(func(s *fakeService) { n = len(s.opened) })
			return n
		}
		pass(20 * time.Second)
		if n := opened(); n != 1 {
			t.Errorf("opened %d times while a return is under way", n)
		}
		pass(20 * time.Second) // It is given up; the leases last a minute.
		if n := opened(); n != 1 {
			t.Errorf("opened %d times while what was not returned has leases", n)
		}
		f.begin()
		pass(25 * time.Second)
		if n := opened(); n != 2 {
			t.Errorf("opened %d times in all", n)
		}
	})
}

// m1 lapses in the buffer, m2 came later and does not.
func TestOrder_NothingOvertakesALapsedMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { perKey(c); c.Subscriber.MaxExtension = options.Disabled })
		defer f.end()
		a := f.begin()
		pass(tendInterval / 2)
		f.service.deliver(1)
		pass(firstPeriod / 2)
		f.service.send <- []*pubsubpb.ReceivedMessage{received("a2", "m2", time.Now())}
		pass(firstPeriod / 2) // tend has not looked yet.
		if got := f.takeIDs(a, 10); len(got) > 0 {
			t.Errorf("%v overtook m1", got)
		}
		pass(3 * time.Second)
		f.service.want(t, nil, []string{"a1", "a2"})
	})
}

func TestOrder_WithoutItOnlyWhatFailedIsReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		f.fail(f.emitting(4, 1))
		synctest.Wait()
		f.service.want(t, nil, []string{"a1"})
	})
}
