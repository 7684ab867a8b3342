package finalize

import (
	"context"
	"sync"
)

// A Signal says that a runner finalized a bundle. Its two ticks come from one
// counter of the process, so that any two of them can be ordered.
type Signal struct {
	// Finished is when the bundle's last element had been processed, before the
	// runner was told.
	Finished uint64
	// Arrived is when the finalization reached this process.
	Arrived uint64
}

// A Scope is one bundle, from the request to process it until it is finalized,
// has failed or has expired. The transforms of a bundle share it.
type Scope struct {
	mu         sync.Mutex // guards all below
	onFinished []func()
	committed  []func(Signal)
	failed     []func()
	shared     map[any]any
	finished   uint64
}

type scopeKey struct{}

// FromContext returns the scope of the bundle that ctx, a DoFn's context,
// belongs to. It is false where there is no harness, as on the direct runner, or
// where the pipeline was built without [Enable].
func FromContext(ctx context.Context) (*Scope, bool) {
	s, ok := ctx.Value(scopeKey{}).(*Scope)
	return s, ok
}

// OnCommitted has f called once the runner has finalized the bundle, or never.
//
// f runs inside a hook, on the goroutine that reads the runner's instructions:
// it must return at once, make no call and wait for nothing but a lock that is
// held as briefly.
func (s *Scope) OnCommitted(f func(Signal)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.committed = append(s.committed, f)
}

// OnFinished has f called once the bundle has ended well, before the runner is
// told, or never. f is bound as OnCommitted's is.
func (s *Scope) OnFinished(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onFinished = append(s.onFinished, f)
}

// OnFailed has f called once the bundle has failed, or never. The callbacks run
// in the order of their registration: a sink that registers when the bundle
// starts lets go of its messages before the source, which registers when it is
// given an element, returns them. f is bound as OnCommitted's is.
func (s *Scope) OnFailed(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = append(s.failed, f)
}

// Value returns what the bundle's transforms share under key, made by init at
// the first call. key should be of an unexported type.
func (s *Scope) Value(key any, init func() any) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.shared[key]
	if !ok {
		if s.shared == nil {
			s.shared = make(map[any]any)
		}
		v = init()
		s.shared[key] = v
	}
	return v
}

// finish stamps the end of a bundle that has ended well, calls back, and reports
// whether anybody waits for its finalization.
func (s *Scope) finish(tick uint64) bool {
	s.mu.Lock()
	callbacks, waiting := s.onFinished, len(s.committed) > 0
	s.finished = tick
	s.onFinished, s.failed, s.shared = nil, nil, nil
	s.mu.Unlock()
	for _, f := range callbacks {
		f()
	}
	return waiting
}

func (s *Scope) commit(arrived uint64) {
	s.mu.Lock()
	callbacks, signal := s.committed, Signal{Finished: s.finished, Arrived: arrived}
	s.committed = nil
	s.mu.Unlock()
	for _, f := range callbacks {
		f(signal)
	}
}

func (s *Scope) fail() {
	s.mu.Lock()
	callbacks := s.failed
	s.onFinished, s.committed, s.failed, s.shared = nil, nil, nil, nil
	s.mu.Unlock()
	for _, f := range callbacks {
		f()
	}
}
