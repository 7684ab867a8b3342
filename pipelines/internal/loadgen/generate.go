package loadgen

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/sdf"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/rtrackers/offsetrange"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/google/uuid"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/load"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
)

func init() {
	register.DoFn4x2[context.Context, *sdf.LockRTracker, []byte, func(*message.Message), sdf.ProcessContinuation, error](&generateFn{})
	register.Emitter1[*message.Message]()
}

// A generator is what a run of the program knows of its generateFn, which Beam makes
// anew from its JSON in this process.
type generator struct {
	// Set once.
	stream load.Stream
	pacer  pacer

	stopping atomic.Bool
	began    time.Time // set and read by ProcessElement, which runs one at a time

	emitted, poison atomic.Int64
}

// generators are those that exist, by nonce.
var generators sync.Map

// stop has no more messages made. What is under way goes on.
func (g *generator) stop() { g.stopping.Store(true) }

// generate adds g to s and returns its messages, end of them at most. forget lets go
// of g once the pipeline has ended.
func generate(s beam.Scope, g *generator, end int64) (messages beam.PCollection, forget func()) {
	nonce := uuid.NewString()
	generators.Store(nonce, g)
	return beam.ParDo(s, &generateFn{Nonce: nonce, End: end}, beam.Impulse(s)), func() { generators.Delete(nonce) }
}

// generateFn makes the messages of a stream when they are due. Its restriction is the
// messages that are left. It is never split but where it resumes: so one call is made
// at a time, which keeps the rate, and the order of the messages.
type generateFn struct {
	Nonce string
	End   int64
}

// CreateInitialRestriction is all messages.
func (fn *generateFn) CreateInitialRestriction([]byte) offsetrange.Restriction {
	return offsetrange.Restriction{End: fn.End}
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

// unsplit is split only where ProcessElement resumes.
type unsplit struct{ *offsetrange.Tracker }

// TrySplit implements sdf.RTracker.
func (t unsplit) TrySplit(fraction float64) (primary, residual any, err error) {
	if fraction != 0 {
		return nil, nil, nil
	}
	return t.Tracker.TrySplit(fraction)
}

// ProcessElement makes what is due and says when to come back. The sink holds it back
// in emit.
func (fn *generateFn) ProcessElement(_ context.Context, rt *sdf.LockRTracker, _ []byte, emit func(*message.Message)) (sdf.ProcessContinuation, error) {
	v, ok := generators.Load(fn.Nonce)
	if !ok {
		return sdf.StopProcessing(), fmt.Errorf("loadgen: no generator %s in this process", fn.Nonce)
	}
	g := v.(*generator)
	rest := rt.GetRestriction().(offsetrange.Restriction)
	now := time.Now()
	if g.began.IsZero() {
		g.began = now
	}
	since := now.Sub(g.began)
	if g.stopping.Load() || g.pacer.over(since) {
		return finish(rt, rest)
	}
	until := min(g.pacer.due(since), rest.End, rest.Start+bundleMost)
	next := rest.Start
	for ; next < until && g.goesOn(now); next++ {
		if !rt.TryClaim(next) {
			return sdf.StopProcessing(), rt.GetError()
		}
		g.emit(next, emit)
	}
	if next == rest.End {
		return sdf.StopProcessing(), nil
	}
	return sdf.ResumeProcessingIn(g.pacer.wait(next, time.Since(g.began))), nil
}

// finish gives up the messages that are left.
func finish(rt *sdf.LockRTracker, rest offsetrange.Restriction) (sdf.ProcessContinuation, error) {
	rt.TryClaim(rest.End) // Claims the end, which is no message, and is refused.
	return sdf.StopProcessing(), rt.GetError()
}

// goesOn reports whether a bundle that began then may have more messages.
func (g *generator) goesOn(began time.Time) bool {
	return !g.stopping.Load() && time.Since(began) < bundleTime
}

func (g *generator) emit(i int64, emit func(*message.Message)) {
	emit(g.stream.Message(i, time.Now()))
	g.emitted.Add(1)
	if g.stream.Poisoned(i) {
		g.poison.Add(1)
	}
}
