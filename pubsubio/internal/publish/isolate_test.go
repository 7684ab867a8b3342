package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

var errPoison = status.Error(codes.InvalidArgument, "One or more messages are invalid.")

// poisoned refuses each request that has a message whose data begins with "bad".
func poisoned(_ context.Context, r *pubsubpb.PublishRequest) error {
	for _, m := range r.Messages {
		if strings.HasPrefix(string(m.Data), "bad") {
			return errPoison
		}
	}
	return nil
}

// withBad returns n messages, numbered, those at the given places bad.
func withBad(n int, at ...int) (all, good []string) {
	for i := range n {
		s := fmt.Sprintf("%04d", i)
		if slices.Contains(at, i) {
			s = "bad" + s
		} else {
			good = append(good, s)
		}
		all = append(all, s)
	}
	return all, good
}

func every(n, step int) (out []int) {
	for i := 0; i < n; i += step {
		out = append(out, i)
	}
	return out
}

// One bad message of a thousand took the others with it, or cost a round trip for
// each of them (C29).
func TestIsolate_FindsTheBadOnes_C29(t *testing.T) {
	const n = 1000
	for name, tc := range map[string]struct {
		bad  []int
		most int // further requests
	}{
		"one, first":   {[]int{0}, 22},
		"one, middle":  {[]int{517}, 22},
		"one, last":    {[]int{n - 1}, 22},
		"ten adjacent": {[]int{500, 501, 502, 503, 504, 505, 506, 507, 508, 509}, 10 * 22},
		"ten afar":     {every(n, 100), 10 * 22},
		"none":         {nil, 0},
	} {
		for _, keyed := range []string{"", "k"} {
			t.Run(name+" "+keyed, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					all, good := withBad(n, tc.bad...)
					f := &fakeService{answer: poisoned}
					p := newTestPool(t, f, options.Publisher{BatchElementCount: n, MaxInFlightMessages: n, EnableMessageOrdering: keyed != ""})
					var routed []Rejection
					b := openWith(t, p, Handlers{Reject: collect(&routed)})
					for i, s := range all {
						if err := b.Add(t.Context(), topic, &message.Message{Data: []byte(s), OrderingKey: keyed}, int64(i)); err != nil {
							t.Fatal(err)
						}
					}
					mustFinish(t, b)
					got := f.inOrder()
					if keyed == "" {
						slices.Sort(got)
					}
					if diff := cmp.Diff(good, got); diff != "" {
						t.Errorf("published (-want +got):\n%s", diff)
					}
					if f.calls-1 > tc.most {
						t.Errorf("%d further requests, want at most %d", f.calls-1, tc.most)
					}
					expectRouted(t, routed, all, tc.bad)
					if c := b.Counts(); c.Published != int64(len(good)) {
						t.Errorf("%d counted as published", c.Published)
					}
				})
			})
		}
	}
}

// expectRouted asserts that the handler got exactly the bad ones, whole.
func expectRouted(t *testing.T, routed []Rejection, all []string, bad []int) {
	t.Helper()
	var tags []int
	for _, r := range routed {
		tags = append(tags, int(r.Tag))
		if string(r.Message.Data) != all[r.Tag] || r.Topic != topic || !errors.Is(r.Err, errPoison) || r.Attempts < 2 {
			t.Errorf("rejection: %+v", r)
		}
	}
	slices.Sort(tags)
	if !slices.Equal(tags, bad) {
		t.Errorf("routed %v, want %v", tags, bad)
	}
}

// The first copies in the order in which the service stored them.
func (f *fakeService) inOrder() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	seen := map[string]bool{}
	for _, r := range f.published {
		for _, m := range r.Messages {
			if s := string(m.Data); !seen[s] {
				seen[s] = true
				out = append(out, s)
			}
		}
	}
	return out
}

func TestIsolate_AllBadStopsAtTheGuardrail_C35(t *testing.T) {
	for _, keyed := range []string{"", "k"} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeService{answer: poisoned}
			p := newTestPool(t, f, options.Publisher{BatchElementCount: 1000, EnableMessageOrdering: keyed != ""})
			var routed []Rejection
			b := openWith(t, p, Handlers{Reject: collect(&routed)})
			for i := range 1000 {
				if err := b.Add(t.Context(), topic, &message.Message{Data: fmt.Appendf(nil, "bad%d", i), OrderingKey: keyed}, 0); err != nil {
					t.Fatal(err)
				}
			}
			err := b.Finish(t.Context())
			if err == nil || !strings.Contains(err.Error(), "100 messages in a row") || !strings.Contains(err.Error(), "options.Publisher.MaxConsecutiveRejections") || !errors.Is(err, errPoison) {
				t.Errorf("Finish: %v", err)
			}
			if len(routed) != 100 {
				t.Errorf("%d routed, want 100", len(routed))
			}
			synctest.Wait()
			if n, _ := inFlight(b); n != 0 {
				t.Errorf("%d messages hold room", n)
			}
			if p.guard.count != 0 {
				t.Errorf("the retry begins with %d rejections", p.guard.count)
			}
		})
	}
}

func TestGuardrail_CountsInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeService{answer: poisoned}
		p := newTestPool(t, f, options.Publisher{BatchElementCount: 1, MaxInFlightMessages: 1, MaxConsecutiveRejections: 3})
		var routed []Rejection
		b := openWith(t, p, Handlers{Reject: collect(&routed)})
		// By a rule and by the service alike; a success starts the count again.
		mustAdd(t, b, "bad1", "", "good", "bad2", "")
		err := b.Add(t.Context(), topic, text("bad3"), 0)
		if err == nil {
			err = b.Finish(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), "3 messages in a row") {
			t.Errorf("the bundle ended with %v", err)
		}
		b.Drop()
		if len(routed) != 5 {
			t.Errorf("%d routed, want 5, the one that tripped it too", len(routed))
		}
	})
}

func TestGuardrail_UnboundedNeverTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPool(t, &fakeService{answer: poisoned}, options.Publisher{MaxConsecutiveRejections: options.Unbounded})
		var routed []Rejection
		b := openWith(t, p, Handlers{Reject: collect(&routed)})
		for range 500 {
			mustAdd(t, b, "bad")
		}
		mustFinish(t, b)
		if len(routed) != 500 {
			t.Errorf("%d routed", len(routed))
		}
	})
}

// A handler that fails ends its bundle, and no other.
func TestReject_AFailingHandlerEndsTheBundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPool(t, &fakeService{answer: poisoned}, options.Publisher{BatchDelay: time.Hour})
		broken := errors.New("no dead letters today")
		a := openWith(t, p, Handlers{Reject: func(context.Context, Rejection) error { return broken }})
		b := open(t, p)
		mustAdd(t, a, "a", "bad")
		mustAdd(t, b, "b")
		if err := a.Finish(t.Context()); !errors.Is(err, broken) {
			t.Errorf("Finish: %v", err)
		}
		mustFinish(t, b)
	})
}

// A bundle that was dropped while its request was being isolated left its bad
// message for the next one's counts.
func TestIsolate_CountsNothingOfADroppedBundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, release := hold()
		f := &fakeService{answer: answer}
		p := newTestPool(t, f, options.Publisher{BatchElementCount: 2, MaxConsecutiveRejections: 1})
		a, b := open(t, p), open(t, p)
		mustAdd(t, a, "bad")
		mustAdd(t, b, "b")
		synctest.Wait()
		a.Drop()
		release(errPoison)
		done := make(chan error, 1)
		go func() { done <- b.Finish(t.Context()) }()
		synctest.Wait()
		if f.inFlight != 1 {
			t.Errorf("%d messages are sent again, want 1: a's is of no more use", f.inFlight)
		}
		release(nil)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
