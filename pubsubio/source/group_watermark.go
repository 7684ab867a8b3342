package source

import (
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/mtime"
)

// tell hears what a restriction reports as the watermark of all, on prism. A bundle
// that fails there ends the job, so what was reported stays.
func (g *group) tell(t time.Time) {
	now := mtime.FromTime(t).Milliseconds()
	for {
		last := g.told.Load()
		if now <= last || g.told.CompareAndSwap(last, now) {
			return
		}
	}
}

func (g *group) toldTime() time.Time { return mtime.Time(g.told.Load()).ToTime() }

const (
	// manyReaders is from how many restrictions on their common watermark is kept for
	// a moment: each of them asks for it in each bundle, and it asks all of them.
	manyReaders = 16
	// recentFor is that moment. What comes meanwhile and is older is late, as what comes
	// after any report is.
	recentFor = 5 * time.Millisecond
)

// A recentWatermark is the common watermark as it was found, and reported, at a time.
type recentWatermark struct {
	watermark, at time.Time
}

// watermark returns the earliest watermark among the live restrictions, the zero
// time while any of them knows nothing: prism keeps one estimate for a stage,
// overwritten by each bundle, so each bundle must report for all.
func (g *group) watermark(now time.Time) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if age := now.Sub(g.recent.at); len(g.live) < manyReaders || age < 0 || age >= recentFor {
		g.recent = recentWatermark{g.watermarkLocked(now), now}
	}
	return g.recent.watermark
}

func (g *group) watermarkLocked(now time.Time) time.Time {
	var oldest time.Time
	for nonce := range g.live {
		r, ok := g.readers[nonce]
		if !ok {
			return time.Time{}
		}
		w := r.watermark(now)
		if w.IsZero() {
			return w
		}
		oldest = earlier(oldest, w)
	}
	return oldest
}
