package source

import "sync/atomic"

// A quota is what a limit in messages leaves to be read: of a whole Read, where
// one process runs all of it, or of one restriction. A nil quota is no limit.
type quota struct {
	max      int64
	reserved atomic.Int64 // taken, or about to be
	taken    atomic.Int64
}

// reserve sets up to n messages aside and returns how many.
func (q *quota) reserve(n int) int {
	if q == nil {
		return n
	}
	for {
		reserved := q.reserved.Load()
		granted := min(int64(n), q.max-reserved)
		if granted <= 0 {
			return 0
		}
		if q.reserved.CompareAndSwap(reserved, reserved+granted) {
			return int(granted)
		}
	}
}

// settle ends a reservation of which that many were taken.
func (q *quota) settle(reserved, taken int) {
	if q == nil {
		return
	}
	q.taken.Add(int64(taken))
	q.reserved.Add(int64(taken - reserved))
}

// used reports whether everything was taken. What is only reserved may be given
// back, so it does not count.
func (q *quota) used() bool { return q != nil && q.taken.Load() >= q.max }

// left returns what remains, -1 where there is no limit.
func (q *quota) left() int64 {
	if q == nil {
		return -1
	}
	return q.max - q.taken.Load()
}
