package pubsubtest

import (
	"slices"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/proto"
)

// A topic hands what is published to its subscriptions.
type topic struct {
	name    string
	server  *Server
	created time.Time

	mu            sync.Mutex      // guards all below
	config        *pubsubpb.Topic // replaced, never changed
	subscriptions []*subscription
	published     int64
	kept          ring[*stored]
	retained      []*stored // with a retention of its own: what a seek can bring back
}

func newTopic(s *Server, config *pubsubpb.Topic) *topic {
	return &topic{name: config.GetName(), server: s, config: config, created: time.Now(), kept: ring[*stored]{limit: s.cfg.KeepPublished}}
}

func (t *topic) proto() *pubsubpb.Topic {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.config
}

// update replaces the configuration by what f makes of a copy, unless it fails.
func (t *topic) update(f func(*pubsubpb.Topic) error) (*pubsubpb.Topic, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	config := proto.CloneOf(t.config)
	if err := f(config); err != nil {
		return nil, err
	}
	t.config = config
	if config.GetMessageRetentionDuration() == nil {
		t.retained = nil
	}
	return config, nil
}

// retainedSince returns what the topic retains of what was published since then.
func (t *topic) retainedSince(unixNano int64) (msgs []*stored) {
	t.mu.Lock()
	defer t.mu.Unlock()
	oldest := time.Now().Add(-t.config.GetMessageRetentionDuration().AsDuration()).UnixNano()
	for _, m := range t.retained {
		if m.published >= unixNano && m.published >= oldest {
			msgs = append(msgs, m)
		}
	}
	return msgs
}

// publish stores msgs, gives them consecutive ids of which it returns the first,
// and a publish time unless they have one. It keeps msgs.
//
// The topic's lock is held until every subscription has them: subscriptions see
// the messages of a topic in one order, that of their ids.
func (t *topic) publish(msgs []stored) (firstID uint64) {
	now := time.Now()
	t.mu.Lock()
	firstID = t.server.lastID.Add(uint64(len(msgs))) - uint64(len(msgs)) + 1
	for i := range msgs {
		msgs[i].id = firstID + uint64(i)
		if msgs[i].published == 0 {
			msgs[i].published = now.UnixNano()
		}
	}
	t.published += int64(len(msgs))
	if t.kept.limit != 0 {
		for i := range msgs {
			t.kept.push(&msgs[i])
		}
	}
	if t.config.GetMessageRetentionDuration() != nil {
		for i := range msgs {
			t.retained = append(t.retained, &msgs[i])
		}
	}
	t.server.events.published(now, t, msgs)
	for _, sub := range t.subscriptions {
		sub.enqueue(msgs)
	}
	t.mu.Unlock()
	t.server.changes.notify()
	return firstID
}

func (t *topic) attach(sub *subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.subscriptions = append(t.subscriptions, sub)
}

func (t *topic) detach(sub *subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.subscriptions = slices.DeleteFunc(t.subscriptions, func(s *subscription) bool { return s == sub })
}

// takeSubscriptions leaves the topic without subscriptions and returns them.
func (t *topic) takeSubscriptions() []*subscription {
	t.mu.Lock()
	defer t.mu.Unlock()
	subs := t.subscriptions
	t.subscriptions = nil
	return subs
}

func (t *topic) subscriptionNames() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for _, sub := range t.subscriptions {
		names = append(names, sub.name)
	}
	slices.Sort(names)
	return names
}
