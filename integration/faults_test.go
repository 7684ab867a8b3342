package integration

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// expectError checks that err says all of what.
func expectError(t *testing.T, err error, what ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("the pipeline succeeded")
	}
	for _, text := range what {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q:\n%v", text, err)
		}
	}
}

// expectNoHotLoop checks that so many streams were asked for at the most: one a
// second, and the first.
func expectNoHotLoop(t *testing.T, srv *pubsubtest.Server, began time.Time) {
	t.Helper()
	if n, most := srv.Calls("StreamingPull"), int64(time.Since(began)/time.Second)+1; n > most {
		t.Errorf("%d streams were asked for in %v", n, time.Since(began))
	}
}

// A typo in a subscription's name caused a hot loop, or silence.
func TestPrism_C20_MissingSubscription(t *testing.T) {
	long(t)
	parallel(t)
	srv := newServer(t)
	r := relayOf(srv, options.Limit{})
	const typo = "projects/integration/subscriptions/inptu"
	r.source.Subscriptions = source.From(typo)
	began := time.Now()
	expectError(t, r.run(within(t, 40*time.Second)), typo, "NotFound", "source.Subscription")
	t.Logf("refused after %v", time.Since(began).Round(time.Second))
	if looked, streams := srv.Calls("GetSubscription"), srv.Calls("StreamingPull"); looked > 5 || streams > 0 {
		t.Errorf("it was looked up %d times, and %d streams were asked for", looked, streams)
	}
}

// A subscription that was created a moment ago is not yet known everywhere.
func TestPrism_C20_SubscriptionThatAppearsIsRead(t *testing.T) {
	long(t)
	parallel(t)
	srv := newServer(t)
	r := relayOf(srv, options.Limit{MaxMessages: 10})
	const late = "projects/integration/subscriptions/late"
	r.source.Subscriptions = source.From(late)
	j := start(t, time.Minute, r.run)
	ctx := within(t, 30*time.Second)
	must(t, srv.AwaitEvent(ctx, func(e pubsubtest.Event) bool { return e.Kind == pubsubtest.Refused && e.Subscription == late }))
	srv.MustCreateSubscription(late, inTopic)
	publish(t, srv, inTopic, 0, 10)
	must(t, j.wait())
	expectArrived(t, srv, true)
	expectSettled(t, srv, late)
}

// One subscription of several is missing: nothing is read from the others, for the
// job cannot go on.
func TestPrism_C20_OneOfSeveralSubscriptionsIsMissing(t *testing.T) {
	long(t)
	parallel(t)
	srv := newServer(t)
	publish(t, srv, inTopic, 0, 100)
	r := relayOf(srv, options.Limit{})
	const typo = "projects/integration/subscriptions/inptu"
	r.source.Subscriptions = source.From(inSub, typo)
	expectError(t, r.run(within(t, 40*time.Second)), typo, "NotFound", "1 of 2 subscriptions")
	if s := srv.Stats(inSub); s.Delivered != 0 || s.StreamsOpened != 0 {
		t.Errorf("the other one was read: %+v", s)
	}
}

func TestPrism_MissingTopic(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, inTopic, 0, 100)
	must(t, srv.DeleteTopic(outTopic))
	r := relayOf(srv, options.Limit{})
	r.sink.CreateDisposition = options.CreateNever
	err := r.run(within(t, 20*time.Second))
	expectError(t, err, outTopic, "NotFound", "options.CreateNever")
	if n := srv.Calls("Publish"); n > 5 {
		t.Errorf("%d publish calls", n)
	}
	if s := srv.Stats(inSub); s.Acknowledged != 0 || s.Backlog != 100 {
		t.Errorf("want everything returned: %+v", s)
	}
	expectSettled(t, srv, inSub)
}

func TestPrism_C18_NoPermission(t *testing.T) {
	for method, want := range map[string][]string{
		"StreamingPull": {inSub, "PermissionDenied", "pubsub.subscriptions.consume"},
		"Acknowledge":   {inSub, "PermissionDenied", "pubsub.subscriptions.consume"},
		"Publish":       {outTopic, "PermissionDenied", "roles/pubsub.publisher"},
	} {
		t.Run(method, func(t *testing.T) {
			srv := newServer(t)
			publish(t, srv, inTopic, 0, 100)
			srv.Answer(method, permissionDenied)
			r := relayOf(srv, options.Limit{})
			r.source.Subscriber.AwaitAckConfirmation = time.Minute // A refusal is told at once.
			expectError(t, r.run(within(t, 20*time.Second)), want...)
			if n := srv.Calls(method); n > 3 {
				t.Errorf("%d calls after a refusal", n)
			}
			if s := srv.Stats(inSub); s.Acknowledged != 0 {
				t.Errorf("something was acknowledged: %+v", s)
			}
		})
	}
}

// An expired credential is told from a missing permission: the next may be good.
func TestPrism_C18_UnauthenticatedRecovers(t *testing.T) {
	parallel(t)
	srv := newServer(t)
	publish(t, srv, inTopic, 0, 100)
	for _, method := range []string{"StreamingPull", "Acknowledge", "Publish"} {
		srv.Answer(method, status.Error(codes.Unauthenticated, "expired"), pubsubtest.Times(2))
	}
	must(t, relayOf(srv, options.Limit{MaxMessages: 100}).run(within(t, 30*time.Second)))
	expectArrived(t, srv, true)
	expectSettled(t, srv, inSub)
}

func TestPrism_ServerAbsentAtStart(t *testing.T) {
	parallel(t)
	srv := newServer(t)
	publish(t, srv, inTopic, 0, 1000)
	srv.Stop()
	j := start(t, time.Minute, relayOf(srv, options.Limit{MaxMessages: 1000}).run)
	work(within(t, time.Minute), 1500*time.Millisecond) // of absence
	j.running(t)
	must(t, srv.Resume())
	must(t, j.wait())
	expectArrived(t, srv, true)
	if s := srv.Stats(inSub); s.Acknowledged != 1000 || s.Redelivered != 0 {
		t.Errorf("want everything acknowledged once: %+v", s)
	}
	expectSettled(t, srv, inSub)
}

// What was in a response that the server's end cut off comes again when its lease
// is over, which is shortened here.
func TestPrism_ServerRestartedInTheMiddle(t *testing.T) {
	long(t)
	parallel(t)
	for name, run := range rules {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t, func(c *pubsubtest.Config) { c.LeaseSecond = 2 * time.Second / 60 })
			const n = 20_000
			publish(t, srv, inTopic, 0, n)
			r := relayOf(srv, options.Limit{StopWhenIdle: 3 * time.Second})
			r.source.Subscriber.MaxRecordsPerBundle = 500
			r.source.Subscriber.MaxOutstandingMessages = 1500 // The server keeps some back.
			r.sink.Publisher.RetryInitialDelay = 10 * time.Millisecond
			began := time.Now()
			j := start(t, time.Minute, func(ctx context.Context) error { return run(r, ctx) })
			ctx := within(t, 40*time.Second)
			for _, point := range []int64{1000, 10_000} {
				must(t, srv.AwaitPublished(ctx, outTopic, point))
				must(t, srv.Restart())
			}
			must(t, j.wait())
			// On a slow machine the read may have ended for want of it.
			for srv.Stats(inSub).Acknowledged < n {
				must(t, run(r, ctx))
			}
			expectArrived(t, srv, false)
			expectSettled(t, srv, inSub)
			expectNoHotLoop(t, srv, began)
		})
	}
}

func TestPrism_ServerGoneForAWhile(t *testing.T) {
	long(t)
	parallel(t)
	srv := newServer(t)
	r := relayOf(srv, options.Limit{})
	began := time.Now()
	j := start(t, time.Minute, r.run)
	ctx := within(t, 40*time.Second)
	publish(t, srv, inTopic, 0, 100)
	awaitAcknowledged(ctx, t, srv, inSub, 100)
	srv.Stop()
	publish(t, srv, inTopic, 100, 100)
	work(ctx, 4*time.Second)
	must(t, srv.Resume())
	awaitAcknowledged(ctx, t, srv, inSub, 200)
	j.running(t)
	expectNoHotLoop(t, srv, began)
	expectArrived(t, srv, true)
}

// A stream goes quiet without an error, or is opened again every few
// milliseconds.
func TestPrism_C16_C17_StreamsEndedWithEachStatus(t *testing.T) {
	long(t)
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		permanent := false
		switch code {
		case codes.InvalidArgument, codes.PermissionDenied, codes.FailedPrecondition, codes.AlreadyExists,
			codes.OutOfRange, codes.Unimplemented, codes.DataLoss:
			permanent = true
		default:
		}
		ended := status.Error(code, "the stream is over")
		t.Run("idle "+code.String(), func(t *testing.T) {
			parallel(t)
			srv := newServer(t)
			began := time.Now()
			j := start(t, time.Minute, relayOf(srv, options.Limit{}).run)
			ctx := within(t, 30*time.Second)
			awaitStreams(ctx, t, srv, inSub, 1)
			must(t, srv.EndStreams(inSub, ended))
			if permanent {
				expectError(t, j.wait(), inSub, code.String(), "the stream is over")
				expectNoHotLoop(t, srv, began)
				return
			}
			must(t, srv.Await(ctx, inSub, func(s pubsubtest.Stats) bool { return s.StreamsOpened == 2 }))
			publish(t, srv, inTopic, 0, 1)
			awaitAcknowledged(ctx, t, srv, inSub, 1)
			j.running(t)
			expectNoHotLoop(t, srv, began)
		})
		t.Run("busy "+code.String(), func(t *testing.T) {
			parallel(t)
			srv := newServer(t)
			began := time.Now()
			j := start(t, time.Minute, relayOf(srv, options.Limit{}).run)
			ctx := within(t, 30*time.Second)
			publish(t, srv, inTopic, 0, 1)
			awaitAcknowledged(ctx, t, srv, inSub, 1)
			must(t, srv.EndStreams(inSub, ended))
			if code == codes.NotFound { // The service knew it before, so it was deleted.
				expectError(t, j.wait(), inSub, code.String(), "the subscription was deleted")
				return
			}
			publish(t, srv, inTopic, 1, 1)
			awaitAcknowledged(ctx, t, srv, inSub, 2)
			j.running(t)
			expectNoHotLoop(t, srv, began)
			expectArrived(t, srv, true)
		})
	}
}

func TestPrism_C16_AStreamThatIsRefusedIsNotAskedForInAHotLoop(t *testing.T) {
	parallel(t)
	srv := newServer(t)
	publish(t, srv, inTopic, 0, 10)
	srv.Answer("StreamingPull", status.Error(codes.Unavailable, "come back later"))
	began := time.Now()
	j := start(t, time.Minute, relayOf(srv, options.Limit{}).run)
	ctx := within(t, 30*time.Second)
	work(ctx, 3500*time.Millisecond)
	expectNoHotLoop(t, srv, began)
	srv.Answer("StreamingPull", nil)
	awaitAcknowledged(ctx, t, srv, inSub, 10)
	j.running(t)
	expectNoHotLoop(t, srv, began)
}

func TestPrism_TransientErrorsOfEveryCall(t *testing.T) {
	for _, code := range []codes.Code{codes.Unavailable, codes.Internal, codes.Unknown, codes.Aborted, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Canceled} {
		t.Run(code.String(), func(t *testing.T) {
			parallel(t)
			srv := newServer(t)
			publish(t, srv, inTopic, 0, 1000)
			for _, method := range []string{"StreamingPull", "Acknowledge", "Publish"} {
				srv.Answer(method, status.Error(code, "try again"), pubsubtest.Times(2))
			}
			must(t, relayOf(srv, options.Limit{MaxMessages: 1000}).run(within(t, 30*time.Second)))
			expectArrived(t, srv, true)
			if s := srv.Stats(inSub); s.Acknowledged != 1000 || s.Redelivered != 0 {
				t.Errorf("want everything acknowledged once: %+v", s)
			}
			expectSettled(t, srv, inSub)
		})
	}
}

// A request is stored and its answer lost: no message may be lost, and the copy
// is the only one.
func TestPrism_C37_AnswersThatAreLost(t *testing.T) {
	srv := newServer(t)
	const n = 1000
	publish(t, srv, inTopic, 0, n)
	lost := status.Error(codes.DeadlineExceeded, "the answer is lost")
	srv.Answer("Publish", lost, pubsubtest.AfterEffect(), pubsubtest.Times(3))
	srv.Answer("Acknowledge", lost, pubsubtest.AfterEffect(), pubsubtest.Times(3))
	must(t, relayOf(srv, options.Limit{MaxMessages: n}).run(within(t, 30*time.Second)))
	expectArrived(t, srv, false)
	for d, times := range data(srv.Messages(outTopic)) {
		if times > 4 {
			t.Errorf("%s was published %d times", d, times)
		}
	}
	if s := srv.Stats(inSub); s.Acknowledged != n || s.Redelivered != 0 {
		t.Errorf("want everything acknowledged, nothing redelivered: %+v", s)
	}
	expectSettled(t, srv, inSub)
}

// A subscription that is deleted under a running pipeline, which idled on, where it
// was created again as if nothing was lost.
func TestPrism_SubscriptionDeletedInTheMiddle(t *testing.T) {
	for name, again := range map[string]bool{"for good": false, "and created again": true} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			srv := newServer(t)
			publish(t, srv, inTopic, 0, 10)
			j := start(t, time.Minute, relayOf(srv, options.Limit{}).run)
			ctx := within(t, 40*time.Second)
			awaitAcknowledged(ctx, t, srv, inSub, 10)
			must(t, srv.DeleteSubscription(inSub))
			if again {
				srv.MustCreateSubscription(inSub, inTopic)
			}
			expectError(t, j.wait(), inSub, "NotFound", "was deleted", "start the job anew")
			if n := srv.Calls("StreamingPull"); n > 2 {
				t.Errorf("%d streams were asked for", n)
			}
		})
	}
}

// Messages are held as their subscription goes: their acknowledgements are refused.
func TestPrism_SubscriptionDeletedWhileMessagesAreHeld(t *testing.T) {
	parallel(t)
	srv := newServer(t)
	publish(t, srv, inTopic, 0, 3)
	r := relayOf(srv, options.Limit{})
	r.probe = &probe{before: func(_ context.Context, m *message.Message) error {
		if string(m.Data) == "0000001" {
			return srv.DeleteSubscription(inSub)
		}
		return nil
	}}
	expectError(t, r.run(within(t, 40*time.Second)), inSub, "NotFound")
}

// A topic that is deleted under a running pipeline: what it has left is read.
func TestPrism_C21_TopicDeletedInTheMiddle(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, inTopic, 0, 1000)
	r := relayOf(srv, options.Limit{MaxMessages: 1000})
	r.source.Subscriber.MaxOutstandingMessages = 100 // Most of it is not read yet.
	r.probe = &probe{before: func(_ context.Context, m *message.Message) error {
		if string(m.Data) == "0000010" {
			return srv.DeleteTopic(inTopic)
		}
		return nil
	}}
	must(t, r.run(within(t, 30*time.Second)))
	if n := srv.Published(outTopic); n != 1000 {
		t.Errorf("%d of 1,000 arrived", n)
	}
}

// A cancelled relay whose sink cannot publish ends when the sink can.
func TestPrism_CancelDuringAnOutageOfTheSink(t *testing.T) {
	srv := newServer(t)
	out := pubsubtest.New(t)
	out.MustCreateTopic(outTopic)
	out.Answer("Publish", status.Error(codes.Unavailable, "outage"))
	publish(t, srv, inTopic, 0, 500)
	r := relayOf(srv, options.Limit{})
	r.sink.EmulatorEndpoint = out.Endpoint()
	r.sink.Publisher.RetryMaxDelay = 50 * time.Millisecond
	reached := make(chan struct{})
	r.probe = &probe{before: func(_ context.Context, m *message.Message) error {
		if string(m.Data) == "0000100" {
			close(reached)
		}
		return nil
	}}
	j := start(t, time.Minute, r.run)
	<-reached
	j.cancel()
	work(within(t, time.Minute), 200*time.Millisecond)
	out.Answer("Publish", nil)
	if err := j.wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("the pipeline ended with %v", err)
	}
	if got, s := out.Published(outTopic), srv.Stats(inSub); got != s.Acknowledged || got+s.Backlog != 500 {
		t.Errorf("%d were published: %+v", got, s)
	}
	expectSettled(t, srv, inSub)
}
