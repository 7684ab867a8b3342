package source

import (
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
)

func TestTransit(t *testing.T) {
	var way transit
	for i, tc := range []struct {
		held, read time.Duration
		want       bool
	}{
		{0, time.Second, false},
		{10 * time.Second, 0, false},
		{5 * time.Second, 0, true},          // 15 s of the 60 s may be over
		{0, 0, true},                        // it came behind the others
		{time.Second, emptyAfter, false},    // nothing was there any more
		{time.Hour, time.Millisecond, true}, // the transport was full
		{0, emptyAfter - 1, true},           // a round trip is no proof
		{time.Hour, 2 * time.Second, false},
	} {
		if got := way.pulled(tc.held, tc.read, time.Minute); got != tc.want {
			t.Errorf("response %d: %v", i, got)
		}
	}
}

// C06: a lease that had been running for a minute in the transport was taken for a new
// one: the message lapsed in the buffer, and was emitted when another reader had it.
func TestReader_C06_MessagesThatWaitedInTheTransportGetAReceipt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { c.Subscriber.BufferMaxMessages = 2 })
		defer f.end()
		a := f.begin()
		f.service.deliver(2) // full
		synctest.Wait()
		pass(20 * time.Second)
		f.takeIDs(a, 2)
		f.service.send <- []*pubsubpb.ReceivedMessage{received("b", "waited", time.Now())}
		pass(tendInterval)
		f.service.set(func(s *fakeService) {
			if s.extended["b"] != 1 {
				t.Errorf("%d receipts", s.extended["b"])
			}
		})
		pass(time.Second)
		f.service.send <- []*pubsubpb.ReceivedMessage{received("c", "fresh", time.Now())}
		pass(2 * tendInterval)
		f.service.set(func(s *fakeService) {
			if s.extended["b"] != 1 || s.extended["c"] != 0 {
				t.Errorf("extended: %v", s.extended)
			}
		})
	})
}
