package source

import (
	"errors"
	"flag"
	"fmt"
	"reflect"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/google/uuid"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/byname"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/finalize"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/keep"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
)

// Read is [TryRead] that panics with the error, as Beam's transforms do.
func Read[T any](s beam.Scope, cfg Config, decode DecodeFunc[T]) beam.PCollection {
	records, err := TryRead(s, cfg, decode)
	if err != nil {
		panic(err)
	}
	return records
}

// TryRead adds to s a read of cfg's subscriptions and returns the decoded
// records, a PCollection<T>, or of T where decode emits Timed[T]. It is unbounded,
// also where cfg.Limit ends it, except on the direct runner. A record's event time
// is its message's publish time, unless Config.TimestampAttribute or decode says
// another.
//
// decode must have been given to [RegisterDecoder] in init: workers find it by
// name, and call it from several bundles at once. [Message], [Bytes] and
// [String] are ready-made, [JSON] and [Proto] need their instances registered.
//
// Delivery is at least once: a message is acknowledged after the bundle that
// emitted it is known to have committed, see the package comment for what that
// takes on each runner.
//
// TryRead makes no call to Pub/Sub: what is wrong there fails the job when it starts,
// see Config.Subscriptions. The error joins every fault of cfg. [EmitFailed] is one of
// them: what it emits is on the second output of [TryReadWithFailures].
func TryRead[T any](s beam.Scope, cfg Config, decode DecodeFunc[T]) (beam.PCollection, error) {
	var unseen error
	if cfg.OnDecodeFailure.kind == emitFailed {
		unseen = errors.New("source.Config.OnDecodeFailure: source.EmitFailed(): needs source.ReadWithFailures, which returns what is emitted: with source.Read it would be acknowledged and lost")
	}
	records, _, err := tryRead(s, cfg, decode, unseen)
	return records, err
}

// ReadWithFailures is [TryReadWithFailures] that panics with the error.
func ReadWithFailures[T any](s beam.Scope, cfg Config, decode DecodeFunc[T]) (records, failed beam.PCollection) {
	records, failed, err := TryReadWithFailures(s, cfg, decode)
	if err != nil {
		panic(err)
	}
	return records, failed
}

// TryReadWithFailures is [TryRead] with a second output, a PCollection<Failed>: with
// [EmitFailed], the messages that the decoder refused, each at its event time in the
// global window. It is empty under any other policy, and need not be used.
func TryReadWithFailures[T any](s beam.Scope, cfg Config, decode DecodeFunc[T]) (records, failed beam.PCollection, err error) {
	return tryRead(s, cfg, decode, nil)
}

func tryRead[T any](s beam.Scope, cfg Config, decode DecodeFunc[T], fault error) (records, failed beam.PCollection, err error) {
	name, decodeErr := checkDecoder(cfg, decode)
	if err := errors.Join(cfg.Validate(), fault, decodeErr); err != nil {
		return beam.PCollection{}, beam.PCollection{}, fmt.Errorf("source.Read: %w", err)
	}
	finalize.Enable()
	cfg.StartPosition = cfg.StartPosition.At(time.Now())
	fn := settings{Config: cfg, Decoder: name, Nonce: uuid.NewString(), Binding: bindingOf(runnerFlag())}
	record, _ := recordOf[T]()
	records, failed, err = build(s.Scope("source.Read"), fn, record)
	if err != nil {
		return beam.PCollection{}, beam.PCollection{}, fmt.Errorf("source.Read: %w", err)
	}
	return records, failed, nil
}

// checkDecoder returns the name under which the workers find decode, if they do and
// if it goes with cfg.
func checkDecoder[T any](cfg Config, decode DecodeFunc[T]) (string, error) {
	name, err := byname.Key(decode, reflect.TypeFor[T]())
	if err == nil {
		err = decoders.Registered(name, decode, "source.RegisterDecoder")
	}
	if err != nil {
		return "", fmt.Errorf("decoder %w", err)
	}
	if _, timed := recordOf[T](); timed && cfg.TimestampAttribute != "" {
		return "", fmt.Errorf("source.Config.TimestampAttribute: %.40q: must be empty beside a decoder that emits source.Timed records, which have times of their own", cfg.TimestampAttribute)
	}
	return name, nil
}

// build adds the transforms of a read and returns its records and its failures. The
// failures are the output that a read keeps, see package keep.
func build(s beam.Scope, fn settings, record reflect.Type) (records, failed beam.PCollection, err error) {
	impulse := beam.Impulse(s)
	typed := beam.TypeDefinition{Var: beam.XType, T: record}
	if run.IsDirect(runnerFlag()) && fn.Config.Limit.IsSet() {
		out, err := beam.TryParDo(s, &boundedFn{fn}, impulse, typed)
		if err != nil {
			return beam.PCollection{}, beam.PCollection{}, err
		}
		return out[0], out[1], nil
	}
	splits, err := beam.TryParDo(s, &startupFn{fn}, impulse)
	if err != nil {
		return beam.PCollection{}, beam.PCollection{}, err
	}
	out, err := beam.TryParDo(s, &readFn{fn}, splits[0], typed)
	if err != nil {
		return beam.PCollection{}, beam.PCollection{}, err
	}
	return out[0], out[1], keep.Output(s, out[1])
}

// runnerFlag returns the value of Beam's flag --runner, empty where it was not
// given.
func runnerFlag() string {
	if f := flag.Lookup("runner"); f != nil {
		return f.Value.String()
	}
	return ""
}

// bindingOf is what a program that does not use pubsubio.Run tells of its runner:
// an explicit --runner=prism or --runner=dataflow is believed, and anything else is
// served by the rule that holds on every runner that finalizes.
func bindingOf(runner string) run.Binding {
	switch {
	case run.IsPrism(runner):
		return run.Binding{Rule: run.Finalized, Prism: true}
	case run.IsDataflow(runner):
		return run.Binding{Rule: run.FinalizedOrResumed}
	}
	return run.Binding{}
}

// Owns reports whether a DoFn of a built pipeline belongs to a Read of this
// package; pubsubio.CountsOf asks.
func Owns(doFn any) bool {
	_, ok := doFn.(interface{ source() *settings })
	return ok
}
