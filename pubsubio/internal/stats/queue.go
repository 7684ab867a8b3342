package stats

import (
	"sync"
	"sync/atomic"
)

// A Queue counts the letters that one transform's dead-letter queue over Pub/Sub has
// taken.
type Queue struct {
	Published   atomic.Int64 // letters of waits that ended well
	Outstanding atomic.Int64 // messages not answered, as of the last wait
	Flushes     Latency      // waits for letters
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
