package stats

import (
	"sync"
	"time"
)

// maxFresh is how many durations wait to be taken. They are taken by each bundle,
// and a bundle brings one.
const maxFresh = 1024

// A Latency is a distribution of durations.
type Latency struct {
	mu    sync.Mutex // guards all below
	n     int64
	total time.Duration
	most  time.Duration
	fresh []time.Duration // not taken, the latest
}

// Add counts a duration.
func (l *Latency) Add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	l.total += d
	l.most = max(l.most, d)
	if len(l.fresh) < maxFresh {
		l.fresh = append(l.fresh, d)
	}
}

// Take returns the durations that were added since the last Take, the first 1,024.
func (l *Latency) Take() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	fresh := l.fresh
	l.fresh = nil
	return fresh
}

// Load returns how many durations were added, their sum and the longest.
func (l *Latency) Load() (n int64, total, most time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n, l.total, l.most
}
