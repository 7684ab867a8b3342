package dlq

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
)

// queues holds what makes a queue from JSON, by the name of its type. It is package
// state because a worker makes a transform anew from JSON, which names types only;
// it is filled in init.
var queues sync.Map // of func(json.RawMessage) (Queue, error)

// Register makes the queues of type T known to the workers. Call it in init: a
// worker on a real runner never reaches main. Twice does no harm. It panics where T
// has no name of its own.
func Register[T Queue]() {
	name, err := nameOf(reflect.TypeFor[T]())
	if err != nil {
		panic("dlq.Register: " + err.Error())
	}
	queues.Store(name, func(config json.RawMessage) (Queue, error) {
		var q T
		if err := json.Unmarshal(config, &q); err != nil {
			return nil, err
		}
		return q, nil
	})
}

// nameOf names a type for all processes of a program.
func nameOf(t reflect.Type) (string, error) {
	named, star := t, ""
	if t.Kind() == reflect.Pointer {
		named, star = t.Elem(), "*"
	}
	switch {
	case named.Kind() == reflect.Interface:
		return "", fmt.Errorf("%v is an interface: give the type that implements it", t)
	case named.Name() == "":
		return "", fmt.Errorf("%v has no name: workers find a type by its name", t)
	}
	return star + named.PkgPath() + "." + named.Name(), nil
}

// Encoded is a queue on its way to the workers, within a transform that travels as
// JSON.
type Encoded struct {
	// Type is the name of the queue's type.
	Type string
	// Config is the queue itself.
	Config json.RawMessage
}

// EncodeQueue returns q as it travels. It is an error where q is nil, where its type was
// not given to [Register], and where it has no JSON. It is for transforms that use
// queues, while a pipeline is built.
func EncodeQueue(q Queue) (Encoded, error) {
	if q == nil {
		return Encoded{}, errors.New("the dead-letter queue is nil")
	}
	t := reflect.TypeOf(q)
	if t.Kind() == reflect.Pointer && reflect.ValueOf(q).IsNil() {
		return Encoded{}, fmt.Errorf("the dead-letter queue is a nil %v", t)
	}
	name, err := nameOf(t)
	if err != nil {
		return Encoded{}, fmt.Errorf("the dead-letter queue's type %w", err)
	}
	if _, ok := queues.Load(name); !ok {
		return Encoded{}, fmt.Errorf("the dead-letter queue's type %v is not registered: call dlq.Register[%v]() in init", t, t)
	}
	config, err := json.Marshal(q)
	if err != nil {
		return Encoded{}, fmt.Errorf("the dead-letter queue has no JSON: %w", err)
	}
	return Encoded{Type: name, Config: config}, nil
}

// DecodeQueue returns the queue that e holds. It is for transforms that use queues, on a
// worker.
func DecodeQueue(e Encoded) (Queue, error) {
	maker, ok := queues.Load(e.Type)
	if !ok {
		return nil, fmt.Errorf("dead-letter queue %s is not registered on this worker: call dlq.Register with it in init, not in main", e.Type)
	}
	q, err := maker.(func(json.RawMessage) (Queue, error))(e.Config)
	if err != nil {
		return nil, fmt.Errorf("dead-letter queue %s: read its configuration: %w", e.Type, err)
	}
	return q, nil
}
