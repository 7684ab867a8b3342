package source

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/fit"
)

const (
	// inspectEvery is how often a subscription that brings nothing is looked at:
	// seldom enough for a thousand of them under the service's quota of calls that
	// are not about messages.
	inspectEvery = 5 * time.Minute
	// inspectTimeout bounds a look, during which no lease is extended. Nothing is
	// held then.
	inspectTimeout = 5 * time.Second
)

// A topicWatch notices that the topic of a subscription was deleted. Its streams do
// not tell: they bring what is left and then nothing, as those of a topic that
// nobody publishes to. So one of the readers of a subscription asks now and then,
// while nothing comes.
type topicWatch struct {
	mu   sync.Mutex // guards next
	next time.Time  // when to ask again; zero before the first quiet moment
}

// never is when a watch asks that has its answer, or may not ask.
var never = time.Unix(1<<40, 0)

// due reports whether to ask now, and then takes the turn. The turns of many
// subscriptions are spread.
func (w *topicWatch) due(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Before(w.next) {
		return false
	}
	first := w.next.IsZero()
	w.next = now.Add(inspectEvery)
	if first {
		w.next = now.Add(rand.N(inspectEvery))
	}
	return !first
}

func (w *topicWatch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next = never
}

// watchTopic warns, once, where nothing can come any more because the topic is gone.
// It only asks while nothing has come for a while and nothing is held. It goes
// without where it is not permitted to look: startup has said so.
func (r *reader) watchTopic(ctx context.Context) {
	now := time.Now()
	if !r.quietFor(now, inspectEvery) || !r.topic.due(now) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	subscription, err := r.calls.get(ctx)
	switch {
	case status.Code(err) == codes.PermissionDenied:
		r.topic.end()
	case err != nil: // What is amiss, the stream finds.
		slog.Debug("source: cannot look at the subscription; trying again later", "subscription", r.subscription, "error", err)
	case subscription.GetTopic() == fit.DeletedTopic:
		r.topic.end()
		warn("the topic was deleted: the subscription has delivered what it had, and nothing will come to it any more; "+
			"delete the subscription, or create it anew on a topic, and start the job anew", "subscription", r.subscription)
	}
}

// quietFor reports whether nothing has come for that long and nothing is held.
func (r *reader) quietFor(now time.Time, d time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, open := r.wm.quietSince()
	return open && len(r.byID) == 0 && now.Sub(since) >= d
}
