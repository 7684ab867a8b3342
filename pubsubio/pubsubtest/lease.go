package pubsubtest

import (
	"container/heap"
	"time"
)

// ticksPerSecond is how finely the ends of leases are told apart.
const ticksPerSecond = 20

// leases are the entries that are delivered and not settled, in buckets by the
// tick at which their leases end. Starting, moving and ending a lease is constant
// work, finding those that end now costs a heap operation per bucket.
//
// A lease never ends early; it ends late by less than a tick.
type leases struct {
	second  time.Duration // how long a second lasts
	tick    time.Duration
	epoch   time.Time
	buckets map[int64]*entryList
	order   ticks // of the buckets
}

func newLeases(second time.Duration) leases {
	return leases{
		second:  second,
		tick:    max(second/ticksPerSecond, time.Millisecond),
		epoch:   time.Now(),
		buckets: make(map[int64]*entryList),
	}
}

// bucket returns where leases of so many seconds from now on belong.
func (l *leases) bucket(seconds int32) *entryList {
	ends := time.Since(l.epoch) + time.Duration(seconds)*l.second
	tick := int64((ends + l.tick - 1) / l.tick)
	b := l.buckets[tick]
	if b == nil {
		b = &entryList{lease: true}
		l.buckets[tick] = b
		heap.Push(&l.order, tick)
	}
	return b
}

// due removes and returns a bucket whose leases have ended, nil if there is none.
func (l *leases) due() *entryList {
	if len(l.order) == 0 || time.Duration(l.order[0])*l.tick > time.Since(l.epoch) {
		return nil
	}
	return l.first()
}

// first removes and returns the bucket whose leases end first, nil if there is none.
func (l *leases) first() *entryList {
	if len(l.order) == 0 {
		return nil
	}
	tick, _ := heap.Pop(&l.order).(int64)
	b := l.buckets[tick]
	delete(l.buckets, tick)
	return b
}

// next returns how long it is until the first bucket is due; ok is false where
// there is none.
func (l *leases) next() (wait time.Duration, ok bool) {
	if len(l.order) == 0 {
		return 0, false
	}
	return max(time.Duration(l.order[0])*l.tick-time.Since(l.epoch), 0), true
}

// ticks is a heap of tick numbers, the earliest first.
type ticks []int64

func (t ticks) Len() int           { return len(t) }
func (t ticks) Less(i, j int) bool { return t[i] < t[j] }
func (t ticks) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }

// Push is for package heap.
func (t *ticks) Push(x any) { v, _ := x.(int64); *t = append(*t, v) }

// Pop is for package heap.
func (t *ticks) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}
