package pubsubtest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/internal/emulator"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// A verdict is a test that is watched: what it was told, and whether it went on.
type verdict struct {
	testing.TB
	ctx   context.Context
	text  []string
	fatal bool
}

func (v *verdict) Context() context.Context { return v.ctx }

func (v *verdict) Helper() {}

func (v *verdict) Errorf(format string, args ...any) {
	v.text = append(v.text, fmt.Sprintf(format, args...))
}

func (v *verdict) Fatal(args ...any) {
	v.text = append(v.text, fmt.Sprint(args...))
	v.fatal = true
	runtime.Goexit()
}

// judge returns what a check says of the server that it looks at.
func judge(t *testing.T, check func(*verdict)) *verdict {
	t.Helper()
	v := &verdict{TB: t, ctx: t.Context()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		check(v)
	}()
	<-done
	return v
}

const wantTopic, wantSub = "projects/p/topics/out", "projects/p/subscriptions/out"

func wantServer(t *testing.T, adjust ...func(*pubsubtest.Config)) *pubsubtest.Server {
	t.Helper()
	srv := pubsubtest.New(t, adjust...)
	srv.MustCreateTopic(wantTopic)
	srv.MustCreateSubscription(wantSub, wantTopic, pubsubtest.AckDeadline(600))
	return srv
}

// pulled returns the acknowledgement ids of n messages.
func pulled(c *emulator.Client, n int) (ids []string) {
	for len(ids) < n {
		for _, m := range c.Pull(wantSub, int32(n-len(ids)), true) {
			ids = append(ids, m.GetAckId())
		}
	}
	return ids
}

func TestWantPublished_TellsWhatIsMissingAndWhatIsNotWanted(t *testing.T) {
	srv := wantServer(t)
	srv.PublishData(t, wantTopic, "a", "b", "b", "c")
	var many []string
	for i := range 12 {
		many = append(many, fmt.Sprintf("m%02d", i))
	}
	for _, c := range []struct {
		data                []string
		published, distinct string // what the checks say, "" for nothing
	}{
		{[]string{"b", "a", "c", "b"}, "", ""},
		{[]string{"a", "b", "c"}, `missing: none; not wanted: "b"`, ""},
		{[]string{"a", "b", "b", "b", "c", "d"}, `missing: "b", "d"; not wanted: none`, `missing: "d"; not wanted: none`},
		{[]string{"a", "c"}, `missing: none; not wanted: "b" 2 times`, `missing: none; not wanted: "b"`},
		{append(many, "a", "b", "b", "c"), `"m09" and 2 more; not wanted: none`, `"m09" and 2 more; not wanted: none`},
		{nil, `4 messages were published; missing: none; not wanted: "a", "b" 2 times, "c"`, `not wanted: "a", "b", "c"`},
	} {
		says := func(want string, check func(testing.TB, string, ...string)) {
			v := judge(t, func(tb *verdict) { check(tb, wantTopic, c.data...) })
			switch {
			case want == "" && len(v.text) == 0:
			case want != "" && len(v.text) == 1 && strings.Contains(v.text[0], want) && strings.Contains(v.text[0], wantTopic):
			default:
				t.Errorf("%q: said %q, want %q", c.data, v.text, want)
			}
		}
		says(c.published, srv.WantPublished)
		says(c.distinct, srv.WantDistinct)
	}
}

// What was not kept cannot be looked at: an empty topic would pass for a right one.
func TestWantPublished_NeedsAServerThatKeepsMessages(t *testing.T) {
	srv := wantServer(t, func(c *pubsubtest.Config) { c.KeepPublished = 1 })
	srv.PublishData(t, wantTopic, "a", "b")
	if v := judge(t, func(tb *verdict) { srv.WantPublished(tb, wantTopic, "b") }); len(v.text) != 1 || !strings.Contains(v.text[0], "KeepPublished") {
		t.Errorf("said %q", v.text)
	}
}

func TestWantAcknowledged_CountsWhatIsOpen(t *testing.T) {
	srv := wantServer(t)
	c := newClient(t, srv)
	srv.PublishData(t, wantTopic, "a", "b")
	passes := func(acknowledged, unacknowledged int64, want ...bool) {
		t.Helper()
		v := judge(t, func(tb *verdict) { srv.WantAcknowledged(tb, wantSub, acknowledged) })
		w := judge(t, func(tb *verdict) { srv.WantUnacknowledged(tb, wantSub, unacknowledged) })
		if (len(v.text) == 0) != want[0] || (len(w.text) == 0) != want[1] {
			t.Errorf("said %q and %q of %+v", v.text, w.text, srv.Stats(wantSub))
		}
	}
	passes(0, 2, false, true)
	ids := pulled(c, 2)
	passes(0, 2, false, false) // Both are outstanding.
	c.Acknowledge(wantSub, ids[0])
	passes(1, 1, false, false)
	c.Acknowledge(wantSub, ids[1])
	passes(2, 0, true, true)
	passes(1, 1, false, false)
}

func TestWantOutstanding_CountsWhatIsLeased(t *testing.T) {
	srv := wantServer(t)
	c := newClient(t, srv)
	srv.PublishData(t, wantTopic, "a", "b", "c")
	passes := func(n int64, want bool) {
		t.Helper()
		if v := judge(t, func(tb *verdict) { srv.WantOutstanding(tb, wantSub, n) }); (len(v.text) == 0) != want {
			t.Errorf("said %q of %+v", v.text, srv.Stats(wantSub))
		}
	}
	passes(0, true)
	ids := pulled(c, 2) // and one waits
	passes(2, true)
	passes(3, false)
	passes(1, false)
	c.Acknowledge(wantSub, ids[0])
	passes(1, true)
}

// A check of a misspelt name found nothing, which is what many ask for, and a wait for one
// took a minute.
func TestWant_FailsOfWhatDoesNotExist(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	srv := wantServer(t)
	const gone = "projects/p/topics/gone"
	srv.MustCreateTopic(gone)
	if err := srv.DeleteTopic(gone); err != nil {
		t.Fatal(err)
	}
	for _, no := range []string{wantTopic + "x", wantSub + "x", gone, "out", ""} {
		for name, c := range map[string]struct {
			check func(*verdict)
			there string
			waits bool
		}{
			"published":               {func(tb *verdict) { srv.WantPublished(tb, no) }, wantTopic, false},
			"distinct":                {func(tb *verdict) { srv.WantDistinct(tb, no) }, wantTopic, false},
			"acknowledged":            {func(tb *verdict) { srv.WantAcknowledged(tb, no, 0) }, wantSub, false},
			"unacknowledged":          {func(tb *verdict) { srv.WantUnacknowledged(tb, no, 0) }, wantSub, false},
			"outstanding":             {func(tb *verdict) { srv.WantOutstanding(tb, no, 0) }, wantSub, false},
			"eventually":              {func(tb *verdict) { srv.Eventually(tb, no, func(pubsubtest.Stats) bool { return true }) }, wantSub, true},
			"eventually acknowledged": {func(tb *verdict) { srv.EventuallyAcknowledged(tb, no, 0) }, wantSub, true},
			"eventually published":    {func(tb *verdict) { srv.EventuallyPublished(tb, no, 0) }, wantTopic, true},
			"await":                   {func(tb *verdict) { tb.Errorf("%v", srv.Await(ctx, no, func(pubsubtest.Stats) bool { return false })) }, wantSub, false},
			"await published":         {func(tb *verdict) { tb.Errorf("%v", srv.AwaitPublished(ctx, no, 1)) }, wantTopic, false},
		} {
			v := judge(t, c.check)
			if len(v.text) != 1 || v.fatal != c.waits || !strings.Contains(v.text[0], fmt.Sprintf("%q; there are: %s", no, c.there)) {
				t.Errorf("%s of %q: said %q", name, no, v.text)
			}
		}
	}
	if v := judge(t, func(tb *verdict) { pubsubtest.New(t).WantPublished(tb, wantTopic) }); len(v.text) != 1 || !strings.Contains(v.text[0], "; there are: none") {
		t.Errorf("an empty server: said %q", v.text)
	}
}

func TestEventually_WaitsForWhatComes(t *testing.T) {
	srv := wantServer(t)
	c := newClient(t, srv)
	go func() {
		_, _ = srv.Publish(wantTopic, message.New([]byte("a")), message.New([]byte("b")))
	}()
	srv.EventuallyPublished(t, wantTopic, 2)
	ids := pulled(c, 2)
	acknowledging := make(chan struct{})
	go func() {
		defer close(acknowledging)
		_, err := c.Subscriber.Acknowledge(t.Context(), &pubsubpb.AcknowledgeRequest{Subscription: wantSub, AckIds: ids})
		if err != nil {
			t.Error(err)
		}
	}()
	srv.EventuallyAcknowledged(t, wantSub, 2)
	<-acknowledging
	srv.Eventually(t, wantSub, func(s pubsubtest.Stats) bool { return s.Outstanding == 0 })
}

// A test that waits for ever is found out by nobody.
func TestEventually_EndsTheTestWhenNothingComes(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	srv := wantServer(t)
	for name, wait := range map[string]func(*verdict){
		"published":    func(tb *verdict) { srv.EventuallyPublished(tb, wantTopic, 1) },
		"acknowledged": func(tb *verdict) { srv.EventuallyAcknowledged(tb, wantSub, 1) },
	} {
		v := judge(t, func(tb *verdict) {
			tb.ctx = ctx
			wait(tb)
		})
		if !v.fatal || len(v.text) != 1 || !strings.Contains(v.text[0], "await") {
			t.Errorf("%s: said %q, fatal %v", name, v.text, v.fatal)
		}
	}
}

func TestRunUntil(t *testing.T) {
	errStopped, errBroken := errors.New("stopped"), errors.New("broken")
	untilStopped := func(ctx context.Context) error { <-ctx.Done(); return errStopped }
	never := func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
	for name, c := range map[string]struct {
		run, until func(context.Context) error
		err        error
		says       string
	}{
		"what was waited for came": {untilStopped, func(context.Context) error { return nil }, errStopped, ""},
		"the pipeline fails":       {func(context.Context) error { return errBroken }, never, errBroken, "context canceled"},
		"the pipeline just ends":   {func(context.Context) error { return nil }, never, nil, "context canceled"},
		"nothing comes":            {untilStopped, never, errStopped, "it has not come within 1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var err error
				v := judge(t, func(tb *verdict) { err = pubsubtest.RunUntil(tb, c.run, c.until) })
				if !errors.Is(err, c.err) || v.fatal || (len(v.text) > 0) != (c.says != "") || c.says != "" && !strings.Contains(v.text[0], c.says) {
					t.Errorf("error %v, said %q", err, v.text)
				}
			})
		})
	}
}

// A pipeline that does what is awaited and ends right after, as one with a Limit, could
// fail: the wait found both that something had happened and its own end.
func TestAwait_WhatCameBeforeTheEndCounts(t *testing.T) {
	srv := wantServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	err := srv.Await(ctx, wantSub, func(pubsubtest.Stats) bool {
		asked++
		cancel()
		return asked > 1
	})
	if err != nil {
		t.Error(err)
	}
}

// What is outstanding comes again, at once and with the next attempt.
func TestRedeliver_DeliversAgainWhatIsOutstanding(t *testing.T) {
	srv := wantServer(t)
	c := newClient(t, srv)
	srv.PublishData(t, wantTopic, "a", "b", "c")
	ids := pulled(c, 3)
	c.Acknowledge(wantSub, ids[0])
	if n, err := srv.Redeliver(wantSub); n != 2 || err != nil {
		t.Errorf("%d came again, error %v", n, err)
	}
	again := pulled(c, 2)
	if s := srv.Stats(wantSub); len(again) != 2 || s.Lapsed != 2 || s.Redelivered != 2 {
		t.Errorf("%d were delivered again: %+v", len(again), s)
	}
	c.Acknowledge(wantSub, again...)
	srv.WantAcknowledged(t, wantSub, 3)
	if n, err := srv.Redeliver(wantSub); n != 0 || err != nil {
		t.Errorf("%d came again, error %v", n, err)
	}
	if _, err := srv.Redeliver("projects/p/subscriptions/none"); status.Code(err) != codes.NotFound {
		t.Errorf("error %v", err)
	}
}
