package publish

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// publisherLocked returns the publisher of topic, and opens it. Where
// MaxActivePublishers are open it releases one that is clean, or waits for one in
// turn. It may give the lock up; when it returns, nobody has taken the publisher
// away.
//
// While anybody waits, everybody does who adds: bundles that went on filling the
// open publishers could keep all of them unclean for ever.
func (b *Bundle) publisherLocked(ctx context.Context, topic string) (*publisher, error) {
	s := &b.pool.topics
	if len(s.line) == 0 {
		if d := b.publisher; d != nil && !d.gone && !d.cut && d.topic == topic {
			return d, nil // most bundles have one topic
		}
		if d := b.openLocked(topic); d != nil {
			return d, nil
		}
	}
	return b.awaitPublisherLocked(ctx, topic)
}

// openLocked is publisherLocked where nobody has to wait, or returns nil.
func (b *Bundle) openLocked(topic string) *publisher {
	p := b.pool
	s := &p.topics
	d := s.byTopic[topic]
	if d != nil && d.cut {
		return nil // another one for the topic must wait for its requests: a key has one at a time
	}
	if d == nil {
		if s.full() {
			clean := s.oldest((*publisher).cleanLocked)
			if clean == nil {
				return nil
			}
			s.release(clean)
		}
		d = newPublisher(p, topic)
		s.add(d)
	}
	b.publisher = d
	return d
}

// awaitPublisherLocked waits in line for a place.
//
// What is batching is sent, so that publishers come clean. A publisher whose
// requests nobody waits for any more is shut down: they are cut off, and get
// ShutdownTimeout to end.
func (b *Bundle) awaitPublisherLocked(ctx context.Context, topic string) (*publisher, error) {
	p := b.pool
	s := &p.topics
	p.sealAllLocked()
	s.line = append(s.line, b)
	defer s.leave(b)
	for {
		var d *publisher
		var closing *publisher
		err := b.waitForLocked(ctx, func() bool {
			if s.line[0] != b {
				return false
			}
			if d = b.openLocked(topic); d != nil {
				return true
			}
			closing = s.inTheWay(topic)
			return closing != nil
		})
		if err != nil || d != nil {
			return d, err
		}
		if err := b.shutDownLocked(ctx, closing); err != nil {
			return nil, err
		}
	}
}

// inTheWay returns the publisher that is to be shut down where topic has no place, if
// there is one: that of the topic itself, cut off before, or else an unwanted one.
func (s *publishers) inTheWay(topic string) *publisher {
	if d := s.byTopic[topic]; d != nil {
		return d
	}
	return s.oldest(func(d *publisher) bool { return d.wanted == 0 })
}

// shutDownLocked cuts off the requests of a publisher that nobody waits for, and
// waits until they have ended.
func (b *Bundle) shutDownLocked(ctx context.Context, d *publisher) error {
	limit := b.pool.opts.ShutdownTimeout
	d.cut = true
	d.cancel()
	late := time.AfterFunc(limit, b.signal)
	defer late.Stop()
	began := time.Now()
	overrun := false
	err := b.waitForLocked(ctx, func() bool {
		overrun = time.Since(began) >= limit
		return overrun || d.cleanLocked()
	})
	if err != nil || d.cleanLocked() {
		return err
	}
	b.counts.ShutdownsAbandoned++
	b.pool.stats.ShutdownsAbandoned.Add(1)
	return fmt.Errorf("publish to %s: the place of %s is needed (options.Publisher.MaxActivePublishers is %d), and its requests, which nobody waits for, have not ended %v after they were cut off (options.Publisher.ShutdownTimeout)",
		b.topic, d.topic, b.pool.topics.max, limit)
}

// leave takes b out of the line, if it is in it.
func (s *publishers) leave(b *Bundle) {
	if i := slices.Index(s.line, b); i >= 0 {
		s.line = slices.Delete(s.line, i, i+1)
		s.wakeLocked()
	}
}
