package publish

import (
	"container/list"
	"context"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
)

// A publisher is what a pool keeps for one topic. On the wire a topic costs
// nothing; what it costs here is this.
type publisher struct {
	// Set once.
	pool   *pool
	topic  string
	header []byte          // how each request begins
	ctx    context.Context // of every request
	cancel context.CancelFunc
	place  *list.Element // in topics.recent

	// Guarded by the pool's lock.
	free     lane             // of messages without a key
	keyed    map[string]*lane // those with anything in them
	batches  int              // that have no verdict yet
	wanted   int              // shares that live bundles have in those
	incident *incident        // while the topic is missing
	failures int              // incidents that ended in an error
	failure  error            // of the last of them; nil once a request found the topic
	created  int              // creations of the topic, by this pool or found to be done
	used     time.Time        // when a batch was last opened
	cut      bool             // its requests are cancelled: it takes no more, and is released once clean
	gone     bool             // released
}

func newPublisher(p *pool, topic string) *publisher {
	ctx, cancel := context.WithCancel(transport.WithTopic(p.ctx, topic))
	d := &publisher{pool: p, topic: topic, header: requestHeader(topic), ctx: ctx, cancel: cancel}
	d.free.publisher = d
	return d
}

// laneLocked returns the lane of an ordering key.
func (d *publisher) laneLocked(key string) *lane {
	if key == "" {
		return &d.free
	}
	l, ok := d.keyed[key]
	if !ok {
		l = &lane{publisher: d, key: key}
		if d.keyed == nil {
			d.keyed = make(map[string]*lane)
		}
		d.keyed[key] = l
	}
	return l
}

// forgetLocked forgets a key's lane that has nothing in it: keys come and go
// without end.
func (d *publisher) forgetLocked(l *lane) {
	if l.key != "" && !l.busy && l.batch == nil && len(l.waiting) == 0 {
		delete(d.keyed, l.key)
	}
}

// usedLocked notes that d is in use.
func (d *publisher) usedLocked(now time.Time) {
	d.used = now
	d.pool.topics.recent.MoveToFront(d.place)
}

// cleanLocked reports whether nothing of d is batching, on the wire or under
// repair.
func (d *publisher) cleanLocked() bool { return d.batches == 0 }

// wakeLineLocked has the first who waits for a place look again, where d may give
// its own: it is clean, or nobody waits for what it has.
func (d *publisher) wakeLineLocked() {
	if d.cleanLocked() || d.wanted == 0 {
		d.pool.topics.wakeLocked()
	}
}

// publishers are those of a pool, at most max. All of it is guarded by the
// pool's lock.
type publishers struct {
	max     int           // set once
	idle    time.Duration // set once: DestinationIdleTimeout
	byTopic map[string]*publisher
	recent  *list.List // of *publisher, the least recently used last
	line    []*Bundle  // that wait for a place, in order of arrival
}

// full reports whether another publisher needs a place that is not there.
func (s *publishers) full() bool { return len(s.byTopic) >= s.max }

func (s *publishers) add(d *publisher) {
	d.used = time.Now()
	d.place = s.recent.PushFront(d)
	s.byTopic[d.topic] = d
}

// release lets go of a clean publisher.
func (s *publishers) release(d *publisher) {
	d.gone = true
	d.cancel()
	s.recent.Remove(d.place)
	delete(s.byTopic, d.topic)
}

// oldest returns the publisher that was used least recently of those for which
// ok holds, or nil.
func (s *publishers) oldest(ok func(*publisher) bool) *publisher {
	for e := s.recent.Back(); e != nil; e = e.Prev() {
		if d := e.Value.(*publisher); ok(d) {
			return d
		}
	}
	return nil
}

// releaseIdle lets go of the clean ones that were unused for too long.
func (s *publishers) releaseIdle() {
	now := time.Now()
	for e := s.recent.Back(); e != nil; {
		d := e.Value.(*publisher)
		if now.Sub(d.used) <= s.idle {
			return // those before it were used later, but for the time that a batch takes to fill
		}
		e = e.Prev()
		if d.cleanLocked() {
			s.release(d)
		}
	}
}

// wakeLocked has the first in line look again.
func (s *publishers) wakeLocked() {
	if len(s.line) > 0 {
		s.line[0].signal()
	}
}
