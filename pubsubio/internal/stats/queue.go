package stats

import (
	"sync"
	"sync/atomic"
)

// A Queue counts the letters that one transform's dead-letter queue over Pub/Sub has
// taken.
type Queue struct {
	Published atomic.Int64 // letters of waits that ended well
	Flushes   Latency      // waits for letters

	inFlight atomic.Pointer[atomic.Int64]
}

// Follow has Outstanding return what n holds: the messages in flight of the pool that
// publishes the letters.
func (q *Queue) Follow(n *atomic.Int64) { q.inFlight.Store(n) }

// Outstanding returns how many messages have no answer now.
func (q *Queue) Outstanding() int64 {
	if n := q.inFlight.Load(); n != nil {
		return n.Load()
	}
	return 0
}

// queues are those of this process, by the nonce of the transform.
var queues sync.Map

// ForQueue returns the counters of the queue of the transform with that nonce.
func ForQueue(nonce string) *Queue {
	v, ok := queues.Load(nonce)
	if !ok {
		v, _ = queues.LoadOrStore(nonce, new(Queue))
	}
	return v.(*Queue)
}
