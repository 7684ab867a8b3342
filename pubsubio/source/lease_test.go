package source

import (
	"testing"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// A lease covered whatever came within a second and knew all of it while any of
// it was held, and for five seconds more: at full rate more than a million
// messages, 300 MB.
func TestLeases_KnowLittleMoreThanWhatIsHeld(t *testing.T) {
	ls := newLeases(options.Subscriber{}.WithDefaults())
	now := time.Now()
	ls.add(&held{}, grant{period: firstPeriod}, now) // stays
	for range 100 * leaseSize {
		h := new(held)
		ls.add(h, grant{period: firstPeriod}, now)
		ls.release(h)
	}
	known, live := 0, 0
	for _, l := range ls.list {
		known += len(l.items)
		live += l.live
	}
	if live != 1 || known > leaseSize {
		t.Errorf("the leases know %d messages, of which %d are held, want 1 held and at most %d known", known, live, leaseSize)
	}
}

// A lease of a fixed length is extended the more often the longer a bundle takes,
// and what is committed within a second is held for a dead worker for a minute.
func TestLeases_PeriodFollowsHoldTimes(t *testing.T) {
	now := time.Now()
	for _, tc := range []struct {
		held, least, most time.Duration
	}{
		{100 * time.Millisecond, 10 * time.Second, 10 * time.Second},
		{20 * time.Second, 40 * time.Second, 50 * time.Second},
		{100 * time.Second, 200 * time.Second, 250 * time.Second},
		{time.Hour, 600 * time.Second, 600 * time.Second},
	} {
		ls := newLeases(options.Subscriber{}.WithDefaults())
		if got := ls.period(); got != firstPeriod {
			t.Errorf("begins with %v", got)
		}
		learn := func(n int, took time.Duration) {
			items := make([]*held, n)
			for i := range items {
				items[i] = &held{lease: &lease{received: now}}
			}
			ls.learn(items, now.Add(took))
		}
		learn(9_900, tc.held)
		learn(99, 10*tc.held) // one in a hundred says nothing
		if got := ls.period(); got < tc.least || got > tc.most || got%time.Second != 0 {
			t.Errorf("held for %v: a period of %v, want %v to %v", tc.held, got, tc.least, tc.most)
		}
	}
}

func TestLeases_ExtendsAMessageAFewTimesHoweverLongItIsHeld(t *testing.T) {
	ls := newLeases(options.Subscriber{}.WithDefaults())
	began := time.Now()
	h := new(held)
	ls.add(h, grant{period: ls.period()}, began)
	extensions := 0
	for now := began; now.Sub(began) < 10*time.Minute; now = now.Add(tendInterval) {
		if h.lapsed(now) {
			t.Fatalf("lapsed after %v", now.Sub(began))
		}
		for _, l := range ls.due(now) {
			l.grant(ls.extension(l, now), now)
			extensions++
		}
	}
	if extensions > 6 {
		t.Errorf("%d extensions in ten minutes", extensions)
	}
}

func TestLeases_AreNotExtendedBeyondMaxExtension(t *testing.T) {
	for _, limit := range []time.Duration{25 * time.Second, 90 * time.Second, time.Hour} {
		ls := newLeases(options.Subscriber{MaxExtension: limit}.WithDefaults())
		began := time.Now()
		h := new(held)
		ls.add(h, grant{period: ls.period()}, began)
		now := began
		for ; !h.lapsed(now); now = now.Add(tendInterval) {
			for _, l := range ls.due(now) {
				l.grant(ls.extension(l, now), now)
			}
		}
		// The service takes no extension of less than 10 s.
		if got := now.Sub(began); got < limit || got > limit+10*time.Second {
			t.Errorf("MaxExtension %v: the lease lasted %v", limit, got)
		}
	}
}
