package publish

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// failing answers the first n requests with err.
func failing(n int, err error) func(context.Context, *pubsubpb.PublishRequest) error {
	return func(context.Context, *pubsubpb.PublishRequest) error {
		if n--; n >= 0 {
			return err
		}
		return nil
	}
}

func always(err error) func(context.Context, *pubsubpb.PublishRequest) error {
	return func(context.Context, *pubsubpb.PublishRequest) error { return err }
}

// finishOne publishes one message and returns how the bundle ended, and what
// time it took.
func finishOne(t *testing.T, f *fakeService, o options.Publisher) (Counts, time.Duration, error) {
	t.Helper()
	p := newTestPool(t, f, o)
	b := open(t, p)
	mustAdd(t, b, "a")
	began := time.Now()
	err := b.Finish(t.Context())
	return b.Counts(), time.Since(began), err
}

func TestRequest_IsRetriedInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{answer: failing(3, status.Error(codes.Unavailable, "away"))}
		counts, _, err := finishOne(t, f, options.Publisher{})
		if err != nil || counts.DestinationCounts != (DestinationCounts{Published: 1, Bytes: 5, Errors: 3}) || f.calls != 4 {
			t.Errorf("Finish: %v, %+v after %d calls", err, counts, f.calls)
		}
	})
}

// Quota errors for two minutes: other software hammers, or gives up (C32).
func TestRequest_BacksOffUnderQuota_C32(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		f := &fakeService{answer: func(context.Context, *pubsubpb.PublishRequest) error {
			if time.Since(began) < 2*time.Minute {
				return status.Error(codes.ResourceExhausted, "quota of p")
			}
			return nil
		}}
		p := newTestPool(t, f, options.Publisher{})
		var warnings []string
		b, _ := p.begin(Handlers{Warn: func(_ context.Context, text string) { warnings = append(warnings, text) }}.withDefaults())
		mustAdd(t, b, "a")
		mustFinish(t, b)
		if f.calls > 60 {
			t.Errorf("%d attempts in two minutes", f.calls)
		}
		if len(warnings) == 0 || !strings.Contains(warnings[0], "quota of p") {
			t.Errorf("warnings: %q", warnings)
		}
	})
}

func TestRequest_PermanentRefusalTellsAllThatIsKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"permission": {
			status.Error(codes.PermissionDenied, "User not authorized to perform this action."),
			"publish to projects/p/topics/abc: PermissionDenied: User not authorized to perform this action. (1 attempt); grant roles/pubsub.publisher (permission pubsub.topics.publish) to the account that the workers run as",
		},
		"missing": {
			status.Error(codes.NotFound, "Topic not found"),
			"publish to projects/p/topics/abc: NotFound: Topic not found (1 attempt); the disposition is options.CreateNever: create the topic, or check its name",
		},
		"rejected": {
			status.Error(codes.InvalidArgument, "schema"),
			"publish to projects/p/topics/abc: InvalidArgument: schema (1 attempt)",
		},
		"partial answer": {
			errors.New("the answer names 0 of 1 messages"),
			"publish to projects/p/topics/abc: the answer names 0 of 1 messages (1 attempt)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				counts, took, err := finishOne(t, &fakeService{answer: always(tc.err)}, options.Publisher{})
				if err == nil || err.Error() != tc.want {
					t.Errorf("Finish: %v\nwant    %s", err, tc.want)
				}
				if !errors.Is(err, tc.err) || status.Code(err) != status.Code(tc.err) {
					t.Errorf("the error does not unwrap to its status: %v", status.Code(err))
				}
				if took != 0 || counts.DestinationCounts != (DestinationCounts{Errors: 1}) {
					t.Errorf("took %v, %+v", took, counts)
				}
			})
		})
	}
}

func TestRequest_RetriesEndWithTheLastStatus(t *testing.T) {
	away := status.Error(codes.Unavailable, "away")
	hang := func(first error) func(context.Context, *pubsubpb.PublishRequest) error {
		quick := failing(1, first)
		return func(ctx context.Context, r *pubsubpb.PublishRequest) error {
			if err := quick(ctx, r); err != nil {
				return err
			}
			<-ctx.Done()
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	for name, tc := range map[string]struct {
		answer  func(context.Context, *pubsubpb.PublishRequest) error
		o       options.Publisher
		code    codes.Code
		want    []string
		minimum time.Duration
		maximum time.Duration
	}{
		"attempts": {
			always(away), options.Publisher{RetryMaxAttempts: 3}, codes.Unavailable,
			[]string{"Unavailable: away (3 attempts over ", "first failure at 00:00:00.000Z", "options.Publisher.RetryMaxAttempts (3) is used up", "check that the workers reach the endpoint"}, 0, time.Second,
		},
		"attempts without pauses": {
			always(away), options.Publisher{RetryMaxAttempts: 3, RetryInitialDelay: options.Disabled, RetryTotalTimeout: options.Disabled}, codes.Unavailable,
			[]string{"(3 attempts over 0s"}, 0, 0,
		},
		"time": {
			always(away), options.Publisher{RetryTotalTimeout: time.Minute, RetryMaxDelay: time.Second}, codes.Unavailable,
			[]string{"Unavailable: away", "options.Publisher.RetryTotalTimeout (1m0s) is used up"}, 58 * time.Second, time.Minute,
		},
		// The budget ended a pause early, up to RetryMaxDelay, and was said to be
		// used up.
		"time, in a pause": {
			always(away), options.Publisher{RetryTotalTimeout: 10 * time.Minute, RetryInitialDelay: 5 * time.Minute, RetryMaxDelay: 5 * time.Minute}, codes.Unavailable,
			[]string{"Unavailable: away", "options.Publisher.RetryTotalTimeout (10m0s) is used up"}, 10*time.Minute - time.Second, 10 * time.Minute,
		},
		// The deadline that cuts the last attempt off hid what had gone wrong.
		"time, in an attempt": {
			hang(away), options.Publisher{RetryTotalTimeout: time.Minute, RetryInitialRPCTimeout: options.Disabled}, codes.Unavailable,
			[]string{"Unavailable: away (2 attempts over 1m0s"}, time.Minute, time.Minute,
		},
		"hanging attempts": {
			hang(nil), options.Publisher{RetryTotalTimeout: time.Minute, RetryInitialRPCTimeout: 10 * time.Second}, codes.DeadlineExceeded,
			[]string{"DeadlineExceeded: "}, 50 * time.Second, time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, took, err := finishOne(t, &fakeService{answer: tc.answer}, tc.o)
				for _, want := range tc.want {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("Finish: %v, want %q", err, want)
					}
				}
				if status.Code(err) != tc.code {
					t.Errorf("code %v, want %v", status.Code(err), tc.code)
				}
				if took < tc.minimum || took > tc.maximum {
					t.Errorf("took %v, want %v to %v", took, tc.minimum, tc.maximum)
				}
			})
		})
	}
}

func TestRequest_RefusalFailsExactlyTheBundlesInIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		denied := status.Error(codes.PermissionDenied, "no")
		f := &fakeService{answer: func(_ context.Context, r *pubsubpb.PublishRequest) error {
			if r.Topic == otherTopic {
				return denied
			}
			return nil
		}}
		p := newTestPool(t, f, options.Publisher{BatchDelay: time.Hour})
		a, b, c := open(t, p), open(t, p), open(t, p)
		for _, in := range []*Bundle{a, b} {
			if err := in.Add(t.Context(), otherTopic, text("x"), 0); err != nil {
				t.Fatal(err)
			}
			mustAdd(t, in, "good")
		}
		mustAdd(t, c, "good")
		mustFinish(t, c)
		if err := a.Finish(t.Context()); !errors.Is(err, denied) {
			t.Errorf("Finish of the first: %v", err)
		}
		synctest.Wait()
		if err := b.Add(t.Context(), topic, text("x"), 0); !errors.Is(err, denied) {
			t.Errorf("Add after a refusal: %v", err)
		}
		b.Drop()
	})
}

// Each attempt's deadline is the one before it, times the multiplier, up to the cap.
func TestRequest_DeadlinesOfAttemptsGrow(t *testing.T) {
	for name, c := range map[string]struct {
		o    options.Publisher
		want []time.Duration
	}{
		"defaults": {options.Publisher{}, []time.Duration{time.Minute, time.Minute, time.Minute}},
		"grow": {
			options.Publisher{RetryInitialRPCTimeout: time.Second, RetryRPCTimeoutMultiplier: 3, RetryMaxRPCTimeout: 10 * time.Second},
			[]time.Duration{time.Second, 3 * time.Second, 9 * time.Second, 10 * time.Second, 10 * time.Second},
		},
		"the cap is the first, unless it is set": {
			options.Publisher{RetryInitialRPCTimeout: 90 * time.Second, RetryRPCTimeoutMultiplier: 2},
			[]time.Duration{90 * time.Second, 90 * time.Second},
		},
		"disabled":     {options.Publisher{RetryInitialRPCTimeout: options.Disabled}, []time.Duration{10 * time.Minute, 10 * time.Minute}},
		"cap disabled": {options.Publisher{RetryMaxRPCTimeout: options.Disabled}, []time.Duration{10 * time.Minute, 10 * time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []time.Duration
				c.o.RetryInitialDelay = options.Disabled
				f := &fakeService{answer: func(ctx context.Context, _ *pubsubpb.PublishRequest) error {
					deadline, _ := ctx.Deadline()
					if got = append(got, time.Until(deadline)); len(got) < len(c.want) {
						return status.Error(codes.Unavailable, "away")
					}
					return nil
				}}
				if _, _, err := finishOne(t, f, c.o); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("deadlines %v, want %v", got, c.want)
				}
			})
		})
	}
}

// A pause is drawn from up to its exponential value, which the cap ends.
func TestBackoff_GrowsByItsMultiplierUpToItsCap(t *testing.T) {
	o := options.Publisher{RetryInitialDelay: time.Second, RetryDelayMultiplier: 3, RetryMaxDelay: 5 * time.Second}
	limits := []time.Duration{time.Second, 3 * time.Second, 5 * time.Second, 5 * time.Second}
	longest := make([]time.Duration, len(limits))
	for range 2000 {
		b := newBackoff(&o)
		for i, limit := range limits {
			d, ok := b.next(t.Context(), 0)
			if !ok || d > limit {
				t.Fatalf("pause %d is %v, over %v", i, d, limit)
			}
			longest[i] = max(longest[i], d)
		}
	}
	for i, limit := range limits {
		if longest[i] < limit*9/10 {
			t.Errorf("pause %d was at most %v of %v", i, longest[i], limit)
		}
	}
}
