package replay

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

	"github.com/beam-pubsub/beam-pubsub-go/internal/emulator"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// giveUpInParts puts a letter for a message with the data "one" into the queue, in two parts.
func giveUpInParts(t *testing.T, srv *pubsubtest.Server, id string) {
	t.Helper()
	one, two := envelope(orders, []byte("\n\x03")), envelope(orders, []byte("one"))
	for i, m := range []*message.Message{one, two} {
		m.Attributes[dlq.IDAttribute], m.Attributes[dlq.SizeAttribute] = id, "5"
		m.Attributes[dlq.PartAttribute] = fmt.Sprintf("%d/2", i+1)
	}
	if _, err := srv.Publish(queueTopic, one, two); err != nil {
		t.Fatal(err)
	}
}

// The sweep read a queue that is never idle, and did not end.
func TestReplay_SweepsAQueueThatIsWrittenTo(t *testing.T) {
	srv := newServer(t)
	giveUpInParts(t, srv, "a")
	stop := keepGivingUp(srv, 100*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	o := replayAt(ctx, t, srv)
	stop()
	o.MustEnd(t, program.ExitDone)
	if got := published(srv, orders); !slices.Contains(got, "one") {
		t.Errorf("published %q", got)
	}
	leftIn(t, srv, srv.Published(queueTopic)-1-o.Report.Chosen)
}

// The parts of what an interrupted run has published stayed for ever.
func TestReplay_InterruptedItSweepsToo(t *testing.T) {
	srv := newServer(t)
	giveUpInParts(t, srv, "a")
	giveUp(t, srv, letter("projects/p/topics/gone", "gone", "NotFound"))
	ctx, interrupt := context.WithTimeout(t.Context(), limit)
	go func() { // Ends with what it waits for, or ctx.
		_ = srv.AwaitPublished(ctx, orders, 1)
		interrupt()
	}()
	o := replayAt(ctx, t, srv, "--stop_when_idle=1m")
	o.MustEnd(t, program.ExitInterrupted)
	leftIn(t, srv, 1)
	if o.Report.PartsLeft != 0 {
		t.Errorf("report %+v", o.Report)
	}
}

// takePart is another reader: it waits for what a replay returns once it has published what
// the gate holds back, keeps that and returns it.
func takePart(ctx context.Context, srv *pubsubtest.Server, client *emulator.Client, publish *pubsubtest.Order, gate chan struct{}) (*pubsubpb.PubsubMessage, error) {
	if err := publish.AwaitFired(ctx, 1); err != nil { // It has all parts.
		return nil, err
	}
	asked := srv.Order(pubsubtest.Rule{Method: "Pull"}, pubsubtest.CarryOut())
	go func() { // Ends with ctx.
		_ = asked.AwaitFired(ctx, 1)
		close(gate)
	}()
	for { // A pull waits for a while only.
		got, err := client.Subscriber.Pull(ctx, &pubsubpb.PullRequest{Subscription: queueSub, MaxMessages: 1})
		if err != nil {
			return nil, err
		}
		for _, m := range got.GetReceivedMessages() {
			_, err = client.Subscriber.ModifyAckDeadline(ctx, &pubsubpb.ModifyAckDeadlineRequest{Subscription: queueSub, AckIds: []string{m.GetAckId()}, AckDeadlineSeconds: 600})
			return m.GetMessage(), err
		}
	}
}

// A part that another reader has stays, and nobody was told: the run before it had it all.
func TestReplay_TellsOfPartsThatStay(t *testing.T) {
	srv := newServer(t)
	gate := make(chan struct{})
	publish := srv.Order(pubsubtest.Rule{Method: "Publish", Topic: orders}, pubsubtest.WaitFor(gate))
	giveUpInParts(t, srv, "a")
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	client, taken := emulator.Dial(t, srv.Endpoint()), make(chan error, 1)
	go func() { // Ends with what it takes, or ctx.
		m, err := takePart(ctx, srv, client, publish, gate)
		if err == nil && m.GetAttributes()[dlq.PartAttribute] == "" {
			err = errors.New("it has no part")
		}
		taken <- err
	}()
	o := replayAt(ctx, t, srv)
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	o.MustEnd(t, program.ExitFailed)
	want(t, srv, orders, "one")
	if o.Report.PartsLeft != 1 || o.Report.Acknowledged != 1 {
		t.Errorf("report %+v", o.Report)
	}
	if told := "1 part of a published letter is still in " + queueSub + " (dlq-id a): "; !strings.Contains(o.Stderr, told) {
		t.Errorf("told:\n%s", o.Stderr)
	}
	if !strings.Contains(o.Squeezed(), "parts that stay 1") || !strings.Contains(o.Stdout, "SENT TO") {
		t.Errorf("printed:\n%s", o.Stdout)
	}
}

// A sweep ends with the last part, and where only new letters come.
func TestSweeper_Ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts(1000)
		for _, e := range []dlq.Entry{part("a", 1, 3, "1"), part("a", 2, 3, "2"), part("a", 3, 3, "3")} {
			p.add(e)
		}
		p.published("a", "a3")
		ended := false
		progress := sweepProgress(p)
		s := &sweeper{choice: choice{begun: yesterday}, parts: p, lull: &lull{length: time.Second}, enough: func() { ended = true }}
		older, newer := yesterday.Add(-1), yesterday
		if !s.take(part("a", 1, 3, "1"), older) || s.take(dlq.Entry{ID: "old"}, older) || ended {
			t.Errorf("ended: %v, with %d left", ended, p.unswept())
		}
		if got := progress.Line(0); got != "parts of published letters: acknowledged 1 of 2" || progress.Total != 2 {
			t.Errorf("told %q, of %d", got, progress.Total)
		}
		for at := time.Duration(0); !ended; at += 100 * time.Millisecond {
			if at > time.Second {
				t.Fatal("it does not end")
			}
			if s.take(dlq.Entry{ID: "new"}, newer) {
				t.Error("it takes a new letter")
			}
			advance(100 * time.Millisecond)
		}
		if p.unswept() != 1 {
			t.Errorf("%d left", p.unswept())
		}
		ended = false
		if !s.take(part("a", 2, 3, "2"), older) || !ended {
			t.Errorf("ended: %v, with %d left", ended, p.unswept())
		}
	})
}

// advance moves the bubble's clock by d and waits until all is quiet.
func advance(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // virtual: the bubble's clock, not the machine's
	synctest.Wait()
}

// However a sweep is interrupted, before it or in it, it has the same time.
func TestOutlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, before := range []bool{true, false} {
			ctx, interrupt := context.WithCancel(t.Context())
			if before {
				interrupt()
			}
			longer, end := outlive(ctx, sweepTime)
			advance(time.Second)
			interrupt()
			start := time.Now()
			<-longer.Done()
			interrupted := sweepTime
			if before {
				interrupted -= time.Second
			}
			if took := time.Since(start); took != interrupted || !errors.Is(context.Cause(longer), context.Canceled) {
				t.Errorf("ended after %v: %v", took, context.Cause(longer))
			}
			end(nil)
		}
		ctx, interrupt := context.WithCancel(t.Context())
		longer, end := outlive(ctx, sweepTime)
		end(errSwept)
		if !errors.Is(context.Cause(longer), errSwept) {
			t.Errorf("ended with %v", context.Cause(longer))
		}
		interrupt()
	})
}

// A sweep after an hour's run had another hour.
func TestLeftFor(t *testing.T) {
	for _, tc := range []struct{ limit, passed, want time.Duration }{
		{0, time.Hour, 0},
		{time.Hour, 10 * time.Minute, 50 * time.Minute},
		{time.Minute, 59 * time.Second, sweepTime},
		{time.Minute, time.Hour, sweepTime},
	} {
		if got := leftFor(tc.limit, tc.passed); got != tc.want {
			t.Errorf("%v of %v have passed: %v left, want %v", tc.passed, tc.limit, got, tc.want)
		}
	}
}
