package finalize

import (
	"container/list"
	"sync"
	"time"
)

// expiry is how long a bundle that has ended is remembered, looked at whenever
// another one ends. A finalization that comes later finds nothing; a later
// bundle's counts for it.
const expiry = time.Hour

// A bundleID names a bundle within this process.
type bundleID struct {
	harness     uint64
	instruction string
}

// A bundle has ended and waits to be finalized.
type bundle struct {
	id    bundleID
	scope *Scope
	// native is set where Beam itself keeps callbacks for the bundle, so that
	// its finalization has to reach the harness as well.
	native bool
	ended  time.Time
}

// awaiting holds the bundles of every harness in the process that have ended and
// are not yet finalized. It is package state because each harness makes the
// hook anew (see registry.hook).
var awaiting registry

// A registry holds bundles until they are finalized or have expired. The zero
// value is empty and ready.
type registry struct {
	mu    sync.Mutex // guards all below
	byID  map[bundleID]*list.Element
	order list.List // of *bundle, the one that ended first in front
}

func (r *registry) add(b *bundle) {
	b.ended = time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for e := r.order.Front(); e != nil && b.ended.Sub(e.Value.(*bundle).ended) >= expiry; e = r.order.Front() {
		r.removeLocked(e)
	}
	if r.byID == nil {
		r.byID = make(map[bundleID]*list.Element)
	}
	if again, ok := r.byID[b.id]; ok { // Ids are unique; should one be used again, the newer counts.
		r.order.Remove(again)
	}
	r.byID[b.id] = r.order.PushBack(b)
}

// take removes and returns the bundle with that id, nil where there is none.
func (r *registry) take(id bundleID) *bundle {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.byID[id]
	if !ok {
		return nil
	}
	return r.removeLocked(e)
}

func (r *registry) removeLocked(e *list.Element) *bundle {
	b := r.order.Remove(e).(*bundle)
	delete(r.byID, b.id)
	return b
}

func (r *registry) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.order.Len()
}
