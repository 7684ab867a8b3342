package publish

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// A pool publishes for all the bundles of a worker that are opened with one
// configuration.
type pool struct {
	// Set once.
	opts      options.Publisher // with defaults
	endpoint  string            // for error texts
	idleAfter time.Duration
	ctx       context.Context // of every request
	cancel    context.CancelFunc
	send      sendFunc
	create    createFunc // nil where a missing topic is not created
	hangUp    func()     // closes the connection
	onIdle    func()     // in a timer's goroutine, when idleAfter is over

	// Safe by themselves.
	payloads *payloads
	stats    *stats.Sink
	requests sync.WaitGroup // one for each goroutine that publishes
	creating chan struct{}  // holds one for each creation under way

	mu       sync.Mutex // guards all below, and what is guarded in the types of this package
	topics   publishers
	filling  fillingList
	window   window
	unsent   share // what batches that were never sent hold of the window
	guard    guardrail
	bundles  int       // open ones
	parked   int       // messages that wait for a missing topic
	answered time.Time // when the service last answered a request
	warned   time.Time // when the last warning about a stall was given
	trouble  *trouble  // of the request that failed an attempt last; nil after a success
	troubled *trouble  // that request's own
	idle     *time.Timer
	unused   time.Time // since when it is, if it is
	closed   bool
}

// newPool makes a pool over w. c has its defaults. onIdle may call close.
func newPool(c Config, w wire, onIdle func()) *pool {
	ctx, cancel := context.WithCancel(context.Background())
	o := c.Publisher
	if o.EnableMessageOrdering {
		// Giving up on a request and going on with the next of its key would break
		// the order: PublishProgressTimeout is what ends an outage.
		o.RetryTotalTimeout, o.RetryMaxAttempts = options.Disabled, 0
	}
	p := &pool{
		opts:      o,
		endpoint:  transport.Endpoint(c.Connection),
		idleAfter: c.IdleTimeout,
		ctx:       ctx,
		cancel:    cancel,
		send:      w.send,
		hangUp:    w.hangUp,
		onIdle:    onIdle,
		payloads:  newPayloads(o.BatchBytes),
		stats:     stats.ForSink(c.Nonce),
		creating:  make(chan struct{}, maxCreations),
		topics:    publishers{max: o.MaxActivePublishers, idle: o.DestinationIdleTimeout, byTopic: make(map[string]*publisher), recent: list.New()},
		window:    window{maxMessages: o.MaxInFlightMessages, maxBytes: o.MaxInFlightBytes, inFlight: &stats.ForSink(c.Nonce).InFlight},
		guard:     guardrail{limit: o.MaxConsecutiveRejections},
	}
	p.filling = fillingList{delay: o.BatchDelay, fire: p.onDelay}
	if c.Disposition == options.CreateIfNeeded {
		p.create = w.create
	}
	return p
}

// A wire is what a pool needs of a connection.
type wire struct {
	send   sendFunc
	create createFunc
	hangUp func()
}

// begin opens a bundle. It is false when the pool is closed.
func (p *pool) begin(h Handlers) (*Bundle, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false
	}
	if p.idle != nil {
		p.idle.Stop()
	}
	p.bundles++
	b := &Bundle{pool: p, handlers: h, wake: make(chan struct{}, 1), batches: make(map[*batch]struct{})}
	if p.opts.PerDestinationMetrics {
		b.counts.Destinations = make(map[string]DestinationCounts)
	}
	return b, true
}

// giveBackLocked returns room and hands it to those that wait.
func (p *pool) giveBackLocked(held share) {
	if held.messages != 0 {
		p.window.giveBack(held.messages, held.bytes)
		if len(p.window.waiting) > 0 {
			p.sealHalfLocked()
		}
		p.watchIdleLocked()
	}
}

// endedLocked notes the end of a bundle.
func (p *pool) endedLocked() {
	p.bundles--
	p.watchIdleLocked()
}

// watchIdleLocked starts the time after which an unused pool closes.
func (p *pool) watchIdleLocked() {
	if p.closed || !p.unusedLocked() {
		return
	}
	p.unused = time.Now()
	if p.idle == nil {
		p.idle = time.AfterFunc(p.idleAfter, p.onIdle)
	} else {
		p.idle.Reset(p.idleAfter)
	}
}

// idledLocked reports whether p has been unused for as long as it may be. A timer
// that fires as the pool is used once more comes too early: there is another one.
func (p *pool) idledLocked() bool { return p.unusedLocked() && time.Since(p.unused) >= p.idleAfter }

func (p *pool) unusedLocked() bool { return p.bundles == 0 && p.window.messages == 0 }

// closeIf closes the pool to further bundles, if it has none and if allowed
// agrees, and says whether it did. shutDown must follow.
func (p *pool) closeIf(allowed func() bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.bundles > 0 || !allowed() {
		return false
	}
	p.closed = true
	if p.idle != nil {
		p.idle.Stop()
	}
	return true
}

// shutDown ends what is left of a closed pool: requests of bundles that were
// dropped, which nobody waits for. It waits for them for ShutdownTimeout at
// most, and reports whether they ended.
func (p *pool) shutDown() bool {
	p.cancel()
	p.mu.Lock()
	p.filling.stop()
	p.mu.Unlock()
	ended := make(chan struct{})
	// Ends with the last request; all are cancelled.
	go func() { p.requests.Wait(); close(ended) }()
	limit := time.NewTimer(p.opts.ShutdownTimeout)
	defer limit.Stop()
	defer p.hangUp()
	select {
	case <-ended:
		return true
	case <-limit.C:
		return false
	}
}
