package finalize

import "sync"

// starting tells of the harnesses that start in this process.
var starting struct {
	mu   sync.Mutex // guards next
	next chan struct{}
}

// HarnessStarted returns a channel that is closed when the next harness of this
// process starts: its job has been submitted by then. Prism's job server must not
// be given two jobs at the same time: it keeps what they stage in a map without a
// lock.
func HarnessStarted() <-chan struct{} {
	starting.mu.Lock()
	defer starting.mu.Unlock()
	if starting.next == nil {
		starting.next = make(chan struct{})
	}
	return starting.next
}

func harnessStarted() {
	starting.mu.Lock()
	defer starting.mu.Unlock()
	if starting.next != nil {
		close(starting.next)
		starting.next = nil
	}
}
