package source

import "sync"

// A broadcast wakes everybody who waits for something to change. Take the
// channel first, then look whether there is anything to wait for.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{} // nil while nobody waits
}

// changed returns a channel that the next signal closes.
func (b *broadcast) changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

// signal never blocks.
func (b *broadcast) signal() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
