package replay

import (
	"sync"
	"time"
)

// A lull tells when a subscription has nothing but new letters, those that a replay does
// not take: a queue that a pipeline writes to is never idle, and the replay is done all the
// same.
type lull struct {
	length time.Duration
	mu     sync.Mutex
	inRow  bool          // the last letter to come was new
	last   time.Time     // when that was
	row    time.Duration // for how long only new ones have come
}

// over hears of a letter, and reports whether only new ones have come for the lull's
// length. The time between two of them counts for half of that at most: while the sink
// waits for the service no letter is looked at, and the first that comes then says nothing
// about what is behind it. However seldom new ones come, the third in a row can be the last.
func (l *lull) over(isNew bool, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if isNew && l.inRow {
		l.row += min(now.Sub(l.last), l.length/2)
	} else {
		l.row = 0
	}
	l.inRow, l.last = isNew, now
	return l.row >= l.length
}
