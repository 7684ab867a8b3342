package transport

import (
	"slices"
	"sync"

	"google.golang.org/grpc"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// connections is a process-wide registry because bundles, DoFn instances and
// pipelines come and go, and a connection each would cost a handshake and a
// token each.
var connections = registry{entries: make(map[registryKey][]*shared)}

type registryKey struct {
	options.Connection
	Direction
}

type registry struct {
	mu      sync.Mutex // guards all below, and refs of each entry
	entries map[registryKey][]*shared
}

type shared struct {
	dialOnce sync.Once // sets the two below
	conn     *grpc.ClientConn
	err      error

	refs int
}

// acquire takes n holds on the first connection of key that has room for them, so
// that the later ones close first.
func (r *registry) acquire(key registryKey, n int) *shared {
	r.mu.Lock()
	defer r.mu.Unlock()
	limit := key.holds()
	for _, s := range r.entries[key] {
		if limit == 0 || s.refs+n <= limit {
			s.refs += n
			return s
		}
	}
	s := &shared{refs: n}
	r.entries[key] = append(r.entries[key], s)
	return s
}

// release gives n holds on s back. A failed entry is forgotten at once, so that
// nobody finds it any more; a good one when its last hold goes.
func (r *registry) release(key registryKey, s *shared, n int) error {
	r.mu.Lock()
	s.refs -= n
	last := s.refs == 0
	if last || s.err != nil {
		r.forgetLocked(key, s)
	}
	r.mu.Unlock()
	if last && s.conn != nil {
		return s.conn.Close()
	}
	return nil
}

func (r *registry) forgetLocked(key registryKey, s *shared) {
	left := slices.DeleteFunc(r.entries[key], func(other *shared) bool { return other == s })
	if len(left) == 0 {
		delete(r.entries, key)
		return
	}
	r.entries[key] = left
}
