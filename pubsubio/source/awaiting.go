package source

import (
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
	next []expiring // in the order of their times; some may have come, or been given up again
}

type expected struct {
	publish time.Time
	until   time.Time
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
		w.byID[h.id] = expected{publish: h.publish, until: until}
		w.next = append(w.next, expiring{h.id, until})
	}
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
	if len(w.byID) == 0 {
		w.next = nil
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
	var oldest time.Time
	for _, e := range w.byID {
		oldest = earlier(oldest, e.publish)
	}
	return oldest
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
	if len(w.byID) == 0 {
		w.next = nil
	}
	w.n.Store(int64(len(w.byID)))
}
