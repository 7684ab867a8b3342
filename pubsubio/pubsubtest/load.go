package pubsubtest

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// Load is what was under way in publish calls that are not answered yet: now, and
// the most that ever was at once. A call counts from when its request was read
// until its answer is about to be written, and no longer than until its client
// gives it up. Refused calls count as well.
//
// A client that holds to a cap on what it has in flight never shows more than
// that here, at no instant.
type Load struct {
	// Calls is the publish calls.
	Calls int64
	// Messages is their messages.
	Messages int64
	// Bytes is the size of their messages in the requests, each with its tag and
	// its length: what the service's limit counts, but for the topic's name.
	Bytes int64

	// MaxCalls is the most that Calls ever was.
	MaxCalls int64
	// MaxMessages is the most that Messages ever was.
	MaxMessages int64
	// MaxBytes is the most that Bytes ever was.
	MaxBytes int64

	// MaxKeyCalls is the most calls that were ever under way at once for one
	// ordering key of one topic: 1 for a client that keeps order.
	MaxKeyCalls int64
	// BusiestKey is the ordering key of which MaxKeyCalls tells, the first of
	// several.
	BusiestKey string
}

// PublishLoad returns what is under way to a topic, or to all together if topic
// is empty.
func (s *Server) PublishLoad(topic string) Load {
	m := &s.load
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweepLocked()
	if topic == "" {
		return m.all
	}
	if l := m.topics[topic]; l != nil {
		return *l
	}
	return Load{}
}

// A meter keeps the loads of a server.
type meter struct {
	mu     sync.Mutex // guards all below
	all    Load
	topics map[string]*Load
	keys   map[topicKey]int64 // calls under way
	calls  map[*publishCall]struct{}
}

type topicKey struct{ topic, key string }

// A publishCall is one that is under way.
type publishCall struct {
	meter    *meter
	given    context.Context // of the client: its end is that of its interest
	key      topicKey
	messages int64
	bytes    int64
}

func (m *meter) init() {
	m.topics = make(map[string]*Load)
	m.keys = make(map[topicKey]int64)
	m.calls = make(map[*publishCall]struct{})
}

// begin counts a call; its owner calls end.
func (m *meter) begin(ctx context.Context, req *publishRequest) *publishCall {
	c := &publishCall{
		meter: m, given: ctx, key: topicKey{req.topic, string(req.key)},
		messages: int64(len(req.messages)), bytes: int64(req.bytes),
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.topics[req.topic]
	if of == nil {
		of = new(Load)
		m.topics[req.topic] = of
	}
	m.calls[c] = struct{}{}
	m.addLocked(c, +1)
	if m.all.isRecord() || of.isRecord() || m.keys[c.key] > of.MaxKeyCalls {
		// A client that gave a call up and makes another has one under way, also
		// where the server's handler of the first has not noticed yet.
		m.sweepLocked()
		m.all.record(c.key.key, m.keys[c.key])
		of.record(c.key.key, m.keys[c.key])
	}
	return c
}

// end counts the call no more.
func (c *publishCall) end() {
	c.meter.mu.Lock()
	defer c.meter.mu.Unlock()
	c.meter.removeLocked(c)
}

// removeLocked does nothing with a call that was removed before.
func (m *meter) removeLocked(c *publishCall) {
	if _, ok := m.calls[c]; !ok {
		return
	}
	delete(m.calls, c)
	m.addLocked(c, -1)
}

// sweepLocked removes the calls whose clients have given them up.
func (m *meter) sweepLocked() {
	for _, c := range slices.Collect(maps.Keys(m.calls)) {
		if c.given.Err() != nil {
			m.removeLocked(c)
		}
	}
}

func (m *meter) addLocked(c *publishCall, sign int64) {
	for _, l := range []*Load{&m.all, m.topics[c.key.topic]} {
		l.Calls += sign
		l.Messages += sign * c.messages
		l.Bytes += sign * c.bytes
	}
	if c.key.key == "" {
		return
	}
	m.keys[c.key] += sign
	if m.keys[c.key] == 0 {
		delete(m.keys, c.key)
	}
}

func (l *Load) isRecord() bool {
	return l.Calls > l.MaxCalls || l.Messages > l.MaxMessages || l.Bytes > l.MaxBytes
}

func (l *Load) record(key string, keyCalls int64) {
	l.MaxCalls = max(l.MaxCalls, l.Calls)
	l.MaxMessages = max(l.MaxMessages, l.Messages)
	l.MaxBytes = max(l.MaxBytes, l.Bytes)
	if keyCalls > l.MaxKeyCalls {
		l.MaxKeyCalls, l.BusiestKey = keyCalls, key
	}
}
