package source

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

var startTime = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestStartup_LooksUpAndLeavesTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := adminWith(pullable(subA), pullable(subB))
		wantError(t, a.start(t, reads([]string{subA, subB}, subB)), "")
		a.want(t, "look up aaa", "look up bbb")
	})
}

func TestStartup_CreatesWhatIsMissingAndMayBeCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := adminWith(pullable(subA))
		wantError(t, a.start(t, reads([]string{subA, subB}, subA, subB)), "")
		a.want(t, "look up aaa", "look up bbb", "create bbb")
		if got := a.subs[subB].GetTopic(); got != aTopic {
			t.Errorf("created for topic %q", got)
		}
	})
}

// Seeks come only after everything was found to be in order.
func TestStartup_SeeksAfterAllChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := adminWith(pullable(subA), pullable(subB))
		cfg := reads([]string{subA, subB, subC}, subC)
		cfg.StartPosition = options.FromTimestamp(startTime)
		wantError(t, a.start(t, cfg), "")
		a.want(t, "look up aaa", "look up bbb", "look up ccc", "create ccc",
			"seek aaa to 2026-11-30T12:00:00Z", "seek bbb to 2026-11-30T12:00:00Z", "seek ccc to 2026-11-30T12:00:00Z")
	})
}

func TestStartup_OneRefusedAndNothingIsSought(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := adminWith(pullable(subA), pullable(subB, detached))
		cfg := reads([]string{subA, subB})
		cfg.StartPosition = options.EarliestRetained()
		if err := a.start(t, cfg); err == nil {
			t.Error("no error")
		}
		a.want(t, "look up aaa", "look up bbb")
	})
}

// The bundle of a startup that had succeeded runs again: the runner lost its result.
func TestStartup_RunsAgainAndDoesTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := adminWith(pullable(subA))
		cfg := reads([]string{subA, subB}, subB)
		cfg.StartPosition = options.Latest().At(startTime)
		for range 2 {
			wantError(t, a.start(t, cfg), "")
			pass(time.Hour)
		}
		a.want(t, "look up aaa", "look up bbb", "create bbb",
			"seek aaa to 2026-11-30T12:00:00Z", "seek bbb to 2026-11-30T12:00:00Z",
			"look up aaa", "look up bbb",
			"seek aaa to 2026-11-30T12:00:00Z", "seek bbb to 2026-11-30T12:00:00Z")
	})
}

// Another job was quicker, or the answer to the first try was lost.
func TestStartup_AlreadyExistsIsSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := adminWith(pullable(subA))
		a.answer = func(act, _ string, n int) error {
			if act == lookingUp && n == 1 {
				return errNotFound
			}
			return nil
		}
		wantError(t, a.start(t, reads([]string{subA}, subA)), "")
		a.want(t, "look up aaa", "create aaa", "look up aaa")
	})
}

// What is found after AlreadyExists is checked like anything else.
func TestStartup_ChecksWhatSomebodyElseHasCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := adminWith(pullable(subA, exactlyOnce))
		a.answer = func(act, _ string, n int) error {
			if act == lookingUp && n == 1 {
				return errNotFound
			}
			return nil
		}
		err := a.start(t, reads([]string{subA}, subA))
		if err == nil || !strings.Contains(err.Error(), "exactly-once") {
			t.Errorf("error %v", err)
		}
	})
}

func TestStartup_C20_ATypoEndsAfterAtMostFiveCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, began := adminWith(pullable(subA)), time.Now()
		err := a.start(t, reads([]string{subA, subB}))
		wantError(t, err, "source: 1 of 2 subscriptions cannot be read as configured:\n"+
			"source: "+subB+": does not exist: NotFound: Resource not found.; check its name, create it, or set Create in its source.Subscription")
		if status.Code(err) != codes.NotFound {
			t.Errorf("status %v", status.Code(err))
		}
		a.want(t, "look up aaa", "look up bbb", "look up bbb", "look up bbb", "look up bbb")
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("refused after %v", took)
		}
	})
}

// A subscription that was created a moment ago is not yet known everywhere.
func TestStartup_C20_NotFoundForFiveSecondsIsTolerated(t *testing.T) {
	for _, act := range []string{lookingUp, creating, seeking} {
		t.Run(act, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				a := adminWith(pullable(subA))
				cfg := reads([]string{subA, subB}, subB)
				cfg.StartPosition = options.EarliestRetained()
				a.answer = func(now, _ string, _ int) error {
					if now == act && time.Since(began) < 5*time.Second {
						return errNotFound
					}
					return nil
				}
				wantError(t, a.start(t, cfg), "")
			})
		})
	}
}

func TestStartup_MissingTopicOfACreationIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := adminWith()
		a.answer = func(act, _ string, _ int) error {
			if act == creating {
				return errNotFound
			}
			return nil
		}
		cfg := reads([]string{subA, subB}, subA, subB)
		cfg.Subscriptions[1].Create = &options.SubscriptionCreate{Topic: aTopic, DeadLetterPolicy: &options.DeadLetterPolicy{Topic: deadTopic}}
		wantError(t, a.start(t, cfg), "source: 2 of 2 subscriptions cannot be read as configured:\n"+
			"source: "+subA+": cannot be created: NotFound: Resource not found.; create the topic "+aTopic+" first\n"+
			"source: "+subB+": cannot be created: NotFound: Resource not found.; create the topic "+aTopic+" first, and that of its dead letters, "+deadTopic)
		if n := a.times[lookingUp+" "+subA] + a.times[creating+" "+subA]; n > 5 {
			t.Errorf("%d calls", n)
		}
	})
}

func TestStartup_TransientFailuresAreTriedAgain(t *testing.T) {
	for _, code := range []codes.Code{codes.Unavailable, codes.ResourceExhausted, codes.Unauthenticated, codes.DeadlineExceeded, codes.Internal} {
		t.Run(code.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := adminWith(pullable(subA))
				a.answer = func(_, _ string, n int) error {
					if n < 8 {
						return status.Error(code, "busy")
					}
					return nil
				}
				cfg := reads([]string{subA, subB}, subB)
				cfg.StartPosition = options.EarliestRetained()
				wantError(t, a.start(t, cfg), "")
			})
		})
	}
}

// The answer to a creation is lost: the second try finds the subscription there.
func TestStartup_LostAnswerToACreation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := adminWith()
		a.answer = func(act, name string, n int) error {
			if act == creating && n == 1 {
				a.subs[name] = pullable(name)
				return status.Error(codes.DeadlineExceeded, "lost")
			}
			return nil
		}
		wantError(t, a.start(t, reads([]string{subA}, subA)), "")
		a.want(t, "look up aaa", "create aaa", "create aaa", "look up aaa")
	})
}

func TestStartup_AnOutageEndsWithTheLastStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, began := adminWith(pullable(subA)), time.Now()
		a.took = 100 * time.Millisecond
		a.answer = func(_, _ string, _ int) error { return errDown }
		var err error
		text := logged(t, func() { err = a.start(t, reads([]string{subA, subB, subC})) })
		wantError(t, err, "source: look up "+subA+" and 2 other subscriptions: no verdict in 5m0s; the last status was Unavailable: down; check that the workers reach the endpoint")
		if took := time.Since(began); took != startupPatience {
			t.Errorf("it took %v", took)
		}
		if n := a.times[lookingUp+" "+subA]; n < 25 || n > 40 {
			t.Errorf("%d calls in %v", n, startupPatience)
		}
		if n := strings.Count(text, "\n"); n != 5 || !strings.Contains(text, "Unavailable: down") {
			t.Errorf("%d warnings:\n%s", n, text)
		}
	})
}

// One call that is never answered holds up nothing but itself.
func TestStartup_ACallThatHangsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, began := adminWith(pullable(subA), pullable(subB)), time.Now()
		calls := a.calls()
		get, hung := calls.get, false
		calls.get = func(ctx context.Context, name string) (*pubsubpb.Subscription, error) {
			if name == subA && !hung {
				hung = true
				<-ctx.Done()
				return nil, status.FromContextError(ctx.Err()).Err()
			}
			return get(ctx, name)
		}
		wantError(t, newStartup(reads([]string{subA, subB}), calls).run(t.Context()), "")
		if took := time.Since(began); took != startupAttempt+firstStartupPause {
			t.Errorf("it took %v", took)
		}
	})
}

func TestStartup_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := adminWith()
		a.answer = func(_, _ string, _ int) error { return errDown }
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		err := newStartup(reads([]string{subA}), a.calls()).run(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "cut off") {
			t.Errorf("error %v", err)
		}
	})
}

// A clean stop during an outage does not wait for its end, and is no fault.
func TestStartup_AStopCutsItOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, stop := adminWith(), make(chan struct{})
		a.answer = func(_, _ string, _ int) error { return errDown }
		time.AfterFunc(20*time.Second, func() { close(stop) })
		began := time.Now()
		if ready, err := startUnless(t.Context(), stop, newStartup(reads([]string{subA}), a.calls())); ready || err != nil {
			t.Errorf("ready %v, error %v", ready, err)
		}
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestStartup_DeniedCreation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := adminWith()
		a.answer = func(act, name string, _ int) error {
			if act == creating || name == subB {
				return errDenied
			}
			return nil
		}
		wantError(t, a.start(t, reads([]string{subA, subB}, subA, subB)), "source: 2 of 2 subscriptions cannot be read as configured:\n"+
			"source: "+subA+": cannot be created: PermissionDenied: User not authorized.; grant roles/pubsub.editor (permissions pubsub.subscriptions.create on its project and pubsub.topics.attachSubscription on "+aTopic+") to the account that the workers run as\n"+
			"source: "+subB+": cannot be created: PermissionDenied: User not authorized.; grant roles/pubsub.editor (permissions pubsub.subscriptions.create on its project and pubsub.topics.attachSubscription on "+aTopic+") to the account that the workers run as, or, where the subscription exists, leave out Create or grant pubsub.subscriptions.get")
		a.want(t, "look up aaa", "create aaa", "look up bbb", "create bbb")
	})
}

func TestStartup_RefusedCreation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := adminWith()
		a.answer = func(act, _ string, _ int) error {
			if act == creating {
				return status.Error(codes.InvalidArgument, "Invalid filter.")
			}
			return nil
		}
		wantError(t, a.start(t, reads([]string{subA}, subA)), "source: 1 of 1 subscriptions cannot be read as configured:\n"+
			"source: "+subA+": cannot be created: InvalidArgument: Invalid filter.; change the options.SubscriptionCreate in its source.Subscription, or create it otherwise")
	})
}

func TestStartup_DeniedSeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := adminWith(pullable(subA), pullable(subB))
		a.answer = func(act, name string, _ int) error {
			if act == seeking && name == subB {
				return errDenied
			}
			return nil
		}
		cfg := reads([]string{subA, subB})
		cfg.StartPosition = options.EarliestRetained()
		wantError(t, a.start(t, cfg), "source: 1 of 2 subscriptions cannot be read as configured:\n"+
			"source: "+subB+": cannot be moved to source.Config.StartPosition: PermissionDenied: User not authorized.; grant roles/pubsub.subscriber (permission pubsub.subscriptions.consume) to the account that the workers run as")
	})
}

// Who may pull may not look: the read goes on, and one warning says on what grounds.
func TestStartup_DeniedLookUpIsOneWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range 8 {
			names = append(names, fmt.Sprint(subA, i))
		}
		a := adminWith()
		a.answer = func(_, _ string, _ int) error { return errDenied }
		cfg := reads(names)
		cfg.Ordering, cfg.OnDecodeFailure = options.PerKey, Nack()
		var err error
		text := logged(t, func() { err = a.start(t, cfg) })
		wantError(t, err, "")
		if strings.Count(text, "\n") != 1 {
			t.Errorf("want one warning:\n%s", text)
		}
		for _, part := range []string{"pubsub.subscriptions.get", names[0], names[4], "and 3 more", "each exists", "has message ordering", "has a dead-letter policy"} {
			if !strings.Contains(text, part) {
				t.Errorf("the warning lacks %q:\n%s", part, text)
			}
		}
	})
}

// Who may create may not look either: AlreadyExists tells that it is there.
func TestStartup_DeniedLookUpWithCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := adminWith(pullable(subA))
		a.answer = func(act, _ string, _ int) error {
			if act == lookingUp {
				return errDenied
			}
			return nil
		}
		var err error
		text := logged(t, func() { err = a.start(t, reads([]string{subA, subB}, subA, subB)) })
		wantError(t, err, "")
		a.want(t, "look up aaa", "create aaa", "look up bbb", "create bbb")
		if !strings.Contains(text, subA) || strings.Contains(text, subB) {
			t.Errorf("want a warning of what was not created:\n%s", text)
		}
	})
}

// 1,000 subscriptions: one call about each and step, some at a time.
func TestStartup_AThousandSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		var names []string
		var subs []*pubsubpb.Subscription
		for i := range n {
			names = append(names, fmt.Sprint(subA, i))
			subs = append(subs, pullable(names[i]))
		}
		a, began := adminWith(subs...), time.Now()
		a.took = 50 * time.Millisecond
		cfg := reads(names)
		cfg.StartPosition = options.EarliestRetained()
		wantError(t, a.start(t, cfg), "")
		if len(a.log) != 2*n || a.most != startupConcurrency {
			t.Errorf("%d calls, %d at once", len(a.log), a.most)
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A checkableQueue is a fakeQueue that can be asked whether it works.
type checkableQueue struct{ fakeQueue }

func (q checkableQueue) Check(context.Context, string) error { return q.note("check") }

// A queue that cannot work is found before anything is moved, beside all else.
func TestStartup_ChecksTheDeadLetterQueueBeforeItSeeks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, log := queueFor(t, "check")
		a := adminWith(pullable(subA), pullable(subB, detached))
		cfg := reads([]string{subA, subB})
		cfg.StartPosition = options.FromTimestamp(startTime)
		cfg.OnDecodeFailure = SendTo(checkableQueue{q})
		nonce := nonceOf(t)
		begin := func() error {
			s := newStartup(cfg.withDefaults(), a.calls())
			s.letters = dlq.NewSender(cfg.OnDecodeFailure.queue, nonce)
			return s.run(t.Context())
		}
		wantError(t, begin(), `source: 1 of 2 subscriptions cannot be read as configured:
source: projects/p/subscriptions/bbb: is detached from its topic: it holds no messages and gets none; create another subscription and read that
source: OnDecodeFailure source.SendTo(source.checkableQueue): check the dead-letter queue: the queue is out of order`)
		a.want(t, "look up aaa", "look up bbb")

		cfg.Subscriptions = From(subA)
		wantError(t, begin(), "source: OnDecodeFailure source.SendTo(source.checkableQueue): check the dead-letter queue: the queue is out of order")
		cfg.OnDecodeFailure = SendTo(checkableQueue{fakeQueue{Name: q.Name}})
		wantError(t, begin(), "")
		a.want(t, "look up aaa", "look up aaa", "look up aaa", "look up bbb", "seek aaa to 2026-11-30T12:00:00Z")
		if len(log.calls) != 3 {
			t.Errorf("asked of the queue: %v", log.calls)
		}
	})
}
