package pubsubtest

import (
	"slices"
	"sync"
	"time"
)

// HideNewTopics makes topics that are created from now on unknown to Publish for
// a while, as they are on a service that has yet to tell all its front ends:
// their publishes fail with NOT_FOUND until d has passed since the topic's
// creation and that many of them have failed. Zero leaves either out. Other
// methods know the topic at once.
func (s *Server) HideNewTopics(d time.Duration, calls int) *Order {
	return s.hideNew(d, calls, func(in *incoming) (time.Time, bool) {
		if in.method.name != "Publish" {
			return time.Time{}, false
		}
		t, err := s.resources.topic(in.topic)
		if err != nil {
			return time.Time{}, false
		}
		return t.created, true
	})
}

// HideNewSubscriptions does the same for subscriptions: Pull, StreamingPull,
// Acknowledge, ModifyAckDeadline and Seek do not know them for a while.
func (s *Server) HideNewSubscriptions(d time.Duration, calls int) *Order {
	consuming := []string{"Pull", "StreamingPull", "Acknowledge", "ModifyAckDeadline", "Seek"}
	return s.hideNew(d, calls, func(in *incoming) (time.Time, bool) {
		if !slices.Contains(consuming, in.method.name) {
			return time.Time{}, false
		}
		q, err := s.resources.subscription(in.subscription)
		if err != nil {
			return time.Time{}, false
		}
		return q.created, true
	})
}

// hideNew is an order for calls about what created tells the age of.
func (s *Server) hideNew(d time.Duration, calls int, created func(*incoming) (time.Time, bool)) *Order {
	since := time.Now()
	var (
		mu     sync.Mutex // guards failed
		failed = make(map[string]int)
	)
	rule := Rule{when: func(in *incoming) bool {
		at, ok := created(in)
		if !ok || at.Before(since) {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		// One that was deleted and created again is new again.
		id := in.resource + at.String()
		if failed[id] >= calls && time.Since(at) >= d {
			return false
		}
		failed[id]++
		return true
	}}
	return s.Order(rule, func(s *script) { s.end(ending{answer: func(in *incoming) error { return notFound(in.resource) }}) })
}
