package loadgen

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/load"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/programtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

const topic = "projects/p/topics/load"

func newServer(t *testing.T) *pubsubtest.Server {
	t.Helper()
	srv := pubsubtest.New(t)
	srv.MustCreateTopic(topic)
	return srv
}

// An outcome is what a run of the program has left.
type outcome struct {
	programtest.Outcome[load.Report]
}

// generateTo runs the program to its end, in this process, publishing to srv.
func generateTo(ctx context.Context, t *testing.T, srv *pubsubtest.Server, args ...string) outcome {
	t.Helper()
	args = append([]string{"--topic=" + topic}, args...)
	if srv != nil {
		args = append(args, "--emulator_endpoint="+srv.Endpoint())
	}
	return outcome{programtest.Execute[load.Report](ctx, t, Run, args...)}
}

// numbered returns how often each message of a run was published, by key and number.
func numbered(t *testing.T, srv *pubsubtest.Server, run string) map[string]int {
	t.Helper()
	seen := make(map[string]int)
	for _, m := range srv.Messages(topic) {
		id, ok := load.Identify(m.Attributes)
		if !ok || id.Run != run {
			t.Fatalf("published %v, which is none of run %s", m.Attributes, run)
		}
		seen[fmt.Sprintf("%s/%d", id.Key, id.Sequence)]++
	}
	return seen
}

// expectReported checks that exactly what the report tells was published, each once.
func (o outcome) expectReported(t *testing.T, srv *pubsubtest.Server) {
	t.Helper()
	seen := numbered(t, srv, o.Report.Run)
	if !o.Report.Complete || int64(len(seen)) != o.Report.Published || srv.Published(topic) != o.Report.Published {
		t.Errorf("%d messages published, %d of them distinct; the report: %+v", srv.Published(topic), len(seen), o.Report)
	}
	for key, n := range o.Report.Keys {
		for i := range n {
			if seen[fmt.Sprintf("%s/%d", key, i)] != 1 {
				t.Fatalf("%s/%d was published %d times", key, i, seen[fmt.Sprintf("%s/%d", key, i)])
			}
		}
	}
}

func TestLoadgen_PublishesEachMessageOnce(t *testing.T) {
	srv := newServer(t)
	o := generateTo(t.Context(), t, srv, "--messages=25003", "--rate=0", "--keys=7", "--size=64-500", "--poison=0.02", "--run_id=one")
	o.MustEnd(t, program.ExitDone)
	o.expectReported(t, srv)
	if o.Report.Run != "one" || o.Report.KeyCount != 7 || len(o.Report.Keys) != 7 || o.Report.Published != 25003 || o.Report.Bytes < 64*25003 {
		t.Errorf("report %+v", o.Report)
	}
	var poison int64
	for _, m := range srv.Messages(topic) {
		if id, _ := load.Identify(m.Attributes); id.Poison {
			poison++
		}
		if m.OrderingKey != "" {
			t.Fatalf("has an ordering key: %+v", m)
		}
	}
	if poison != o.Report.Poison || poison < 300 || poison > 700 {
		t.Errorf("%d are poison, the report says %d, wanted about 500", poison, o.Report.Poison)
	}
	for _, want := range []string{"run one published 25,003 of them poison", "keys 7 bytes"} {
		if !strings.Contains(o.Squeezed(), want) {
			t.Errorf("no %q in:\n%s", want, o.Stdout)
		}
	}
	if o.Stderr != "" {
		t.Errorf("a run without trouble says:\n%s", o.Stderr)
	}
}

func TestLoadgen_KeepsTheOrderOfEachKey(t *testing.T) {
	srv := newServer(t)
	o := generateTo(t.Context(), t, srv, "--messages=3000", "--rate=0", "--keys=5", "--ordering")
	o.MustEnd(t, program.ExitDone)
	o.expectReported(t, srv)
	next := make(map[string]int64)
	for _, m := range srv.Messages(topic) {
		id, _ := load.Identify(m.Attributes)
		if m.OrderingKey != id.Key || id.Sequence != next[id.Key] {
			t.Fatalf("%q %+v, want number %d", m.OrderingKey, id, next[id.Key])
		}
		next[id.Key]++
	}
	if !o.Report.Ordering {
		t.Errorf("report %+v", o.Report)
	}
}

// Never faster than asked for, whatever the machine.
func TestLoadgen_KeepsTheRate(t *testing.T) {
	srv := newServer(t)
	o := generateTo(t.Context(), t, srv, "--messages=300", "--rate=500", "--burst=50")
	o.MustEnd(t, program.ExitDone)
	o.expectReported(t, srv)
	// Six bursts, the last of them 500 ms after the first.
	if o.Report.Seconds < 0.5 {
		t.Errorf("300 messages at 500 a second took %v s", o.Report.Seconds)
	}
}

func TestLoadgen_EndsAfterItsDuration(t *testing.T) {
	srv := newServer(t)
	o := generateTo(t.Context(), t, srv, "--duration=300ms", "--rate=1000")
	o.MustEnd(t, program.ExitDone)
	o.expectReported(t, srv)
	if o.Report.Published == 0 || o.Report.Published > 301 || o.Report.Seconds < 0.3 {
		t.Errorf("report %+v", o.Report)
	}
}

// Whatever was sent is published, and reported, and nothing else.
func TestLoadgen_InterruptedReportsWhatItHasSent(t *testing.T) {
	for _, rate := range []string{"0", "5000", "0.001"} {
		t.Run("rate "+rate, func(t *testing.T) {
			srv := newServer(t)
			ctx, interrupt := context.WithCancel(t.Context())
			go func() { // Ends with the test at the latest.
				if srv.AwaitPublished(t.Context(), topic, 1) == nil {
					interrupt()
				}
			}()
			o := generateTo(ctx, t, srv, "--rate="+rate)
			o.MustEnd(t, program.ExitInterrupted)
			o.expectReported(t, srv)
			if !strings.Contains(o.Stderr, "interrupt again to kill") || !strings.Contains(o.Stdout, "interrupted: what was sent is published") {
				t.Errorf("said:\n%s%s", o.Stdout, o.Stderr)
			}
		})
	}
}

func TestLoadgen_ATopicThatIsMissing(t *testing.T) {
	srv := pubsubtest.New(t)
	o := generateTo(t.Context(), t, srv, "--messages=10")
	o.MustEnd(t, program.ExitFailed)
	if want := "loadgen failed: --topic: topic " + topic + " does not exist; give --create_topic, or create it with gcloud pubsub topics create load --project=p\n"; o.Stderr != want {
		t.Errorf("said %q, want %q", o.Stderr, want)
	}
	if len(srv.Topics()) > 0 || o.Stdout != "" || o.Report.Run != "" {
		t.Errorf("topics %v, said %q, report %+v", srv.Topics(), o.Stdout, o.Report)
	}

	o = generateTo(t.Context(), t, srv, "--messages=10", "--create_topic")
	o.MustEnd(t, program.ExitDone)
	o.expectReported(t, srv)
}

func TestLoadgen_WithoutPermission(t *testing.T) {
	srv := newServer(t)
	srv.Deny("Publish")
	o := generateTo(t.Context(), t, srv, "--messages=10")
	o.MustEnd(t, program.ExitFailed)
	if !strings.HasPrefix(o.Stderr, "loadgen failed: --topic: ") || !strings.Contains(o.Stderr, "grant roles/pubsub.publisher") || strings.Count(o.Stderr, "\n") != 1 {
		t.Errorf("said:\n%s", o.Stderr)
	}
}

// absentEndpoint is where nobody listens.
func absentEndpoint(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func TestLoadgen_AServerThatIsAbsent(t *testing.T) {
	o := generateTo(t.Context(), t, nil, "--messages=10", "--emulator_endpoint="+absentEndpoint(t))
	o.MustEnd(t, program.ExitFailed)
	if !strings.HasPrefix(o.Stderr, "loadgen failed: Pub/Sub at 127.0.0.1:") || !strings.Contains(o.Stderr, "has not answered") || strings.Count(o.Stderr, "\n") != 1 {
		t.Errorf("said:\n%s", o.Stderr)
	}
}

// What a failed run has published nobody knows for sure: verify must not take its
// report for the truth.
func TestLoadgen_AFailedRunIsNotComplete(t *testing.T) {
	srv := newServer(t)
	srv.Answer("Publish", status.Error(codes.FailedPrecondition, "broken"), pubsubtest.Skip(2))
	o := generateTo(t.Context(), t, srv, "--messages=20000", "--rate=0")
	o.MustEnd(t, program.ExitFailed)
	if o.Report.Complete || o.Report.Run == "" || len(o.Report.Keys) > 0 || !strings.Contains(o.Stderr, "broken") {
		t.Errorf("report %+v\n%s", o.Report, o.Stderr)
	}
}

func TestLoadgen_DryRunPublishesNothing(t *testing.T) {
	srv := newServer(t)
	o := generateTo(t.Context(), t, srv, "--dry_run", "--messages=1000", "--duration=1m", "--burst=10", "--poison=0.005", "--run_id=r7", "--ordering")
	o.MustEnd(t, program.ExitDone)
	want := `loadgen would publish numbered messages to this topic. This is a dry run: nothing is done.

  topic     projects/p/topics/load
            exists; pubsub.topics.publish is granted
  run       r7
  until     1,000 messages are published, or 1m0s have passed, or it is interrupted
  rate      1000 messages a second, in bursts of 10
  keys      10, in order
  payloads  1000 bytes
  poison    0.5 %
`
	if o.Stdout != want || srv.Published(topic) != 0 {
		t.Errorf("%d published, printed:\n%swant:\n%s", srv.Published(topic), o.Stdout, want)
	}
	if err := srv.DeleteTopic(topic); err != nil {
		t.Fatal(err)
	}
	generateTo(t.Context(), t, srv, "--dry_run").MustEnd(t, program.ExitFailed)
}

// A service that loses answers has messages twice, and none less; the first copies of a
// key are in order.
func TestLoadgen_WhatIsNotAnsweredIsSentAgain(t *testing.T) {
	srv := newServer(t)
	// Only the first time: the pauses before further attempts grow to half a minute.
	lost := srv.Order(pubsubtest.Rule{Method: "Publish", FirstAttempt: true, Every: 3},
		pubsubtest.CarryOut(), pubsubtest.Fail(status.Error(codes.Unavailable, "lost")))
	o := generateTo(t.Context(), t, srv, "--messages=5000", "--rate=0", "--ordering")
	o.MustEnd(t, program.ExitDone)
	if seen := numbered(t, srv, o.Report.Run); len(seen) != 5000 || o.Report.Published != 5000 || !o.Report.Complete || lost.Fired() == 0 {
		t.Errorf("%d different messages arrived, %d answers were lost, report %+v", len(seen), lost.Fired(), o.Report)
	}
	next := make(map[string]int64)
	for _, m := range srv.Messages(topic) {
		id, _ := load.Identify(m.Attributes)
		if id.Sequence > next[id.Key] {
			t.Fatalf("%s/%d is stored when %d is expected", id.Key, id.Sequence, next[id.Key])
		}
		next[id.Key] = max(next[id.Key], id.Sequence+1)
	}
}
