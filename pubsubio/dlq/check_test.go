package dlq

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/transport"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// answers are calls that are answered so, the last of each for ever.
func answers(exists []error, consumed bool, listing error) (topicCalls, *int) {
	n := new(int)
	return topicCalls{
		exists: func(context.Context) error {
			err := exists[min(*n, len(exists)-1)]
			*n++
			return err
		},
		consumed: func(context.Context) (bool, error) { return consumed, listing },
	}, n
}

func TestCheck_WhatIsFound(t *testing.T) {
	notFound, denied := status.Error(codes.NotFound, "none"), status.Error(codes.PermissionDenied, "no")
	down, token := status.Error(codes.Unavailable, "down"), status.Error(codes.Unauthenticated, "expired")
	const assumed = "; assumed that it exists and has a subscription"
	for name, c := range map[string]struct {
		exists        []error
		consumed      bool
		listing       error
		warning, err  string
		least, atMost time.Duration
	}{
		"all is well":            {exists: []error{nil}, consumed: true},
		"no subscription":        {exists: []error{nil}, warning: "has no subscription, so that every dead letter is lost; create one with gcloud pubsub subscriptions create NAME --topic=" + testTopic},
		"missing":                {exists: []error{notFound}, err: "dlq: dead-letter topic " + testTopic + " does not exist, and the queue never creates it, for nothing would be consuming it; create it with gcloud pubsub topics create letters --project=p, and a subscription of it", least: time.Second, atMost: 2 * time.Second},
		"created a moment ago":   {exists: []error{notFound, notFound, nil}, consumed: true, atMost: 2 * time.Second},
		"missing by then":        {exists: []error{nil}, listing: notFound, err: "does not exist", atMost: 2 * time.Second},
		"not permitted":          {exists: []error{denied}, warning: "could not be looked up: PermissionDenied: no; grant roles/pubsub.viewer (permission pubsub.topics.get) to the account that the workers run as" + assumed},
		"not permitted to list":  {exists: []error{nil}, listing: denied, warning: "could not be looked up: PermissionDenied: no; grant"},
		"unreachable":            {exists: []error{down}, warning: "could not be looked up: Unavailable: down; check that the workers reach the endpoint" + assumed, least: 8 * time.Second, atMost: 10 * time.Second},
		"unreachable for a time": {exists: []error{down, down, nil}, consumed: true, atMost: 5 * time.Second},
		"without credentials":    {exists: []error{token}, warning: "could not be looked up: Unauthenticated: expired; check the credentials", atMost: 10 * time.Second},
		"something else":         {exists: []error{status.Error(codes.FailedPrecondition, "odd")}, warning: "could not be looked up: FailedPrecondition: odd" + assumed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls, _ := answers(c.exists, c.consumed, c.listing)
				began := time.Now()
				warning, err := Config{Topic: testTopic}.look(t.Context(), calls)
				if !strings.Contains(warning, c.warning) || (warning == "") != (c.warning == "") {
					t.Errorf("warned %q, want %q", warning, c.warning)
				}
				if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				if took := time.Since(began); took < c.least || took > c.atMost {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// A service that swallows the call holds a bundle up for ten seconds, and no longer.
func TestCheck_ASilentServiceIsAWarningAfterTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		warning, err := Config{Topic: testTopic}.look(t.Context(), topicCalls{exists: func(ctx context.Context) error {
			<-ctx.Done()
			return status.FromContextError(ctx.Err()).Err()
		}})
		if took := time.Since(began); err != nil || !strings.Contains(warning, "DeadlineExceeded") || took > 10*time.Second {
			t.Errorf("warned %q, error %v, after %v", warning, err, took)
		}
	})
}

// A bundle that is cancelled is not told that all is well.
func TestCheck_ACancelledBundleHasNoVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		calls, _ := answers([]error{status.Error(codes.Unavailable, "down")}, false, nil)
		if warning, err := (Config{Topic: testTopic}).look(ctx, calls); !errors.Is(err, context.DeadlineExceeded) || warning != "" {
			t.Errorf("warned %q, error %v", warning, err)
		}
	})
}

// lookAt is the check against a server.
func lookAt(t *testing.T, srv *pubsubtest.Server, cfg Config) (string, error) {
	t.Helper()
	cfg.EmulatorEndpoint = srv.Endpoint()
	conn, err := transport.Dial(cfg.connection(), transport.Publishing)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return cfg.look(t.Context(), cfg.calls(pubsubpb.NewPublisherClient(conn.ClientConn())))
}

// C38: nobody noticed that a dead-letter topic had no subscription until the letters
// were needed.
func TestCheck_C38_ATopicWithoutASubscription(t *testing.T) {
	srv := pubsubtest.New(t)
	srv.MustCreateTopic(testTopic)
	cfg := Config{Topic: testTopic}
	if warning, err := lookAt(t, srv, cfg); err != nil || !strings.Contains(warning, "has no subscription") {
		t.Errorf("warned %q, error %v", warning, err)
	}
	srv.MustCreateSubscription(testSub, testTopic)
	if warning, err := lookAt(t, srv, cfg); err != nil || warning != "" {
		t.Errorf("warned %q, error %v", warning, err)
	}
	if _, err := lookAt(t, srv, Config{Topic: "projects/p/topics/none"}); status.Code(err) != codes.NotFound {
		t.Errorf("error %v", err)
	}
	srv.Deny("GetTopic")
	if warning, err := lookAt(t, srv, cfg); err != nil || !strings.Contains(warning, "pubsub.topics.get") {
		t.Errorf("warned %q, error %v", warning, err)
	}
	cfg.EmulatorEndpoint = srv.Endpoint()
	if err := cfg.Check(t.Context(), "owner"); err != nil {
		t.Error(err)
	}
}

// checkedQueue counts how often it is checked, and fails while it is told to.
type checkedQueue struct {
	nothing
	state *checkState
}

type checkState struct {
	asked atomic.Int64
	fails atomic.Bool
	gate  chan struct{} // holds the check, if not nil
}

func (q checkedQueue) Check(ctx context.Context, owner string) error {
	q.state.asked.Add(1)
	if q.state.gate != nil {
		<-q.state.gate
	}
	if q.state.fails.Load() {
		return errors.New("the queue is not there for " + owner)
	}
	return ctx.Err()
}

func TestSender_ChecksOnceForAnOwner(t *testing.T) {
	q := checkedQueue{state: new(checkState)}
	owner := ownerOf(t)
	q.state.fails.Store(true)
	for range 2 { // until it passes
		err := NewSender(q, owner).Check(t.Context())
		expectError(t, err, "check the dead-letter queue: the queue is not there for "+owner)
	}
	q.state.fails.Store(false)
	for range 3 {
		if err := NewSender(q, owner).Check(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n := q.state.asked.Load(); n != 3 {
		t.Errorf("asked %d times, want 3", n)
	}
	if err := NewSender(q, owner+"2").Check(t.Context()); err != nil || q.state.asked.Load() != 4 {
		t.Errorf("another owner: error %v, asked %d times", err, q.state.asked.Load())
	}
	// A run has ended; the next one looks again.
	if err := NewSender(q, owner).Close(); err != nil {
		t.Error(err)
	}
	if err := NewSender(q, owner).Check(t.Context()); err != nil || q.state.asked.Load() != 5 {
		t.Errorf("after the end: error %v, asked %d times", err, q.state.asked.Load())
	}
	if err := NewSender(nothing{}, owner).Check(t.Context()); err != nil {
		t.Errorf("a queue that cannot be asked: %v", err)
	}
}

func TestSender_BundlesThatStartAtOnceWaitForOneCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := checkedQueue{state: &checkState{gate: make(chan struct{})}}
		errs := make(chan error, 9)
		for range 8 {
			go func() { errs <- NewSender(q, ownerOf(t)).Check(t.Context()) }()
		}
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		go func() { errs <- NewSender(q, ownerOf(t)).Check(ctx) }()
		synctest.Wait()
		cancel() // and a bundle that is cancelled waits no longer
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("the cancelled one: %v", err)
		}
		close(q.state.gate)
		for range 8 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if n := q.state.asked.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}
