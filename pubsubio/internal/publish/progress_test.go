package publish

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

const progressTimeout = 100 * time.Second

// A stuckWait is a wait of a bundle that nothing ends.
type stuckWait struct {
	options options.Publisher
	// answer is the service's, while it is stuck; gate is closed at the test's end.
	answer func(ctx context.Context, gate <-chan struct{}, r *pubsubpb.PublishRequest) error
	create func(ctx context.Context, gate <-chan struct{}) error
	// wait makes the bundle wait.
	wait func(ctx context.Context, b *Bundle) error
	want string
}

func silence(ctx context.Context, gate <-chan struct{}, _ *pubsubpb.PublishRequest) error {
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func finishOf(topics ...string) func(context.Context, *Bundle) error {
	return func(ctx context.Context, b *Bundle) error {
		for i, to := range topics {
			if err := b.Add(ctx, to, text(fmt.Sprint(i)), 0); err != nil {
				return err
			}
		}
		return b.Finish(ctx)
	}
}

// secondAdd is a wait in the second of two Adds.
func secondAdd(second string) func(context.Context, *Bundle) error {
	return func(ctx context.Context, b *Bundle) error {
		if err := b.Add(ctx, topic, text("0"), 0); err != nil {
			return fmt.Errorf("the first: %w", err)
		}
		if err := b.Add(ctx, second, text("1"), 0); err != nil {
			return err
		}
		return fmt.Errorf("the Add did not wait: %w", b.Finish(ctx))
	}
}

func stuckWaits() map[string]stuckWait {
	missing := func(_ context.Context, gate <-chan struct{}, _ *pubsubpb.PublishRequest) error {
		select {
		case <-gate:
			return nil
		default:
			return status.Error(codes.NotFound, "Resource not found.")
		}
	}
	// A request of several is refused; its halves are never answered.
	isolation := func(ctx context.Context, gate <-chan struct{}, r *pubsubpb.PublishRequest) error {
		if len(r.Messages) > 2 {
			return errPoison
		}
		return silence(ctx, gate, r)
	}
	return map[string]stuckWait{
		"room at the caps":         {options.Publisher{MaxInFlightMessages: 1}, silence, nil, secondAdd(topic), "1 messages in flight"},
		"room at the caps in size": {options.Publisher{MaxInFlightBytes: 8}, silence, nil, secondAdd(topic), "1 messages in flight"},
		"a place for a publisher":  {options.Publisher{MaxActivePublishers: 1}, silence, nil, secondAdd(otherTopic), "2 messages in flight"},
		"the bundle's end":         {options.Publisher{}, silence, nil, finishOf(topic, otherTopic), "2 messages in flight"},
		"a topic's creation": {options.Publisher{}, missing, func(ctx context.Context, gate <-chan struct{}) error {
			return silence(ctx, gate, nil)
		}, finishOf(topic, topic), "2 messages in flight"},
		"isolation":    {options.Publisher{}, isolation, nil, finishOf(topic, topic, topic, topic), "4 messages in flight"},
		"an outage":    {options.Publisher{EnableMessageOrdering: true}, unavailable, nil, finishOf(topic), "Unavailable: away"},
		"retry's rest": {options.Publisher{RetryInitialDelay: time.Hour, RetryMaxDelay: time.Hour, RetryTotalTimeout: 48 * time.Hour}, unavailable, nil, finishOf(topic), "Unavailable: away"},
	}
}

func unavailable(_ context.Context, gate <-chan struct{}, _ *pubsubpb.PublishRequest) error {
	select {
	case <-gate:
		return nil
	default:
		return status.Error(codes.Unavailable, "away")
	}
}

// Some waits had no bound, and hung a worker in silence.
func TestProgress_BoundsEveryWaitAndWarnsAtEachTenth(t *testing.T) {
	for name, tc := range stuckWaits() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := tc.options
				o.PublishProgressTimeout, o.BatchDelay = progressTimeout, time.Millisecond
				gate := make(chan struct{})
				f := &fakeService{answer: func(ctx context.Context, r *pubsubpb.PublishRequest) error { return tc.answer(ctx, gate, r) }}
				w := f.wire()
				if tc.create != nil {
					w.create = func(ctx context.Context, _ string) error { return tc.create(ctx, gate) }
				}
				p := newPool(Config{Publisher: o, Nonce: t.Name()}.withDefaults(), w, func() {})
				var warnings []string
				var at []time.Duration
				began := time.Now()
				b := openWith(t, p, Handlers{Warn: func(_ context.Context, text string) {
					warnings = append(warnings, text)
					at = append(at, time.Since(began))
				}})
				err := tc.wait(t.Context(), b)
				took := time.Since(began)
				if err == nil || !strings.Contains(err.Error(), "options.Publisher.PublishProgressTimeout is 1m40s") || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("ended with %v, want %q", err, tc.want)
				}
				// What was answered at first, or refused at times, is progress; it is over soon.
				if took < progressTimeout || took > progressTimeout+progressTimeout/10 {
					t.Errorf("took %v, want %v", took, progressTimeout)
				}
				if len(warnings) != stallWarnings-1 {
					t.Errorf("%d warnings at %v, want one at each tenth of the time but the last:\n%s", len(warnings), at, strings.Join(warnings, "\n"))
				}
				b.Drop()
				close(gate)
				pass(3 * time.Hour)
				if n, _ := inFlight(b); n != 0 {
					t.Errorf("%d messages hold room", n)
				}
				p.shutDown()
			})
		})
	}
}

// The timeout bounds a stall, not a slow topic: each completion restarts it, in every
// kind of wait.
func TestProgress_RestartsAtEachCompletion(t *testing.T) {
	slow := func(context.Context, *pubsubpb.PublishRequest) error { pass(progressTimeout * 9 / 10); return nil }
	for name, o := range map[string]options.Publisher{
		"at the caps":     {MaxInFlightMessages: 1},
		"for a publisher": {MaxActivePublishers: 1},
		"of one key":      {EnableMessageOrdering: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o.PublishProgressTimeout, o.BatchElementCount = progressTimeout, 1
				p := newTestPool(t, &fakeService{answer: slow}, o)
				b := open(t, p)
				began := time.Now()
				for i := range 6 {
					m, to := text(fmt.Sprint(i)), topic
					if o.EnableMessageOrdering {
						m.OrderingKey = "k"
					}
					if o.MaxActivePublishers == 1 {
						to = nthTopic(i)
					}
					if err := b.Add(t.Context(), to, m, 0); err != nil {
						t.Fatal(err)
					}
				}
				mustFinish(t, b)
				if took := time.Since(began); took < 5*progressTimeout {
					t.Errorf("took %v: nothing waited", took)
				}
			})
		})
	}
}
