package source

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// pingInterval is how often an open stream sends an empty request. The
	// service drops streams on which it hears nothing, and answers.
	pingInterval = 2 * pingTimeout
	// pingTimeout is how long the answer may take.
	pingTimeout = 15 * time.Second
)

// errSilent ends a stream whose server has fallen silent.
var errSilent = status.Error(codes.Unavailable, fmt.Sprintf("the stream has been silent: a ping had no answer within %v", pingTimeout))

// A pulse tells a dead stream from an idle one: a ping that is not answered. Some
// servers never answer, such as older emulators, and an idle stream of theirs would
// be torn down every 45 s. So an answer is missed only where the server has given
// one before, on this stream or before it was opened again. What a server of the
// other kind leaves open, the transport finds, which asks the connection.
//
// One goroutine receives and another one asks.
type pulse struct {
	asked     atomic.Bool   // a ping was sent since the stream was opened
	answers   atomic.Bool   // the server was seen to answer
	receiving atomic.Bool   // the next response is waited for
	came      atomic.Uint64 // how many did
}

// opened begins a new opening.
func (p *pulse) opened() { p.asked.Store(false) }

// received hears of a response with that many messages. An empty one is an answer
// where a ping came before; one that comes first may tell other things.
func (p *pulse) received(messages int) {
	p.came.Add(1)
	if messages == 0 && p.asked.Load() {
		p.answers.Store(true)
	}
}

// ask notes that a ping is sent, and returns what had come before.
func (p *pulse) ask() (heard uint64) {
	p.asked.Store(true)
	if heard = p.came.Load(); !p.receiving.Load() {
		return unheard
	}
	return heard
}

// unheard is no count: a reader at its caps does not look for an answer.
const unheard = math.MaxUint64

// dead reports whether nothing has come since heard, in time for an answer that
// was waited for throughout.
func (p *pulse) dead(heard uint64) bool {
	return p.answers.Load() && p.receiving.Load() && p.came.Load() == heard
}
