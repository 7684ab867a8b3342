package source

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/stats"
)

// groups holds the groups of this process by their Read's nonce. It is package
// state because a bundle's DoFn is made anew from its JSON and must find the
// readers that earlier bundles have left.
var groups = struct {
	sync.Mutex
	byNonce map[string]*group
}{byNonce: make(map[string]*group)}

// A group is what the readers of one Read share in this process: the cap on
// buffers, the limit, and on prism the watermark.
type group struct {
	// Set once.
	nonce   string
	config  Config // with defaults
	binding run.Binding
	run     *run.Run // nil where the run was started by another process
	counts  *stats.Source
	quota   *quota // nil unless all readers count Limit.MaxMessages together

	// Safe by themselves.
	gate    gate
	told    atomic.Int64 // the watermark that was reported on prism, in Beam's milliseconds
	filled  filledReaders
	changed broadcast // a message has come, an answer, a failure, or a reader has closed
	overdue sync.Map  // subscriptions that were warned of, see visit.overdue

	mu      sync.Mutex // guards all below
	readers map[string]*reader
	open    int // readers that have not closed, those in readers and others
	// live are the restrictions that have not ended, by reader nonce: on prism
	// each holds the watermark back, also before its first claim.
	live     map[string]struct{}
	recent   recentWatermark
	awaiting map[string]*awaiting // by subscription
	topics   map[string]*topicWatch
	gone     bool  // no longer in groups; nothing may be added
	lost     int64 // committed messages that were not acknowledged
	lostTo   error // the last reason
}

// groupOf returns the group of a Read, made at the first call. It is an error
// where the run has ended: a bundle that starts so late is void.
func groupOf(nonce string, cfg Config, binding run.Binding, counts *stats.Source) (*group, error) {
	groups.Lock()
	defer groups.Unlock()
	if g, ok := groups.byNonce[nonce]; ok {
		if _, err := g.find(""); err != nil {
			return nil, errRunEnded // It is being closed, which only the end of a run does.
		}
		return g, nil
	}
	g := newGroup(nonce, cfg, binding, counts)
	if !g.run.Add(g) || run.HasEnded(binding.RunID) {
		return nil, errRunEnded
	}
	groups.byNonce[nonce] = g
	return g, nil
}

func newGroup(nonce string, cfg Config, binding run.Binding, counts *stats.Source) *group {
	cfg = cfg.withDefaults()
	g := &group{
		nonce:    nonce,
		config:   cfg,
		binding:  binding,
		run:      run.Find(binding.RunID),
		counts:   counts,
		gate:     gate{maxMessages: int64(cfg.Subscriber.BufferMaxMessages), maxBytes: cfg.Subscriber.BufferMaxBytes},
		filled:   filledReaders{readers: make(map[*reader]struct{})},
		readers:  make(map[string]*reader),
		live:     make(map[string]struct{}),
		awaiting: make(map[string]*awaiting),
		topics:   make(map[string]*topicWatch),
	}
	g.told.Store(int64(minWatermark))
	// Where one process runs all restrictions, they count together.
	if limit := cfg.Limit.MaxMessages; limit > 0 && (binding.Prism || binding.Rule == run.Pipeline) {
		g.quota = &quota{max: limit}
	}
	return g
}

// join makes a restriction one of those that hold the watermark on prism.
func (g *group) join(readerNonce string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.live[readerNonce] = struct{}{}
	g.recent = recentWatermark{}
}

// leave takes out the restriction of a reader: it has ended, or nobody claims it.
// Where another reader serves the restriction by now, it stays.
func (g *group) leave(r *reader) {
	g.mu.Lock()
	if now, ok := g.readers[r.nonce]; !ok || now == r {
		delete(g.live, r.nonce)
	}
	g.mu.Unlock()
	g.forgetIfEmpty()
}

// reader returns the reader of that nonce, opened at the first call and after it
// has ended. It returns errEnded where the group itself is no longer in use.
//
//nolint:contextcheck // a reader outlives every bundle, and so do its goroutines
func (g *group) reader(readerNonce, subscription string) (*reader, error) {
	if r, err := g.find(readerNonce); r != nil || err != nil {
		return r, err
	}
	c, err := dial(subscription, uuid.NewString(), g.config)
	if err != nil {
		return nil, callError("connect to", subscription, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if r, ok := g.readers[readerNonce]; ok || g.gone { // Somebody was quicker.
		c.close()
		if g.gone {
			return nil, errEnded
		}
		return r, nil
	}
	return g.openLocked(readerNonce, subscription, c), nil
}

func (g *group) find(readerNonce string) (*reader, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gone {
		return nil, errEnded
	}
	return g.readers[readerNonce], nil
}

func (g *group) openLocked(readerNonce, subscription string, c calls) *reader {
	r := newReader(g, readerNonce, subscription, c)
	g.open++
	g.readers[readerNonce] = r
	g.live[readerNonce] = struct{}{}
	g.recent = recentWatermark{}
	return r
}

// awaitingLocked returns what the readers of a subscription share.
func (g *group) awaitingLocked(subscription string) *awaiting {
	w, ok := g.awaiting[subscription]
	if !ok {
		w = new(awaiting)
		g.awaiting[subscription] = w
	}
	return w
}

// topicLocked returns what watches the topic of a subscription, one for all readers.
func (g *group) topicLocked(subscription string) *topicWatch {
	w, ok := g.topics[subscription]
	if !ok {
		w = new(topicWatch)
		g.topics[subscription] = w
	}
	return w
}

// remove forgets a reader that is no longer in use.
func (g *group) remove(r *reader) {
	g.mu.Lock()
	if g.readers[r.nonce] == r {
		delete(g.readers, r.nonce)
	}
	g.mu.Unlock()
	g.forgetIfEmpty()
}

// closed hears that a reader has closed, how many messages it has committed and
// not acknowledged, and why.
func (g *group) closed(unacknowledged int, because error) {
	g.gaveUp(unacknowledged, because)
	g.mu.Lock()
	g.open--
	g.mu.Unlock()
	g.changed.signal()
	g.forgetIfEmpty()
}

// gaveUp notes that committed messages were not acknowledged, and why.
func (g *group) gaveUp(n int, err error) {
	if n == 0 {
		return
	}
	g.counts.Unacknowledged.Add(int64(n))
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lost += int64(n)
	g.lostTo = err
}

// forgetIfEmpty takes a group without readers out of the process; another is
// made where a restriction comes back. On prism it stays while a restriction is
// alive, which holds the watermark also before its first claim.
func (g *group) forgetIfEmpty() {
	groups.Lock()
	defer groups.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gone || len(g.readers) > 0 || g.open > 0 || g.binding.Prism && len(g.live) > 0 {
		return
	}
	g.gone = true
	g.unlistLocked()
}

// unlistLocked takes the group out of the process and tells its run what it could
// not do.
func (g *group) unlistLocked() {
	if groups.byNonce[g.nonce] == g {
		delete(groups.byNonce, g.nonce)
	}
	g.run.Remove(g, g.errorLocked())
}

// errorLocked says what the group could not do of what it had to.
func (g *group) errorLocked() error {
	if g.lost == 0 {
		return nil
	}
	return fmt.Errorf("%d messages were committed and not acknowledged; the service delivers them again: %w", g.lost, g.lostTo)
}

// all returns the readers there are.
func (g *group) all() []*reader {
	g.mu.Lock()
	defer g.mu.Unlock()
	rs := make([]*reader, 0, len(g.readers))
	for _, r := range g.readers {
		rs = append(rs, r)
	}
	return rs
}

// Commit acknowledges what all readers hold. It makes a group a run.Part.
func (g *group) Commit() {
	for _, r := range g.all() {
		r.commit()
	}
}

// Close closes all readers together, lets no other open, waits for them and for
// those that were closing by themselves, and takes the group out of the process.
// It ends soon after ctx.
func (g *group) Close(ctx context.Context) {
	g.mu.Lock()
	g.gone = true
	g.mu.Unlock()
	var closing sync.WaitGroup
	for _, r := range g.all() {
		closing.Go(func() { r.close(ctx) })
	}
	closing.Wait()
	for { // A reader that retires has a deadline of its own.
		changed := g.changed.changed()
		if g.allClosed() {
			break
		}
		<-changed
	}
	groups.Lock()
	defer groups.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unlistLocked()
}

func (g *group) allClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open == 0
}

// finished reports whether the read is to end, besides what a restriction has
// left of its own: its run is stopping, the limit in time is reached, no reader
// has anything to do, or the shared limit is used up.
func (g *group) finished(now, deadline time.Time) bool {
	select {
	case <-g.run.Stopping():
		return true
	default:
	}
	return !deadline.IsZero() && !now.Before(deadline) ||
		g.quota.used() ||
		g.config.Limit.StopWhenIdle > 0 && g.idleFor(now) >= g.config.Limit.StopWhenIdle
}

// idleFor returns for how long every reader has had nothing to do; zero while any
// of them has, or cannot know.
func (g *group) idleFor(now time.Time) time.Duration {
	var idle time.Duration
	for i, r := range g.all() {
		since, ok := r.quietSince()
		if !ok {
			return 0
		}
		if d := now.Sub(since); i == 0 || d < idle {
			idle = d
		}
	}
	return idle
}
