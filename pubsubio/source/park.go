package source

import (
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
)

// pausedAfter is how long a reader may be unclaimed before the runner counts as not
// resuming it: twice the longest delay that resumeDelay asks for, as runners come
// back later than asked, and only once a worker is free.
const pausedAfter = 10 * time.Second

// parkIfPausedLocked parks a reader that the runner is not resuming and that has
// more in its buffer than such a one may keep from other subscribers. Where the
// pipeline as a whole is what commits, its end is what closes the reader.
func (r *reader) parkIfPausedLocked(now time.Time) {
	o := r.config.Subscriber
	full := r.fifo.messages >= o.PausedBufferMaxMessages || r.fifo.bytes >= o.PausedBufferMaxBytes
	if full && !r.ended && r.bundle == nil && now.Sub(r.used) >= pausedAfter && r.ledger.rule != run.Pipeline {
		r.parkLocked()
	}
}

// parkLocked closes the streams until the reader is claimed again: what it holds
// and has not emitted is returned to the service.
func (r *reader) parkLocked() {
	if r.pulling == nil {
		return // It is parked, or to read nothing more.
	}
	r.stopLocked()
	r.parked = true
	r.counts.SplitsParked.Add(1)
	r.counts.ParkedSplits.Add(1)
}

// unparkLocked hears that the streams are opened again, or never will be.
func (r *reader) unparkLocked() {
	if r.parked {
		r.parked = false
		r.counts.ParkedSplits.Add(-1)
	}
}
