package verify

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/load"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/programtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

const (
	topic   = "projects/p/topics/verified"
	sub     = "projects/p/subscriptions/verified"
	ordered = "projects/p/subscriptions/ordered"
)

func newServer(t *testing.T) *pubsubtest.Server {
	t.Helper()
	srv := pubsubtest.New(t)
	srv.MustCreateTopic(topic)
	srv.MustCreateSubscription(sub, topic)
	srv.MustCreateSubscription(ordered, topic, pubsubtest.Ordered())
	return srv
}

// stream is what the tests publish: three keys, a tenth of it poison.
var stream = load.Stream{Run: "r1", Keys: 3, MinSize: 64, MaxSize: 64, Poison: 0.1}

// made are the first n messages of s.
func made(s load.Stream, n int) []*message.Message {
	out := make([]*message.Message, n)
	for i := range out {
		out[i] = s.Message(int64(i), time.Now().Add(-5*time.Millisecond))
	}
	return out
}

func publish(t *testing.T, srv *pubsubtest.Server, messages ...*message.Message) {
	t.Helper()
	if _, err := srv.Publish(topic, messages...); err != nil {
		t.Fatal(err)
	}
}

// reported writes the report of a loadgen that has published the first n messages of s.
func reported(t *testing.T, s load.Stream, n int64) (path string) {
	t.Helper()
	r := load.Report{Run: s.Run, Topic: topic, Complete: true, Published: n, PoisonShare: s.Poison, KeyCount: s.Keys, Keys: s.Counts(n)}
	for i := range n {
		if s.Poisoned(i) {
			r.Poison++
		}
	}
	path = filepath.Join(t.TempDir(), "sent.json")
	if err := program.WriteReport(path, r); err != nil {
		t.Fatal(err)
	}
	return path
}

// An outcome is what a run of the program has left.
type outcome struct{ programtest.Outcome[report] }

// verifyAt runs the program to its end, in this process, reading from srv.
func verifyAt(ctx context.Context, t *testing.T, srv *pubsubtest.Server, args ...string) outcome {
	t.Helper()
	if !slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--subscription=") }) {
		args = append(args, "--subscription="+sub)
	}
	args = append([]string{"--linger=50ms", "--stop_when_idle=2s"}, args...)
	if srv != nil {
		args = append(args, "--emulator_endpoint="+srv.Endpoint())
	}
	return outcome{programtest.Execute[report](ctx, t, Run, args...)}
}

func TestVerify_FindsEverythingThere(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, made(stream, 5000)...)
	plot := filepath.Join(t.TempDir(), "latency.svg")
	o := verifyAt(t.Context(), t, srv, "--expected="+reported(t, stream, 5000), "--plot="+plot, "--stop_when_idle=1m")
	o.MustEnd(t, program.ExitDone)
	r := o.Report
	if *r.Expected != 5000 || r.Lost != 0 || r.Duplicated != 0 || r.Reordered != 0 || r.Foreign != 0 {
		t.Errorf("report %+v", r)
	}
	// Good messages are what it waits for; the last poison may be on its way when it ends.
	if r.Arrived < 4300 || r.Poison == 0 {
		t.Errorf("report %+v", r)
	}
	if r.Latency.P50 < 5 || r.Latency.P50 > r.Latency.P90 || r.Latency.P90 > r.Latency.P99 || r.Latency.P99 > r.Latency.Max || len(r.Latency.Histogram) == 0 {
		t.Errorf("latency %+v", r.Latency)
	}
	if s := srv.Stats(sub); s.Acknowledged != r.Arrived || s.Outstanding != 0 {
		t.Errorf("%+v, want the %d that arrived acknowledged", s, r.Arrived)
	}
	for _, want := range []string{"expected 5,000 arrived", "lost 0 duplicated", "latency p50 ", "█"} {
		if !strings.Contains(o.Squeezed(), want) {
			t.Errorf("no %q in:\n%s", want, o.Stdout)
		}
	}
	if o.Stderr != "" {
		t.Errorf("a run without trouble says:\n%s", o.Stderr)
	}
	expectSVG(t, plot, "Latency of ", "p50 ", "messages")
}

// expectSVG checks that a file is an XML document, and that its texts are there.
func expectSVG(t *testing.T, path string, texts ...string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(bytes.NewReader(content))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%s is no XML: %v", path, err)
		}
	}
	for _, want := range append(texts, "<svg") {
		if !bytes.Contains(content, []byte(want)) {
			t.Errorf("no %q in the plot", want)
		}
	}
}

// A count cannot tell: as many messages come as were sent.
func TestVerify_FindsWhatIsPlanted(t *testing.T) {
	srv := newServer(t)
	s := stream
	s.Poison = 0
	all := made(s, 300)
	sent := slices.Clone(all)
	sent[1], sent[7] = sent[7], sent[1] // key-0001: number 2 comes before 0 and 1
	sent = slices.Delete(sent, 150, 152)
	sent = append(sent, all[10], all[10], all[11]) // three copies
	publish(t, srv, sent...)
	o := verifyAt(t.Context(), t, srv, "--expected="+reported(t, s, 300))
	o.MustEnd(t, program.ExitFailed)
	r := o.Report
	if r.Arrived != 298 || r.Lost != 2 || r.Duplicated != 3 || r.Reordered != 2 || r.Poison != 0 || r.Foreign != 0 {
		t.Errorf("report %+v", r)
	}
	if want := []string{"key-0000/50", "key-0001/50"}; !slices.Equal(r.FirstLost, want) {
		t.Errorf("lost %v, want %v", r.FirstLost, want)
	}
	if want := "verify failed: 2 messages are lost, the first of them key-0000/50, key-0001/50\n"; o.Stderr != want {
		t.Errorf("said %q, want %q", o.Stderr, want)
	}
}

// Whatever is planted, it finds as much: no more, and no less.
func TestTally_FindsWhatIsPlanted(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := load.Stream{Run: "r", Keys: 1 + r.IntN(5), MinSize: 64, MaxSize: 64, Poison: 0.2}
		n := 1 + r.IntN(2000)
		var expected load.Report
		expected.Run, expected.Published, expected.KeyCount, expected.Keys, expected.PoisonShare = s.Run, int64(n), s.Keys, s.Counts(int64(n)), s.Poison
		var lost, lostPoison, copies, reordered, poison int64
		highest := make(map[int]int64)
		t1 := newTally(expectation{report: &expected})
		t2 := newTally(expectation{report: &expected, poison: true})
		order := r.Perm(n)
		if r.IntN(2) == 0 {
			slices.Sort(order)
		}
		var pending []*message.Message
		for _, i := range order {
			bad := s.Poisoned(int64(i))
			if bad {
				expected.Poison++
			}
			if r.IntN(10) == 0 {
				if bad {
					lostPoison++
				} else {
					lost++
				}
				continue
			}
			m := s.Message(int64(i), time.Now())
			pending = append(pending, m)
			k, seq := s.Place(int64(i))
			if before, ok := highest[k]; ok && seq < before {
				reordered++
			}
			highest[k] = max(highest[k], seq)
			times := int64(1)
			if r.IntN(10) == 0 {
				times = 2
				copies++
				pending = append(pending, m)
			}
			if bad {
				poison += times
			}
		}
		for _, m := range pending {
			for _, tally := range []*tally{t1, t2} {
				if err := tally.add(m, time.Now()); err != nil {
					t.Fatal(err)
				}
			}
		}
		got := t1.result(time.Second, false)
		if got.Lost != lost || got.Duplicated != copies || got.Reordered != reordered || got.Poison != poison || got.Foreign != 0 || got.Arrived != int64(n)-lost-lostPoison {
			t.Fatalf("seed %d: %+v, want %d lost, %d duplicated, %d reordered, %d poison", seed, got, lost, copies, reordered, poison)
		}
		if min(lost, firstLost) != int64(len(got.FirstLost)) {
			t.Fatalf("seed %d: named %v of %d lost", seed, got.FirstLost, lost)
		}
		if got := t2.result(time.Second, false); got.Lost != lost+lostPoison {
			t.Fatalf("seed %d: %d lost where poison is expected, want %d", seed, got.Lost, lost+lostPoison)
		}
	}
}

// Poison that a pipeline has sent to its dead-letter queue is not lost, unless it is
// asked for.
func TestVerify_PoisonIsExpectedOnRequestOnly(t *testing.T) {
	srv := newServer(t)
	var good []*message.Message
	for i, m := range made(stream, 600) {
		if !stream.Poisoned(int64(i)) {
			good = append(good, m)
		}
	}
	publish(t, srv, good...)
	o := verifyAt(t.Context(), t, srv, "--expected="+reported(t, stream, 600))
	o.MustEnd(t, program.ExitDone)
	if o.Report.Lost != 0 || o.Report.Poison != 0 || o.Report.Arrived != int64(len(good)) {
		t.Errorf("report %+v", o.Report)
	}
	publish(t, srv, good...)
	o = verifyAt(t.Context(), t, srv, "--expected="+reported(t, stream, 600), "--require_poison")
	o.MustEnd(t, program.ExitFailed)
	if o.Report.Lost != int64(600-len(good)) {
		t.Errorf("report %+v", o.Report)
	}
}

func TestVerify_CountsNothingOfOthers(t *testing.T) {
	srv := newServer(t)
	other := stream
	other.Run = "r2"
	publish(t, srv, made(other, 30)...)
	publish(t, srv, &message.Message{Data: []byte("a stranger")})
	publish(t, srv, made(stream, 30)...)
	publish(t, srv, stream.Message(33, time.Now())) // more than was reported
	o := verifyAt(t.Context(), t, srv, "--expected="+reported(t, stream, 30), "--require_poison")
	o.MustEnd(t, program.ExitDone)
	if o.Report.Arrived != 30 || o.Report.Foreign < 31 {
		t.Errorf("report %+v", o.Report)
	}
}

func TestVerify_WithANumberAlone(t *testing.T) {
	srv := newServer(t)
	all := made(stream, 100)
	publish(t, srv, append(all[:90:90], all[0], all[1])...)
	o := verifyAt(t.Context(), t, srv, "--expect=100")
	o.MustEnd(t, program.ExitFailed)
	if o.Report.Lost != 10 || o.Report.Duplicated != 2 || !strings.Contains(o.Stderr, "10 messages are lost") {
		t.Errorf("report %+v\n%s", o.Report, o.Stderr)
	}
	publish(t, srv, all...)
	verifyAt(t.Context(), t, srv, "--expect=100", "--run_id=r1", "--stop_when_idle=1m").MustEnd(t, program.ExitDone)
}

// Who knows nothing else sees gaps.
// What an earlier run has drawn does not look like this one's.
func TestVerify_SaysThatNothingIsDrawn(t *testing.T) {
	srv := newServer(t)
	plot := filepath.Join(t.TempDir(), "latency.svg")
	if err := os.WriteFile(plot, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := verifyAt(t.Context(), t, srv, "--expect=1", "--stop_when_idle=50ms", "--plot="+plot)
	o.MustEnd(t, program.ExitFailed)
	if !strings.Contains(o.Stderr, "nothing has arrived: --plot has nothing to draw, and "+plot+", of an earlier run, is removed\n") {
		t.Errorf("said:\n%s", o.Stderr)
	}
	if _, err := os.Stat(plot); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}

func TestVerify_WithoutExpectation(t *testing.T) {
	srv := newServer(t)
	all := made(stream, 99)
	publish(t, srv, append(all[:40:40], all[42:]...)...)
	o := verifyAt(t.Context(), t, srv)
	o.MustEnd(t, program.ExitFailed)
	if o.Report.Expected != nil || o.Report.Lost != 2 || !slices.Equal(o.Report.FirstLost, []string{"key-0001/13", "key-0002/13"}) {
		t.Errorf("report %+v", o.Report)
	}
	publish(t, srv, all...)
	verifyAt(t.Context(), t, srv).MustEnd(t, program.ExitDone)

	// Nothing at all is no proof of anything.
	o = verifyAt(t.Context(), t, srv)
	o.MustEnd(t, program.ExitFailed)
	if o.Stderr != "verify failed: no message of loadgen has arrived\n" {
		t.Errorf("said %q", o.Stderr)
	}
}

func TestVerify_OrderIsAFaultWhereItIsAskedFor(t *testing.T) {
	s := stream
	s.Ordered, s.Poison = true, 0
	srv := newServer(t)
	publish(t, srv, made(s, 300)...)
	o := verifyAt(t.Context(), t, srv, "--subscription="+ordered, "--ordering", "--expected="+reported(t, s, 300))
	o.MustEnd(t, program.ExitDone)
	if o.Report.Reordered != 0 || o.Report.Arrived != 300 {
		t.Errorf("report %+v", o.Report)
	}

	turned := made(s, 300)
	turned[0], turned[3] = turned[3], turned[0]
	publish(t, srv, turned...)
	o = verifyAt(t.Context(), t, srv, "--subscription="+ordered, "--ordering", "--expected="+reported(t, s, 300))
	o.MustEnd(t, program.ExitFailed)
	if o.Stderr != "verify failed: 1 message has arrived after a later one of the same key\n" || o.Report.Lost != 0 {
		t.Errorf("said %q, report %+v", o.Stderr, o.Report)
	}

	o = verifyAt(t.Context(), t, srv, "--ordering")
	o.MustEnd(t, program.ExitFailed)
	if !strings.HasPrefix(o.Stderr, "verify failed: --subscription: ") || !strings.Contains(o.Stderr, "has no message ordering") || srv.Stats(sub).Acknowledged != 0 {
		t.Errorf("said %q, %+v", o.Stderr, srv.Stats(sub))
	}
}

// What had not arrived when somebody interrupts is not lost.
func TestVerify_InterruptedCallsNothingLost(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, made(stream, 200)...)
	ctx, interrupt := context.WithCancel(t.Context())
	go func() { // Ends with the test at the latest.
		if srv.Await(t.Context(), sub, func(s pubsubtest.Stats) bool { return s.Acknowledged == 200 }) == nil {
			interrupt()
		}
	}()
	o := verifyAt(ctx, t, srv, "--expected="+reported(t, stream, 500), "--stop_when_idle=1m", "--require_poison")
	o.MustEnd(t, program.ExitInterrupted)
	if o.Report.Lost != 0 || o.Report.Missing != 300 || o.Report.Arrived != 200 {
		t.Errorf("report %+v", o.Report)
	}
	if !strings.Contains(o.Squeezed(), "not arrived yet 300 duplicated") || !strings.Contains(o.Stdout, "interrupted: ") || !strings.Contains(o.Stderr, "interrupt again to kill") {
		t.Errorf("said:\n%s%s", o.Stdout, o.Stderr)
	}
}

// What is counted and cannot be acknowledged comes again, and would be a duplicate.
func TestVerify_UnacknowledgedIsAFailure(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, made(stream, 10)...)
	srv.Answer("Acknowledge", status.Error(codes.PermissionDenied, "not now"))
	o := verifyAt(t.Context(), t, srv, "--expect=10")
	o.MustEnd(t, program.ExitFailed)
	if !strings.Contains(o.Stderr, "PermissionDenied") {
		t.Errorf("said:\n%s", o.Stderr)
	}
}

// What a pipeline sends two ways is found where it arrives.
func TestVerify_ReadsSeveralSubscriptions(t *testing.T) {
	srv := newServer(t)
	srv.MustCreateTopic(topic + "2")
	srv.MustCreateSubscription(sub+"2", topic+"2")
	all := made(stream, 100)
	publish(t, srv, all[:60]...)
	if _, err := srv.Publish(topic+"2", all[50:]...); err != nil {
		t.Fatal(err)
	}
	o := verifyAt(t.Context(), t, srv, "--subscription="+sub+","+sub+"2", "--expected="+reported(t, stream, 100), "--require_poison")
	o.MustEnd(t, program.ExitDone)
	if o.Report.Arrived != 100 || o.Report.Lost != 0 || o.Report.Duplicated != 10 {
		t.Errorf("report %+v", o.Report)
	}
}

func TestVerify_SaysWhatIsMissing(t *testing.T) {
	srv := newServer(t)
	o := verifyAt(t.Context(), t, srv, "--subscription="+sub+"2")
	o.MustEnd(t, program.ExitFailed)
	if want := "verify failed: --subscription: subscription " + sub + "2 does not exist; create it with gcloud pubsub subscriptions create verified2 --project=p --topic=TOPIC\n"; o.Stderr != want {
		t.Errorf("said %q, want %q", o.Stderr, want)
	}
	publish(t, srv, made(stream, 10)...)
	srv.Deny("StreamingPull")
	o = verifyAt(t.Context(), t, srv)
	o.MustEnd(t, program.ExitFailed)
	if !strings.Contains(o.Stderr, "grant roles/pubsub.subscriber") || strings.Count(o.Stderr, "\n") != 1 || srv.Stats(sub).Delivered != 0 {
		t.Errorf("said:\n%s", o.Stderr)
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close() // Nobody listens there now.
	o = verifyAt(t.Context(), t, nil, "--emulator_endpoint="+listener.Addr().String())
	o.MustEnd(t, program.ExitFailed)
	if !strings.HasPrefix(o.Stderr, "verify failed: Pub/Sub at ") || strings.Count(o.Stderr, "\n") != 1 {
		t.Errorf("said:\n%s", o.Stderr)
	}
}

func TestVerify_DryRunReadsNothing(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, made(stream, 10)...)
	o := verifyAt(t.Context(), t, srv, "--dry_run", "--expected="+reported(t, stream, 1000))
	o.MustEnd(t, program.ExitDone)
	want := `verify would read these subscriptions and acknowledge what comes. This is a dry run: nothing is done.

  subscription  projects/p/subscriptions/verified
                exists; pubsub.subscriptions.consume is granted
  expected      1,000 messages of run r1, but for 101 that are poison
  until         all have arrived, or nothing has come for 2s, or it is interrupted
`
	if got := o.Stdout; got != want || srv.Stats(sub).Delivered != 0 {
		t.Errorf("printed:\n%swant:\n%s", got, want)
	}
}
