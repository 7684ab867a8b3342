package publish

import (
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// A lane is a line of requests to a topic. Messages without an ordering key share
// one, which has any number of requests on the wire. Each ordering key has one of
// its own, with one request on the wire: the service stores the requests of a key
// in the order in which they reach it.
//
// All of it is guarded by the pool's lock.
type lane struct {
	publisher *publisher // set once
	key       string     // set once; "" has no order

	batch   *batch   // being filled; nil when nothing is
	waiting []*batch // full, behind the request that is on the wire
	busy    bool     // a goroutine is driving the lane; only with a key
	due     bool     // batch is to be sent as soon as the lane is free

	// While batch is being filled and not due, in the pool's list.
	prev, next *lane
	opened     time.Time
}

// addLocked puts m, of that size on the wire, into the request that is being
// filled, and sends what became full.
func (l *lane) addLocked(b *Bundle, m *message.Message, size int, tag int64) {
	p := l.publisher.pool
	limit := p.opts.BatchBytes
	if l.batch != nil && l.batch.size()+sizeFramed(size) > limit {
		l.fullLocked()
	}
	if l.batch == nil {
		l.batch = p.newBatchLocked(l)
		p.filling.push(l)
		l.publisher.usedLocked(l.opened)
	}
	l.batch.add(b, m, size, tag)
	p.unsent.messages++
	p.unsent.bytes += int64(sizeFramed(size))
	if l.batch.messages() >= p.opts.BatchElementCount || l.batch.size() >= limit {
		l.fullLocked()
	}
}

// detachLocked takes the batch out of the lane.
func (l *lane) detachLocked() *batch {
	t := l.batch
	if !l.due {
		l.publisher.pool.filling.remove(l)
	}
	l.batch, l.due = nil, false
	return t
}

// fullLocked sends the batch, which takes no more messages, when its turn comes.
func (l *lane) fullLocked() {
	t := l.detachLocked()
	if l.busy {
		l.waiting = append(l.waiting, t)
		return
	}
	l.sendLocked(t)
}

// sealLocked sends the batch, if there is one, as soon as it may be. Behind a
// request of its key it goes on taking messages until then.
func (l *lane) sealLocked() {
	switch {
	case l.batch == nil || l.due:
	case l.busy:
		l.publisher.pool.filling.remove(l)
		l.due = true
	default:
		l.sendLocked(l.detachLocked())
		l.publisher.forgetLocked(l) // if nothing of it was wanted any more
	}
}

// sendLocked puts t on the wire. The goroutine ends once t is answered for good,
// that of a key once nothing waits in its lane, and with the pool, which waits
// for it.
func (l *lane) sendLocked(t *batch) {
	p := l.publisher.pool
	if l.key == "" {
		p.sentLocked(t)
		p.requests.Add(1)
		go p.deliver(t)
		return
	}
	if p.stripLocked(t); t.messages() == 0 {
		p.discardLocked(t)
		return
	}
	p.sentLocked(t)
	l.busy = true
	p.requests.Add(1)
	go p.drive(l, t)
}

// drive publishes what is in a lane, one request after another.
func (p *pool) drive(l *lane, t *batch) {
	defer p.requests.Done()
	for ; t != nil; t = p.nextOf(l) {
		p.publish(t)
	}
}

// nextOf returns what is to be sent next in a lane.
func (p *pool) nextOf(l *lane) *batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		t := l.popLocked()
		if t == nil {
			l.busy = false
			l.publisher.forgetLocked(l)
			return nil
		}
		p.stripLocked(t)
		if t.messages() > 0 {
			p.sentLocked(t)
			return t
		}
		p.discardLocked(t)
	}
}

func (l *lane) popLocked() *batch {
	switch {
	case len(l.waiting) > 0:
		t := l.waiting[0]
		l.waiting[0] = nil
		l.waiting = l.waiting[1:]
		return t
	case l.batch != nil && l.due:
		return l.detachLocked()
	default:
		return nil
	}
}

// takeOutLocked takes the batch, which was never sent, out of the lane.
func (l *lane) takeOutLocked(t *batch) {
	if l.batch == t {
		l.detachLocked()
	}
	for i, w := range l.waiting {
		if w == t {
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			break
		}
	}
	l.publisher.forgetLocked(l)
}

// stripLocked takes out of an unsent batch what is of bundles that are done. In a
// key's lane these must not be sent any more: they would reach the service before
// the messages of the request that failed, which come again with their bundle.
func (p *pool) stripLocked(t *batch) {
	for _, s := range t.shares {
		if b := s.bundle; b != nil && b.doneLocked() {
			held := t.removeLocked(b)
			p.unsent.take(held)
			if !b.ended {
				b.leftLocked(t)
			}
			p.giveBackLocked(held)
		}
	}
}

// discardLocked ends a batch without messages.
func (p *pool) discardLocked(t *batch) {
	p.closeBatchLocked(t)
	t.payload.release()
}
