package main

import (
	"context"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/sdf"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/rtrackers/offsetrange"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

func init() {
	register.DoFn4x2[context.Context, *sdf.LockRTracker, []byte, func(*record), sdf.ProcessContinuation, error](&generateFn{})
	register.Emitter1[*record]()
	register.DoFn2x0[beam.X, func([]byte)](&countFn{})
	register.Emitter1[[]byte]()
	register.Function1x0(discard)
}

// generate is a source in memory, in the shape of source.Read: a splittable
// DoFn that emits a bundle and resumes. A bundle has as many records as source.Read
// would put into it.
func generate(s beam.Scope, j job) (beam.PCollection, error) {
	in, _, err := j.settings.ours()
	fn := &generateFn{
		Load: j.load, Phase: j.phase, Messages: j.messages,
		Bundle: in.Subscriber.WithDefaults().MaxRecordsPerBundle,
	}
	return beam.ParDo(s, fn, beam.Impulse(s)), err
}

// generateFn emits messages of a load. Its restriction counts bundles.
type generateFn struct {
	Load     load
	Phase    Phase
	Messages int
	Bundle   int

	deck *deck
}

// CreateInitialRestriction is everything.
func (fn *generateFn) CreateInitialRestriction([]byte) offsetrange.Restriction {
	return offsetrange.Restriction{End: int64((fn.Messages + fn.Bundle - 1) / fn.Bundle)}
}

// SplitRestriction never splits.
func (fn *generateFn) SplitRestriction(_ []byte, r offsetrange.Restriction) []offsetrange.Restriction {
	return []offsetrange.Restriction{r}
}

// RestrictionSize is what is left.
func (fn *generateFn) RestrictionSize(_ []byte, r offsetrange.Restriction) float64 { return r.Size() }

// CreateTracker returns the tracker of one bundle.
func (fn *generateFn) CreateTracker(r offsetrange.Restriction) *sdf.LockRTracker {
	return sdf.NewLockRTracker(unsplit{offsetrange.NewTracker(r)})
}

// unsplit is split only where ProcessElement resumes: one generator stays one, as
// one split of a subscription does.
type unsplit struct{ *offsetrange.Tracker }

// TrySplit implements sdf.RTracker.
func (t unsplit) TrySplit(fraction float64) (primary, residual any, err error) {
	if fraction != 0 {
		return nil, nil, nil
	}
	return t.Tracker.TrySplit(fraction)
}

// Setup makes what messages are made of.
func (fn *generateFn) Setup() { fn.deck = fn.Load.deck(fn.Phase) }

// ProcessElement emits a bundle.
func (fn *generateFn) ProcessElement(_ context.Context, rt *sdf.LockRTracker, _ []byte, emit func(*record)) (sdf.ProcessContinuation, error) {
	at := rt.GetRestriction().(offsetrange.Restriction).Start
	if !rt.TryClaim(at) {
		return sdf.StopProcessing(), rt.GetError()
	}
	first := int(at) * fn.Bundle
	for i := first; i < min(first+fn.Bundle, fn.Messages); i++ {
		emit(&record{
			Message: message.Message{Data: fn.deck.data(i), OrderingKey: fn.deck.key(i)},
			Topic:   fn.deck.topic(i),
		})
	}
	return sdf.ResumeProcessingIn(0), nil
}

// count consumes anything. Its output is kept for the reason for which a sink
// keeps one: prism spins a core over a stage that has none.
func count(s beam.Scope, messages beam.PCollection) {
	kept := beam.ParDo(s, &countFn{}, messages)
	beam.ParDo0(s, discard, beam.Reshuffle(s, kept))
}

type countFn struct{ n int64 }

// ProcessElement counts.
func (fn *countFn) ProcessElement(beam.X, func([]byte)) { fn.n++ }

func discard([]byte) {}
