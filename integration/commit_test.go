package integration

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// rules are the ways to run a relay on prism, by the rule by which its bundles
// then commit. A test lets such a pipeline end by itself: without pubsubio.Run,
// cancelling its context leaves prism with a goroutine that spins for ever.
var rules = map[string]func(*relay, context.Context) error{
	"finalized":  (*relay).run,
	"two rounds": (*relay).runUnknown,
}

// ends notes at which event of the server each message's bundle had come to its
// end.
type ends struct {
	mu sync.Mutex
	at map[string]uint64 // by message id
}

func (e *ends) note(srv *pubsubtest.Server, messages []*message.Message) {
	var last uint64
	if events := srv.Events(); len(events) > 0 {
		last = events[len(events)-1].Seq
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range messages {
		e.at[m.ID] = max(e.at[m.ID], last)
	}
}

// A message that is acknowledged before its copy is safe is lost when the
// process dies.
func TestPrism_AcknowledgesAfterThePublishAndTheEndOfTheBundle(t *testing.T) {
	for name, run := range rules {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t)
			const n = 2000
			publish(t, srv, inTopic, 0, n)
			srv.Delay("Publish", 5*time.Millisecond) // An early acknowledgement would overtake.
			r := relayOf(srv, options.Limit{MaxMessages: n})
			r.source.Subscriber.MaxRecordsPerBundle = 300
			bundles := ends{at: make(map[string]uint64)}
			r.probe = &probe{finish: func(messages []*message.Message) { bundles.note(srv, messages) }}
			must(t, run(r, within(t, 30*time.Second)))

			published, acknowledged := make(map[string]uint64), make(map[string]uint64)
			for _, e := range srv.Events() {
				switch {
				case e.Kind == pubsubtest.Publish && e.Topic == outTopic:
					published[string(e.Message().Data)] = e.Seq
				case e.Kind == pubsubtest.Acknowledge:
					d := string(e.Message().Data)
					if at, ok := published[d]; !ok || at > e.Seq {
						t.Errorf("%s was acknowledged at event %d, its copy not yet published", d, e.Seq)
					}
					if at := bundles.at[e.MessageID]; at == 0 || at > e.Seq {
						t.Errorf("%s was acknowledged at event %d, its bundle ended after event %d", d, e.Seq, at)
					}
					acknowledged[d]++
				}
			}
			if len(acknowledged) != n || srv.EventsDropped() != 0 {
				t.Errorf("%d messages were acknowledged of %d", len(acknowledged), n)
			}
			for d := range maps.Keys(acknowledged) {
				if acknowledged[d] != 1 {
					t.Errorf("%s was acknowledged %d times", d, acknowledged[d])
				}
			}
			expectArrived(t, srv, true)
			expectSettled(t, srv, inSub)
		})
	}
}

// The last message of a burst has no bundle after it to carry its signal.
func TestPrism_AcknowledgesWithinASecondOfTheCommit(t *testing.T) {
	for name, run := range rules {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t)
			r := relayOf(srv, options.Limit{MaxMessages: 1 + 700 + 1 + 1})
			j := start(t, time.Minute, func(ctx context.Context) error { return run(r, ctx) })
			ctx := within(t, 30*time.Second)
			total := 0
			for _, burst := range []int{1, 700, 1} {
				publish(t, srv, inTopic, total, burst)
				total += burst
				awaitAcknowledged(ctx, t, srv, inSub, int64(total))
			}
			j.running(t)
			publish(t, srv, inTopic, total, 1) // Ends the pipeline.
			must(t, j.wait())
			var slowest time.Duration
			published := make(map[string]time.Time)
			for _, e := range srv.Events() {
				switch {
				case e.Kind == pubsubtest.Publish && e.Topic == outTopic:
					published[string(e.Message().Data)] = e.Time
				case e.Kind == pubsubtest.Acknowledge:
					slowest = max(slowest, e.Time.Sub(published[string(e.Message().Data)]))
				}
			}
			t.Logf("slowest acknowledgement: %v after the publish of the copy", slowest)
			if limit := time.Second; slowest > limit && !raceDetector {
				t.Errorf("an acknowledgement came %v after the copy was published, more than %v", slowest, limit)
			}
		})
	}
}

// While the limit has not been reached, a bounded read settles before it ends.
func TestPrism_ABoundedReadIsSettledWhenItEnds(t *testing.T) {
	for name, run := range rules {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t)
			publish(t, srv, inTopic, 0, 500)
			must(t, run(relayOf(srv, options.Limit{MaxMessages: 123}), within(t, 30*time.Second)))
			s := srv.Stats(inSub)
			if s.Acknowledged != 123 || s.Backlog != 500-123 {
				t.Errorf("want 123 acknowledged and the rest returned: %+v", s)
			}
			expectSettled(t, srv, inSub)
		})
	}
}
