package publish

import (
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/mem"
)

// minPayload is the smallest buffer: gRPC does not return smaller ones.
const minPayload = 4 << 10

// leastFree is how many bytes of buffers a pool may keep for its next requests at
// least. It is enough for those that are on the wire at once, of common sizes. A
// pool that had more in use lately, for many topics, keeps as much as that, in use
// and free together.
const leastFree = 16 << 20

// peakDecay is how slowly a pool forgets that it had more in use: by this part for
// each request. A thousand topics are a thousand requests for each bundle.
const peakDecay = 1 << 15

// A payload is the buffer of one request's wire form, shared by its attempts: a
// transport may still be reading the bytes of one that has already failed, so
// the buffer goes back to its pool only when nobody holds it any more.
type payload struct {
	buf     []byte
	entries []entry // the messages in buf, of no use to the transport
	refs    atomic.Int32
	home    *payloads
	given   int // bytes that it counts for in home.used; guarded by home.mu
}

// An entry is one message of a request. It begins where the one before it ends,
// the first behind the topic.
type entry struct {
	end   int32 // in the payload
	share int32 // index of its bundle's share in the batch
	tag   int64 // what Add was given with it
}

// view returns a fresh gRPC buffer over the bytes, for one attempt: gRPC cuts
// the buffers it is given. It counts as a hold, which gRPC gives back by Put.
func (p *payload) view() mem.Buffer {
	p.refs.Add(1)
	return mem.NewBuffer(&p.buf, p)
}

func (p *payload) release() {
	if p.refs.Add(-1) == 0 {
		p.home.put(p)
	}
}

// Put is mem.BufferPool's: the attempt that the view was made for is done.
func (p *payload) Put(*[]byte) { p.release() }

// Get is mem.BufferPool's. gRPC asks only the pools of a connection for buffers.
func (p *payload) Get(n int) *[]byte { b := make([]byte, n); return &b }

// payloads is a pool of buffers. A sync.Pool is emptied
// by the collector, which runs many times a second under load: buffers were then
// made anew for every few requests.
type payloads struct {
	// keep is the largest buffer that is used again, so that one huge message
	// does not make every later request as large. Set once.
	keep int
	// most is how many bytes wait for their use. Set once.
	most int

	mu    sync.Mutex // guards all below; nothing else is locked under it
	free  []*payload
	bytes int // of free
	used  int // bytes of those that are not free, as they were given out
	peak  int // the most of used lately
	// size and messages are those of the largest of the latest requests. A new
	// buffer is made for such a one: one that grows by doubling is copied, and
	// leaves twice its size to the collector.
	size, messages int
}

// newPayloads makes the pool for requests that are full at that many bytes.
func newPayloads(batchBytes int) *payloads {
	// Room for a full batch and for the growth of its buffer by doubling.
	keep := 2*batchBytes + minPayload
	return &payloads{keep: keep, most: max(4*keep, leastFree)}
}

// get returns an empty payload, held once.
func (s *payloads) get() *payload {
	p := s.reuse()
	if p == nil {
		p = s.make()
	}
	p.refs.Store(1)
	return p
}

// reuse returns a free payload, or nil.
func (s *payloads) reuse() *payload {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.free) - 1
	if last < 0 {
		return nil
	}
	p := s.free[last]
	s.free[last] = nil
	s.free = s.free[:last]
	s.bytes -= cap(p.buf)
	p.given = cap(p.buf)
	s.used += p.given
	return p
}

func (s *payloads) make() *payload {
	s.mu.Lock()
	// Requests that are full by count differ a little in size.
	size, messages := min(max(s.size+s.size/8, minPayload), s.keep), s.messages
	s.used += size
	s.mu.Unlock()
	return &payload{buf: make([]byte, 0, size), entries: make([]entry, 0, messages), home: s, given: size}
}

func (s *payloads) put(p *payload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size = max(len(p.buf), s.size-s.size/16)
	s.messages = max(len(p.entries), s.messages-s.messages/16)
	s.used += cap(p.buf) - p.given // it has grown
	s.peak = max(s.used, s.peak-s.peak/peakDecay)
	s.used -= cap(p.buf)
	free := s.bytes + cap(p.buf)
	if cap(p.buf) > s.keep || free > s.most && free+s.used > s.peak {
		return
	}
	p.buf, p.entries = p.buf[:0], p.entries[:0]
	s.free = append(s.free, p)
	s.bytes += cap(p.buf)
}
