package emulator

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStart_ServesAndDiesWithItsTest(t *testing.T) {
	var endpoint string
	t.Run("serve", func(t *testing.T) {
		endpoint = Start(t)
		const topic, sub = "projects/p/topics/ttt", "projects/p/subscriptions/sss"
		c := Dial(t, endpoint)
		c.CreateTopic(topic)
		c.CreateSubscription(sub, topic)
		ids := c.Publish(topic, &pubsubpb.PubsubMessage{Data: []byte("hello")})
		got := c.Drain(sub)
		if len(got) != 1 || got[0].GetMessageId() != ids[0] {
			t.Errorf("drained %v, published %v", got, ids)
		}
	})
	if t.Skipped() || endpoint == "" {
		return
	}
	p := process{endpoint: endpoint, exited: make(chan struct{})}
	close(p.exited)
	if err := p.awaitReady(t.Context()); err == nil {
		t.Error("the emulator answers after its test has ended")
	}
}

// A missing emulator must not fail the tests of a user, nor go unnoticed in the
// gate.
func TestStart_MissingEmulatorSkipsOrFails(t *testing.T) {
	if os.Getenv("EMULATOR_TEST_CHILD") == "1" {
		t.Setenv("PATH", t.TempDir())
		Start(t)
		return
	}
	for _, tt := range []struct{ require, want string }{{"0", "--- SKIP"}, {"1", "--- FAIL"}} {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), "EMULATOR_TEST_CHILD=1", requireEnv+"="+tt.require)
		out, _ := cmd.CombinedOutput() // its exit code is what the output says
		if !strings.Contains(string(out), tt.want) || !strings.Contains(string(out), "google-cloud-cli-pubsub-emulator") {
			t.Errorf("%s=%s: want %q and the package's name in\n%s", requireEnv, tt.require, tt.want, out)
		}
	}
}
