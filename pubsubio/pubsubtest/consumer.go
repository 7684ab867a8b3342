package pubsubtest

import (
	"math"
	"slices"
)

// maxBatch and maxBatchBytes bound what one response delivers. A response goes
// out with what there is; a single message may be larger.
const (
	maxBatch      = 1000
	maxBatchBytes = 960 << 10
)

// A consumer is a stream, or a pull for as long as it waits. Its owner takes
// messages until there are none for it, then waits for wake.
type consumer struct {
	number   uint64
	wake     chan struct{} // of capacity 1: take again
	ended    chan error    // of capacity 1: end the stream with this
	pings    chan struct{} // of capacity 1: the client asked for a sign of life
	maxCount int64         // flow control, in messages; 0 is no limit
	maxBytes int64         // flow control, in bytes; 0 is no limit
	clientID string        // of a stream whose keys another may go on with

	// The subscription's lock guards all below.
	deadline int32 // of its leases, in lease seconds
	state    consumerState
	count    int64  // messages held
	bytes    int64  // bytes held
	owner    *owner // with message ordering
}

type consumerState int

const (
	consumerBusy  consumerState = iota // taking or sending
	consumerIdle                       // in the queue of those who wait for messages
	consumerWoken                      // taken from that queue, about to take messages
	consumerFull                       // waiting for its flow control
	consumerGone
)

func newConsumer(deadline int32, maxCount, maxBytes int64) *consumer {
	return &consumer{
		wake:     make(chan struct{}, 1),
		ended:    make(chan error, 1),
		pings:    make(chan struct{}, 1),
		maxCount: max(maxCount, 0),
		maxBytes: max(maxBytes, 0),
		deadline: deadline,
	}
}

// end asks the stream to end with err; the first call decides.
func (c *consumer) end(err error) {
	select {
	case c.ended <- err:
	default:
	}
}

// ping asks the stream for a sign of life. It is given once for several that
// come before it.
func (c *consumer) ping() {
	select {
	case c.pings <- struct{}{}:
	default:
	}
}

// roomLocked returns how many messages flow control by count allows.
func (c *consumer) roomLocked() int {
	if c.maxCount == 0 {
		return math.MaxInt
	}
	return int(max(c.maxCount-c.count, 0))
}

// fitsLocked reports whether flow control allows one more message. That of bytes
// does while less than the maximum is held: the last message may pass it.
func (c *consumer) fitsLocked() bool {
	return (c.maxCount == 0 || c.count < c.maxCount) && (c.maxBytes == 0 || c.bytes < c.maxBytes)
}

func (c *consumer) holdLocked(e *entry) {
	e.holder = c
	c.count++
	c.bytes += e.msg.size()
}

func (c *consumer) releaseLocked(size int64) {
	c.count--
	c.bytes -= size
}

// take leases messages to c as takeLocked does. Where there are none for it, c
// waits: its wake is sent to when there may be some.
func (q *subscription) take(c *consumer, limit int, out []delivery) []delivery {
	q.mu.Lock()
	out = q.takeLocked(c, limit, out)
	if len(out) == 0 && c.state != consumerGone {
		if c.fitsLocked() {
			q.waitLocked(c)
		} else {
			c.state = consumerFull
		}
	}
	q.wakeLocked() // others, for what c left
	q.mu.Unlock()
	if len(out) > 0 {
		q.server.changes.notify()
	}
	return out
}

// shareLocked returns how many of the waiting messages c may take, so that those
// who were woken with it get as much; c is busy from here on.
func (q *subscription) shareLocked(c *consumer) int {
	sharers := q.woken + 1
	if c.state == consumerWoken {
		sharers = q.woken
		q.woken--
	}
	c.state = consumerBusy
	share := (q.waitingLocked() + sharers - 1) / sharers
	if q.lines != nil {
		share += c.owner.waiting
	}
	return share
}

// waitLocked puts c at the end of those who wait for messages.
func (q *subscription) waitLocked(c *consumer) {
	c.state = consumerIdle
	q.idle = append(q.idle, c)
}

// wakeLocked wakes those who wait, the longest first, while there is a message
// for each.
func (q *subscription) wakeLocked() {
	if q.lines != nil {
		q.wakeOwnersLocked()
	}
	for len(q.idle) > 0 && q.woken < q.waitingLocked() {
		c := q.idle[0]
		q.idle = q.idle[1:]
		q.rouseLocked(c)
	}
}

// wakeOwnersLocked wakes those for whom alone there is a message.
func (q *subscription) wakeOwnersLocked() {
	q.idle = slices.DeleteFunc(q.idle, func(c *consumer) bool {
		if c.owner.waiting == 0 {
			return false
		}
		q.rouseLocked(c)
		return true
	})
}

// rouseLocked wakes c, which is no longer among the idle.
func (q *subscription) rouseLocked(c *consumer) {
	c.state = consumerWoken
	q.woken++
	select {
	case c.wake <- struct{}{}:
	default: // it has not seen the previous one yet
	}
}

// join makes c one of the subscription's consumers.
func (q *subscription) join(c *consumer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.consumers[c] = struct{}{}
	if q.lines != nil {
		q.lines.join(c)
	}
}

// leave makes c take no more. What it holds stays leased until the leases end.
func (q *subscription) leave(c *consumer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.consumers, c)
	q.idle = slices.DeleteFunc(q.idle, func(o *consumer) bool { return o == c })
	if c.state == consumerWoken {
		q.woken--
	}
	c.state = consumerGone
	if q.lines != nil {
		q.lines.leave(c)
	}
	q.wakeLocked()
}
