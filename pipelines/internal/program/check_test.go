package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/check"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

const (
	topic = "projects/p/topics/there"
	sub   = "projects/p/subscriptions/there"
)

func newServer(t *testing.T) (*pubsubtest.Server, options.Connection) {
	t.Helper()
	srv := pubsubtest.New(t)
	srv.MustCreateTopic(topic)
	srv.MustCreateSubscription(sub, topic)
	return srv, options.Connection{EmulatorEndpoint: srv.Endpoint()}
}

var words = strings.NewReplacer("sink.Config.Topic", "--topic", "source.Config.Subscriptions", "--subscriptions")

// writes is a program that publishes to topics that must be there.
func writes(c options.Connection, topics ...string) Use {
	u := Use{Connection: c, Words: words}
	for _, name := range topics {
		u.Sinks = append(u.Sinks, sink.Config{
			Topic: name, CreateDisposition: options.CreateNever,
			EmulatorEndpoint: c.EmulatorEndpoint, ServiceAccountKeyFile: c.ServiceAccountKeyFile,
		})
	}
	return u
}

func TestCheck_FindsWhatIsThere(t *testing.T) {
	_, c := newServer(t)
	u := writes(c, topic, topic+"2")
	u.Sinks[1].CreateDisposition = options.CreateIfNeeded
	u.Sources = []source.Config{{Subscriptions: source.From(sub), EmulatorEndpoint: c.EmulatorEndpoint}}
	got, err := Check(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"exists; pubsub.subscriptions.consume is granted",
		"exists; pubsub.topics.publish is granted",
		"does not exist and will be created; whether the account has pubsub.topics.publish is not known; whether the account has pubsub.topics.create on projects/p is not known",
	}
	for i, w := range want {
		if len(got.Resources) != len(want) || got.Resources[i].Says() != w {
			t.Errorf("%+v, want %q", got, want)
		}
	}
}

// What is wrong is told in the words of the flags.
func TestCheck_JoinsAllThatIsWrong(t *testing.T) {
	srv, c := newServer(t)
	srv.Deny("Publish", topic)
	srv.MustCreateSubscription(sub+"2", topic, pubsubtest.ExactlyOnce(), pubsubtest.Ordered())
	u := writes(c, topic, topic+"2")
	u.Sources = []source.Config{{Subscriptions: source.From(sub, sub+"2", sub+"3"), Ordering: options.PerKey, EmulatorEndpoint: c.EmulatorEndpoint}}
	_, err := Check(t.Context(), u)
	want := []string{
		"--subscriptions: subscription " + sub + " has no message ordering, which --ordering needs and which cannot be added; create another subscription with message ordering, or read without --ordering",
		"--subscriptions: subscription " + sub + "2 has exactly-once delivery, with which the service refuses acknowledgements that come late, as a runner's commit may; turn it off with gcloud pubsub subscriptions update --no-enable-exactly-once-delivery",
		"--subscriptions: subscription " + sub + "3 does not exist; create it with gcloud pubsub subscriptions create there3 --project=p --topic=TOPIC --enable-message-ordering",
		"--topic: topic " + topic + " may not be used: the account lacks pubsub.topics.publish; grant roles/pubsub.publisher",
		"--topic: topic " + topic + "2 does not exist; create it with gcloud pubsub topics create there2 --project=p",
	}
	if err == nil || err.Error() != strings.Join(want, "\n") {
		t.Errorf("%v\nwant:\n%s", err, strings.Join(want, "\n"))
	}
}

// A role that may publish and nothing else is enough for a program.
func TestCheck_AnAccountThatMayNotLookIsNoFault(t *testing.T) {
	srv, c := newServer(t)
	srv.Deny("GetSubscription")
	u := Use{Sources: []source.Config{{Subscriptions: source.From(sub), EmulatorEndpoint: c.EmulatorEndpoint}}}
	got, err := Check(t.Context(), u)
	if err != nil || got.Resources[0].Says() != "is taken to exist, as the account may not look (pubsub.subscriptions.get); pubsub.subscriptions.consume is granted" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestCheck_GivesUpOnAServerThatIsAbsent(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	endpoint := listener.Addr().String()
	_ = listener.Close() // Nobody listens there now.
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = Check(ctx, writes(options.Connection{EmulatorEndpoint: endpoint}, topic, topic+"2"))
	var absent *check.AbsentError
	if !errors.As(err, &absent) || strings.Count(err.Error(), "\n") > 0 || !strings.HasPrefix(err.Error(), "Pub/Sub at "+endpoint+" has not answered within 5s: ") ||
		!strings.HasSuffix(err.Error(), "; check that it runs and can be reached, and --emulator_endpoint and --pubsub_endpoint") {
		t.Errorf("%v", err)
	}
}

func TestCheck_TellsOfAKeyFileWithoutItsPath(t *testing.T) {
	dir := t.TempDir()
	_, err := Check(t.Context(), writes(options.Connection{ServiceAccountKeyFile: filepath.Join(dir, "none.json")}, topic))
	if err == nil || !strings.HasPrefix(err.Error(), "--service_account_key_file: ") || !strings.HasSuffix(err.Error(), "no such file or directory") || strings.Contains(err.Error(), dir) {
		t.Errorf("%v", err)
	}
}

func TestPlan_PrintsWhatWasFound(t *testing.T) {
	srv, c := newServer(t)
	p := Plan{Name: "mover", Would: "move things", Settings: [][2]string{{"until", "the end"}}}
	var stdout, stderr bytes.Buffer
	if code := p.DryRun(t.Context(), writes(c, topic), "", &stdout, &stderr); code != ExitDone || stderr.Len() > 0 {
		t.Errorf("exit code %d, %s", code, stderr.String())
	}
	want := `mover would move things. This is a dry run: nothing is done.

  topic  projects/p/topics/there
         exists; pubsub.topics.publish is granted
  until  the end
`
	if stdout.String() != want {
		t.Errorf("printed:\n%swant:\n%s", stdout.String(), want)
	}
	stdout.Reset()
	circle := writes(c, topic)
	circle.Sources = []source.Config{{Subscriptions: source.From(sub), EmulatorEndpoint: c.EmulatorEndpoint}}
	if code := p.DryRun(t.Context(), circle, "", &stdout, &stderr); code != ExitDone || !strings.Contains(stdout.String(), "\n                warning: is the topic of "+sub+", which is read: what is published to it is read again") {
		t.Errorf("exit code %d, printed:\n%s", code, stdout.String())
	}
	stdout.Reset()
	srv.Deny("Publish")
	if code := p.DryRun(t.Context(), writes(c, topic), "", &stdout, &stderr); code != ExitFailed || stdout.Len() > 0 || !strings.HasPrefix(stderr.String(), "mover cannot run as it is told:\n--topic: ") {
		t.Errorf("exit code %d, %s, %s", code, stdout.String(), stderr.String())
	}
}

// A dry run with --report ended with 0, and without the file.
func TestFrame_ADryRunReportsWhatWasFound(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	srv, c := newServer(t)
	path := filepath.Join(t.TempDir(), "r.json")
	f := Frame{
		Name: "mover", Common: &Common{DryRun: true, Report: path}, Validate: func() error { return nil },
		Use: func() Use { return writes(c, topic) }, Plan: func() Plan { return Plan{Name: "mover", Would: "move things"} },
	}
	for _, code := range []int{ExitDone, ExitFailed} {
		if code == ExitFailed {
			srv.Deny("Publish")
		}
		var stdout, stderr bytes.Buffer
		if got := f.Run(t.Context(), &stdout, &stderr); got != code {
			t.Fatalf("exit code %d, %s", got, stderr.String())
		}
		text, err := os.ReadFile(path)
		var r check.Report
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		if err != nil || len(r.Resources) != 1 || r.Resources[0].Uses[0].Field != "--topic" || (r.Err() == nil) != (code == ExitDone) {
			t.Errorf("%s, %v", text, err)
		}
		_ = os.Remove(path)
	}
}

// A program that rehearses reports what it has found itself.
func TestFrame_ARehearsalReportsByItself(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	_, c := newServer(t)
	path := filepath.Join(t.TempDir(), "r.json")
	f := Frame{
		Name: "mover", Common: &Common{DryRun: true, Report: path}, Validate: func() error { return nil },
		Use: func() Use { return writes(c, topic) }, Plan: func() Plan { return Plan{Name: "mover", Would: "move things"} },
		Rehearse: func(context.Context, *Console) int {
			if _, err := os.Stat(path); err == nil {
				t.Error("the report of the check is written")
			}
			return ExitDone
		},
	}
	if code := f.Run(t.Context(), new(bytes.Buffer), new(bytes.Buffer)); code != ExitDone {
		t.Errorf("exit code %d", code)
	}
}

func TestReady(t *testing.T) {
	_, c := newServer(t)
	var stderr bytes.Buffer
	if code, ready := Ready(t.Context(), "mover", &stderr, writes(c, topic)); code != ExitDone || !ready {
		t.Error(code, ready)
	}
	if code, ready := Ready(t.Context(), "mover", &stderr, writes(c, topic+"2")); code != ExitFailed || ready || !strings.HasPrefix(stderr.String(), "mover failed: --topic: ") {
		t.Error(code, ready, stderr.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, ready := Ready(ctx, "mover", &stderr, writes(c, topic)); code != ExitInterrupted || ready {
		t.Error(code, ready)
	}
}
