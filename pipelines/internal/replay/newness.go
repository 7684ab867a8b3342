package replay

import (
	"sync"
	"time"
)

// A lull tells when a subscription has nothing but new letters, those that a replay does
// not take: a queue that a pipeline writes to all the time is never idle, and the replay is
// done all the same.
type lull struct {
	length time.Duration
	mu     sync.Mutex
	since  time.Time // the first of an unbroken row of new letters
	last   time.Time // of the row
}

// over hears of a letter, and reports whether only new ones have come for the lull's
// length. Letters that come after a pause begin another row: while the sink waits for the
// service, none is looked at, and the next ones say nothing about what is behind them.
func (l *lull) over(isNew bool, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !isNew {
		l.since = time.Time{}
		return false
	}
	if l.since.IsZero() || now.Sub(l.last) > l.length/2 {
		l.since = now
	}
	l.last = now
	return now.Sub(l.since) >= l.length
}
