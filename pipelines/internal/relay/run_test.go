package relay

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/programtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

const (
	inTopic  = "projects/p/topics/input"
	inSub    = "projects/p/subscriptions/input"
	in2Topic = "projects/p/topics/input2"
	in2Sub   = "projects/p/subscriptions/input2"
	outTopic = "projects/p/topics/out"
)

// asRelay, in the environment, makes the test binary the relay.
const asRelay = "RELAY_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asRelay) != "" {
		os.Exit(Run(context.Background(), "", os.Args[1:], os.Stdout, os.Stderr))
	}
	flag.Parse()
	os.Exit(m.Run())
}

// An outcome is what a run of the program has left.
type outcome struct{ programtest.Outcome[report] }

// runRelay runs the program to its end, in this process.
func runRelay(ctx context.Context, t *testing.T, args ...string) outcome {
	t.Helper()
	return outcome{programtest.Execute[report](ctx, t, Run, args...)}
}

// newServer has the topics and subscriptions of the constants above.
func newServer(t *testing.T) *pubsubtest.Server {
	t.Helper()
	srv := pubsubtest.New(t)
	for _, name := range []string{inTopic, in2Topic, outTopic} {
		srv.MustCreateTopic(name)
	}
	srv.MustCreateSubscription(inSub, inTopic)
	srv.MustCreateSubscription(in2Sub, in2Topic)
	return srv
}

// publish publishes n messages that differ.
func publish(t *testing.T, srv *pubsubtest.Server, topic string, n int) {
	t.Helper()
	msgs := make([]*pubsubio.Message, n)
	for i := range msgs {
		msgs[i] = &pubsubio.Message{
			Data:       fmt.Appendf(nil, "\xff%s %d", topic, i),
			Attributes: map[string]string{"n": fmt.Sprint(i)},
		}
	}
	if _, err := srv.Publish(topic, msgs...); err != nil {
		t.Fatal(err)
	}
}

// distinct returns how many different payloads were published to topic.
func distinct(srv *pubsubtest.Server, topic string) int {
	seen := make(map[string]bool)
	for _, m := range srv.Messages(topic) {
		seen[string(m.Data)] = true
	}
	return len(seen)
}

func relayArgs(srv *pubsubtest.Server, more ...string) []string {
	return append([]string{"--emulator_endpoint=" + srv.Endpoint(), "--input_subscriptions=" + inSub, "--output_topic=" + outTopic}, more...)
}

func TestRelay_MovesTheMessagesOfSeveralSubscriptions(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, inTopic, 1500)
	publish(t, srv, in2Topic, 700)
	if _, err := srv.Publish(in2Topic, &pubsubio.Message{Attributes: map[string]string{"alone": ""}}); err != nil {
		t.Fatal(err)
	}

	o := runRelay(t.Context(), t, "--emulator_endpoint="+srv.Endpoint(), "--output_topic="+outTopic,
		"--input_subscriptions="+inSub+","+in2Sub, "--max_messages=2201")

	o.MustEnd(t, program.ExitDone)
	if got := distinct(srv, outTopic); got != 2201 || srv.Published(outTopic) != 2201 {
		t.Errorf("%d messages published, %d of them distinct; want 2201", srv.Published(outTopic), got)
	}
	for sub, want := range map[string]int64{inSub: 1500, in2Sub: 701} {
		if s := srv.Stats(sub); s.Acknowledged != want || s.Outstanding != 0 {
			t.Errorf("%s: %+v, want %d acknowledged and none outstanding", sub, s, want)
		}
	}
	r := o.Report
	if r.Seconds <= 0 || r.MessagesPerSecond <= 0 {
		t.Errorf("report: %+v, want a time and a rate", r)
	}
	r.Seconds, r.MessagesPerSecond = 0, 0
	if want := (report{Read: 2201, Published: 2201, Acknowledged: 2201}); r != want {
		t.Errorf("report %+v, want %+v", r, want)
	}
	for _, m := range srv.Messages(outTopic) {
		if len(m.Data) > 0 && (m.Data[0] != 0xff || m.Attributes["n"] == "") {
			t.Fatalf("arrived as %q %v", m.Data, m.Attributes)
		}
	}
}

// The relay's one promise, on the order in which things happened at the server.
func TestRelay_AcknowledgesNothingBeforeItsCopyIsStored(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, inTopic, 3000)
	runRelay(t.Context(), t, relayArgs(srv, "--max_messages=3000")...).MustEnd(t, program.ExitDone)
	stored := make(map[string]bool)
	acknowledged := 0
	for _, e := range srv.Events() {
		switch {
		case e.Kind == pubsubtest.Publish && e.Topic == outTopic:
			stored[string(e.Message().Data)] = true
		case e.Kind == pubsubtest.Acknowledge:
			acknowledged++
			if data := string(e.Message().Data); !stored[data] {
				t.Fatalf("event %d acknowledges %q before its copy is stored", e.Seq, data)
			}
		}
	}
	if acknowledged != 3000 || srv.EventsDropped() != 0 {
		t.Errorf("%d acknowledged, %d events dropped", acknowledged, srv.EventsDropped())
	}
}

func TestRelay_EndsWhereThereIsNothing(t *testing.T) {
	srv := newServer(t)
	o := runRelay(t.Context(), t, relayArgs(srv, "--stop_when_idle=200ms")...)
	o.MustEnd(t, program.ExitDone)
	if o.Report.Seconds < 0.2 || o.Report.Read != 0 || o.Report.Published != 0 {
		t.Errorf("report %+v", o.Report)
	}
	if !strings.Contains(o.Stdout, "published      0") {
		t.Errorf("table:\n%s", o.Stdout)
	}
}

func TestRelay_DirectRunner(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, inTopic, 1000)
	o := runRelay(t.Context(), t, relayArgs(srv, "--runner=direct", "--max_messages=1000")...)
	o.MustEnd(t, program.ExitDone)
	if s := srv.Stats(inSub); s.Acknowledged != 1000 || s.Outstanding != 0 || distinct(srv, outTopic) != 1000 {
		t.Errorf("%+v, %d arrived", s, distinct(srv, outTopic))
	}
}

func TestRelay_FailureNamesTheTopicAndExitsWith1(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, inTopic, 10)
	if err := srv.DeleteTopic(outTopic); err != nil {
		t.Fatal(err)
	}
	o := runRelay(t.Context(), t, relayArgs(srv, "--max_messages=10")...)
	o.MustEnd(t, program.ExitFailed)
	if !strings.Contains(o.Stderr, "relay failed: ") || !strings.Contains(o.Stderr, outTopic) {
		t.Errorf("stderr:\n%s", o.Stderr)
	}
	if err := srv.Await(t.Context(), inSub, func(s pubsubtest.Stats) bool { return s.Outstanding == 0 }); err != nil {
		t.Error(err)
	}
	if s := srv.Stats(inSub); s.Acknowledged != 0 || s.Backlog != 10 {
		t.Errorf("%+v, want nothing acknowledged and everything back", s)
	}
}

// Nothing that the relay itself asks was refused, and it said that Pub/Sub had not answered
// and that its endpoint was to be checked.
func TestRelay_RunsWhereALookIsRefused(t *testing.T) {
	for method, c := range map[string]struct {
		code codes.Code
		says string
	}{
		"ListTopicSubscriptions": {codes.ResourceExhausted, ""},
		"GetTopic":               {codes.Unimplemented, "warning: topic " + outTopic + ": could not be looked up, and nothing of it was checked: Unimplemented: no; "},
	} {
		t.Run(method, func(t *testing.T) {
			srv := newServer(t)
			publish(t, srv, inTopic, 10)
			srv.Answer(method, status.Error(c.code, "no"))
			o := runRelay(t.Context(), t, relayArgs(srv, "--max_messages=10")...)
			o.MustEnd(t, program.ExitDone)
			if !strings.Contains(o.Stderr, c.says) || distinct(srv, outTopic) != 10 {
				t.Errorf("%d arrived, stderr:\n%s", distinct(srv, outTopic), o.Stderr)
			}
		})
	}
}

// What is published and not acknowledged comes again: a relay that leaves that
// behind has not ended well, however the pipeline has.
func TestRelay_UnacknowledgedIsAFailure(t *testing.T) {
	for name, tc := range map[string]struct {
		runner string
		code   codes.Code
		says   string
	}{
		"denied on prism":       {"prism", codes.PermissionDenied, "PermissionDenied"},
		"denied on direct":      {"direct", codes.PermissionDenied, "PermissionDenied"},
		"unavailable on direct": {"direct", codes.Unavailable, "10 messages"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.code == codes.Unavailable && testing.Short() {
				t.Skip("takes the half minute for which the end of a run waits for acknowledgements")
			}
			srv := newServer(t)
			publish(t, srv, inTopic, 10)
			srv.Answer("Acknowledge", status.Error(tc.code, "not now"))
			o := runRelay(t.Context(), t, relayArgs(srv, "--max_messages=10", "--runner="+tc.runner)...)
			o.MustEnd(t, program.ExitFailed)
			if o.Report.Published != 10 || o.Report.Acknowledged != 0 || srv.Stats(inSub).Acknowledged != 0 {
				t.Errorf("report %+v, want ten published and none acknowledged", o.Report)
			}
			if !strings.Contains(o.Stderr, "relay failed: ") || !strings.Contains(o.Stderr, "acknowledge") || !strings.Contains(o.Stderr, tc.says) {
				t.Errorf("stderr:\n%s", o.Stderr)
			}
		})
	}
}

func TestConclude_ExitCodes(t *testing.T) {
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	stopped := fmt.Errorf("%w: %w", pubsubio.ErrStopped, context.Canceled)
	whole, part := report{Published: 3, Acknowledged: 3}, report{Published: 3, Acknowledged: 1}
	for name, tc := range map[string]struct {
		ctx    context.Context
		runner string
		report report
		err    error
		code   int
		want   string // what follows "relay failed: ", whole
	}{
		"ended":                      {t.Context(), "", whole, nil, program.ExitDone, ""},
		"ended, unacknowledged":      {t.Context(), "", part, nil, program.ExitFailed, "2 of 3 published messages were not acknowledged: they will come again and be published twice"},
		"direct, unacknowledged":     {t.Context(), "direct", part, nil, program.ExitFailed, "2 of 3 published messages were not acknowledged: they will come again and be published twice"},
		"elsewhere, counts are zero": {t.Context(), "dataflow", part, nil, program.ExitDone, ""},
		"failed says why itself":     {t.Context(), "", part, errors.New("no topic"), program.ExitFailed, "no topic"},
		"stopped":                    {interrupted, "", whole, stopped, program.ExitInterrupted, ""},
		"stopped, unacknowledged":    {interrupted, "", part, stopped, program.ExitFailed, "2 of 3 published messages were not acknowledged: they will come again and be published twice"},
		"filtered, unacknowledged":   {t.Context(), "", report{Published: 3, Filtered: 2, Acknowledged: 4}, nil, program.ExitFailed, "1 of 3 published, 2 filtered and 0 failed messages were not acknowledged: they will come again, and what was published be published twice"},
		"disposed, unacknowledged":   {t.Context(), "", report{Published: 3, Failed: 2, Acknowledged: 3}, nil, program.ExitFailed, "2 of 3 published, 0 filtered and 2 failed messages were not acknowledged: they will come again, and what was published be published twice"},
		"filtered":                   {t.Context(), "", report{Published: 3, Filtered: 2, Acknowledged: 5}, nil, program.ExitDone, ""},
		"acknowledged more often":    {t.Context(), "", report{Published: 1, Acknowledged: 2}, nil, program.ExitDone, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if err := flag.Set("runner", tc.runner); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = flag.Set("runner", "") })
			var stdout, stderr bytes.Buffer
			code := conclude(tc.ctx, settings{}, tc.report, nil, tc.err, &stdout, &stderr)
			said := strings.TrimPrefix(strings.TrimSpace(stderr.String()), "relay failed: ")
			if code != tc.code || said != tc.want {
				t.Errorf("exit code %d, %q; want %d, %q", code, said, tc.code, tc.want)
			}
			if code == program.ExitFailed && strings.Contains(stdout.String(), "interrupted: ") {
				t.Errorf("promises a clean end:\n%s", stdout.String())
			}
		})
	}
}

// No policy for messages that the service refuses drops one for its ordering key.
func TestRelay_NoPolicyDropsAnOrderingKey(t *testing.T) {
	srv := newServer(t)
	mustPublish(t, srv, &pubsubio.Message{Data: []byte("in order"), OrderingKey: "k"})
	o := runRelay(t.Context(), t, relayArgs(srv, "--max_messages=1", "--failure_policy=drop")...)
	o.MustEnd(t, program.ExitFailed)
	srv.WantUnacknowledged(t, inSub, 1)
}

// What is missing is told before anything is done, be it a seek or a subscription.
func TestRelay_NothingIsHalfDone(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, inTopic, 10)
	for name, args := range map[string][]string{
		"topic":             {"--output_topic=projects/p/topics/mistyped", "--start_position=latest"},
		"dead-letter topic": {"--output_topic=" + outTopic, "--dead_letter_topic=projects/p/topics/mistyped", "--start_position=latest"},
		"and creates":       {"--output_topic=projects/p/topics/mistyped", "--input_subscriptions=projects/p/subscriptions/new", "--create_subscriptions=" + inTopic},
	} {
		t.Run(name, func(t *testing.T) {
			o := runRelay(t.Context(), t, append([]string{"--emulator_endpoint=" + srv.Endpoint(), "--input_subscriptions=" + inSub, "--stop_when_idle=1s"}, args...)...)
			o.MustEnd(t, program.ExitFailed)
			if !strings.Contains(o.Stderr, "projects/p/topics/mistyped does not exist") {
				t.Errorf("said %s", o.Stderr)
			}
			srv.WantUnacknowledged(t, inSub, 10)
			if slices.Contains(srv.Subscriptions(), "projects/p/subscriptions/new") {
				t.Error("a subscription was created")
			}
		})
	}
}

// A server that is not there is told in seconds, not after the patience of a source.
func TestRelay_AnAbsentServerIsToldAtOnce(t *testing.T) {
	srv := newServer(t)
	srv.Stop()
	o := runRelay(t.Context(), t, relayArgs(srv)...)
	o.MustEnd(t, program.ExitFailed)
	if !strings.Contains(o.Stderr, "has not answered within 5s") {
		t.Errorf("said %s", o.Stderr)
	}
}

// Messages that are published to the topic that is read come round for ever.
func TestRelay_CirclesAreRefused(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, inTopic, 1)
	for flag, args := range map[string][]string{
		"--output_topic":      {"--output_topic=" + inTopic},
		"--dead_letter_topic": {"--output_topic=" + outTopic, "--dead_letter_topic=" + inTopic},
	} {
		for _, dry := range [][]string{nil, {"--dry_run"}} {
			o := runRelay(t.Context(), t, slices.Concat([]string{"--emulator_endpoint=" + srv.Endpoint(), "--input_subscriptions=" + inSub}, args, dry)...)
			o.MustEnd(t, program.ExitFailed)
			if !strings.Contains(o.Stderr, flag+": "+inTopic+" is the topic of "+inSub+", which is read") {
				t.Errorf("said %s", o.Stderr)
			}
		}
	}
	srv.WantUnacknowledged(t, inSub, 1)
}

// Who publishes writes the attribute: one message with a bad one does not stop the others,
// where a policy says what becomes of it.
func TestRelay_APolicyDisposesOfMessagesWithoutATopic(t *testing.T) {
	for _, tc := range []struct {
		policy  string
		code    int
		letters int64
	}{
		{"--failure_policy=fail", program.ExitFailed, 0},
		{"--failure_policy=drop", program.ExitDone, 0},
		{"--dead_letter_topic=" + in2Topic, program.ExitDone, 2},
	} {
		t.Run(tc.policy, func(t *testing.T) {
			srv := newServer(t)
			mustPublish(t, srv,
				&pubsubio.Message{Data: []byte("bad"), Attributes: map[string]string{"to": "nonsense"}},
				&pubsubio.Message{Data: []byte("none")},
				&pubsubio.Message{Data: []byte("good"), Attributes: map[string]string{"to": outTopic}})
			o := runRelay(t.Context(), t, "--emulator_endpoint="+srv.Endpoint(), "--input_subscriptions="+inSub, "--output_topic_attribute=to", "--max_messages=3", tc.policy)
			o.MustEnd(t, tc.code)
			if tc.code == program.ExitDone {
				srv.WantPublished(t, outTopic, "good")
			}
			if n := srv.Published(in2Topic); n != tc.letters {
				t.Errorf("%d letters, want %d", n, tc.letters)
			}
		})
	}
}

// The sink's refusal of an ordering key names no way out that a user of the relay
// has.
func TestRelay_OrderingKeyIsRefusedNamingTheFlag(t *testing.T) {
	srv := newServer(t)
	if _, err := srv.Publish(inTopic, &pubsubio.Message{Data: []byte("in order"), OrderingKey: "k"}); err != nil {
		t.Fatal(err)
	}
	o := runRelay(t.Context(), t, relayArgs(srv, "--max_messages=1")...)
	o.MustEnd(t, program.ExitFailed)
	if !strings.Contains(o.Stderr, "has an ordering key") || !strings.Contains(o.Stderr, "--drop_ordering_keys") {
		t.Errorf("stderr:\n%s", o.Stderr)
	}
	if s := srv.Stats(inSub); s.Acknowledged != 0 || srv.Published(outTopic) != 0 {
		t.Errorf("%+v, %d published", s, srv.Published(outTopic))
	}
}

func TestRelay_DropsOrderingKeysWhereItIsTold(t *testing.T) {
	srv := newServer(t)
	attributes := map[string]string{"kept": "yes"}
	for _, key := range []string{"", "k", "l"} {
		if _, err := srv.Publish(inTopic, &pubsubio.Message{Data: []byte("of " + key), OrderingKey: key, Attributes: attributes}); err != nil {
			t.Fatal(err)
		}
	}
	o := runRelay(t.Context(), t, relayArgs(srv, "--max_messages=3", "--drop_ordering_keys")...)
	o.MustEnd(t, program.ExitDone)
	for _, m := range srv.Messages(outTopic) {
		if m.OrderingKey != "" || !maps.Equal(m.Attributes, attributes) {
			t.Errorf("arrived as %+v", m)
		}
	}
	if distinct(srv, outTopic) != 3 || o.Report.Acknowledged != 3 || o.Report.Skipped != 0 {
		t.Errorf("%d arrived, report %+v", distinct(srv, outTopic), o.Report)
	}
}

// Wherever a busy relay is stopped, what was published is acknowledged and the
// rest is the subscription's again.
func TestRelay_InterruptedEndsCleanly(t *testing.T) {
	for _, after := range []int64{1, 2500, 11000} {
		t.Run(fmt.Sprint("after ", after), func(t *testing.T) {
			srv := newServer(t)
			publish(t, srv, inTopic, 30_000)
			ctx, interrupt := context.WithCancel(t.Context())
			go func() { // Ends with the test at the latest.
				if srv.AwaitPublished(t.Context(), outTopic, after) == nil {
					interrupt()
				}
			}()
			o := runRelay(ctx, t, relayArgs(srv)...)
			o.MustEnd(t, program.ExitInterrupted)
			s, arrived := srv.Stats(inSub), distinct(srv, outTopic)
			if int64(arrived) != s.Acknowledged || srv.Published(outTopic) != s.Acknowledged {
				t.Errorf("%d published, %d of them distinct, %d acknowledged", srv.Published(outTopic), arrived, s.Acknowledged)
			}
			if s.Outstanding != 0 || s.Backlog+s.Acknowledged != 30_000 {
				t.Errorf("%+v, want none outstanding and the rest back", s)
			}
			if o.Report.Published != s.Acknowledged || o.Report.Acknowledged != s.Acknowledged {
				t.Errorf("report %+v, the server has %d acknowledged", o.Report, s.Acknowledged)
			}
			if !strings.Contains(o.Stderr, "interrupt again to kill") || !strings.Contains(o.Stdout, "interrupted: ") {
				t.Errorf("said:\n%s%s", o.Stdout, o.Stderr)
			}
		})
	}
}

// The direct runner has nothing acknowledged before the end: an interrupt there
// is no clean end, and says so, but it loses nothing.
func TestRelay_InterruptedOnDirectReturnsEverything(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, inTopic, 5_000)
	ctx, interrupt := context.WithCancel(t.Context())
	go func() { // Ends with the test at the latest.
		if srv.AwaitPublished(t.Context(), outTopic, 1000) == nil {
			interrupt()
		}
	}()
	o := runRelay(ctx, t, relayArgs(srv, "--runner=direct", "--max_messages=5001")...)
	o.MustEnd(t, program.ExitFailed)
	if s := srv.Stats(inSub); s.Acknowledged != 0 || s.Outstanding != 0 || s.Backlog != 5_000 {
		t.Errorf("%+v, want everything back", s)
	}
	if !strings.Contains(o.Stderr, "everything read is returned") || !strings.Contains(o.Stderr, "the pipeline was cut off") {
		t.Errorf("said:\n%s", o.Stderr)
	}
}

// A relay that was interrupted before it began has nothing to clean up.
func TestRelay_InterruptedBeforeTheStart(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, inTopic, 10)
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	runRelay(ctx, t, relayArgs(srv)...).MustEnd(t, program.ExitInterrupted)
	if s := srv.Stats(inSub); s.Delivered != 0 {
		t.Errorf("%+v", s)
	}
}

func TestRelay_IsQuietUnlessVerbose(t *testing.T) {
	srv := newServer(t)
	var stdout, stderr bytes.Buffer
	if code := Run(t.Context(), "", relayArgs(srv, "--stop_when_idle=50ms", "--verbose"), &stdout, &stderr); code != program.ExitDone {
		t.Fatal(code, stderr.String())
	}
	if !strings.Contains(stderr.String(), "level=INFO") {
		t.Errorf("--verbose shows no log of Beam's:\n%s", stderr.String())
	}
	stderr.Reset()
	if code := Run(t.Context(), "", relayArgs(srv, "--stop_when_idle=50ms"), &stdout, &stderr); code != program.ExitDone {
		t.Fatal(code, stderr.String())
	}
	if stderr.Len() > 0 {
		t.Errorf("a relay without trouble says:\n%s", stderr.String())
	}
}

// waitLimit is reached by a failing test only.
const waitLimit = time.Minute
