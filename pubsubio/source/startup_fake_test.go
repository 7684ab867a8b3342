package source

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// The subscriptions of a startup's tests.
const (
	subA      = "projects/p/subscriptions/aaa"
	subB      = "projects/p/subscriptions/bbb"
	subC      = "projects/p/subscriptions/ccc"
	aTopic    = "projects/q/topics/events"
	deadTopic = "projects/q/topics/dead"
)

var (
	errNotFound = status.Error(codes.NotFound, "Resource not found.")
	errDenied   = status.Error(codes.PermissionDenied, "User not authorized.")
	creatable   = &options.SubscriptionCreate{Topic: aTopic}
)

// A fakeAdmin is the other side of a startup's calls: it has subscriptions, and keeps
// a log of what it was asked.
type fakeAdmin struct {
	// answer, if set, decides about the n-th call, from 1, of an act about a
	// subscription; nil does what was asked.
	answer func(act, name string, n int) error
	took   time.Duration // by each call

	mu    sync.Mutex // guards all below
	subs  map[string]*pubsubpb.Subscription
	log   []asked
	times map[string]int
	now   int // calls under way
	most  int
}

// An asked call is an act about a subscription, and for a seek its time.
type asked struct{ act, name, to string }

// adminWith returns one that has those subscriptions.
func adminWith(subs ...*pubsubpb.Subscription) *fakeAdmin {
	a := &fakeAdmin{subs: make(map[string]*pubsubpb.Subscription), times: make(map[string]int)}
	for _, s := range subs {
		a.subs[s.GetName()] = s
	}
	return a
}

// pullable is a subscription that can be read.
func pullable(name string, change ...func(*pubsubpb.Subscription)) *pubsubpb.Subscription {
	s := &pubsubpb.Subscription{Name: name, Topic: aTopic, State: pubsubpb.Subscription_ACTIVE}
	for _, f := range change {
		f(s)
	}
	return s
}

func (a *fakeAdmin) calls() startupCalls {
	return startupCalls{
		get: func(ctx context.Context, name string) (found *pubsubpb.Subscription, err error) {
			err = a.call(ctx, lookingUp, name, "", func() error {
				if found = a.subs[name]; found == nil {
					return errNotFound
				}
				return nil
			})
			return found, err
		},
		create: func(ctx context.Context, name string, with options.SubscriptionCreate) (created *pubsubpb.Subscription, err error) {
			err = a.call(ctx, creating, name, "", func() error {
				if a.subs[name] != nil {
					return status.Error(codes.AlreadyExists, "Resource already exists.")
				}
				created = subscriptionWith(name, with)
				a.subs[name] = created
				return nil
			})
			return created, err
		},
		seek: func(ctx context.Context, name string, to time.Time) error {
			return a.call(ctx, seeking, name, " to "+to.Format(time.RFC3339), func() error {
				if a.subs[name] == nil {
					return errNotFound
				}
				return nil
			})
		},
		close: func() {},
	}
}

func (a *fakeAdmin) call(ctx context.Context, act, name, to string, do func() error) error {
	a.mu.Lock()
	key := act + " " + name
	a.times[key]++
	n := a.times[key]
	a.log = append(a.log, asked{act, name, to})
	a.now++
	a.most = max(a.most, a.now)
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.now--
		a.mu.Unlock()
	}()
	if a.took > 0 {
		timer := time.NewTimer(a.took)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	if a.answer != nil {
		if err := a.answer(act, name, n); err != nil {
			return err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return do()
}

// want checks what was asked, as the acts about each subscription in turn; seeks stand
// by themselves.
func (a *fakeAdmin) want(t *testing.T, log ...string) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	seeks := func(c asked) bool { return c.act == seeking }
	var got []string
	for from, to := 0, 0; to < len(a.log); from = to {
		for to < len(a.log) && seeks(a.log[to]) == seeks(a.log[from]) {
			to++
		}
		part := a.log[from:to]
		slices.SortStableFunc(part, func(x, y asked) int { return strings.Compare(x.name, y.name) })
		for _, c := range part {
			got = append(got, c.act+" "+c.name[len(c.name)-3:]+c.to)
		}
	}
	if !slices.Equal(got, log) {
		t.Errorf("asked\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(log, "\n"))
	}
}

// start runs the startup of a read against a.
func (a *fakeAdmin) start(t *testing.T, cfg Config) error {
	t.Helper()
	return newStartup(cfg.withDefaults(), a.calls()).run(t.Context())
}

// reads is a read of subscriptions; those named in creates may be created.
func reads(names []string, creates ...string) Config {
	cfg := Config{Subscriptions: From(names...)}
	for i := range cfg.Subscriptions {
		if slices.Contains(creates, cfg.Subscriptions[i].Name) {
			cfg.Subscriptions[i].Create = creatable
		}
	}
	return cfg
}

// wantError checks the whole text of an error, "" for none.
func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if got := fmt.Sprint(err); err == nil && want != "" || err != nil && got != want {
		t.Errorf("error\n%s\nwant\n%s", got, want)
	}
}
