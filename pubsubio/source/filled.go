package source

import "sync"

// filledReaders are the readers of a group that have messages: of a thousand, few, and
// each restriction asks for them. It is locked after a reader's lock.
type filledReaders struct {
	sync.Mutex
	readers map[*reader]struct{}
}

// note hears whether r, which had none or some, has any now.
func (f *filledReaders) note(r *reader, had, has bool) {
	if had == has {
		return
	}
	f.Lock()
	defer f.Unlock()
	if has {
		f.readers[r] = struct{}{}
	} else {
		delete(f.readers, r)
	}
}

// ready counts the readers that have messages, other than those in served.
func (g *group) ready(served map[*reader]bool) int {
	g.filled.Lock()
	defer g.filled.Unlock()
	n := 0
	for r := range g.filled.readers {
		if !served[r] {
			n++
		}
	}
	return n
}

// othersReady reports whether a reader other than r has messages.
func (g *group) othersReady(r *reader) bool {
	g.filled.Lock()
	defer g.filled.Unlock()
	_, itself := g.filled.readers[r]
	return len(g.filled.readers) > 1 || len(g.filled.readers) == 1 && !itself
}
