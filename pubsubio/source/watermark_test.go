package source

import (
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/mtime"
	"pgregory.net/rapid"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
)

// wantFollowing checks that the watermark follows the clock, give or take the grain
// of the sliding minimum.
func (f *fixture) wantFollowing() {
	f.t.Helper()
	got, want := f.watermark(time.Now()), time.Now().Add(-f.config.WatermarkLag)
	if d := got.Sub(want); d < -2*time.Second || d > 2*time.Second {
		f.t.Errorf("the watermark is %v, want %v", got, want)
	}
}

func TestWatermark_NothingIsKnownAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		f.begin()
		pass(time.Second)
		if w := f.watermark(time.Now()); !w.IsZero() {
			t.Errorf("the watermark is %v before anything is known", w)
		}
	})
}

// C08: at low volume windows must close; a subscription that is drained follows
// the clock.
func TestWatermark_C08_DrainedSubscriptionFollowsTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		f.begin()
		pass(f.config.WatermarkIdleTimeout + time.Second)
		f.wantFollowing()
	})
}

// A stream that is not open says nothing about the subscription.
func TestWatermark_ClosedStreamIsNotDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		pass(time.Hour / 100) // Never claimed, so never opened.
		if w := f.watermark(time.Now()); !w.IsZero() {
			t.Errorf("the watermark is %v though nothing could come", w)
		}
	})
}

// Never ahead of what is buffered, of what is emitted and not yet finalized, nor
// of what was returned and has not come again.
func TestWatermark_HeldMessagesHoldItBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		a := f.begin()
		old := time.Now().Add(-time.Hour)
		f.service.send <- []*pubsubpb.ReceivedMessage{received("a1", "m1", old)}
		pass(time.Minute)
		wantOld := func(when string) {
			t.Helper()
			if w := f.watermark(time.Now()); !w.Equal(old) {
				t.Errorf("%s the watermark is %v, want %v", when, w, old)
			}
		}
		wantOld("while m1 is buffered")
		f.takeIDs(a, 1)
		pass(time.Second)
		wantOld("while m1 is emitted and its bundle runs")
		f.fail(a)
		pass(10 * time.Second)
		wantOld("while m1 is returned and awaited")
		b := f.begin()
		f.service.send <- []*pubsubpb.ReceivedMessage{received("b1", "m1", old)}
		synctest.Wait()
		f.takeIDs(b, 1)
		f.finish(b, 1)
		pass(20 * time.Second)
		wantOld("while m1 waits for its finalization")
		f.signal(b, signalAt(1, 2))
		pass(f.config.WatermarkIdleTimeout + time.Second)
		f.wantFollowing()
	})
}

// Under two rounds the first finalization lets it go: the runner has taken the
// bundle's output in.
func TestWatermark_FirstFinalizationIsEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.TwoRounds, nil)
		defer f.end()
		a := f.begin()
		f.service.send <- []*pubsubpb.ReceivedMessage{received("a1", "m1", time.Now().Add(-time.Hour))}
		synctest.Wait()
		f.takeIDs(a, 1)
		f.finish(a, 1)
		f.signal(a, signalAt(1, 2))
		pass(20 * time.Second)
		f.wantFollowing()
	})
}

// C26: one old message that nobody settles must not freeze every window.
func TestWatermark_C26_OneHeldMessageHoldsItForAWhileOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.TwoRounds, func(c *Config) { c.WatermarkHoldLimit = time.Minute })
		defer f.end()
		a := f.begin()
		f.service.send <- []*pubsubpb.ReceivedMessage{received("a1", "m1", time.Now().Add(-72*time.Hour))}
		synctest.Wait()
		f.takeIDs(a, 1)
		f.finish(a, 1)
		for range 4 { // Bundles go on, or the reader would park.
			pass(30 * time.Second)
			f.finish(f.begin(), 0)
		}
		if w := f.watermark(time.Now()); w.Before(time.Now().Add(-time.Minute)) {
			t.Errorf("the watermark is still %v", w)
		}
	})
}

// A backlog comes in no particular order: the watermark keeps the lag behind the
// earliest that has come lately.
func TestWatermark_BacklogOutOfOrderIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		base := time.Now().Add(-time.Hour)
		for i, minutes := range []int{30, 5, 50, 10, 40, 20, 59} {
			a := f.begin()
			published := base.Add(time.Duration(minutes) * time.Minute)
			f.service.send <- []*pubsubpb.ReceivedMessage{received("a", string(rune('a'+i)), published)}
			synctest.Wait()
			if w := f.watermark(time.Now()); w.After(published) {
				t.Errorf("message %d of minute %d is late: the watermark is %v past it", i, minutes, w.Sub(published))
			}
			f.takeIDs(a, 9)
			f.finish(a, 1)
			f.signal(a, signalAt(uint64(2*i+1), uint64(2*i+2)))
			pass(100 * time.Millisecond)
		}
	})
}

// At a cold start the watermark was that of the first response: whatever was
// older and came a moment later was dropped as late.
func TestWatermark_BacklogAtAColdStartIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		for i, age := range []time.Duration{time.Minute, time.Hour, 72 * time.Hour} {
			published := time.Now().Add(-age)
			if w := f.watermark(time.Now()); w.After(published) {
				t.Errorf("a message %v old is late: the watermark is %v past it", age, w.Sub(published))
			}
			a := f.begin()
			f.service.send <- []*pubsubpb.ReceivedMessage{received("a", string(rune('a'+i)), published)}
			synctest.Wait()
			f.takeIDs(a, 1)
			f.finish(a, 1)
			f.signal(a, signalAt(uint64(2*i+1), uint64(2*i+2)))
			pass(f.config.WatermarkLag / 4)
		}
		pass(f.config.WatermarkLag)
		f.wantFollowing()
	})
}

// A cap that holds the stream back explains a lull.
func TestWatermark_FullBufferIsNotDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { c.Subscriber.MaxOutstandingMessages = 1 })
		defer f.end()
		a := f.begin()
		published := time.Now()
		f.service.deliver(1)
		synctest.Wait()
		f.takeIDs(a, 1)
		f.finish(a, 1)
		pass(time.Minute)
		if w := f.watermark(time.Now()); w.After(published) {
			t.Errorf("the watermark passed to %v while flow control holds messages back", w)
		}
	})
}

// Prism keeps one estimate for a stage: each restriction reports for all.
func TestGroup_WatermarkIsThatOfTheSlowestRestriction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, nil)
		defer f.end()
		f.begin()
		pass(f.config.WatermarkIdleTimeout + time.Second)
		if w := f.group.watermark(time.Now()); w.IsZero() {
			t.Fatal("a group of one idle reader knows nothing")
		}
		f.group.join("not claimed yet")
		if w := f.group.watermark(time.Now()); !w.IsZero() {
			t.Errorf("the watermark is %v though a restriction was never read", w)
		}
		f.group.leave(&reader{nonce: "not claimed yet"})
		if w := f.group.watermark(time.Now()); w.IsZero() {
			t.Error("a restriction that ended still holds the watermark")
		}
	})
}

func TestEstimator_NeverGoesBackBehindItsState(t *testing.T) {
	start := mtime.FromTime(epoch)
	e := newEstimator(start.Milliseconds())
	if got := e.CurrentWatermark(); !got.Equal(epoch) {
		t.Errorf("before it is bound it reports %v, want %v", got, epoch)
	}
	at := epoch.Add(-time.Hour)
	e.bind(binding{func() time.Time { return at }, func(time.Time) {}})
	for _, step := range []struct{ to, want time.Duration }{{-time.Hour, 0}, {time.Minute, time.Minute}, {time.Second, time.Minute}, {time.Hour, time.Hour}} {
		at = epoch.Add(step.to)
		if got := e.CurrentWatermark(); !got.Equal(epoch.Add(step.want)) {
			t.Errorf("at %v it reports %v, want %v", step.to, got.Sub(epoch), step.want)
		}
	}
	at = time.Time{}
	if got := mtime.Time(newEstimator(int64(minWatermark)).state()); got != mtime.MinTimestamp {
		t.Errorf("a new estimator is at %v", got)
	}
}

// The sliding minimum never forgets a time too early, and forgets it in time.
func TestSlidingMin_AgainstAPlainList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const window = 7 * time.Second
		var s slidingMin
		type sample struct{ at, value time.Time }
		var all []sample
		now := epoch
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			v := epoch.Add(time.Duration(rapid.IntRange(-1000, 1000).Draw(t, "value")) * time.Second)
			s.add(v, now, window)
			all = append(all, sample{now, v})
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "later")) * time.Millisecond)
			var must, may time.Time // what is surely, and what is possibly, in the window
			for _, x := range all {
				age := now.Sub(x.at)
				if age < window-window/7 {
					must = earlier(must, x.value)
				}
				if age <= window {
					may = earlier(may, x.value)
				}
			}
			got, some := s.get(now)
			if !must.IsZero() && (!some || got.After(must)) {
				t.Fatalf("the minimum is %v, though %v was added lately", got, must)
			}
			if some && (may.IsZero() || got.Before(may)) {
				t.Fatalf("the minimum is %v, which left the window", got)
			}
		}
	})
}

// C26: a sender whose clock stands still froze the watermark for as long as it sent.
func TestWatermark_C26_MessagesThatAreLateAlreadyHoldNothing(t *testing.T) {
	for _, prism := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, run.Finalized, nil)
			f.group.binding.Prism = prism
			defer f.end()
			fn := &readFn{}
			fn.Binding = f.group.binding
			e := newEstimator(int64(minWatermark))
			a := f.begin()
			e.bind(fn.watermark(f.group, f.reader, a))
			pass(f.config.WatermarkIdleTimeout + time.Second)
			drained := e.CurrentWatermark()
			for range 20 {
				f.service.send <- []*pubsubpb.ReceivedMessage{received("old", "old", time.Unix(0, 0)), received("new", "new", time.Now())}
				synctest.Wait()
				f.takeIDs(a, 2)
				f.finish(a, 2)
				f.signal(a, signalAt(1, 2))
				pass(2 * time.Second)
				a = f.begin()
				e = newEstimator(e.state())
				e.bind(fn.watermark(f.group, f.reader, a))
			}
			if now := e.CurrentWatermark(); now.Sub(drained) < 20*time.Second {
				t.Errorf("prism %v: the watermark has moved by %v in 40 s", prism, now.Sub(drained))
			}
		})
	}
}

// What a failed bundle had reported never was: what it made late may not be.
func TestWatermark_AFailedBundleTakesItsAdvanceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.TwoRounds, nil)
		defer f.end()
		fn := &readFn{}
		begin := func(state int64) (*attempt, *estimator) {
			a, e := f.begin(), newEstimator(state)
			e.bind(fn.watermark(f.group, f.reader, a))
			return a, e
		}
		a, e := begin(int64(minWatermark))
		pass(f.config.WatermarkIdleTimeout + time.Second)
		kept := e.state()
		f.finish(a, 0)
		b, e := begin(kept)
		pass(time.Minute)
		if e.state() == kept {
			t.Fatal("the watermark has not moved")
		}
		f.fail(b)
		_, e = begin(kept)
		published := time.Now().Add(-40 * time.Second)
		f.service.send <- []*pubsubpb.ReceivedMessage{received("a", "m", published)}
		synctest.Wait()
		if now := e.CurrentWatermark(); now.After(published) {
			t.Errorf("the watermark is %v, past a message of %v that is held", now, published)
		}
	})
}

// The buffers of a read are full of another subscription's messages, and hold back no
// stream of this one: it is drained all the same.
func TestWatermark_AFullWorkerDoesNotHoldAQuietSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, run.Finalized, func(c *Config) { c.Subscriber.BufferMaxMessages = 2 })
		defer f.end()
		other := fixtureIn(t, f.group, "other")
		defer other.end()
		f.begin()
		synctest.Wait() // It receives by now.
		other.begin()
		other.service.deliver(5)
		pass(f.config.WatermarkIdleTimeout + time.Second)
		f.wantFollowing()
		if w := other.watermark(time.Now()); w.After(time.Now().Add(-f.config.WatermarkIdleTimeout)) {
			t.Errorf("the one that is held back counts as drained: %v", w)
		}
	})
}
