package pubsubtest

import (
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// deletedTopic is what a subscription names as its topic once that is deleted.
const deletedTopic = "_deleted-topic_"

// resources are the topics and subscriptions by name.
type resources struct {
	mu            sync.RWMutex // guards all below
	topics        map[string]*topic
	subscriptions map[string]*subscription
	numbered      uint64 // subscriptions ever made
}

func (r *resources) init() {
	r.topics = make(map[string]*topic)
	r.subscriptions = make(map[string]*subscription)
}

func (r *resources) topic(name string) (*topic, error) {
	r.mu.RLock()
	t := r.topics[name]
	r.mu.RUnlock()
	if t == nil {
		return nil, unknownTopic(name)
	}
	return t, nil
}

func (r *resources) subscription(name string) (*subscription, error) {
	r.mu.RLock()
	sub := r.subscriptions[name]
	r.mu.RUnlock()
	if sub == nil {
		return nil, unknownSubscription(name)
	}
	return sub, nil
}

// has reports whether there is a topic or a subscription of that name.
func (r *resources) has(name string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.topics[name] != nil || r.subscriptions[name] != nil
}

// unknownTopic is the answer about a name that no topic has: it may be none.
func unknownTopic(name string) error {
	if _, err := message.ParseTopic(name); err != nil {
		return badName(err)
	}
	return notFound(name)
}

func unknownSubscription(name string) error {
	if _, err := message.ParseSubscription(name); err != nil {
		return badName(err)
	}
	return notFound(name)
}

func (r *resources) addTopic(t *topic) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.topics[t.name] != nil {
		return alreadyExists(t.name)
	}
	r.topics[t.name] = t
	return nil
}

// addSubscription gives sub its number and attaches it to its topic. It does so
// under one lock: a topic or a subscription that is removed meanwhile would
// otherwise be attached after its removal.
func (r *resources) addSubscription(sub *subscription, topic string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.topics[topic]
	if t == nil {
		return notFound(topic)
	}
	if r.subscriptions[sub.name] != nil {
		return alreadyExists(sub.name)
	}
	r.numbered++
	sub.number = r.numbered
	r.subscriptions[sub.name] = sub
	t.attach(sub)
	return nil
}

func (r *resources) removeTopic(name string) (*topic, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.topics[name]
	if t == nil {
		return nil, unknownTopic(name)
	}
	delete(r.topics, name)
	return t, nil
}

func (r *resources) removeSubscription(name string) (*subscription, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sub := r.subscriptions[name]
	if sub == nil {
		return nil, unknownSubscription(name)
	}
	delete(r.subscriptions, name)
	return sub, nil
}

// topicNames returns the names of the topics of a project, such as projects/p,
// sorted; those of all projects if it is empty.
func (r *resources) topicNames(project string) []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return namesOf(project, r.topics)
}

func (r *resources) subscriptionNames(project string) []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return namesOf(project, r.subscriptions)
}

func (r *resources) allSubscriptions() []*subscription {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Collect(maps.Values(r.subscriptions))
}

func namesOf[V any](project string, m map[string]V) []string {
	names := slices.Sorted(maps.Keys(m))
	if project == "" {
		return names
	}
	return slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, project+"/") })
}

// The wording is the service's.
func notFound(name string) error {
	return status.Errorf(codes.NotFound, "Resource not found (resource=%s).", path.Base(name))
}

func alreadyExists(name string) error {
	return status.Errorf(codes.AlreadyExists, "Resource already exists in the project (resource=%s).", path.Base(name))
}
