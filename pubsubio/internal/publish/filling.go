package publish

import "time"

// A fillingList is the lanes whose batches are being filled, in the order in
// which they were opened, and so in that in which their BatchDelay ends. One
// timer serves them all: with thousands of ordering keys, a timer for each would
// be set and stopped for every few messages.
//
// All of it is guarded by the pool's lock.
type fillingList struct {
	delay time.Duration // set once
	fire  func()        // set once; in the timer's goroutine

	first, last *lane
	timer       *time.Timer
	armed       bool // the timer runs
}

func (f *fillingList) push(l *lane) {
	l.opened = time.Now()
	l.prev, l.next = f.last, nil
	if f.last != nil {
		f.last.next = l
	} else {
		f.first = l
	}
	f.last = l
	if !f.armed {
		f.arm(f.delay)
	}
}

func (f *fillingList) remove(l *lane) {
	if l.prev != nil {
		l.prev.next = l.next
	} else {
		f.first = l.next
	}
	if l.next != nil {
		l.next.prev = l.prev
	} else {
		f.last = l.prev
	}
	l.prev, l.next = nil, nil
}

// arm has fire called after d. A timer that runs for a lane that has been sent
// since finds the next one, or nothing.
func (f *fillingList) arm(d time.Duration) {
	f.armed = true
	if f.timer == nil {
		f.timer = time.AfterFunc(d, f.fire)
		return
	}
	f.timer.Reset(d)
}

func (f *fillingList) stop() {
	if f.timer != nil {
		f.timer.Stop()
	}
}

// onDelay sends the batches that have been filling for BatchDelay. It runs in
// the timer's goroutine, which ends with it.
func (p *pool) onDelay() {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &p.filling
	f.armed = false
	now := time.Now()
	for l := f.first; l != nil; l = f.first {
		if left := f.delay - now.Sub(l.opened); left > 0 {
			f.arm(left)
			return
		}
		l.sealLocked()
	}
}

// sealHalfLocked sends what is batching, the oldest first, until half of what the
// pool holds is on its way: at the caps that brings room, and the other half goes on
// filling its requests. To send all of it would leave many topics, or keys, with
// requests of one message: each that is answered makes room for one more, which
// would be sent at once, and so for ever.
func (p *pool) sealHalfLocked() {
	w := &p.window
	if w.needsAll() {
		p.sealAllLocked()
		return
	}
	for l := p.filling.first; l != nil; l = p.filling.first {
		if 2*p.unsent.messages <= w.messages && 2*p.unsent.bytes <= w.bytes {
			return
		}
		l.sealLocked()
	}
}

// sealAllLocked sends everything that is batching.
func (p *pool) sealAllLocked() {
	for l := p.filling.first; l != nil; l = p.filling.first {
		l.sealLocked()
	}
}
