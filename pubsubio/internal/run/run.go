// Package run connects a pipeline that pubsubio.Run has started with the parts
// of it that live in this process: which signal commits a bundle, when to stop,
// and what to acknowledge or return at the end.
package run

import (
	"context"
	"errors"
	"sync"

	"github.com/google/uuid"
)

// A Rule says which signal proves that what a bundle emitted is durable.
type Rule int

const (
	// TwoRounds commits a bundle once another bundle of the same reader is
	// finalized that finished after the first finalization of this one had
	// arrived. It holds on every runner that finalizes bundles, also where a
	// finalization comes one checkpoint early, as on Flink.
	TwoRounds Rule = iota
	// Finalized commits a bundle once it is finalized, which prism does after
	// the commit.
	Finalized
	// FinalizedOrResumed commits a bundle once it is finalized, or once a residual
	// is resumed that builds on it. Dataflow hands a residual out if and only if it
	// has committed the bundle that left it, and finalizes with best effort only.
	FinalizedOrResumed
	// Pipeline commits everything once the pipeline has succeeded: the direct
	// runner knows neither bundles that fail alone nor finalization.
	Pipeline
)

// A Binding is what a read has to know of its run, and carries to the workers.
type Binding struct {
	// RunID names the run within the process that started it; a worker
	// elsewhere finds no run of that name.
	RunID string
	// Rule is the signal that commits.
	Rule Rule
	// Prism is set where the runner is known to be prism, which schedules
	// bundles and watermarks in ways of its own.
	Prism bool
}

// A Binder is a DoFn that takes a Binding before the pipeline is submitted.
type Binder interface{ BindRun(Binding) }

// An Ender is a DoFn that keeps something in the worker's process beyond its
// bundles, and lets go of it once its run has ended.
type Ender interface{ EndRun() error }

// A Part belongs to a run and lives in this process: the readers of one Read.
type Part interface {
	// Commit acknowledges everything the part holds staged.
	Commit()
	// Close waits until what is committed has been acknowledged, returns the
	// rest and ends, at the latest with ctx. It calls Remove.
	Close(ctx context.Context)
}

// A Run is one execution of a pipeline by pubsubio.Run. Methods of a nil Run, as
// a worker elsewhere finds it, do nothing.
type Run struct {
	Binding
	stop    chan struct{}
	once    sync.Once
	backlog Backlog

	mu    sync.Mutex // guards all below
	parts map[Part]struct{}
	errs  []error
	ended bool
}

// runs holds the runs of this process by id, and nil for those that have ended,
// a few bytes each. It is package state because a DoFn is made anew from its
// JSON on its worker, which on a local runner is this process.
var runs sync.Map

// Start registers a run.
func Start(rule Rule, prism bool) *Run {
	r := &Run{
		Binding: Binding{RunID: uuid.NewString(), Rule: rule, Prism: prism},
		stop:    make(chan struct{}),
		parts:   make(map[Part]struct{}),
	}
	runs.Store(r.RunID, r)
	return r
}

// Find returns the run with that id, nil where it has ended or belongs to another
// process.
func Find(id string) *Run {
	v, _ := runs.Load(id)
	r, _ := v.(*Run)
	return r
}

// HasEnded reports whether a run of this process had that id and has ended.
func HasEnded(id string) bool {
	v, ok := runs.Load(id)
	return ok && v == nil
}

// Stop asks the run's reads to end as if their limit were reached. It does not
// wait, and may be called twice.
func (r *Run) Stop() { r.once.Do(func() { close(r.stop) }) }

// Stopping is closed once Stop was called.
func (r *Run) Stopping() <-chan struct{} {
	if r == nil {
		return nil
	}
	return r.stop
}

// Backlog is that of the run's keyed writes.
func (r *Run) Backlog() *Backlog {
	if r == nil {
		return nil
	}
	return &r.backlog
}

// Add makes p a part of the run, until Remove. It is false where the run has
// ended: nothing would close p any more.
func (r *Run) Add(p Part) bool {
	if r == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	r.parts[p] = struct{}{}
	return true
}

// Remove takes p out of the run, if it is in it. err says what p could not do;
// End returns it.
func (r *Run) Remove(p Part, err error) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.parts[p]; ok && err != nil {
		r.errs = append(r.errs, err)
	}
	delete(r.parts, p)
}

// Commit acknowledges what every part of the run holds.
func (r *Run) Commit() {
	for _, p := range r.all() {
		p.Commit()
	}
}

// End closes the parts together, at the latest with ctx, forgets the run, and
// returns what any part could not do.
func (r *Run) End(ctx context.Context) error {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	runs.Store(r.RunID, nil)
	var wg sync.WaitGroup
	for _, p := range r.all() {
		wg.Go(func() { p.Close(ctx) })
	}
	wg.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.errs...)
}

func (r *Run) all() []Part {
	r.mu.Lock()
	defer r.mu.Unlock()
	parts := make([]Part, 0, len(r.parts))
	for p := range r.parts {
		parts = append(parts, p)
	}
	return parts
}
