package replay

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/internal/emulator"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/programtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

const (
	orders     = "projects/p/topics/orders"
	refunds    = "projects/p/topics/refunds"
	queueTopic = "projects/p/topics/dead-letters"
	queueSub   = "projects/p/subscriptions/dead-letters"
	// asReplay, in the environment, makes the test binary the program.
	asReplay = "REPLAY_TEST_RUN_MAIN"
)

func TestMain(m *testing.M) {
	if os.Getenv(asReplay) != "" {
		os.Exit(Run(context.Background(), "", os.Args[1:], os.Stdout, os.Stderr))
	}
	flag.Parse()
	log.LogLevel = "warn"
	program.InitBeam()
	os.Exit(m.Run())
}

func newServer(t *testing.T) *pubsubtest.Server {
	t.Helper()
	srv := pubsubtest.New(t)
	for _, topic := range []string{orders, refunds, queueTopic} {
		srv.MustCreateTopic(topic)
	}
	srv.MustCreateSubscription(queueSub, queueTopic)
	return srv
}

// yesterday is when the letters of the tests were given up.
var yesterday = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// letter is one for a message with that data.
func letter(destination, data, why string) dlq.Letter {
	return dlq.Letter{
		Connector: "pubsubio.sink", Destination: destination, Error: why, Time: yesterday,
		Message: message.New([]byte(data)).WithAttribute("of", "test"),
	}
}

// giveUp puts letters into the queue.
func giveUp(t *testing.T, srv *pubsubtest.Server, letters ...dlq.Letter) {
	t.Helper()
	queue := dlq.NewSender(dlq.Config{Topic: queueTopic, EmulatorEndpoint: srv.Endpoint(), MaxInFlightMessages: dlq.Unbounded}, t.Name())
	for _, l := range letters {
		if err := queue.Send(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	if err := queue.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := queue.Close(); err != nil {
		t.Fatal(err)
	}
}

// An outcome is what a run of the program has left.
type outcome struct{ programtest.Outcome[report] }

// line is the report's line of the letters that went to a topic, or were left because of
// why.
func (o outcome) line(t *testing.T, destination, topic, why string) line {
	t.Helper()
	for _, l := range o.Report.Lines {
		if l.Destination == destination && l.Topic == topic && strings.HasPrefix(l.Left, why) && (l.Left == "") == (why == "") {
			return l
		}
	}
	t.Errorf("no line of %q to %q, left %q, in %+v", destination, topic, why, o.Report.Lines)
	return line{}
}

// replayAt runs the program to its end, in this process.
func replayAt(ctx context.Context, t *testing.T, srv *pubsubtest.Server, args ...string) outcome {
	t.Helper()
	args = append([]string{"--dead_letter_subscription=" + queueSub, "--emulator_endpoint=" + srv.Endpoint(), "--stop_when_idle=1s"}, args...)
	return outcome{programtest.Execute[report](ctx, t, Run, args...)}
}

// published is the data of a topic's messages, sorted.
func published(srv *pubsubtest.Server, topic string) []string {
	var out []string
	for _, m := range srv.Messages(topic) {
		out = append(out, string(m.Data))
	}
	slices.Sort(out)
	return out
}

func want(t *testing.T, srv *pubsubtest.Server, topic string, data ...string) {
	t.Helper()
	if got := published(srv, topic); !slices.Equal(got, data) {
		t.Errorf("%s has %q, want %q", topic, got, data)
	}
}

// leftIn expects n unacknowledged letters, in nobody's hands.
func leftIn(t *testing.T, srv *pubsubtest.Server, n int64) {
	t.Helper()
	srv.WantUnacknowledged(t, queueSub, n)
	if s := srv.Stats(queueSub); s.Outstanding != 0 {
		t.Errorf("%d letters are still leased", s.Outstanding)
	}
}

func TestReplay_EachLetterGoesToItsTopic(t *testing.T) {
	srv := newServer(t)
	keyed := letter(orders, "three", "too late")
	keyed.Message = keyed.Message.WithOrderingKey("k")
	giveUp(t, srv, letter(orders, "one", "too large"), letter(refunds, "two", "too large"), keyed)
	o := replayAt(t.Context(), t, srv)
	o.MustEnd(t, program.ExitDone)
	want(t, srv, orders, "one", "three")
	want(t, srv, refunds, "two")
	leftIn(t, srv, 0)
	for _, m := range srv.Messages(orders) {
		if m.Attributes["of"] != "test" || m.Attributes[dlq.HopsAttribute] != "1" || string(m.Data) == "three" != (m.OrderingKey == "k") {
			t.Errorf("published %+v", m)
		}
	}
	r := o.Report
	if r.Letters != 3 || r.Chosen != 3 || r.Left != 0 || r.Published != 3 || r.Acknowledged != 3 || r.FailedAgain != 0 || r.Again != 0 {
		t.Errorf("report %+v", r)
	}
	if l := o.line(t, orders, orders, ""); l.Letters != 2 || !l.First.Equal(yesterday) || !l.Last.Equal(yesterday) {
		t.Errorf("line %+v", l)
	}
	if !strings.Contains(o.Stdout, "SENT TO") {
		t.Errorf("printed:\n%s", o.Stdout)
	}
}

// What is not chosen stays, and is there for the next one who asks.
func TestReplay_ChoosesByErrorDestinationAndTime(t *testing.T) {
	later := letter(orders, "later", "schema mismatch")
	later.Time = yesterday.Add(time.Hour)
	all := []dlq.Letter{letter(orders, "one", "schema mismatch"), letter(orders, "two", "too large"), letter(refunds, "three", "schema mismatch"), later}
	for name, tc := range map[string]struct {
		args            []string
		orders, refunds []string
		why             string // of one that is left
	}{
		"error":       {[]string{"--error_contains=schema"}, []string{"later", "one"}, []string{"three"}, "not chosen by --error_contains"},
		"destination": {[]string{"--destination=" + refunds}, nil, []string{"three"}, "not chosen by --destination"},
		"after":       {[]string{"--given_up_after=2026-03-01T12:30:00Z"}, []string{"later"}, nil, "not chosen by --given_up_after"},
		"before":      {[]string{"--given_up_before=2026-03-01T14:30:00+02:00"}, []string{"one", "two"}, []string{"three"}, "not chosen by --given_up_before"},
		"all three":   {[]string{"--error_contains=schema", "--destination=" + orders, "--given_up_before=2026-03-01T12:30:00Z"}, []string{"one"}, nil, "not chosen by"},
		"elsewhere":   {[]string{"--error_contains=large", "--output_topic=" + refunds}, nil, []string{"two"}, "not chosen by --error_contains"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t)
			giveUp(t, srv, all...)
			o := replayAt(t.Context(), t, srv, tc.args...)
			o.MustEnd(t, program.ExitDone)
			want(t, srv, orders, tc.orders...)
			want(t, srv, refunds, tc.refunds...)
			left := int64(len(all) - len(tc.orders) - len(tc.refunds))
			leftIn(t, srv, left)
			if o.Report.Left != left || !strings.Contains(o.Stdout, "left: "+tc.why) {
				t.Errorf("%+v\n%s", o.Report, o.Stdout)
			}
		})
	}
}

// Letters that cannot be replayed do not keep the others from it.
func TestReplay_LeavesWhatItCannotReplay(t *testing.T) {
	srv := newServer(t)
	srv.MustCreateTopic("projects/p/topics/denied")
	srv.Deny("Publish", "projects/p/topics/denied")
	record := letter(orders, "", "cannot be encoded")
	record.Message, record.Record = nil, []byte("record")
	large := letter(orders, strings.Repeat("x", 9_999_900), "too large")
	hopped := letter(orders, "hopped", "again")
	hopped.Message = hopped.Message.WithAttribute(dlq.HopsAttribute, "4")
	decoded := letter("projects/p/subscriptions/orders", "undecodable", "bad JSON")
	decoded.Connector = "pubsubio.source"
	giveUp(t, srv, letter("projects/p/topics/gone", "gone", "NotFound"), letter("projects/p/topics/denied", "denied", "PermissionDenied"),
		record, large, hopped, decoded, letter("", "nowhere", "x"), letter(orders, "good", "x"))
	circle := message.New([]byte("\n\x03one")).WithAttributes(map[string]string{
		dlq.ConnectorAttribute: "pubsubio.sink", dlq.DestinationAttribute: queueTopic, dlq.ErrorAttribute: "x",
		dlq.TimestampAttribute: yesterday.Format(time.RFC3339), dlq.WorkerAttribute: "w",
	})
	if _, err := srv.Publish(queueTopic, message.New([]byte("foreign")), circle); err != nil {
		t.Fatal(err)
	}
	acknowledgePart(t, srv)
	o := replayAt(t.Context(), t, srv)
	o.MustEnd(t, program.ExitDone)
	want(t, srv, orders, "good")
	for _, l := range []struct{ destination, why string }{
		{"projects/p/topics/gone", "its destination: topic projects/p/topics/gone does not exist"},
		{"projects/p/topics/denied", "its destination: topic projects/p/topics/denied may not be used: the account lacks pubsub.topics.publish"},
		{orders, "it holds nothing that could be published: an empty message, or a record"},
		{orders, "a part of a letter in 2, of which others are not there"},
		{orders, "a dead letter for the 5. time: --max_hops is 5"},
		{"projects/p/subscriptions/orders", "it came from a subscription: --output_topic says"},
		{queueTopic, "its destination is the dead-letter topic"},
		{"", "its destination is no topic: --output_topic says"},
		{"", "no dead letter"},
	} {
		o.line(t, l.destination, "", l.why)
	}
	leftIn(t, srv, o.Report.Left)
	if o.Report.Left != 9 || o.Report.Published != 1 {
		t.Errorf("report %+v", o.Report)
	}
}

// acknowledgePart takes a part of a letter out of the subscription.
func acknowledgePart(t *testing.T, srv *pubsubtest.Server) {
	t.Helper()
	client := emulator.Dial(t, srv.Endpoint())
	for received := client.Pull(queueSub, 1000, false); len(received) > 0; received = client.Pull(queueSub, 1000, false) {
		for _, m := range received {
			if strings.HasPrefix(m.GetMessage().GetAttributes()[dlq.PartAttribute], "1/") {
				client.Acknowledge(queueSub, m.GetAckId())
			}
		}
	}
	if _, err := srv.Redeliver(queueSub); err != nil {
		t.Fatal(err)
	}
}

// A letter that came in parts is published whole, and all of its parts are acknowledged.
func TestReplay_ALetterInPartsIsPublishedWhole(t *testing.T) {
	srv := newServer(t)
	const idle = "--stop_when_idle=3s" // Ten megabytes take their time on a slow machine.
	data := strings.Repeat("x", 9_999_900)
	giveUp(t, srv, letter(orders, data, "too large"), letter(refunds, data, "too large"), letter(orders, "good", "x"))
	if n := srv.Published(queueTopic); n != 5 {
		t.Fatalf("%d messages, want two letters in two parts and a third", n)
	}
	o := replayAt(t.Context(), t, srv, "--dry_run", idle)
	o.MustEnd(t, program.ExitDone)
	if o.Report.Letters != 3 || o.Report.Chosen != 3 {
		t.Errorf("report %+v", o.Report)
	}
	leftIn(t, srv, 5)

	o = replayAt(t.Context(), t, srv, "--destination="+orders, idle)
	o.MustEnd(t, program.ExitDone)
	want(t, srv, orders, "good", data)
	want(t, srv, refunds)
	leftIn(t, srv, 2)
	if r := o.Report; r.Chosen != 2 || r.Published != 2 || r.Acknowledged != 2 || r.Again != 0 {
		t.Errorf("report %+v", r)
	}

	srv.Answer("Publish", status.Error(codes.InvalidArgument, "refused"), pubsubtest.Times(1))
	o = replayAt(t.Context(), t, srv, idle)
	o.MustEnd(t, program.ExitDone)
	if o.Report.FailedAgain != 1 {
		t.Errorf("report %+v", o.Report)
	}
	leftIn(t, srv, 2) // In parts again.
	replayAt(t.Context(), t, srv, idle).MustEnd(t, program.ExitDone)
	want(t, srv, refunds, data)
	leftIn(t, srv, 0)
}

// A dry run says where everything would go, and everything is as it was: a run right
// after it finds it.
func TestReplay_DryRunChangesNothing(t *testing.T) {
	srv := newServer(t)
	giveUp(t, srv, letter(orders, "one", "too\nlarge"), letter(orders, "two", strings.Repeat("long ", 40)), letter("projects/p/topics/gone", "three", "NotFound"))
	o := replayAt(t.Context(), t, srv, "--dry_run", "--max_hops=3")
	o.MustEnd(t, program.ExitDone)
	want(t, srv, orders)
	leftIn(t, srv, 3)
	for _, text := range []string{"This is a dry run", "WOULD GO TO", "below 3", "there", "left: its destination: topic projects/p/topics/gone does not exist", "long ...", "2 of 3 letters would be published; all are left as they were"} {
		if !strings.Contains(o.Stdout, text) {
			t.Errorf("no %q in\n%s", text, o.Stdout)
		}
	}
	if !o.Report.DryRun || o.Report.Chosen != 2 || o.Report.Published != 0 || o.Report.Again != 0 {
		t.Errorf("report %+v", o.Report)
	}
	o = replayAt(t.Context(), t, srv)
	o.MustEnd(t, program.ExitDone)
	want(t, srv, orders, "one", "two")
	leftIn(t, srv, 1)
}

func TestReplay_AnEmptySubscription(t *testing.T) {
	srv := newServer(t)
	o := replayAt(t.Context(), t, srv)
	o.MustEnd(t, program.ExitDone)
	if !strings.Contains(o.Stdout, "no letter has come; another reader, or a replay that was killed, may hold some") {
		t.Errorf("printed:\n%s", o.Stdout)
	}
}

// A message that is refused once more is a dead letter again, with its attempt counted,
// and not replayed again by the same run: run after run it comes to --max_hops, and stays.
func TestReplay_WhatFailsAgainGoesBackAndIsCounted(t *testing.T) {
	srv := newServer(t)
	srv.Order(pubsubtest.Rule{Method: "Publish", Topic: orders}, pubsubtest.Fail(status.Error(codes.InvalidArgument, "refused by the schema")))
	giveUp(t, srv, letter(orders, "poison", "refused by the schema"))
	for hops := 2; hops <= 3; hops++ {
		o := replayAt(t.Context(), t, srv, "--max_hops=3")
		o.MustEnd(t, program.ExitDone)
		if o.Report.FailedAgain != 1 || o.Report.Chosen != 1 || o.Report.Published != 0 || o.Report.Again != 0 {
			t.Errorf("report %+v", o.Report)
		}
		leftIn(t, srv, 1)
		letters := srv.Messages(queueTopic)
		if got := letters[len(letters)-1].Attributes[dlq.HopsAttribute]; got != fmt.Sprint(hops) {
			t.Errorf("%s hops, want %d", got, hops)
		}
	}
	o := replayAt(t.Context(), t, srv, "--max_hops=3")
	o.MustEnd(t, program.ExitDone)
	o.line(t, orders, "", "a dead letter for the 3. time")
	leftIn(t, srv, 1)
}

// The dead-letter topic is the subscription's own; where that is not known, the flag
// says so, and where it does not, nothing is read.
func TestReplay_WhereFailuresGoMustBeKnown(t *testing.T) {
	srv := newServer(t)
	giveUp(t, srv, letter(orders, "one", "x"))
	srv.Deny("GetSubscription", queueSub)
	o := replayAt(t.Context(), t, srv)
	o.MustEnd(t, program.ExitFailed)
	if !strings.Contains(o.Stderr, "which the account may not look up (pubsub.subscriptions.get); grant roles/pubsub.viewer, or give --dead_letter_topic") {
		t.Errorf("told:\n%s", o.Stderr)
	}
	leftIn(t, srv, 1)
	replayAt(t.Context(), t, srv, "--dead_letter_topic="+queueTopic).MustEnd(t, program.ExitDone)
	want(t, srv, orders, "one")
}

// A service that refuses to store says nothing of the letters: they stay.
func TestReplay_AnOutageFailsAndLosesNothing(t *testing.T) {
	srv := newServer(t)
	giveUp(t, srv, letter(orders, "one", "x"))
	srv.Deny("Publish", orders)
	// The check, by TestIamPermissions, is not asked.
	srv.Answer("TestIamPermissions", status.Error(codes.Unimplemented, "none"))
	o := replayAt(t.Context(), t, srv)
	o.MustEnd(t, program.ExitFailed)
	if !strings.Contains(o.Stderr, "pubsub.topics.publish") {
		t.Errorf("told:\n%s", o.Stderr)
	}
	leftIn(t, srv, 1)
}

func TestReplay_TooManyLeftIsAnError(t *testing.T) {
	srv := newServer(t)
	giveUp(t, srv, letter(orders, "one", "x"), letter(orders, "two", "x"))
	o := replayAt(t.Context(), t, srv, "--error_contains=y", "--max_left=2")
	o.MustEnd(t, program.ExitFailed)
	if !strings.Contains(o.Stderr, "--max_left") {
		t.Errorf("told:\n%s", o.Stderr)
	}
	leftIn(t, srv, 2)
}

// Ten thousand letters, killed half-way, run again: everything is published at least
// once, the subscription is empty, and what was published twice is known.
func TestReplay_KilledHalfWayAndRunAgain(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 1_000
	}
	srv := pubsubtest.New(t, func(c *pubsubtest.Config) { c.KeepPublished = 3 * n })
	for _, topic := range []string{orders, queueTopic} {
		srv.MustCreateTopic(topic)
	}
	srv.MustCreateSubscription(queueSub, queueTopic)
	letters := make([]dlq.Letter, n)
	for i := range letters {
		letters[i] = letter(orders, fmt.Sprintf("%06d", i), "x")
	}
	giveUp(t, srv, letters...)
	kill(t, srv, int64(n/2))
	// The leases of the killed one end, once the server has seen that it is gone: else they
	// would go to it again.
	if err := srv.Await(t.Context(), queueSub, func(s pubsubtest.Stats) bool { return s.Streams == 0 }); err != nil {
		t.Fatal(err)
	}
	if _, err := srv.Redeliver(queueSub); err != nil {
		t.Fatal(err)
	}
	before := srv.Published(orders)
	o := replayAt(t.Context(), t, srv)
	o.MustEnd(t, program.ExitDone)
	got := published(srv, orders)
	if distinct := slices.Compact(slices.Clone(got)); len(distinct) != n || before == 0 {
		t.Errorf("%d distinct messages of %d were published, %d before", len(distinct), n, before)
	}
	leftIn(t, srv, 0)
	if o.Report.Published != srv.Published(orders)-before || o.Report.Again != 0 {
		t.Errorf("report %+v; published %d, %d before", o.Report, srv.Published(orders), before)
	}
	t.Logf("%d of %d were published twice", len(got)-n, n)
}

// kill starts the program in a process of its own and kills it once n messages are
// published.
func kill(t *testing.T, srv *pubsubtest.Server, n int64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "--dead_letter_subscription="+queueSub, "--emulator_endpoint="+srv.Endpoint())
	cmd.Env = append(os.Environ(), asReplay+"=1")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 1)
	go func() { // The end of the process ends it.
		text, _ := io.ReadAll(bufio.NewReader(stderr))
		said <- string(text)
	}()
	err = srv.AwaitPublished(t.Context(), orders, n)
	if killed := cmd.Process.Kill(); err != nil || killed != nil {
		t.Fatalf("%v, %v\n%s", err, killed, <-said)
	}
	<-said
	_ = cmd.Wait()
}
