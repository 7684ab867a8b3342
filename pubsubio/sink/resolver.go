package sink

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/util/reflectx"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/byname"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/panics"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

// A ResolveFunc chooses the topic of a record: its full name,
// projects/<project>/topics/<id>. at is the record's event time, to the
// millisecond.
//
// It is called before the encoder, for every record, and from several bundles at
// once: it makes no call. An error, a panic, an empty name or one that is no
// topic's fails the bundle, whatever Config.OnFailure is: a fault of the program,
// which every record may have, and no bad record. The bundle's error then says which
// rule was broken, and shows nothing of the name nor of the record, but the text of
// a function's own error or panic as it is: keep content out of it.
type ResolveFunc[T any] func(record T, at time.Time) (topic string, err error)

// A registeredResolver is a function as the DoFn calls it, without reflection.
type registeredResolver struct {
	name    string // as a user knows it
	resolve func(record any, at time.Time) (string, error)
}

// resolvers are the registered resolvers of this program, by key, for the reason
// that encoders are.
var resolvers byname.Registry[*registeredResolver]

// RegisterResolver makes resolve known to the workers. Call it in init, once for
// each resolver, with a function that has a name of its own. It panics as
// [RegisterEncoder] does.
func RegisterResolver[T any](resolve ResolveFunc[T]) {
	key, err := byname.Key(resolve, reflect.TypeFor[T]())
	if err == nil {
		err = resolvers.Add(key, resolve, &registeredResolver{
			name:    reflectx.FunctionName(resolve),
			resolve: func(record any, at time.Time) (string, error) { return resolve(record.(T), at) },
		})
	}
	if err != nil {
		panic("sink.RegisterResolver: " + err.Error())
	}
}

// A Resolver chooses the topics of a Write, see [ResolveWith]. The zero value is
// none.
type Resolver struct {
	key, name string
	record    reflect.Type
	fault     error // why the workers would not find the function
}

// ResolveWith returns what Config.Resolve takes: resolve chooses the topic of each
// record. resolve must have been given to [RegisterResolver] in init, and must take
// the records that the encoder takes; TryWrite says otherwise.
func ResolveWith[T any](resolve ResolveFunc[T]) Resolver {
	r := Resolver{record: reflect.TypeFor[T]()}
	r.key, r.fault = byname.Key(resolve, r.record)
	if r.fault == nil {
		r.name = reflectx.FunctionName(resolve)
		r.fault = resolvers.Registered(r.key, resolve, "sink.RegisterResolver")
	}
	return r
}

func (r Resolver) isSet() bool { return r.record != nil }

// String returns the name of the function.
func (r Resolver) String() string {
	if r.name == "" {
		return "no resolver"
	}
	return r.name
}

// maxKnownTopics bounds the names that an instance of the DoFn remembers to be
// well-formed: some 500 KB of names at most lengths, far above the publishers that
// a worker keeps.
const maxKnownTopics = 4096

// topics tells an instance of the DoFn where each record goes.
type topics struct {
	fixed    string              // where there is no resolver
	resolver *registeredResolver // nil for a fixed topic
	last     string              // the name before this one: most records follow one of their topic
	known    map[string]string   // names that were found well-formed, by themselves
}

// newTopics finds the resolver of that key, if there is one.
func newTopics(fixed, resolverKey string) (topics, error) {
	if resolverKey == "" {
		return topics{fixed: fixed}, nil
	}
	r, ok := resolvers.Find(resolverKey)
	if !ok {
		return topics{}, fmt.Errorf("sink: resolver %s is not registered on this worker: call sink.RegisterResolver with it in init, not in main", resolverKey)
	}
	return topics{resolver: r, known: make(map[string]string)}, nil
}

// of returns the full name of the record's topic. An error fails the bundle.
func (t *topics) of(record any, at beam.EventTime) (string, error) {
	if t.resolver == nil {
		return t.fixed, nil
	}
	name, err := t.resolve(record, at)
	if err != nil {
		return "", fmt.Errorf("sink: %w", err)
	}
	if name == t.last && name != "" {
		return t.last, nil
	}
	known, ok := t.known[name]
	if !ok {
		if known, err = t.learn(name); err != nil {
			return "", fmt.Errorf("sink: %w", err)
		}
	}
	t.last = known
	return known, nil
}

// resolve calls the resolver and turns its panic into an error.
func (t *topics) resolve(record any, at beam.EventTime) (name string, err error) {
	defer panics.Recover(&err, "resolver", t.resolver.name)
	name, err = t.resolver.resolve(record, at.ToTime())
	if err != nil {
		return "", fmt.Errorf("resolver %s: %w", t.resolver.name, err)
	}
	return name, nil
}

// learn checks a name, and remembers a copy: the name itself may be a part of a
// record that is much larger.
func (t *topics) learn(name string) (string, error) {
	if name == "" {
		return "", fmt.Errorf("resolver %s gave a record no topic: every record must have one", t.resolver.name)
	}
	if _, err := message.ParseTopic(name); err != nil {
		var fault *message.NameError
		if !errors.As(err, &fault) {
			return "", fmt.Errorf("resolver %s gave a record a malformed topic", t.resolver.name)
		}
		return "", fmt.Errorf("resolver %s gave a record a malformed topic: %s", t.resolver.name, fault.Rule)
	}
	if len(t.known) >= maxKnownTopics {
		clear(t.known)
	}
	name = strings.Clone(name)
	t.known[name] = name
	return name, nil
}
