package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// limit is for how long a replay may run that is to end by itself: only a failing test
// reaches it.
const limit = time.Minute

// envelope is what another connector may have written: attributes, and any data.
func envelope(destination string, data []byte) *message.Message {
	return message.New(data).WithAttributes(map[string]string{
		dlq.ConnectorAttribute: "flink", dlq.DestinationAttribute: destination, dlq.ErrorAttribute: "serialization failed",
		dlq.TimestampAttribute: yesterday.Format(time.RFC3339), dlq.WorkerAttribute: "w",
	})
}

func numbered(n int) []dlq.Letter {
	letters := make([]dlq.Letter, n)
	for i := range letters {
		letters[i] = letter(orders, fmt.Sprintf("%06d", i), "x")
	}
	return letters
}

// A topic that refuses everything: each letter goes back once, with its hop, and a good one
// behind them is published.
func TestReplay_HoweverManyFailAgainEachIsCounted(t *testing.T) {
	const n = 300
	srv := newServer(t)
	srv.RefuseMessages(orders, func(*message.Message) bool { return true })
	giveUp(t, srv, append(numbered(n), letter(refunds, "good", "x"))...)
	for hops := 2; hops <= 3; hops++ {
		o := replayAt(t.Context(), t, srv)
		o.MustEnd(t, program.ExitDone)
		if o.Report.FailedAgain != n {
			t.Errorf("report %+v", o.Report)
		}
		leftIn(t, srv, n)
		for _, m := range srv.Messages(queueTopic)[srv.Published(queueTopic)-n:] {
			if got := m.Attributes[dlq.HopsAttribute]; got != fmt.Sprint(hops) {
				t.Fatalf("%s hops, want %d", got, hops)
			}
		}
	}
	want(t, srv, refunds, "good")
}

// What holds nothing would be published as something, for the counter of hops is an
// attribute.
func TestReplay_AnEmptyLetterIsLeft(t *testing.T) {
	srv := newServer(t)
	empty := letter(orders, "", "it is empty")
	empty.Message = message.New(nil)
	giveUp(t, srv, empty)
	if _, err := srv.Publish(queueTopic, envelope(orders, nil), envelope(orders, []byte("x1"))); err != nil {
		t.Fatal(err)
	}
	o := replayAt(t.Context(), t, srv)
	o.MustEnd(t, program.ExitDone)
	want(t, srv, orders)
	leftIn(t, srv, 3)
	o.line(t, orders, "", "it holds nothing that could be published")
}

// A message without room for the counter of hops would go round for ever.
func TestReplay_WhatCannotBeCountedIsLeft(t *testing.T) {
	srv := newServer(t)
	full := letter(orders, "full", "x")
	for i := range 99 {
		full.Message.Attributes[fmt.Sprint("a", i)] = "v"
	}
	giveUp(t, srv, full)
	o := replayAt(t.Context(), t, srv)
	o.MustEnd(t, program.ExitDone)
	o.line(t, orders, "", "its message has a hundred attributes")
	leftIn(t, srv, 1)
}

// A dead-letter topic that nobody reads would take what is safe where it is.
func TestReplay_AQueueThatNobodyReadsIsRefused(t *testing.T) {
	srv := newServer(t)
	srv.RefuseMessages(orders, func(*message.Message) bool { return true })
	giveUp(t, srv, letter(orders, "one", "x"))
	for _, args := range [][]string{nil, {"--dry_run"}} {
		o := replayAt(t.Context(), t, srv, append(args, "--dead_letter_topic="+refunds)...)
		o.MustEnd(t, program.ExitFailed)
		if !strings.Contains(o.Stderr, "--dead_letter_topic: "+refunds+" has no subscription, so that what fails again would be lost") {
			t.Errorf("told:\n%s", o.Stderr)
		}
	}
	leftIn(t, srv, 1)
}

// Whichever topic takes what fails again: nothing is published to the one that is read.
func TestReplay_NothingGoesToTheTopicThatIsRead(t *testing.T) {
	srv := newServer(t)
	srv.MustCreateSubscription("projects/p/subscriptions/refunds", refunds)
	giveUp(t, srv, letter(orders, "one", "x"))
	if _, err := srv.Publish(queueTopic, envelope(queueTopic, []byte("\n\x03one"))); err != nil {
		t.Fatal(err)
	}
	o := replayAt(t.Context(), t, srv, "--dead_letter_topic="+refunds, "--output_topic="+queueTopic)
	o.MustEnd(t, program.ExitFailed)
	if !strings.Contains(o.Stderr, "must be another topic than that of the dead letters") {
		t.Errorf("told:\n%s", o.Stderr)
	}
	o = replayAt(t.Context(), t, srv, "--dead_letter_topic="+refunds)
	o.MustEnd(t, program.ExitDone)
	o.line(t, queueTopic, "", "its destination is the dead-letter topic")
	want(t, srv, orders, "one")
	leftIn(t, srv, 1)
}

// What is missing for a letter that fails again is told before one is read.
func TestReplay_TheQueueIsCheckedToo(t *testing.T) {
	srv := newServer(t)
	srv.Deny("Publish", queueTopic)
	if _, err := srv.Publish(queueTopic, envelope(orders, []byte("\n\x03one"))); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{nil, {"--dry_run"}} {
		o := replayAt(t.Context(), t, srv, args...)
		o.MustEnd(t, program.ExitFailed)
		if !strings.Contains(o.Stderr, queueTopic+" may not be used: the account lacks pubsub.topics.publish") {
			t.Errorf("told:\n%s", o.Stderr)
		}
	}
	leftIn(t, srv, 1)
}

// A service that does not answer questions about topics, and takes messages, is asked once.
func TestReplay_ASilentAdministrationIsAskedOnce(t *testing.T) {
	srv := newServer(t)
	srv.MustCreateTopic("projects/p/topics/other")
	asked := srv.Order(pubsubtest.Rule{Method: "GetTopic", Topic: orders}, pubsubtest.Fail(status.Error(codes.ResourceExhausted, "quota")))
	giveUp(t, srv, numbered(4)...)
	giveUp(t, srv, letter("projects/p/topics/other", "other", "x"))
	o := replayAt(t.Context(), t, srv)
	o.MustEnd(t, program.ExitDone)
	if o.Report.Published != 5 || asked.Fired() == 0 {
		t.Errorf("report %+v", o.Report)
	}
}

// A dead-letter policy of the subscription itself counts what is left.
func TestReplay_TellsOfADeadLetterPolicy(t *testing.T) {
	srv := pubsubtest.New(t)
	for _, topic := range []string{orders, queueTopic, refunds} {
		srv.MustCreateTopic(topic)
	}
	srv.MustCreateSubscription(queueSub, queueTopic, pubsubtest.DeadLetters(refunds, 7))
	o := replayAt(t.Context(), t, srv, "--dry_run")
	o.MustEnd(t, program.ExitDone)
	if !strings.Contains(o.Stderr, "forwards what was delivered 7 times; each run, and each --dry_run, is a delivery") {
		t.Errorf("told:\n%s", o.Stderr)
	}
}

// keepGivingUp has a pipeline give up a new letter, with an interval between two, until
// stop is called.
func keepGivingUp(srv *pubsubtest.Server, interval time.Duration) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() { // stop ends it and waits for it.
		defer close(ended)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			_, _ = srv.Publish(queueTopic, envelope(orders, []byte("\n\x03new")))
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// A queue that a pipeline writes to is never idle, be it all the time or now and then; and
// the clock of that pipeline's worker is an hour ahead.
func TestReplay_EndsWhereOnlyNewLettersCome(t *testing.T) {
	for _, interval := range []time.Duration{50 * time.Millisecond, 700 * time.Millisecond} {
		t.Run(interval.String(), func(t *testing.T) {
			srv := newServer(t)
			ahead := letter(orders, "one", "x")
			ahead.Time = time.Now().Add(time.Hour)
			giveUp(t, srv, ahead)
			stop := keepGivingUp(srv, interval)
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			o := replayAt(ctx, t, srv)
			stop()
			o.MustEnd(t, program.ExitDone)
			// Some may have been there before it began.
			if got := published(srv, orders); !slices.Contains(got, "one") || int64(len(got)) != o.Report.Chosen {
				t.Errorf("published %q; report %+v", got, o.Report)
			}
			o.line(t, orders, "", "not there when the replay began")
			leftIn(t, srv, srv.Published(queueTopic)-o.Report.Chosen)
		})
	}
}

// A run that was killed holds letters for a while; the next one waits that long.
func TestReplay_KilledAndRunAgainAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for leases to end")
	}
	const n = 2000
	srv := pubsubtest.New(t, func(c *pubsubtest.Config) { c.KeepPublished = 3 * n })
	for _, topic := range []string{orders, queueTopic} {
		srv.MustCreateTopic(topic)
	}
	srv.MustCreateSubscription(queueSub, queueTopic)
	giveUp(t, srv, numbered(n)...)
	kill(t, srv, n/2)
	o := replayAt(t.Context(), t, srv, "--stop_when_idle=30s")
	o.MustEnd(t, program.ExitDone)
	leftIn(t, srv, 0)
	if o.Report.Published == 0 {
		t.Errorf("report %+v", o.Report)
	}
}

// What a letter says may be anybody's: it moves no cursor.
func TestReplay_PrintsNoControlCharacters(t *testing.T) {
	srv := newServer(t)
	if _, err := srv.Publish(queueTopic, envelope("x\x1b[2J\nFAKE", []byte("\n\x03one"))); err != nil {
		t.Fatal(err)
	}
	o := replayAt(t.Context(), t, srv)
	o.MustEnd(t, program.ExitDone)
	if strings.Contains(o.Stdout, "\x1b") || strings.Contains(o.Stdout, "\nFAKE") || !strings.Contains(o.Stdout, "x�[2J FAKE") {
		t.Errorf("printed:\n%q", o.Stdout)
	}
}
