package program

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/internal/emulator"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
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

func TestCheck_FindsWhatIsThere(t *testing.T) {
	_, c := newServer(t)
	got, err := Check(t.Context(), c,
		Resource{Name: topic, Flag: "--topic"},
		Resource{Name: sub, Flag: "--subscription", Subscription: true},
		Resource{Name: topic + "2", Flag: "--other", Created: true})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"exists; pubsub.topics.publish is granted",
		"exists; pubsub.subscriptions.consume is granted",
		"does not exist and will be created",
	}
	for i, w := range want {
		if len(got) != len(want) || got[i].Says != w {
			t.Errorf("%+v, want %q", got, want)
		}
	}
}

func TestCheck_JoinsAllThatIsWrong(t *testing.T) {
	srv, c := newServer(t)
	srv.Deny("Publish", topic)
	srv.MustCreateSubscription(sub+"2", topic, pubsubtest.ExactlyOnce())
	_, err := Check(t.Context(), c,
		Resource{Name: topic, Flag: "--topic"},
		Resource{Name: topic + "2", Flag: "--other"},
		Resource{Name: sub, Flag: "--subscription", Subscription: true, Ordered: true},
		Resource{Name: sub + "2", Flag: "--second", Subscription: true},
		Resource{Name: sub + "3", Flag: "--third", Subscription: true})
	want := []string{
		"--topic: topic " + topic + " may not be used: the account lacks pubsub.topics.publish; grant roles/pubsub.publisher",
		"--other: topic " + topic + "2 does not exist; create it with gcloud pubsub topics create",
		"--subscription: subscription " + sub + " has no message ordering, which cannot be added: create another one with --enable-message-ordering, or read without --ordering",
		"--second: subscription " + sub + "2 has exactly-once delivery: turn it off with gcloud pubsub subscriptions update --no-enable-exactly-once-delivery",
		"--third: subscription " + sub + "3 does not exist; create it with gcloud pubsub subscriptions create",
	}
	if err == nil || err.Error() != strings.Join(want, "\n") {
		t.Errorf("%v\nwant:\n%s", err, strings.Join(want, "\n"))
	}
}

// A role that may publish and nothing else is enough for a program.
func TestCheck_AnAccountThatMayNotLookIsNoFault(t *testing.T) {
	srv, c := newServer(t)
	srv.Deny("GetTopic")
	got, err := Check(t.Context(), c, Resource{Name: topic, Flag: "--topic"})
	if err != nil || got[0].Says != "is taken to exist, as the account may not look (pubsub.topics.get); pubsub.topics.publish is granted" {
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
	_, err = Check(ctx, options.Connection{EmulatorEndpoint: endpoint},
		Resource{Name: topic, Flag: "--topic"}, Resource{Name: sub, Flag: "--subscription", Subscription: true})
	var absent *AbsentError
	if !errors.As(err, &absent) || strings.Count(err.Error(), "\n") > 0 || !strings.HasPrefix(err.Error(), "Pub/Sub at "+endpoint+" has not answered within 5s: ") {
		t.Errorf("%v", err)
	}
}

func TestCheck_TellsOfAKeyFileWithoutItsPath(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "key.json")
	if err := os.WriteFile(broken, []byte(`{"type":"service_account","private_key":"secret"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none.json"): "--service_account_key_file: it cannot be read: no such file or directory",
		broken:                          "--service_account_key_file: it holds no JSON key of a service account",
	} {
		_, err := Check(t.Context(), options.Connection{ServiceAccountKeyFile: path}, Resource{Name: topic})
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// What cannot be known of a permission is no fault: the emulator has none.
func TestCheck_OnTheEmulator(t *testing.T) {
	endpoint := emulator.Start(t)
	emulator.Dial(t, endpoint).CreateTopic(topic)
	got, err := Check(t.Context(), options.Connection{EmulatorEndpoint: endpoint}, Resource{Name: topic, Flag: "--topic"})
	if err != nil || !strings.HasPrefix(got[0].Says, "exists; ") {
		t.Errorf("%+v, %v", got, err)
	}
	t.Log(got)
	if _, err := Check(t.Context(), options.Connection{EmulatorEndpoint: endpoint}, Resource{Name: topic + "2", Flag: "--topic"}); err == nil || !strings.Contains(err.Error(), "does not exist; ") {
		t.Errorf("%v", err)
	}
}

func TestPlan_PrintsWhatWasFound(t *testing.T) {
	srv, c := newServer(t)
	p := Plan{Name: "mover", Would: "move things", Resources: []Resource{{Name: topic, Flag: "--topic"}}, Settings: [][2]string{{"until", "the end"}}}
	var stdout, stderr bytes.Buffer
	if code := p.DryRun(t.Context(), c, &stdout, &stderr); code != ExitDone || stderr.Len() > 0 {
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
	srv.Deny("Publish")
	if code := p.DryRun(t.Context(), c, &stdout, &stderr); code != ExitFailed || stdout.Len() > 0 || !strings.HasPrefix(stderr.String(), "mover cannot run as it is told:\n--topic: ") {
		t.Errorf("exit code %d, %s, %s", code, stdout.String(), stderr.String())
	}
}

func TestReady(t *testing.T) {
	_, c := newServer(t)
	var stderr bytes.Buffer
	if code, ready := Ready(t.Context(), "mover", &stderr, c, Resource{Name: topic}); code != ExitDone || !ready {
		t.Error(code, ready)
	}
	if code, ready := Ready(t.Context(), "mover", &stderr, c, Resource{Name: topic + "2", Flag: "--topic"}); code != ExitFailed || ready || !strings.HasPrefix(stderr.String(), "mover failed: --topic: ") {
		t.Error(code, ready, stderr.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, ready := Ready(ctx, "mover", &stderr, c, Resource{Name: topic}); code != ExitInterrupted || ready {
		t.Error(code, ready)
	}
}
