package source

import (
	"sync/atomic"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/mtime"
)

// minWatermark is the watermark of a read that knows nothing yet.
const minWatermark = mtime.MinTimestamp

// An estimator reports a restriction's watermark to the SDK, which asks from its
// control goroutine while ProcessElement runs: it takes the reader's lock for a
// moment at most.
type estimator struct {
	last    atomic.Int64 // the highest value reported, in Beam's milliseconds
	current atomic.Pointer[binding]
}

// A binding is where an estimator has the watermark from, and whom it tells what it has
// reported.
type binding struct {
	watermark func() time.Time
	told      func(time.Time)
}

func newEstimator(state int64) *estimator {
	e := new(estimator)
	e.last.Store(state)
	return e
}

// bind has e ask and tell b from now on.
func (e *estimator) bind(b binding) {
	b.told(mtime.Time(e.last.Load()).ToTime())
	e.current.Store(&b)
}

// CurrentWatermark returns the watermark. It never goes back behind the state
// that e was made from; a bundle that fails takes its advance with it, because
// its retry starts from the old state.
func (e *estimator) CurrentWatermark() time.Time { return mtime.Time(e.state()).ToTime() }

func (e *estimator) state() int64 {
	b := e.current.Load()
	if b == nil {
		return e.last.Load()
	}
	t := b.watermark()
	if t.IsZero() { // That is no watermark.
		return e.last.Load()
	}
	now := mtime.FromTime(t).Milliseconds()
	for last := e.last.Load(); now > last; last = e.last.Load() {
		if e.last.CompareAndSwap(last, now) {
			b.told(t)
			break
		}
	}
	return e.last.Load()
}

// A progress follows how far a subscription's messages have come. The reader's
// mutex guards it.
type progress struct {
	lag, idle time.Duration

	opened  time.Time // since when the stream is open; zero while it is not
	active  time.Time // when a message was last received or emitted
	fed     time.Time // when the first message was received; zero before
	recent  slidingMin
	reached time.Time // the last estimate
	started bool      // enough was seen for an estimate
}

// received notes messages that have come, the earliest that may hold the watermark
// with that event time; zero where none may.
func (p *progress) received(oldest, now time.Time) {
	p.active = now
	if p.fed.IsZero() {
		p.fed = now
	}
	if oldest.IsZero() {
		return
	}
	p.recent.add(oldest, now, p.lag)
	p.reached, _ = p.recent.get(now)
}

// quietSince returns since when nothing was received or emitted on the open
// stream; false while it is not open.
func (p *progress) quietSince() (time.Time, bool) {
	if p.opened.IsZero() {
		return time.Time{}, false
	}
	if p.active.After(p.opened) {
		return p.active, true
	}
	return p.opened, true
}

// estimate returns the time before which no further message is expected, the
// zero time while nothing is known. drainable says that nothing that was already
// received, or that the reader itself holds back, could explain a lull.
//
// Pub/Sub delivers in no particular order: while messages come, the estimate is
// the earliest event time received within the last lag. During a lull the
// subscription is drained, and the estimate follows the clock at the distance of
// lag. Until it was drained once, or a whole lag of messages was seen, there is
// none: at a cold start the first messages of a backlog need not be its oldest.
func (p *progress) estimate(now time.Time, drainable bool) time.Time {
	quiet, open := p.quietSince()
	switch oldest, some := p.recent.get(now); {
	case open && drainable && now.Sub(quiet) >= p.idle:
		p.reached, p.started = now.Add(-p.lag), true
	case some:
		p.reached = oldest
	}
	if !p.started {
		p.started = !p.fed.IsZero() && now.Sub(p.fed) >= p.lag
		if !p.started {
			return time.Time{}
		}
	}
	return p.reached
}

// A slidingMin keeps the minimum of the times added within the last window.
type slidingMin struct {
	buckets [8]struct {
		end time.Time // when this bucket leaves the window
		min time.Time
	}
	next int
}

func (s *slidingMin) add(t, now time.Time, window time.Duration) {
	grain := window / time.Duration(len(s.buckets)-1)
	last := &s.buckets[(s.next+len(s.buckets)-1)%len(s.buckets)]
	if last.end.IsZero() || now.After(last.end.Add(grain-window)) {
		last = &s.buckets[s.next]
		s.next = (s.next + 1) % len(s.buckets)
		last.end, last.min = now.Add(window), t
		return
	}
	if t.Before(last.min) {
		last.min = t
	}
}

func (s *slidingMin) get(now time.Time) (oldest time.Time, some bool) {
	for _, b := range s.buckets {
		if !b.end.IsZero() && now.Before(b.end) && (!some || b.min.Before(oldest)) {
			oldest, some = b.min, true
		}
	}
	return oldest, some
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// earlier returns the earlier of two times, where the zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
