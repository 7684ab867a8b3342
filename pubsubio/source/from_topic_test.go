package source

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// C24: the subscription was made in the project of its topic, and names with a colon
// were refused.
func TestFromTopic_C24_NamesASubscriptionInTheGivenProject(t *testing.T) {
	long := "projects/q/topics/a" + strings.Repeat("b", 254)
	for topic, id := range map[string]string{
		"projects/ex.com:q/topics/a.b~c%2B+d-e": `beam-a\.b~c%2B\+d-e`,
		long:                                    "beam-a" + strings.Repeat("b", maxTopicPart-1),
	} {
		got := FromTopic("other.org:p", topic)
		pattern := `^projects/other\.org:p/subscriptions/` + id + `-\d{8}-\d{6}-[0-9a-f]{12}$`
		if len(got) != 1 || !regexp.MustCompile(pattern).MatchString(got[0].Name) || got[0].Create.Topic != topic {
			t.Errorf("%+v, want a name like %s", got, pattern)
		}
		if err := (Config{Subscriptions: got}).Validate(); err != nil {
			t.Error(err)
		}
		if again := FromTopic("other.org:p", topic); again[0].Name == got[0].Name {
			t.Errorf("two subscriptions are named %s", got[0].Name)
		}
	}
	err := Config{Subscriptions: FromTopic("p", "projects/q/topics/1ab")}.Validate()
	wantError(t, err, `source.Config.Subscriptions[0].Create.Topic: topic "projects/q/topics/1ab": the id must start with a letter`)
}

// ownRead is a read of a topic on a server, as it is once its run is known.
func ownRead(endpoint string, b run.Binding) *startupFn {
	return &startupFn{settings{
		Config:  Config{Subscriptions: FromTopic("p", aTopic), EmulatorEndpoint: endpoint},
		Nonce:   "own " + endpoint,
		Binding: b,
	}}
}

// What FromTopic has made is deleted at the end of a local run, and by none that may go
// on elsewhere.
func TestEndRun_C23_DeletesTheReadsOwnSubscription(t *testing.T) {
	for name, c := range map[string]struct {
		binding run.Binding
		left    int
	}{
		"prism":     {run.Binding{Rule: run.Finalized, Prism: true}, 0},
		"direct":    {run.Binding{Rule: run.Pipeline}, 0},
		"elsewhere": {run.Binding{}, 1},
		"Dataflow":  {run.Binding{Rule: run.FinalizedOrResumed}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			srv, client := adminServer(t)
			fn := ownRead(srv.Endpoint(), c.binding)
			if _, err := fn.startUp(t.Context()); err != nil {
				t.Fatal(err)
			}
			created := described(t, client, fn.Config.Subscriptions[0].Name)
			if ttl := created.GetExpirationPolicy().GetTtl().AsDuration(); ttl <= created.GetMessageRetentionDuration().AsDuration() {
				t.Errorf("it expires after %v, messages after %v", ttl, created.GetMessageRetentionDuration().AsDuration())
			}
			if err := fn.EndRun(); err != nil {
				t.Error(err)
			}
			if got := srv.Subscriptions(); len(got) != c.left {
				t.Errorf("%v are left", got)
			}
		})
	}
}

// C23: a subscription that nobody knows of is deleted by nobody. Its name is logged once,
// also where the first answer to its creation is lost, or the startup runs again.
func TestFromTopic_C23_LogsItsNameOnce(t *testing.T) {
	srv, _ := adminServer(t)
	fn := ownRead(srv.Endpoint(), run.Binding{Prism: true})
	srv.Order(pubsubtest.Rule{Method: "CreateSubscription", Times: 1}, pubsubtest.CarryOut(), pubsubtest.Fail(status.Error(codes.Unavailable, "lost")))
	var log bytes.Buffer
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	for range 2 {
		if _, err := fn.startUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := fn.EndRun(); err != nil {
		t.Error(err)
	}
	name := "subscription=" + fn.Config.Subscriptions[0].Name
	if created := `msg="source: subscription created" ` + name; strings.Count(log.String(), created) != 1 {
		t.Errorf("logged %s, want %s once", log.String(), created)
	}
	if deleted := `msg="source: subscription deleted" ` + name; strings.Count(log.String(), deleted) != 1 {
		t.Errorf("logged %s, want %s once", log.String(), deleted)
	}
	if got := srv.Subscriptions(); len(got) != 0 {
		t.Errorf("%v are left", got)
	}
}

// Somebody else's subscription is not the read's to delete, whoever has created it, and
// neither is one that took the place of FromTopic's.
func TestEndRun_DeletesNothingElse(t *testing.T) {
	srv, _ := adminServer(t)
	srv.MustCreateSubscription(subA, aTopic)
	fn := ownRead(srv.Endpoint(), run.Binding{Prism: true})
	fn.Config.Subscriptions[0].Name = subC
	fn.Config.Subscriptions = append(fn.Config.Subscriptions, Subscription{Name: subA}, Subscription{Name: subB, Create: creatable})
	if _, err := fn.startUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := fn.EndRun(); err != nil {
		t.Error(err)
	}
	if got := srv.Subscriptions(); len(got) != 3 {
		t.Errorf("%v are left", got)
	}
}

// A pipeline that failed before its startup has nothing to delete, and does not wait for
// a server that may be away.
func TestEndRun_AsksForNothingWhereNothingWasCreated(t *testing.T) {
	srv, _ := adminServer(t)
	if err := ownRead(srv.Endpoint(), run.Binding{Prism: true}).EndRun(); err != nil {
		t.Error(err)
	}
	if n := srv.Calls("DeleteSubscription"); n != 0 {
		t.Errorf("%d deletions", n)
	}
}

// Without the permission, the user is told what stays behind, and the run is no failure.
func TestEndRun_ADeletionThatFailsIsAWarning(t *testing.T) {
	srv, _ := adminServer(t)
	fn := ownRead(srv.Endpoint(), run.Binding{Prism: true})
	if _, err := fn.startUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv.Deny("DeleteSubscription")
	log := logged(t, func() {
		if err := fn.EndRun(); err != nil {
			t.Error(err)
		}
	})
	for _, want := range []string{fn.Config.Subscriptions[0].Name, "could not be deleted", "PermissionDenied", "pubsub.subscriptions.delete", "192h"} {
		if !strings.Contains(log, want) {
			t.Errorf("logged %q, want %q in it", log, want)
		}
	}
}

// A creation whose answer was lost is this startup's, whatever is answered next, and one
// that was refused is not.
func TestStartup_KnowsWhatItMayHaveCreated(t *testing.T) {
	lost := status.Error(codes.Unavailable, "lost")
	for name, c := range map[string]struct {
		answers []error // to creations, in turn; nil creates
		exists  bool
		want    bool
	}{
		"created":             {[]error{nil}, false, true},
		"answer lost, exists": {[]error{lost}, true, true},
		"refused":             {[]error{errDenied}, false, false},
		"somebody else":       {[]error{nil}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := adminWith()
				a.answer = func(act, _ string, n int) error {
					if act != creating {
						return nil
					}
					if c.exists {
						a.put(pullable(subA))
					}
					if n <= len(c.answers) {
						return c.answers[n-1]
					}
					return nil
				}
				s := newStartup(reads([]string{subA}, subA).withDefaults(), a.calls())
				_ = s.run(t.Context()) // The refused one fails.
				if got := s.mayHaveCreated(); got != c.want {
					t.Errorf("may have created: %v", got)
				}
			})
		})
	}
}

// put has a subscription appear.
func (a *fakeAdmin) put(s *pubsubpb.Subscription) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.subs[s.GetName()] = s
}

func TestDeleteSubscription_TriesAgain(t *testing.T) {
	unavailable := status.Error(codes.Unavailable, "away")
	for name, c := range map[string]struct {
		answers []error // the last of them for ever
		calls   int
		took    time.Duration
		want    codes.Code
	}{
		"deleted":                {[]error{nil}, 1, 0, codes.OK},
		"away for a moment":      {[]error{unavailable, unavailable, nil}, 3, 3 * time.Second, codes.OK},
		"not known everywhere":   {[]error{errNotFound, errNotFound, nil}, 3, 3 * time.Second, codes.OK},
		"gone":                   {[]error{errNotFound}, 4, 7 * time.Second, codes.OK},
		"no permission":          {[]error{errDenied}, 1, 0, codes.PermissionDenied},
		"away":                   {[]error{unavailable}, 5, deleteLimit, codes.Unavailable},
		"gone, after being away": {[]error{unavailable, errNotFound}, 5, 15 * time.Second, codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), deleteLimit)
				defer cancel()
				began, n := time.Now(), 0
				err := deleteSubscription(ctx, subA, func(context.Context, string) error {
					n++
					return c.answers[min(n, len(c.answers))-1]
				})
				if took := time.Since(began); status.Code(err) != c.want || n != c.calls || took != c.took {
					t.Errorf("error %v after %d calls in %v", err, n, took)
				}
			})
		})
	}
}
