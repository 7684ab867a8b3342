package publish

import (
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
)

// deliver publishes a batch that has no order, in a goroutine of its own.
func (p *pool) deliver(t *batch) {
	defer p.requests.Done()
	p.publish(t)
}

// publish sends a batch until each of its messages has its verdict.
func (p *pool) publish(t *batch) {
	t, story, err := p.attempts(t)
	p.closeTrouble(story)
	switch {
	case t == nil: // nobody wants it any more
	case err != nil && t.messages() > 1 && transport.Classify(t.lane.publisher.ctx, story.last) == transport.Rejected:
		p.isolate(t, story)
	default:
		p.settle(t, story, err)
	}
}

// settle gives back what t held, and tells its bundles the verdict of the service.
// A bundle that has ended learns nothing, and is counted nowhere.
func (p *pool) settle(t *batch, story *trouble, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answeredLocked()
	if err == nil {
		p.storedLocked(t)
	} else {
		p.refusedLocked(t, story, err)
	}
	p.replaceLocked(t)
}

// storedLocked tells t's bundles that its messages were stored.
func (p *pool) storedLocked(t *batch) {
	p.trouble, p.troubled = nil, nil
	d := t.lane.publisher
	d.foundLocked()
	for _, s := range t.shares {
		b := s.bundle
		if b == nil || b.ended {
			continue
		}
		p.guard.succeeded()
		b.pending -= s.messages
		b.counts.published(d.topic, s)
		p.stats.Published.Add(int64(s.messages))
		p.stats.Bytes.Add(s.bytes)
		if b.pending == 0 {
			b.signal()
		}
	}
}

// refusedLocked tells t's bundles that its messages were not stored: a rejection,
// where the service refused one message alone, else the end of each bundle.
func (p *pool) refusedLocked(t *batch, story *trouble, err error) {
	d := t.lane.publisher
	rejection := transport.Classify(d.ctx, story.last) == transport.Rejected
	for _, s := range t.shares {
		b := s.bundle
		if b == nil || b.doneLocked() {
			continue
		}
		b.pending -= s.messages
		if story.attempts > 0 && !story.noted {
			b.failedLocked(d.topic, story.last)
		}
		if !rejection {
			p.stats.Failed.Add(int64(s.messages))
			b.failLocked(err)
			continue
		}
		m, derr := t.decode(0)
		if derr != nil {
			b.failLocked(derr)
			continue
		}
		b.rejectLocked(Rejection{Topic: d.topic, Message: m, Tag: t.payload.entries[0].tag, Err: err, Attempts: t.sent + story.attempts})
	}
}

// noteLocked notes an attempt of t that failed, and that others may follow.
func (p *pool) noteLocked(t *batch, story *trouble) {
	p.warnLocked(t, story)
	story.noted = true
	now := *story
	p.trouble, p.troubled = &now, story
	t.countFailureLocked(story)
}

// closeTrouble forgets the trouble of a request that has ended: what stalls later is
// not its fault.
func (p *pool) closeTrouble(story *trouble) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.troubled == story {
		p.trouble, p.troubled = nil, nil
	}
}

func (t *batch) countFailureLocked(story *trouble) {
	for _, s := range t.shares {
		if s.bundle != nil && !s.bundle.ended {
			s.bundle.failedLocked(story.topic, story.last)
		}
	}
}

// failedLocked counts an attempt for topic that ended in err.
func (b *Bundle) failedLocked(topic string, err error) {
	b.counts.failed(topic, err)
	b.pool.stats.Errors.Add(1)
}

// answeredLocked notes that the service dealt with a request: not a stall.
func (p *pool) answeredLocked() { p.answered = time.Now() }
