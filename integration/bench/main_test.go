package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// TestMain lets the test binary be a server and a contestant, too.
func TestMain(m *testing.M) {
	role := os.Getenv(roleVar)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(role, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// coordinated runs the coordinator and returns what it printed and reported.
func coordinated(t *testing.T, args ...string) (string, report) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	var out, progress bytes.Buffer
	if err := coordinate(t.Context(), append(args, "--report="+file), &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, progress.String())
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Series {
		if len(s.Runs) != r.Rounds || s.Runs[0].CPU <= 0 || s.Runs[0].Seconds <= 0 || s.Runs[0].Allocations == 0 || s.Runs[0].PeakRSS == 0 {
			t.Errorf("%s, %v: %+v", s.fullName(), s.load, s.Runs)
		}
	}
	return out.String(), r
}

func wantRows(t *testing.T, table string, rows ...string) {
	t.Helper()
	for _, row := range rows {
		if !strings.Contains(table, row) {
			t.Errorf("no %q in\n%s", row, table)
		}
	}
}

// slow marks a test that adds loads to what another one runs: many processes, each
// of which takes seconds to start under the race detector.
func slow(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("TestCoordinate_EveryContestantDoesItsWork runs the same code")
	}
}

func TestCoordinate_EveryContestantDoesItsWork(t *testing.T) {
	out, r := coordinated(t,
		"--messages=2500", "--warmup=10", "--rounds=1", "--size=100,3000", "--latency=1ms",
		"--with=MaxRecordsPerBundle=500,BatchDelay=1ms", "--client=Window=100,DelayThreshold=1ms")
	wantRows(t, out, "relay, 100 B, 1ms", "source, 3000 B, 1ms", "pubsubio MaxRecordsPerBundle=500 BatchDelay=1ms",
		"pubsubio tuned", "pubsubio wide", peer, "client default", "client Window=100 DelayThreshold=1ms", stubs, engine)
	if want := 2 * (6 + 6 + 8); len(r.Series) != want {
		t.Errorf("%d series in the report, want %d", len(r.Series), want)
	}
}

// The server refuses a run in which a topic lacks a message or a key's are not in
// their order: that this returns says that each contestant kept both.
func TestCoordinate_TopicsAndKeysAreShared(t *testing.T) {
	slow(t)
	out, r := coordinated(t, "--messages=1500", "--warmup=300", "--rounds=1", "--size=10", "--topics=1,3", "--keys=0,1,4,500")
	wantRows(t, out, "sink, 10 B, 3 topics, 500 keys", "sink, 10 B, 1 keys", "client", "stubs", "engine")
	for _, s := range r.Series {
		if s.Work != toTopic || s.Messages != 1500 {
			t.Errorf("%s, %v: %d messages", s.fullName(), s.load, s.Messages)
		}
	}
}

func TestCoordinate_MatrixHasATableForEachAxis(t *testing.T) {
	slow(t)
	out, r := coordinated(t, "--matrix=topics,keys", "--messages=1000", "--warmup=10", "--rounds=2", "--only=client|stubs|engine")
	wantRows(t, out, "\ntopics ", "CPU × that at 1\n", "1000    sink client", "\nkeys ", "10000  sink stubs", "0      sink engine")
	// The load through which both axes go runs once.
	if want := 3 * (3 + 4 - 1); len(r.Series) != want {
		t.Errorf("%d series in the report, want %d", len(r.Series), want)
	}
}

// The server refuses a run after which a message of the backlog is not acknowledged.
func TestCoordinate_ABacklogIsReadWholeByEverySplit(t *testing.T) {
	slow(t)
	out, r := coordinated(t, "--backlog=1500", "--splits=1,3", "--warmup=10", "--rounds=1", "--size=10", "--only=pubsubio|stubs|client$")
	wantRows(t, out, "source, 10 B, backlog 1500", "source, 10 B, 3 splits, backlog 1500")
	for _, s := range r.Series {
		if s.Work != fromTopic || s.Messages != s.Backlog {
			t.Errorf("%s, %v: %d messages", s.fullName(), s.load, s.Messages)
		}
	}
}

func TestCoordinate_ASourceReadsKeys(t *testing.T) {
	slow(t)
	out, _ := coordinated(t, "--work=source", "--keys=1,7", "--messages=1200", "--warmup=10", "--rounds=1", "--size=10")
	wantRows(t, out, "source, 10 B, 1 keys", "source, 10 B, 7 keys", "pubsubio", "client default", "stubs")
}

func TestCoordinate_LiveTellsHowLongMessagesTake(t *testing.T) {
	out, r := coordinated(t, "--work=live", "--duration=300ms", "--rounds=1", "--size=20")
	wantRows(t, out, "live, 20 B", "1,000/s", "12 idle", "windows", "pubsubio", "client")
	for _, s := range r.Live {
		got := s.Runs[0]
		if got.CPU <= 0 || got.Seconds < 0.3 || got.Emit.P99 < got.Emit.P50 {
			t.Errorf("%s, %s: %+v", s.fullName(), s.Situation.Name, got)
		}
		if want := s.Situation.Rate * 3 / 10; got.Emit.N != want || got.Ack.N != want {
			t.Errorf("%s, %s: times of %d and %d messages, want %d", s.fullName(), s.Situation.Name, got.Emit.N, got.Ack.N, want)
		}
	}
}

func TestSightings_TellHowLongMessagesAndWindowsTook(t *testing.T) {
	began := time.Unix(100, 0)
	s := &sightings{
		emitted: map[int]int64{0: 5e6, 1: 7e6, 2: 9e6},
		fired:   map[time.Time]time.Time{began.Add(-2 * time.Second): began.Add(-time.Second), began.Add(-time.Second): began.Add(3 * time.Second)},
	}
	emit, ack, err := s.latencies(1, Times{Published: []int64{0, 6e6, 6e6}, Acknowledged: []int64{0, 8e6, 19e6}})
	if want := (quantiles{N: 2, P50: 1, P99: 1, Max: 3}); err != nil || emit != want {
		t.Errorf("until emitted: %+v, error %v, want %+v", emit, err, want)
	}
	if want := (quantiles{N: 2, P50: 1, P99: 1, Max: 10}); ack != want {
		t.Errorf("until acknowledged: %+v, want %+v", ack, want)
	}
	// A window that fired before the measurement began is none of it.
	if got, want := s.windowsSince(began), (quantiles{N: 1, P50: 4000, P99: 4000, Max: 4000}); got != want {
		t.Errorf("windows: %+v, want %+v", got, want)
	}
	if _, _, err := s.latencies(0, Times{Published: make([]int64, 4), Acknowledged: make([]int64, 4)}); err == nil {
		t.Error("a message without an acknowledgement: no error")
	}
}

func TestParse_TheAxesOfAMatrixFollowFromTheWork(t *testing.T) {
	for _, c := range []struct{ args, work, axes string }{
		{"--matrix=all", "[sink]", "[size topics keys latency]"},
		{"--matrix=all --work=source", "[source]", "[size splits backlog keys]"},
		{"--matrix=backlog,splits", "[source]", "[backlog splits]"},
		{"--matrix=size --work=source", "[source]", "[size]"},
		{"--splits=4", "[source]", "[]"},
		{"--keys=4", "[sink]", "[]"},
	} {
		f, err := parse(strings.Fields(c.args), new(bytes.Buffer))
		if err != nil || fmt.Sprint(f.work) != c.work || fmt.Sprint(f.matrix) != c.axes {
			t.Errorf("%s: %v along %v, error %v", c.args, f.work, f.matrix, err)
		}
	}
}

func TestCoordinate_DurationSetsTheNumberOfMessages(t *testing.T) {
	_, r := coordinated(t, "--duration=100ms", "--warmup=10", "--rounds=1", "--work=sink", "--only=stubs|engine")
	unasked, err := parse(nil, new(bytes.Buffer))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Series {
		if s.Messages < 1 || s.Messages == unasked.messages {
			t.Errorf("%s: %d messages", s.fullName(), s.Messages)
		}
	}
}

// A contestant of any speed is given about as many messages as it moves in the time,
// though its start hides its speed in a short trial.
func TestCountIn_FindsTheRateOfAnySpeed(t *testing.T) {
	const d = 10 * time.Second
	for _, rate := range []float64{50, 1000, 100_000, 1_500_000} { // a second
		trials := 0
		n, err := countIn(d, func(n int) (float64, error) {
			trials++
			return 0.5 + float64(n)/rate, nil
		})
		if want := rate * d.Seconds(); err != nil || float64(n) < 0.7*want || float64(n) > 1.1*want {
			t.Errorf("%.0f a second: %d messages, error %v, want about %.0f", rate, n, err, want)
		}
		if trials > 6 {
			t.Errorf("%.0f a second: %d trials", rate, trials)
		}
	}
	if n, err := countIn(d, func(int) (float64, error) { return 1e-3, nil }); err != nil || n != mostMessages {
		t.Errorf("faster than any: %d messages, error %v", n, err)
	}
	refused := errors.New("refused")
	if _, err := countIn(d, func(int) (float64, error) { return 0, refused }); !errors.Is(err, refused) {
		t.Errorf("a trial that fails: error %v", err)
	}
}

func TestMessagesIn_RoundsToTwoDigits(t *testing.T) {
	for _, c := range []struct {
		n       int
		seconds float64
		want    int
	}{{1000, 0.5, 10_000}, {2000, 0.123, 81_000}, {7, 10, 4}, {1, 1000, 1}} {
		if got := messagesIn(5*time.Second, c.n, c.seconds); got != c.want {
			t.Errorf("%d in %v s: %d, want %d", c.n, c.seconds, got, c.want)
		}
	}
}

// A contestant that loses or invents messages must not get a row.
func TestVerify_RefusesWorkThatWasNotDone(t *testing.T) {
	do := task{
		Contestant: contestant{Work: relay, Program: ours}, Load: load{Size: 5, Topics: 1},
		Messages: map[Phase]int{warmup: 0, measured: 10},
	}
	srv, err := startServer(t.Context(), do.serverSpec())
	if err != nil {
		t.Fatal(err)
	}
	err = srv.verify(do)
	for _, want := range []string{"acknowledged", "published"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v: want a fault of %s", err, want)
		}
	}
	if err := srv.stop(); err != nil {
		t.Error(err)
	}
}

func TestGoal_EveryKindOfFaultIsReported(t *testing.T) {
	goal := Goal{Phase: measured, Published: []int64{5, 5}}
	for _, c := range []struct {
		name  string
		state State
		kept  Kept
		want  string // none if empty
	}{
		{"done", State{Published: []int64{5, 5}}, Kept{Seen: 10}, ""},
		{"a topic has another's message", State{Published: []int64{6, 4}}, Kept{}, "output-measured-1: 4"},
		{"too many", State{Published: []int64{5, 6}}, Kept{}, "output-measured-1: 6"},
		{"sent twice", State{Published: []int64{6, 5}, Input: pubsubtest.Stats{Redelivered: 1}}, Kept{}, ""},
		{"too short", State{Published: []int64{5, 5}}, Kept{Seen: 3, WrongSize: 1}, "size"},
		{"inverted", State{Published: []int64{5, 5}}, Kept{Seen: 3, OutOfOrder: 2}, "order: 2"},
	} {
		var f options.Faults
		goal.faults(&f, c.state, c.kept)
		switch err := f.Err(); {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

func TestParse_ReportsBadFlags(t *testing.T) {
	for _, args := range [][]string{
		{"extra"}, {"--size=x"}, {"--size=0"}, {"--messages=0"}, {"--warmup=-1"}, {"--rounds=0"}, {"--latency=-1s"},
		{"--work=nonsense"}, {"--only=nobody"}, {"--only=("}, {"--cpuprofile=/no/such/directory"},
		{"--with=NoSuchOption=1"}, {"--with=BatchDelay"}, {"--with=BatchDelay=3"}, {"--with=Subscriptions=a"},
		{"--client=NoSuchSetting=1"}, {"--client=Window=0"}, {"--client=EnableCompression=true"}, {"--topics=0"}, {"--keys=-1"}, {"--keys=1,x"},
		{"--topics=2", "--work=relay"}, {"--matrix=colour"}, {"--matrix=all", "--size=1,2"},
		{"--splits=0"}, {"--backlog=-1"}, {"--splits=2", "--keys=1"}, {"--splits=2", "--work=sink"}, {"--backlog=9", "--work=relay"},
		{"--keys=1", "--work=relay"}, {"--matrix=all", "--work=sink,source"}, {"--matrix=size,backlog", "--work=sink"}, {"--splits=2", "--topics=2"},
		{"--duration=1s", "--messages=5"}, {"--duration=-1s"},
	} {
		if _, err := parse(args, new(bytes.Buffer)); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}

func TestSettings_ReachEveryStructThatHasThem(t *testing.T) {
	in, out, err := settings{"Splits=4", "MaxBundleBytes=5", "BatchDelay=3ms", "ShutdownTimeout=7s"}.ours()
	if err != nil {
		t.Fatal(err)
	}
	if in.Splits != 4 || in.Subscriber.MaxBundleBytes != 5 || out.Publisher.BatchDelay != 3*time.Millisecond ||
		in.Subscriber.ShutdownTimeout != 7*time.Second || out.Publisher.ShutdownTimeout != 7*time.Second {
		t.Errorf("got %+v and %+v", in, out)
	}
}

func TestFigures(t *testing.T) {
	if got := (figures{3, 1, 2}).median(); got != 2 {
		t.Errorf("median of three: %v", got)
	}
	if got := (figures{4, 1, 3, 2}).median(); got != 2.5 {
		t.Errorf("median of four: %v", got)
	}
	// Each round by itself: a slow round of both is not a difference.
	if got := (figures{10, 100, 12}).over(figures{5, 50, 6}); got.min() != 2 || got.max() != 2 {
		t.Errorf("ratios %v", got)
	}
}
