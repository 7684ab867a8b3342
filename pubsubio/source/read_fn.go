package source

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/sdf"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/google/uuid"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/finalize"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
)

// The DoFns are called once for each bundle and split, so that Beam may call them by
// reflection. What register makes for a function of seven parameters, to spare that,
// takes the compiler most of a minute; what is called for each record has it.
func init() {
	beam.RegisterType(reflect.TypeFor[readFn]())
	register.Emitter2[beam.EventTime, beam.X]()
	register.Emitter2[beam.EventTime, Failed]()
	beam.RegisterType(reflect.TypeFor[estimator]())
}

// settings are what every DoFn of a Read carries to its workers.
type settings struct {
	Config  Config
	Decoder string
	// Nonce names the Read within the program that built the pipeline.
	Nonce string
	// Binding is set by pubsubio.Run; its zero value is right on every runner.
	Binding run.Binding
}

// BindRun implements run.Binder.
func (s *settings) BindRun(b run.Binding) { s.Binding = b }

// StatsNonce names the counters of the Read.
func (s *settings) StatsNonce() string { return s.Nonce }

// source marks a DoFn as one of a Read.
func (s *settings) source() *settings { return s }

func (s *settings) decoder() (registration, error) {
	d, ok := decoders.Find(s.Decoder)
	if !ok {
		return d, fmt.Errorf("source: decoder %s is not registered on this worker: call source.RegisterDecoder with it in init, not in main", s.Decoder)
	}
	return d, nil
}

// onWorker returns cfg as the readers need it: with what only the decoder says.
func (s *settings) onWorker(cfg Config) Config {
	d, _ := decoders.Find(s.Decoder) // ProcessElement says where it is missing.
	cfg.timedRecords = d.timed
	return cfg
}

// deadline returns when a read that begins now ends by its limit in time, as a
// restriction says it.
func (s *settings) deadline() int64 {
	d := s.Config.Limit.MaxDuration
	if d <= 0 {
		return 0
	}
	return time.Now().Add(d).UnixMilli()
}

// heldDelay is when a read looks again whether a keyed write has caught up: what
// that one holds lasts it longer.
const heldDelay = 20 * time.Millisecond

// readFn reads one split of a subscription.
type readFn struct {
	settings
}

// Resumes marks a DoFn that only works on a runner that resumes it.
func (fn *readFn) Resumes() {}

// CreateInitialRestriction begins a split.
func (fn *readFn) CreateInitialRestriction(a assignment) (restriction, error) {
	r := restriction{Version: version, Left: -1, Deadline: fn.deadline()}
	if n := fn.Config.Limit.MaxMessages; n > 0 {
		r.Left = n
	}
	if !fn.Binding.Prism {
		return r, nil
	}
	g, err := fn.group(a)
	if err != nil {
		return restriction{}, err
	}
	g.join(a.ReaderNonce)
	return r, nil
}

// SplitRestriction never splits: Flink spreads elements, not the splits of one.
func (fn *readFn) SplitRestriction(_ assignment, r restriction) []restriction {
	return []restriction{r}
}

// RestrictionSize says the same of every split: the backlog is the service's to
// know.
func (fn *readFn) RestrictionSize(assignment, restriction) float64 { return 1 }

// CreateTracker returns the tracker of one attempt.
func (fn *readFn) CreateTracker(r restriction) *sdf.LockRTracker {
	return sdf.NewLockRTracker(&tracker{restriction: r})
}

// TruncateRestriction has a drain read nothing more and settle what is owed.
func (fn *readFn) TruncateRestriction(rt *sdf.LockRTracker, _ assignment) restriction {
	r := rt.GetRestriction().(restriction)
	r.Mode = settling
	return r
}

// InitialWatermarkEstimatorState begins at the lowest watermark: nothing is known
// of a backlog.
func (fn *readFn) InitialWatermarkEstimatorState(_ beam.EventTime, _ restriction, _ assignment) int64 {
	return int64(minWatermark)
}

// CreateWatermarkEstimator resumes from the state in a residual.
func (fn *readFn) CreateWatermarkEstimator(state int64) *estimator { return newEstimator(state) }

// WatermarkEstimatorState returns the state for a residual.
func (fn *readFn) WatermarkEstimatorState(e *estimator) int64 { return e.state() }

func (fn *readFn) group(a assignment) (*group, error) {
	return groupOf(a.ReadNonce, fn.onWorker(fn.Config), fn.Binding, stats.ForSource(fn.Nonce))
}

// ProcessElement is one attempt: it claims the reader, emits what is buffered and
// hands the rest on. What it emitted is acknowledged when a later signal commits
// it, and returned when the bundle fails.
func (fn *readFn) ProcessElement(ctx context.Context, we *estimator, _ beam.BundleFinalization, rt *sdf.LockRTracker, a assignment, emit func(beam.EventTime, beam.X), failed func(beam.EventTime, Failed)) (sdf.ProcessContinuation, error) {
	scope, ok := finalize.FromContext(ctx)
	if !ok {
		return nil, errors.New("source: the runner gives the bundle no harness: a read that resumes needs prism, Flink or Dataflow; run the pipeline with pubsubio.Run")
	}
	decoder, err := fn.decoder()
	if err != nil {
		return nil, err
	}
	rest := rt.GetRestriction().(restriction)
	v, err := enter(func() (*group, error) { return fn.group(a) }, a, rest, uuid.NewString())
	if err != nil {
		return nil, err
	}
	follow(scope, v.reader, v.attempt) //nolint:contextcheck // a reader's streams outlive the bundle
	v.budget = budgetOf(scope, v.group)
	v.emit, v.refused = newEmitter(decoder, emit), fn.newDisposal(failed)
	defer v.refused.end()
	we.bind(fn.watermark(v.group, v.reader, v.attempt))

	continuation, err := fn.process(ctx, rt, rest, v)
	reportMetrics(ctx, v.group.counts, v.reader)
	return continuation, err
}

// EndRun closes what the dead-letter queue has kept in this process for a run that has
// ended. It makes the DoFn a run.Ender.
func (fn *readFn) EndRun() error { return fn.closeQueue() }

// follow has the reader hear what becomes of an attempt's bundle. The callbacks
// may be kept for an hour, so they hold no more than they need.
func follow(scope *finalize.Scope, r *reader, a *attempt) {
	scope.OnFailed(func() { r.fail(a) })
	scope.OnFinished(func() { r.finished(a) })
	scope.OnCommitted(func(s finalize.Signal) { r.signal(a, s) })
}

// process works on a claimed reader and decides how the restriction goes on.
func (fn *readFn) process(ctx context.Context, rt *sdf.LockRTracker, rest restriction, v *visit) (sdf.ProcessContinuation, error) {
	// On a local runner a keyed write of the pipeline may be far behind: nothing else
	// bounds what waits for it.
	held := v.group.run.Backlog().Full()
	if v.ended(rest) {
		rest.Mode = settling
		if err := v.reader.stopFor(v.attempt); err != nil {
			return nil, err
		}
		v.awaitSettled(ctx)
	} else if !held {
		if err := v.drainOrWait(ctx); err != nil {
			return nil, err
		}
	}
	if err := v.refused.finish(ctx); err != nil {
		return nil, err
	}
	idle, err := v.reader.leave(v.attempt, v.emitted)
	if err != nil {
		return nil, err
	}
	// A restriction never ends in a bundle that emitted, nor while anything is
	// owed: nobody would be there to settle it.
	if rest.Mode == settling && v.emitted == 0 && v.reader.endFor(v.attempt) {
		if !rt.TryClaim(finish{}) {
			return nil, errUnclaimed
		}
		v.end()
		return sdf.StopProcessing(), nil
	}
	next := rest
	next.Version, next.Token, next.Parent, next.Left = version, v.attempt.token, rest.Token, v.quota.left()
	if !rt.TryClaim(resumeAt(next)) {
		return nil, errUnclaimed
	}
	if held {
		return sdf.ResumeProcessingIn(heldDelay), nil
	}
	return sdf.ResumeProcessingIn(fn.resumeDelay(idle)), nil
}

// drainOrWait emits what is there. Where the whole bundle has nothing, one of its
// restrictions waits a little for any reader of the Read.
func (v *visit) drainOrWait(ctx context.Context) error {
	if err := v.drain(ctx); err != nil || v.budget.emitted || v.budget.waited {
		return err
	}
	v.budget.waited = true
	v.awaitMessages(ctx)
	v.budget.begin() // Nothing was emitted yet.
	delete(v.budget.served, v.reader)
	return v.drain(ctx)
}

// end ends the reader with its restriction.
//
//nolint:contextcheck // what it holds is returned although the bundle's context may have ended
func (v *visit) end() {
	ctx, cancel := context.WithTimeout(context.Background(), v.reader.config.Subscriber.ShutdownTimeout)
	defer cancel()
	v.reader.close(ctx)
	v.group.leave(v.reader)
}

// watermark returns what the estimator asks and tells.
func (fn *readFn) watermark(g *group, r *reader, a *attempt) binding {
	tell := func(t time.Time) { r.tell(a, t) }
	if fn.Binding.Prism {
		return binding{func() time.Time { return g.watermark(time.Now()) }, g.tell}
	}
	if fn.Binding.Rule == run.TwoRounds {
		// Flink cuts watermarks to whole seconds: what it was told is what it has.
		return binding{func() time.Time { return r.watermark(time.Now()).Truncate(time.Second) }, tell}
	}
	return binding{func() time.Time { return r.watermark(time.Now()) }, tell}
}

// resumeDelay returns when the restriction is to come back after that many idle
// bundles in a row. Prism comes back at once, for the bundle waits inside; Flink
// keeps state for each resume and Dataflow commits one, so they come back
// seldom while nothing happens.
func (fn *readFn) resumeDelay(idle int) time.Duration {
	if fn.Binding.Prism || idle == 0 {
		return 0
	}
	return min(time.Second<<min(idle-1, 3), 5*time.Second)
}
