package dlq

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/runtime"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/typex"
	"github.com/google/uuid"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/finalize"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/keep"
)

// A Failure is an element that [Write] can send: sink.Failed, source.Failed, or what
// a transform of one's own emits for a record that it gave up. Its type must be
// registered with beam.RegisterType in init.
type Failure interface {
	// DeadLetter returns the record, where it was to go and what went wrong. A
	// Connector of one's own, as "shop.geocoder", tells such letters from others.
	DeadLetter() Letter
}

// Write is TryWrite, and panics with its error, as Beam's transforms do while a
// pipeline is built.
func Write(s beam.Scope, queue Queue, failed beam.PCollection) {
	if err := TryWrite(s, queue, failed); err != nil {
		panic(err)
	}
}

// TryWrite adds to s the sending of failed's elements to a queue, as a [Config] is
// one. A bundle succeeds once the queue has made all of its letters durable; one that
// fails is run again, and its letters may come twice.
//
// The elements must be of a type that is a [Failure], in any windows. The queue is
// checked when the first bundle starts. TryWrite makes no call; the error joins every
// fault.
func TryWrite(s beam.Scope, queue Queue, failed beam.PCollection) error {
	if !s.IsValid() {
		return errors.New("dlq.Write: the scope is not valid: take it from beam.NewPipelineWithRoot or Pipeline.Root")
	}
	encoded, queueErr := validated(queue)
	if err := errors.Join(queueErr, checkFailures(failed)); err != nil {
		return fmt.Errorf("dlq.Write: %w", err)
	}
	finalize.Enable()
	s = s.Scope("dlq.Write")
	out, err := beam.TryParDo(s, &writeFn{Queue: encoded, Nonce: uuid.NewString()}, failed)
	if err == nil {
		err = keep.Output(s, out[0])
	}
	if err != nil {
		return fmt.Errorf("dlq.Write: %w", err)
	}
	return nil
}

// validated returns the queue as it travels, if it has no fault as the workers will
// find it: what JSON does not carry is lost on the way.
func validated(queue Queue) (Encoded, error) {
	encoded, err := EncodeQueue(queue)
	if err != nil {
		return Encoded{}, err
	}
	there, err := DecodeQueue(encoded)
	if err != nil {
		return Encoded{}, err
	}
	return encoded, there.Validate()
}

// checkFailures says why col's elements cannot be sent, if they cannot.
func checkFailures(col beam.PCollection) error {
	if !col.IsValid() {
		return errors.New("the collection is not valid")
	}
	if typex.IsKV(col.Type()) || typex.IsCoGBK(col.Type()) {
		return fmt.Errorf("the collection holds pairs (%v): make each a value with a method DeadLetter() dlq.Letter", col.Type())
	}
	t := col.Type().Type()
	if !t.Implements(reflect.TypeFor[Failure]()) {
		return fmt.Errorf("the collection holds %v, which has no method DeadLetter() dlq.Letter", t)
	}
	named := t
	for named.Kind() == reflect.Pointer {
		named = named.Elem()
	}
	key, ok := runtime.TypeKey(named)
	if ok {
		_, ok = runtime.LookupType(key)
	}
	if !ok {
		// Beam makes an unknown type anew on the worker, without its methods.
		return fmt.Errorf("type %v is not registered: call beam.RegisterType(reflect.TypeFor[%v]()) in init", t, named)
	}
	return nil
}
