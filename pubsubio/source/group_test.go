package source

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
)

// Of many readers, each of which reports for all on prism, the common watermark is kept
// for a moment and no longer, and a restriction that joins counts at once.
func TestGroup_TheWatermarkOfManyReadersMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		f.begin()
		for i := range manyReaders {
			other := fixtureIn(t, f.group, fmt.Sprint("other", i))
			other.begin()
			defer other.end()
		}
		pass(f.config.WatermarkIdleTimeout + time.Second)
		first := f.group.watermark(time.Now())
		if first.IsZero() {
			t.Fatal("idle readers know nothing")
		}
		pass(recentFor - time.Nanosecond)
		if w := f.group.watermark(time.Now()); !w.Equal(first) {
			t.Errorf("the watermark is found again after %v", recentFor)
		}
		pass(time.Nanosecond)
		if w := f.group.watermark(time.Now()); !w.Equal(first.Add(recentFor)) {
			t.Errorf("the watermark is %v after it was %v, want it to follow the clock", w, first)
		}
		f.group.join("not claimed yet")
		if w := f.group.watermark(time.Now()); !w.IsZero() {
			t.Errorf("the watermark is %v though a restriction was never read", w)
		}
		f.group.leave(&reader{nonce: "not claimed yet"})
	})
}

// A reader counts as one that has messages for as long as it has: a share of the bundle
// is kept for it, and nobody waits for messages while it has some.
func TestGroup_ReadyAreThoseThatHaveMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		ready := func(when string, n int, others bool) {
			t.Helper()
			if got := f.group.ready(nil); got != n {
				t.Errorf("%s: %d readers are ready, want %d", when, got, n)
			}
			if got := f.group.othersReady(f.reader); got != others {
				t.Errorf("%s: others are ready: %v", when, got)
			}
		}
		other := fixtureIn(t, f.group, "other")
		defer other.end()
		a, b := f.begin(), other.begin()
		ready("at first", 0, false)
		f.service.deliver(2)
		synctest.Wait()
		ready("with two", 1, false)
		if n := f.group.ready(map[*reader]bool{f.reader: true}); n != 0 {
			t.Errorf("%d are ready beside the one that was served", n)
		}
		f.takeIDs(a, 1)
		ready("with one", 1, false)
		other.service.send <- []*pubsubpb.ReceivedMessage{received("b1", "n1", time.Now())}
		synctest.Wait()
		ready("both", 2, true)
		f.takeIDs(a, 1)
		ready("the other", 1, true)
		other.fail(b) // Returns what it has buffered, or not: then it is closed.
		other.close(t.Context())
		ready("once that has closed", 0, false)
	})
}
