package sink

import (
	"errors"
	"fmt"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/graph/window"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/typex"
	"github.com/google/uuid"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/finalize"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/keep"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/publish"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// Result is what a write gives to the rest of the pipeline.
type Result struct {
	// Failed is a PCollection<Failed>: with [EmitFailed], the records that can never
	// be published, each at its own event time in the global window, emitted at the
	// end of their bundles. It is always there, empty under any other policy, and
	// need not be used.
	//
	// Of an unbounded input, a record that fails late in its bundle may be behind the
	// watermark by then: whoever puts Failed into other windows gives them an allowed
	// lateness, or loses such records as late. Prism drops them silently.
	Failed beam.PCollection
}

// Write is TryWrite, and panics with its error, as Beam's transforms do while a
// pipeline is built.
func Write[T any](s beam.Scope, cfg Config, encode EncodeFunc[T], col beam.PCollection) Result {
	result, err := TryWrite(s, cfg, encode, col)
	if err != nil {
		panic(err)
	}
	return result
}

// TryWrite adds to s the publishing of col's records to cfg's topics, each as the
// message that encode makes of it.
//
// encode must have been given to RegisterEncoder in init: workers find it by
// name. col's elements must be of encode's type, and no pairs; they may be in any
// windows. TryWrite makes no call to Pub/Sub: what is missing there fails the
// bundles. The error joins every fault.
func TryWrite[T any](s beam.Scope, cfg Config, encode EncodeFunc[T], col beam.PCollection) (Result, error) {
	if !s.IsValid() {
		return Result{}, errors.New("sink.Write: the scope is not valid: take it from beam.NewPipelineWithRoot or Pipeline.Root")
	}
	key, encodeErr := checkEncoder(encode, col)
	if err := errors.Join(cfg.Validate(), encodeErr, checkResolver(cfg.Resolve, col)); err != nil {
		return Result{}, fmt.Errorf("sink.Write: %w", err)
	}
	finalize.Enable()
	fn, err := newWriteFn(cfg, key)
	if err != nil {
		return Result{}, fmt.Errorf("sink.Write: %w", err)
	}
	failed, err := build(s.Scope("sink.Write"), cfg, fn, col)
	if err != nil {
		return Result{}, fmt.Errorf("sink.Write: %w", err)
	}
	return Result{Failed: failed}, nil
}

// newWriteFn returns the DoFn of a write, as it travels.
func newWriteFn(cfg Config, encoder string) (*writeFn, error) {
	onFailure, err := cfg.OnFailure.travel()
	if err != nil {
		return nil, err
	}
	return &writeFn{
		preparation: preparation{
			Topic:    cfg.Topic,
			Resolver: cfg.Resolve.key,
			Encoder:  encoder,
			Stamp:    stamp{Timestamp: cfg.TimestampAttribute, ID: cfg.IDAttribute},
		},
		publication: publication{
			Failure: onFailure,
			Pool: publish.Config{
				Connection:  cfg.connection(),
				Publisher:   cfg.Publisher,
				Disposition: cfg.CreateDisposition,
				TopicCreate: cfg.TopicCreate,
				Nonce:       uuid.NewString(),
			},
		},
	}, nil
}

// build adds the transforms of a write and returns its failures, which it keeps
// consumed.
func build(s beam.Scope, cfg Config, fn *writeFn, col beam.PCollection) (beam.PCollection, error) {
	add := inPlace
	if cfg.OrderBy == options.OrderByKey {
		add = byKey
	}
	failed, err := add(s, cfg, fn, col)
	if err != nil {
		return beam.PCollection{}, err
	}
	return failed, keep.Output(s, failed)
}

// inPlace publishes col fused with what makes it.
func inPlace(s beam.Scope, _ Config, fn *writeFn, col beam.PCollection) (beam.PCollection, error) {
	col, err := globally(s, col)
	if err != nil {
		return beam.PCollection{}, err
	}
	out, err := beam.TryParDo(s, fn, col)
	if err != nil {
		return beam.PCollection{}, err
	}
	return out[0], nil
}

// globally returns col in the global window, which is where the end of a bundle
// emits.
func globally(s beam.Scope, col beam.PCollection) (beam.PCollection, error) {
	if col.WindowingStrategy().Fn.Kind == window.GlobalWindows {
		return col, nil
	}
	return beam.TryWindowInto(s, window.NewGlobalWindows(), col)
}

// checkEncoder returns the key under which the workers find encode, if they do
// and if it takes col's elements.
func checkEncoder[T any](encode EncodeFunc[T], col beam.PCollection) (string, error) {
	e, key, err := newEncoder(encode)
	if err != nil {
		return "", fmt.Errorf("encoder %w", err)
	}
	var faults []error
	if err := encoders.Registered(key, encode, "sink.RegisterEncoder"); err != nil {
		faults = append(faults, fmt.Errorf("encoder %w", err))
	}
	switch {
	case !col.IsValid():
		faults = append(faults, errors.New("the collection is not valid"))
	case isPairs(col):
		faults = append(faults, fmt.Errorf("the collection holds pairs (%v): make each a value that encoder %s takes first", col.Type(), e.name))
	case !col.Type().Type().AssignableTo(e.record):
		faults = append(faults, fmt.Errorf("encoder %s takes %v, the collection holds %v", e.name, e.record, col.Type()))
	}
	return key, errors.Join(faults...)
}

// checkResolver says whether r, if it is set, takes col's elements.
func checkResolver(r Resolver, col beam.PCollection) error {
	usable := r.isSet() && r.fault == nil && col.IsValid() && !isPairs(col) // the rest is said elsewhere
	if usable && !col.Type().Type().AssignableTo(r.record) {
		return fmt.Errorf("resolver %s takes %v, the collection holds %v", r.name, r.record, col.Type())
	}
	return nil
}

func isPairs(col beam.PCollection) bool { return typex.IsKV(col.Type()) || typex.IsCoGBK(col.Type()) }
