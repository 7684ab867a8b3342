package pubsubtest

import (
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/beam-pubsub/beam-pubsub-go/internal/filter"
)

// A subscription is a queue of messages that wait, are leased, or were returned.
type subscription struct {
	name     string
	server   *Server
	number   uint64 // set once, before the subscription can be found
	created  time.Time
	ordered  bool
	filter   filter.Expression        // nil: every message
	settings atomic.Pointer[settings] // replaced, never changed

	mu        sync.Mutex // guards all below
	entries   entryTable
	unsent    uint64    // sequence number of the first entry never delivered
	returned  entryList // to be delivered again, before the unsent
	lines     *lines    // nil without message ordering; with it nothing is unsent
	leases    leases
	alarm     *time.Timer // fires when a lease may have ended
	consumers map[*consumer]struct{}
	idle      []*consumer // that wait for messages, the longest first
	woken     int         // consumers that are on their way to take messages
	retained  []*stored   // acknowledged, where they are retained: what a seek can bring back
	stats     Stats
	closed    bool
}

func newSubscription(s *Server, config *pubsubpb.Subscription, f filter.Expression) *subscription {
	q := &subscription{
		name:      config.GetName(),
		server:    s,
		created:   time.Now(),
		ordered:   config.GetEnableMessageOrdering(),
		filter:    f,
		leases:    newLeases(s.cfg.LeaseSecond),
		consumers: make(map[*consumer]struct{}),
	}
	if q.ordered {
		q.lines = newLines(s.cfg.HoldKeys)
	}
	q.settings.Store(settingsOf(config))
	return q
}

// enqueue adds published messages at the end. It keeps pointers into msgs.
func (q *subscription) enqueue(msgs []stored) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.filter == nil && q.lines == nil {
		for i := range msgs {
			q.entries.add(&msgs[i])
		}
		q.stats.Published += int64(len(msgs))
	} else {
		q.enqueueSomeLocked(msgs)
	}
	q.wakeLocked()
}

// enqueueSomeLocked adds what the filter leaves, by ordering key.
func (q *subscription) enqueueSomeLocked(msgs []stored) {
	for i := range msgs {
		if q.filter != nil && !q.filter.Matches(msgs[i].attributes()) {
			q.stats.Filtered++
			continue
		}
		e := q.entries.add(&msgs[i])
		if q.lines != nil {
			q.lines.add(e)
			q.unsent = q.entries.end
		}
		q.stats.Published++
	}
}

// waitingLocked returns how many messages could be delivered now, to anyone.
func (q *subscription) waitingLocked() int {
	n := q.returned.n + int(q.entries.end-q.unsent)
	if q.lines != nil {
		n += q.lines.freeWaiting()
	}
	return n
}

// backlogLocked returns how many messages wait, also those for one consumer only.
func (q *subscription) backlogLocked() int {
	n := q.returned.n + int(q.entries.end-q.unsent)
	if q.lines != nil {
		n += q.lines.unkeyed.n + q.lines.waiting
	}
	return n
}

// nextLocked returns the message that is c's to take, nil if there is none.
func (q *subscription) nextLocked(c *consumer) *entry {
	switch {
	case q.returned.n > 0:
		return q.returned.head
	case q.lines != nil:
		return q.lines.firstFor(c)
	}
	return q.entries.get(q.unsent)
}

// unqueueLocked takes what nextLocked returned.
func (q *subscription) unqueueLocked(e *entry, c *consumer) {
	switch {
	case e.list != nil:
		e.list.remove(e)
	case e.place != nil:
		q.lines.deliver(e, c)
	default:
		q.unsent++
	}
}

// A delivery is an entry as it was when it was delivered.
type delivery struct {
	msg     *stored
	seq     uint64
	attempt uint32
}

// takeLocked leases up to limit messages to c, as many as its flow control and
// its share of what waits allow, and appends them to out.
func (q *subscription) takeLocked(c *consumer, limit int, out []delivery) []delivery {
	n := min(limit, c.roomLocked(), q.shareLocked(c))
	bucket := (*entryList)(nil)
	bytes := int64(0)
	for range n {
		e := q.nextLocked(c)
		if e == nil || !c.fitsLocked() {
			break
		}
		size := e.msg.size()
		if bytes > 0 && bytes+size > maxBatchBytes {
			break
		}
		q.unqueueLocked(e, c)
		if bucket == nil {
			bucket = q.leases.bucket(c.deadline)
		}
		bucket.push(e)
		e.attempt++
		c.holdLocked(e)
		bytes += size
		if e.attempt > 1 {
			q.stats.Redelivered++
		}
		out = append(out, delivery{msg: e.msg, seq: e.seq, attempt: e.attempt})
	}
	if q.lines != nil {
		q.lines.endBatch()
	}
	if len(out) > 0 {
		q.stats.delivered(len(out), bytes)
		q.server.events.delivered(time.Now(), q, c, out)
		q.setAlarmLocked()
	}
	return out
}

// releaseLocked ends e's lease.
func (q *subscription) releaseLocked(e *entry) {
	e.list.remove(e)
	if e.place != nil {
		q.lines.release(e)
	}
	q.stats.released(1, e.msg.size())
	if c := e.holder; c != nil {
		c.releaseLocked(e.msg.size())
		e.holder = nil
		if c.state == consumerFull && c.fitsLocked() {
			q.waitLocked(c)
		}
	}
}

// againLocked makes an entry that is in no list available again.
//
// With a dead letter topic, dead, an entry that has had its deliveries leaves
// the subscription instead: againLocked returns it for the topic.
func (q *subscription) againLocked(e *entry, dead *topic) (d delivery, isDead bool) {
	if dead != nil && e.attempt >= q.settings.Load().maxAttempts {
		d = delivery{msg: e.msg, attempt: e.attempt}
		q.stats.DeadLettered++
		if e.place == nil {
			q.entries.drop(e)
		} else {
			q.lines.remove(e, q.entries.drop)
		}
		return d, true
	}
	if e.place != nil {
		q.lines.rewind(e, q.recallLocked)
	} else {
		q.returned.push(e)
	}
	return delivery{}, false
}

// recallLocked ends the lease of a message that is to be delivered again after
// an earlier one of its key.
func (q *subscription) recallLocked(e *entry) {
	d := delivery{msg: e.msg, seq: e.seq, attempt: e.attempt}
	q.releaseLocked(e)
	q.stats.Recalled++
	q.server.events.settled(time.Now(), Recall, q, d, 0)
}

// letGoLocked forgets an entry that is in no list. One of an ordering key may
// take others with it, or stay for a while.
func (q *subscription) letGoLocked(e *entry) {
	if e.place == nil {
		q.entries.drop(e)
		return
	}
	q.lines.settle(e, q.entries.drop)
}

// expire returns what leases have ended of. The alarm calls it.
func (q *subscription) expire() { q.lapse(q.leases.due) }

// lapse returns what is in the buckets that next hands out, and how much that was.
func (q *subscription) lapse(next func() *entryList) (lapsed int) {
	dead := q.deadLetters()
	var letters []delivery
	q.mu.Lock()
	now := time.Now()
	for b := next(); b != nil; b = next() {
		for e := b.head; e != nil; e = b.head {
			d := delivery{msg: e.msg, seq: e.seq, attempt: e.attempt}
			q.releaseLocked(e)
			q.stats.Lapsed++
			lapsed++
			q.server.events.settled(now, Lapse, q, d, 0)
			if d, isDead := q.againLocked(e, dead); isDead {
				letters = append(letters, d)
			}
		}
	}
	q.wakeLocked()
	q.setAlarmLocked()
	q.mu.Unlock()
	q.server.changes.notify()
	q.forward(letters, dead)
	return lapsed
}

func (q *subscription) setAlarmLocked() {
	wait, ok := q.leases.next()
	switch {
	case q.closed || !ok:
	case q.alarm == nil:
		q.alarm = time.AfterFunc(wait, q.expire)
	default:
		q.alarm.Reset(wait)
	}
}

// close ends the subscription's leases without returning anything.
func (q *subscription) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	if q.alarm != nil {
		q.alarm.Stop()
	}
}

// endStreams ends the open streams with err.
func (q *subscription) endStreams(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for c := range q.consumers {
		c.end(err)
	}
}
