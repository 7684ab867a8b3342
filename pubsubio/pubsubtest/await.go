package pubsubtest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// Await returns nil as soon as ok is true of the subscription's counts. It looks
// again whenever anything happens on the server. When ctx ends first, the error
// wraps its cause and tells the counts, or that there is no such subscription.
func (s *Server) Await(ctx context.Context, subscription string, ok func(Stats) bool) error {
	err := s.changes.await(ctx, func() bool { return ok(s.Stats(subscription)) })
	if err == nil {
		return nil
	}
	if no := s.noSubscription(subscription); no != "" {
		return fmt.Errorf("pubsubtest: await %s: %w; %s", subscription, err, no)
	}
	return fmt.Errorf("pubsubtest: await %s: %w; it has %+v", subscription, err, s.Stats(subscription))
}

// AwaitPublished returns nil as soon as at least n messages were published to the
// topic. When ctx ends first, the error wraps its cause and tells the count, or that
// there is no such topic.
func (s *Server) AwaitPublished(ctx context.Context, topic string, n int64) error {
	err := s.changes.await(ctx, func() bool { return s.Published(topic) >= n })
	if err == nil {
		return nil
	}
	if no := s.noTopic(topic); no != "" {
		return fmt.Errorf("pubsubtest: await %d messages on %s: %w; %s", n, topic, err, no)
	}
	return fmt.Errorf("pubsubtest: await %d messages on %s: %w; it has %d", n, topic, err, s.Published(topic))
}

// AwaitEvent returns nil as soon as ok is true of an event, one of the past or
// one to come. It needs a server that keeps events. When ctx ends first, the
// error wraps its cause.
func (s *Server) AwaitEvent(ctx context.Context, ok func(Event) bool) error {
	seen := uint64(0)
	err := s.changes.await(ctx, func() bool {
		for _, e := range s.events.since(seen) {
			seen = e.Seq
			if ok(e) {
				return true
			}
		}
		return false
	})
	if err != nil {
		return fmt.Errorf("pubsubtest: await an event: %w", err)
	}
	return nil
}

// A notifier wakes those who wait for a condition whenever it may have become
// true. It costs an atomic load where nobody waits.
type notifier struct {
	waiting atomic.Int64
	mu      sync.Mutex    // guards changed
	changed chan struct{} // closed and replaced at a change
}

func (n *notifier) init() { n.changed = make(chan struct{}) }

// notify is called after a change, without a lock that a condition needs.
func (n *notifier) notify() {
	if n.waiting.Load() == 0 {
		return
	}
	n.mu.Lock()
	close(n.changed)
	n.changed = make(chan struct{})
	n.mu.Unlock()
}

func (n *notifier) await(ctx context.Context, ok func() bool) error {
	n.waiting.Add(1)
	defer n.waiting.Add(-1)
	for {
		n.mu.Lock()
		changed := n.changed
		n.mu.Unlock()
		if ok() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if ok() { // It came before the end.
				return nil
			}
			return context.Cause(ctx)
		}
	}
}
