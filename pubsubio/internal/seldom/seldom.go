// Package seldom says when to log what may happen at any rate: each of the first
// few times, which show what goes wrong, then ever more seldom. What is refused
// without end must not fill the disk too.
package seldom

import (
	"sync/atomic"
	"time"
)

const (
	// first are logged each.
	first = 5
	// interval is how long what happens goes unmentioned.
	interval = time.Minute
)

// Turn reports whether the n-th time, counted from 1, is to be logged: one of the
// first five, one at which n has doubled, or one a minute after the last. In last
// it keeps when that was, in Unix nanoseconds. It may be called from several
// goroutines at once.
func Turn(n int64, last *atomic.Int64, now time.Time) bool {
	if n <= first || n&(n-1) == 0 {
		last.Store(now.UnixNano())
		return true
	}
	// Of those that come at once, one is told of.
	before := last.Load()
	return now.UnixNano()-before >= int64(interval) && last.CompareAndSwap(before, now.UnixNano())
}
