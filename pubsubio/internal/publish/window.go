package publish

import (
	"slices"
	"sync/atomic"
)

// A window is what a pool has taken in and not yet seen answered, against its
// caps, and who waits for room. Everything in it is guarded by the pool's lock.
type window struct {
	maxMessages int
	maxBytes    int64 // negative: no cap

	messages int
	bytes    int64
	inFlight *atomic.Int64 // messages, for whoever has no lock; set once
	waiting  []*Bundle     // in order of arrival; each has its wants in bundle.want
}

// tryTake takes room for a message, unless it must wait.
func (w *window) tryTake(bytes int64) bool {
	if len(w.waiting) > 0 || !w.fits(bytes) {
		return false
	}
	w.take(bytes)
	return true
}

// fits reports whether there is room. A message above the cap goes alone.
func (w *window) fits(bytes int64) bool {
	if w.messages == 0 {
		return true
	}
	return w.messages < w.maxMessages && (w.maxBytes < 0 || w.bytes+bytes <= w.maxBytes)
}

// needsAll reports whether the first in line has a message above the cap, which
// waits for everything else to be answered.
func (w *window) needsAll() bool {
	return len(w.waiting) > 0 && w.maxBytes >= 0 && w.waiting[0].want > w.maxBytes
}

func (w *window) take(bytes int64) {
	w.messages++
	w.bytes += bytes
	w.inFlight.Add(1)
}

// enqueue makes b wait for room, behind those that wait already, so that a large
// message is not overtaken for ever by small ones.
func (w *window) enqueue(b *Bundle, bytes int64) {
	b.want, b.granted = bytes, false
	w.waiting = append(w.waiting, b)
}

// leave ends b's wait. What it was granted and did not use goes back.
func (w *window) leave(b *Bundle) {
	if b.granted {
		b.granted = false
		w.giveBack(1, b.want)
		return
	}
	if i := slices.Index(w.waiting, b); i >= 0 {
		w.waiting = slices.Delete(w.waiting, i, i+1)
		w.grant()
	}
}

// giveBack returns room and hands it to those that wait.
func (w *window) giveBack(messages int, bytes int64) {
	w.messages -= messages
	w.bytes -= bytes
	w.inFlight.Add(-int64(messages))
	w.grant()
}

func (w *window) grant() {
	n := 0
	for ; n < len(w.waiting) && w.fits(w.waiting[n].want); n++ {
		b := w.waiting[n]
		w.take(b.want)
		b.granted = true
		b.signal()
	}
	w.waiting = slices.Delete(w.waiting, 0, n)
}
