package windowcount

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/programtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

const (
	topic    = "projects/p/topics/counted"
	sub      = "projects/p/subscriptions/counted"
	outTopic = "projects/p/topics/counts"
)

func newServer(t *testing.T) *pubsubtest.Server {
	t.Helper()
	srv := pubsubtest.New(t)
	srv.MustCreateTopic(topic)
	srv.MustCreateTopic(outTopic)
	srv.MustCreateSubscription(sub, topic)
	return srv
}

// began is when the event times of the tests begin: an hour that was long ago.
var began = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// An event is a message of a test: so long after began, from there.
type event struct {
	after  time.Duration
	region string
}

func publish(t *testing.T, srv *pubsubtest.Server, events ...event) {
	t.Helper()
	messages := make([]*message.Message, len(events))
	for i, e := range events {
		messages[i] = message.New([]byte("order")).WithAttribute("region", e.region).
			WithAttribute("at", began.Add(e.after).Format(time.RFC3339Nano)).WithOrderingKey("key-" + e.region)
	}
	if _, err := srv.Publish(topic, messages...); err != nil {
		t.Fatal(err)
	}
}

// An outcome is what a run of the program has left.
type outcome struct{ programtest.Outcome[report] }

// countAt runs the program to its end, in this process, reading from srv.
func countAt(ctx context.Context, t *testing.T, srv *pubsubtest.Server, args ...string) outcome {
	t.Helper()
	args = append([]string{"--input_subscriptions=" + sub, "--emulator_endpoint=" + srv.Endpoint()}, args...)
	return outcome{programtest.Execute[report](ctx, t, Run, args...)}
}

// counts are the report's, by the window's start and end since began and its label.
func (o outcome) counts() map[string]int64 {
	out := make(map[string]int64)
	for _, w := range o.Report.Windows {
		for label, n := range w.Counts {
			out[fmt.Sprintf("%v–%v %s", w.Start.Sub(began), w.End.Sub(began), label)] = n
		}
	}
	return out
}

func expectCounts(t *testing.T, got, want map[string]int64) {
	t.Helper()
	for k, n := range want {
		if got[k] != n {
			t.Errorf("%s: %d, want %d", k, got[k], n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("counts %v, want %v", got, want)
	}
}

var byRegion = []string{"--by_attribute=region", "--timestamp_attribute=at"}

func TestWindowcount_FixedWindowsByAttribute(t *testing.T) {
	srv := newServer(t)
	publish(t, srv,
		event{0, "eu"}, event{59 * time.Second, "eu"}, event{30 * time.Second, "us"}, event{10 * time.Second, ""},
		event{60 * time.Second, "eu"}, event{61 * time.Second, "us"}, event{62 * time.Second, "us"})
	plot := filepath.Join(t.TempDir(), "counts.svg")
	o := countAt(t.Context(), t, srv, append(byRegion, "--max_messages=7", "--output_topic="+outTopic, "--plot="+plot)...)
	o.MustEnd(t, program.ExitDone)
	want := map[string]int64{
		"0s–1m0s eu": 2, "0s–1m0s us": 1, "0s–1m0s ": 1,
		"1m0s–2m0s eu": 1, "1m0s–2m0s us": 2,
	}
	expectCounts(t, o.counts(), want)
	if o.Report.Read != 7 || o.Report.Acknowledged != 7 || *o.Report.Late != 0 || o.Report.Published != 5 {
		t.Errorf("report %+v", o.Report)
	}
	published := make(map[string]int64)
	for _, m := range srv.Messages(outTopic) {
		var c struct {
			Start time.Time `json:"window_start"`
			End   time.Time `json:"window_end"`
			By    string    `json:"by"`
			Label string    `json:"label"`
			Count int64     `json:"count"`
		}
		if err := json.Unmarshal(m.Data, &c); err != nil || c.By != "region" {
			t.Errorf("%s: %v", m.Data, err)
		}
		published[fmt.Sprintf("%v–%v %s", c.Start.Sub(began), c.End.Sub(began), c.Label)] += c.Count
	}
	expectCounts(t, published, want)
	table := `            window (UTC)  eu  us  (none)  total
2026-03-01 12:00 – 12:01   2   1       1      4
           12:01 – 12:02   1   2       0      3
                     all   3   3       1      7
`
	if !strings.HasPrefix(o.Stdout, table) {
		t.Errorf("printed:\n%swant:\n%s", o.Stdout, table)
	}
	for _, line := range []string{"2026-03-01 12:00 – 12:01  4  eu 2  us 1  (none) 1\n", "2026-03-01 12:01 – 12:02  3  eu 1  us 2\n"} {
		if !strings.Contains(o.Stderr, line) {
			t.Errorf("no %q in:\n%s", line, o.Stderr)
		}
	}
	drawn, err := os.ReadFile(plot)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"<svg", "Messages by region, in windows of 1m", "12:00", ">eu<", ">(none)<"} {
		if !bytes.Contains(drawn, []byte(text)) {
			t.Errorf("no %q in the plot", text)
		}
	}
}

// One message says that it is of the year 1, another of the year 12000: no time.Duration
// has the years between, and JSON has no year of five digits. Both were the end of a run.
func TestWindowcount_FarEventTimes(t *testing.T) {
	srv := newServer(t)
	for _, at := range []string{"0001-01-01T00:00:00Z", "316536681600000"} {
		if _, err := srv.Publish(topic, message.New(nil).WithAttribute("region", "eu").WithAttribute("at", at)); err != nil {
			t.Fatal(err)
		}
	}
	plot := filepath.Join(t.TempDir(), "counts.svg")
	o := countAt(t.Context(), t, srv, append(byRegion, "--max_messages=2", "--output_topic="+outTopic, "--plot="+plot)...)
	o.MustEnd(t, program.ExitDone)
	var starts []string
	for _, m := range srv.Messages(outTopic) {
		var c countMessage
		if err := json.Unmarshal(m.Data, &c); err != nil || c.Count != 1 {
			t.Errorf("%s: %v", m.Data, err)
		}
		starts = append(starts, c.Start.Format(time.RFC3339))
	}
	slices.Sort(starts)
	if want := "[0001-01-01T00:00:00Z 12000-08-25T00:00:00Z]"; fmt.Sprint(starts) != want || len(o.Report.Windows) != 2 || o.Report.Windows[1].Start.Year() != 12000 {
		t.Errorf("published windows from %v on, want %s; report %+v", starts, want, o.Report)
	}
	if _, err := os.Stat(plot); err != nil {
		t.Error(err)
	}
}

// publishUntimed publishes a message that has no event time, and one whose is none,
// between two that have one.
func publishUntimed(t *testing.T, srv *pubsubtest.Server) {
	t.Helper()
	publish(t, srv, event{0, "eu"})
	if _, err := srv.Publish(topic, message.New(nil).WithAttribute("region", "none"), message.New(nil).WithAttribute("region", "odd").WithAttribute("at", "noon")); err != nil {
		t.Fatal(err)
	}
	publish(t, srv, event{time.Second, "eu"})
}

// The flag that mends it is windowcount's own: the option of the source is none of its.
func TestWindowcount_ABadTimestampFails(t *testing.T) {
	srv := newServer(t)
	if _, err := srv.Publish(topic, message.New(nil).WithAttribute("at", "noon")); err != nil {
		t.Fatal(err)
	}
	o := countAt(t.Context(), t, srv, byRegion...)
	o.MustEnd(t, program.ExitFailed)
	for _, want := range []string{`--timestamp_attribute "at": its value is neither`, "--bad_timestamp=drop drops such messages"} {
		if !strings.Contains(o.Stderr, want) {
			t.Errorf("no %q in:\n%s", want, o.Stderr)
		}
	}
	if strings.Contains(o.Stderr, "OnDecodeFailure") || srv.Stats(sub).Acknowledged != 0 {
		t.Errorf("%d acknowledged, said:\n%s", srv.Stats(sub).Acknowledged, o.Stderr)
	}
}

func TestWindowcount_ABadTimestampIsDroppedAndTold(t *testing.T) {
	srv := newServer(t)
	publishUntimed(t, srv)
	o := countAt(t.Context(), t, srv, append(byRegion, "--bad_timestamp=drop", "--max_messages=4")...)
	o.MustEnd(t, program.ExitDone)
	expectCounts(t, o.counts(), map[string]int64{"0s–1m0s eu": 2})
	if o.Report.Read != 4 || o.Report.BadTimestamps != 2 || *o.Report.Late != 0 || !strings.Contains(o.Squeezed(), "bad timestamps 2 late 0") || srv.Stats(sub).Backlog != 0 {
		t.Errorf("report %+v, printed:\n%s", o.Report, o.Stdout)
	}
}

func TestWindowcount_ABadTimestampCountsByPublishTime(t *testing.T) {
	srv := newServer(t)
	publishUntimed(t, srv)
	o := countAt(t.Context(), t, srv, append(byRegion, "--bad_timestamp=publish_time", "--max_messages=4")...)
	o.MustEnd(t, program.ExitDone)
	counts := make(map[string]int64)
	for _, w := range o.Report.Windows {
		for label, n := range w.Counts {
			if (label == "eu") != w.Start.Equal(began) {
				t.Errorf("%q counts in the window from %v on", label, w.Start)
			}
			counts[label] += n
		}
	}
	expectCounts(t, counts, map[string]int64{"eu": 2, "none": 1, "odd": 1})
	if o.Report.Read != 4 || o.Report.BadTimestamps != 2 || *o.Report.Late != 0 || srv.Stats(sub).Backlog != 0 || srv.Stats(sub).Acknowledged != 4 {
		t.Errorf("report %+v, printed:\n%s", o.Report, o.Stdout)
	}
}

func TestWindowcount_SaysThatNothingIsDrawn(t *testing.T) {
	srv := newServer(t)
	plot := filepath.Join(t.TempDir(), "counts.svg")
	o := countAt(t.Context(), t, srv, "--by_ordering_key", "--stop_when_idle=50ms", "--plot="+plot)
	o.MustEnd(t, program.ExitDone)
	if _, err := os.Stat(plot); !os.IsNotExist(err) || o.Stderr != "no window has counted: --plot has nothing to draw\n" {
		t.Errorf("said:\n%s%v", o.Stderr, err)
	}
}

func TestWindowcount_SlidingWindowsByOrderingKey(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, event{0, "eu"}, event{70 * time.Second, "eu"}, event{70 * time.Second, "us"})
	o := countAt(t.Context(), t, srv, "--by_ordering_key", "--timestamp_attribute=at", "--window=2m", "--every=1m", "--max_messages=3")
	o.MustEnd(t, program.ExitDone)
	expectCounts(t, o.counts(), map[string]int64{
		"-1m0s–1m0s key-eu": 1, "0s–2m0s key-eu": 2, "1m0s–3m0s key-eu": 1,
		"0s–2m0s key-us": 1, "1m0s–3m0s key-us": 1,
	})
	if *o.Report.Late != 0 {
		t.Errorf("report %+v", o.Report)
	}
}

// pass publishes events, and one of ten minutes later once those are read: the watermark
// follows it past their window, which counts then.
func pass(ctx context.Context, t *testing.T, srv *pubsubtest.Server, events ...event) {
	t.Helper()
	publish(t, srv, events...)
	go func() { // Ends with ctx at the latest.
		if srv.Await(ctx, sub, func(s pubsubtest.Stats) bool { return s.Acknowledged == int64(len(events)) }) == nil {
			publish(t, srv, event{10 * time.Minute, "later"})
		}
	}()
}

// following has the watermark follow what comes, as close as it can.
var following = []string{"--watermark_lag=1ms", "--output_topic=" + outTopic}

// Windows count while the read goes on, once the watermark has passed them.
func TestWindowcount_CountsWhileItRuns(t *testing.T) {
	srv := newServer(t)
	ctx, interrupt := context.WithCancel(t.Context())
	pass(t.Context(), t, srv, event{0, "eu"}, event{time.Second, "us"})
	go func() { // Ends with the test at the latest.
		if srv.AwaitPublished(t.Context(), outTopic, 2) == nil {
			interrupt()
		}
	}()
	o := countAt(ctx, t, srv, append(following, byRegion...)...)
	o.MustEnd(t, program.ExitInterrupted)
	counts := o.counts()
	// The last message may have been returned unread.
	read := 2 + counts["10m0s–11m0s later"]
	if counts["0s–1m0s eu"] != 1 || counts["0s–1m0s us"] != 1 || srv.Stats(sub).Acknowledged != read || srv.Stats(sub).Backlog != 3-read {
		t.Errorf("counts %v, %+v", counts, srv.Stats(sub))
	}
	if !strings.Contains(o.Stdout, "interrupted: what was read is counted") {
		t.Errorf("said:\n%s", o.Stdout)
	}
}

// lateRun counts two messages of a window, then publishes one that is late for it. It
// returns what was published of their label.
func lateRun(t *testing.T, args ...string) (o outcome, published []int64) {
	t.Helper()
	srv := newServer(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pass(ctx, t, srv, event{0, "eu"}, event{time.Second, "eu"})
	go func() { // Ends with ctx at the latest.
		// The window has counted: the watermark is behind it.
		if srv.AwaitPublished(ctx, outTopic, 1) == nil {
			publish(t, srv, event{2 * time.Second, "eu"})
		}
	}()
	o = countAt(ctx, t, srv, append(append(following, byRegion...), append(args, "--max_messages=4")...)...)
	o.MustEnd(t, program.ExitDone)
	for _, m := range srv.Messages(outTopic) {
		var c struct {
			Label string
			Count int64
		}
		if err := json.Unmarshal(m.Data, &c); err != nil {
			t.Fatal(err)
		}
		if c.Label == "eu" {
			published = append(published, c.Count)
		}
	}
	return o, published
}

func TestWindowcount_LateIsDroppedAndTold(t *testing.T) {
	o, published := lateRun(t)
	expectCounts(t, o.counts(), map[string]int64{"0s–1m0s eu": 2, "10m0s–11m0s later": 1})
	if *o.Report.Late != 1 || fmt.Sprint(published) != "[2]" || !strings.Contains(strings.Join(strings.Fields(o.Stdout), " "), "late 1 seconds") {
		t.Errorf("published %v, printed:\n%s", published, o.Stdout)
	}
}

func TestWindowcount_LateIsCountedAlone(t *testing.T) {
	o, published := lateRun(t, "--late=discard", "--allowed_lateness=87600h")
	expectCounts(t, o.counts(), map[string]int64{"0s–1m0s eu": 3, "10m0s–11m0s later": 1})
	if *o.Report.Late != 0 || fmt.Sprint(published) != "[2 1]" {
		t.Errorf("published %v, printed:\n%s", published, o.Stdout)
	}
}

func TestWindowcount_LateIsCountedWithTheRest(t *testing.T) {
	o, published := lateRun(t, "--late=accumulate", "--allowed_lateness=87600h")
	expectCounts(t, o.counts(), map[string]int64{"0s–1m0s eu": 3, "10m0s–11m0s later": 1})
	if *o.Report.Late != 0 || published[0] != 2 || published[len(published)-1] != 3 {
		t.Errorf("published %v, printed:\n%s", published, o.Stdout)
	}
}

func TestWindowcount_SaysWhatIsMissing(t *testing.T) {
	srv := newServer(t)
	o := countAt(t.Context(), t, srv, "--by_ordering_key", "--input_subscriptions="+sub+"2", "--output_topic="+outTopic+"2")
	o.MustEnd(t, program.ExitFailed)
	want := "windowcount failed: --input_subscriptions: subscription " + sub + "2 does not exist; create it with gcloud pubsub subscriptions create counted2 --project=p --topic=TOPIC\n" +
		"--output_topic: topic " + outTopic + "2 does not exist; create it with gcloud pubsub topics create counts2 --project=p\n"
	if o.Stderr != want {
		t.Errorf("said:\n%swant:\n%s", o.Stderr, want)
	}
	srv.Deny("StreamingPull")
	publish(t, srv, event{0, "eu"})
	o = countAt(t.Context(), t, srv, "--by_ordering_key")
	o.MustEnd(t, program.ExitFailed)
	if !strings.Contains(o.Stderr, "grant roles/pubsub.subscriber") || strings.Count(o.Stderr, "\n") != 1 || srv.Stats(sub).Delivered != 0 {
		t.Errorf("said:\n%s", o.Stderr)
	}
}

func TestWindowcount_AServerThatIsAbsent(t *testing.T) {
	srv := newServer(t)
	srv.Close() // Nobody listens there any more.
	o := countAt(t.Context(), t, srv, "--by_ordering_key")
	o.MustEnd(t, program.ExitFailed)
	if !strings.HasPrefix(o.Stderr, "windowcount failed: Pub/Sub at ") || strings.Count(o.Stderr, "\n") != 1 {
		t.Errorf("said:\n%s", o.Stderr)
	}
}

func TestWindowcount_DryRunReadsNothing(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, event{0, "eu"})
	o := countAt(t.Context(), t, srv, append(byRegion, "--dry_run", "--window=10m", "--every=1m", "--late=discard", "--allowed_lateness=1h")...)
	o.MustEnd(t, program.ExitDone)
	want := `windowcount would count the messages of these subscriptions. This is a dry run: nothing is done.

  subscription   projects/p/subscriptions/counted
                 exists; pubsub.subscriptions.consume is granted
  by             region
  windows        10m0s, one every 1m0s
  event time     attribute at; without one that is a time: fail
  late messages  discard, for 1h0m0s
  until          it is interrupted
`
	if o.Stdout != want || srv.Stats(sub).Delivered != 0 {
		t.Errorf("printed:\n%swant:\n%s", o.Stdout, want)
	}
}
