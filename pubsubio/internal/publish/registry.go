package publish

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
)

// pools is a process-wide registry because a pool outlives the bundles and the
// DoFn instances that use it: batches, caps and the connection belong to the
// worker.
var pools = registry{entries: make(map[string]*registered)}

type registry struct {
	mu      sync.Mutex // guards all below
	entries map[string]*registered
}

// registered is a pool that is made by the first who needs it, outside of the
// registry's lock: it reads credentials.
type registered struct {
	once sync.Once // sets the two below
	pool atomic.Pointer[pool]
	err  error
}

// Open opens a bundle in the process's pool for c, which it makes if there is
// none.
//
// Open makes no call to the service. It fails when the credentials cannot be
// read; the next call tries again.
func Open(c Config, h Handlers) (*Bundle, error) {
	c, h = c.withDefaults(), h.withDefaults()
	for {
		e := pools.entry(c)
		e.once.Do(func() { e.err = e.connect(c) })
		if e.err != nil {
			pools.forget(c, e)
			return nil, fmt.Errorf("publish: %w", e.err)
		}
		if b, ok := e.pool.Load().begin(h); ok {
			return b, nil
		}
		pools.forget(c, e) // closed since it was found
	}
}

// connect makes the pool.
func (e *registered) connect(c Config) error {
	conn, err := transport.Dial(c.Connection, transport.Publishing)
	if err != nil {
		return err
	}
	hangUp := func() { _ = conn.Close() } // nobody waits for a request any more
	e.pool.Store(newPool(c, wireOf(c, conn.ClientConn(), hangUp), func() { e.closeUnused(c) }))
	return nil
}

// closeUnused is what a pool's idle timer calls.
func (e *registered) closeUnused(c Config) {
	p := e.pool.Load()
	if p.closeIf(p.idledLocked) {
		pools.forget(c, e)
		p.shutDown()
	}
}

// Close closes the pool for c at once, unless it has open bundles, and returns
// when its requests have ended, after ShutdownTimeout at the latest. Without a
// pool it does nothing; the next Open makes another one.
func Close(c Config) error {
	c = c.withDefaults()
	pools.mu.Lock()
	e := pools.entries[c.Nonce]
	pools.mu.Unlock()
	if e == nil {
		return nil
	}
	return e.close(c)
}

func (e *registered) close(c Config) error {
	p := e.pool.Load() // nil while it is being made, for a bundle
	if p == nil || !p.closeIf(func() bool { return true }) {
		return nil
	}
	pools.forget(c, e)
	if !p.shutDown() {
		return fmt.Errorf("publish: requests still under way %v after the pool was closed (options.Publisher.ShutdownTimeout)", p.opts.ShutdownTimeout)
	}
	return nil
}

func (r *registry) entry(c Config) *registered {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.entries[c.Nonce]
	if !ok {
		e = new(registered)
		r.entries[c.Nonce] = e
	}
	return e
}

func (r *registry) forget(c Config, e *registered) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries[c.Nonce] == e {
		delete(r.entries, c.Nonce)
	}
}
