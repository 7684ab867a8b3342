package source

import (
	"container/heap"
	"sync"
	"sync/atomic"
	"time"
)

// awaitFor is how long a message that was returned, or that lapsed, is expected
// to come again. The service sends it again at once; where it does not come
// back by then, another worker has it.
const awaitFor = time.Minute

// An awaiting is what the readers of one subscription in this process have given
// up and expect to see again. Until then it holds the watermark: none of it is
// late when it comes.
type awaiting struct {
	n atomic.Int64 // how many there are; lets the common case pass without the lock

	mu   sync.Mutex // guards all below
	byID map[string]expected
	next []expiring  // in the order of their times; some may have come, or been given up again
	old  oldestFirst // of them by event time; likewise
}

type expected struct {
	eventTime time.Time
	until     time.Time
}

// An expiring message stops being expected then, unless it was given up again.
type expiring struct {
	id    string
	until time.Time
}

// add expects messages to come again.
func (w *awaiting) add(items []*held, now time.Time) {
	if len(items) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byID == nil {
		w.byID = make(map[string]expected)
	}
	w.expireLocked(now)
	until := now.Add(awaitFor)
	for _, h := range items {
		w.byID[h.id] = expected{eventTime: h.eventTime, until: until}
		w.next = append(w.next, expiring{h.id, until})
		heap.Push(&w.old, dated{h.id, h.eventTime})
	}
	w.old.tidy(w.byID)
	w.n.Store(int64(len(w.byID)))
}

// came hears that a message has come.
func (w *awaiting) came(id string) {
	if w.n.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byID, id)
	w.forgetLocked()
}

// forgetLocked lets go of what is kept of messages that are not expected any more.
func (w *awaiting) forgetLocked() {
	if len(w.byID) == 0 {
		w.next, w.old = nil, nil
	}
	w.n.Store(int64(len(w.byID)))
}

// oldest returns the earliest event time of what is still expected; zero where
// there is nothing.
func (w *awaiting) oldest(now time.Time) time.Time {
	if w.n.Load() == 0 {
		return time.Time{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expireLocked(now)
	return w.old.first(w.byID)
}

// expireLocked stops expecting what has not come in time.
func (w *awaiting) expireLocked(now time.Time) {
	n := 0
	for ; n < len(w.next) && !now.Before(w.next[n].until); n++ {
		if e := w.byID[w.next[n].id]; e.until.Equal(w.next[n].until) {
			delete(w.byID, w.next[n].id)
		}
	}
	w.next = w.next[n:]
	w.forgetLocked()
}

// A dated message, by its event time.
type dated struct {
	id string
	at time.Time
}

// oldestFirst is a heap of what is expected, and of some that no longer is: to look
// through all of half a million, which a watermark would do, takes a tenth of a second.
type oldestFirst []dated

// Len, Less, Swap, Push and Pop make it a heap.
func (h oldestFirst) Len() int           { return len(h) }
func (h oldestFirst) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h oldestFirst) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *oldestFirst) Push(x any)        { *h = append(*h, x.(dated)) }
func (h *oldestFirst) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// first returns the earliest event time of what is expected; zero where there is
// nothing.
func (h *oldestFirst) first(expected map[string]expected) time.Time {
	for len(*h) > 0 {
		top := (*h)[0]
		if e, ok := expected[top.id]; ok && e.eventTime.Equal(top.at) {
			return top.at
		}
		heap.Pop(h)
	}
	return time.Time{}
}

// tidy makes the heap anew once most of it has come: what lies deep in it is not
// looked at otherwise.
func (h *oldestFirst) tidy(expected map[string]expected) {
	if len(*h) <= 2*len(expected)+64 {
		return
	}
	*h = (*h)[:0]
	for id, e := range expected {
		*h = append(*h, dated{id, e.eventTime})
	}
	heap.Init(h)
}
