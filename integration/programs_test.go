package integration

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/internal/emulator"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// relayedSub is what verify reads behind a relay.
const relayedSub = "projects/integration/subscriptions/output"

// programs builds loadgen, relay and verify, once, into programsDir, which TestMain
// removes.
var (
	programsDir string
	programs    = sync.OnceValues(func() (string, error) {
		var err error
		if programsDir, err = os.MkdirTemp("", "programs"); err != nil {
			return "", err
		}
		const pipelines = "github.com/beam-pubsub/beam-pubsub-go/pipelines/"
		out, err := exec.Command("go", "build", "-buildvcs=false", "-o", programsDir+"/", pipelines+"loadgen", pipelines+"relay", pipelines+"verify").CombinedOutput()
		if err != nil {
			return "", errors.New(string(out))
		}
		return programsDir, nil
	})
)

// withPrograms is within of a test that runs programs, which are built before.
func withPrograms(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	_, err := programs()
	must(t, err)
	return within(t, d)
}

// execute runs a program against endpoint to its end and returns its exit code and what
// it has printed.
func execute(ctx context.Context, t *testing.T, endpoint, name string, args ...string) (code int, printed string) {
	t.Helper()
	dir, err := programs()
	must(t, err)
	out, err := exec.CommandContext(ctx, filepath.Join(dir, name), append(args, "--emulator_endpoint="+endpoint)...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", name, err)
	}
	if exit != nil {
		code = exit.ExitCode()
	}
	t.Logf("%s ended with %d:\n%s", name, code, out)
	return code, string(out)
}

// mustExecute is execute of a program that must end well.
func mustExecute(ctx context.Context, t *testing.T, endpoint, name string, args ...string) {
	t.Helper()
	if code, _ := execute(ctx, t, endpoint, name, args...); code != 0 {
		t.Fatalf("%s ended with %d", name, code)
	}
}

// readJSON reads a report.
func readJSON(t *testing.T, path string) (v map[string]any) {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	must(t, json.Unmarshal(text, &v))
	return v
}

// What loadgen sends, verify finds: everything, once, in order.
func TestPrograms_LoadgenToVerify(t *testing.T) {
	for _, ordering := range []bool{false, true} {
		t.Run(map[bool]string{false: "in any order", true: "in order"}[ordering], func(t *testing.T) {
			srv := newServer(t)
			srv.MustCreateSubscription(relayedSub, inTopic, pubsubtest.Ordered())
			ctx := withPrograms(t, 2*time.Minute)
			dir := t.TempDir()
			sent, found := filepath.Join(dir, "sent.json"), filepath.Join(dir, "found.json")
			generate := []string{"--topic=" + inTopic, "--messages=20000", "--rate=0", "--size=64-1000", "--report=" + sent}
			verify := []string{"--expected=" + sent, "--report=" + found, "--linger=100ms", "--plot=" + filepath.Join(dir, "latency.svg")}
			if ordering {
				generate = append(generate, "--ordering")
				verify = append(verify, "--ordering", "--subscription="+relayedSub)
			} else {
				verify = append(verify, "--subscription="+inSub)
			}
			mustExecute(ctx, t, srv.Endpoint(), "loadgen", generate...)
			mustExecute(ctx, t, srv.Endpoint(), "verify", verify...)
			r := readJSON(t, found)
			for name, want := range map[string]float64{"expected": 20000, "arrived": 20000, "lost": 0, "duplicated": 0, "reordered": 0, "foreign": 0} {
				if r[name] != want && (ordering || name != "reordered") {
					t.Errorf("%s: %v, want %v", name, r[name], want)
				}
			}
		})
	}
}

// A relay behind a service that fails, and loses answers, loses nothing; what it
// publishes twice, verify tells.
func TestPrograms_ARelayWithFaultsLosesNothing(t *testing.T) {
	long(t)
	srv := newServer(t)
	srv.MustCreateSubscription(relayedSub, outTopic)
	ctx := withPrograms(t, 3*time.Minute)
	dir := t.TempDir()
	sent, found := filepath.Join(dir, "sent.json"), filepath.Join(dir, "found.json")
	mustExecute(ctx, t, srv.Endpoint(), "loadgen", "--topic="+inTopic, "--messages=30000", "--rate=0", "--poison=0.01", "--report="+sent)

	srv.Order(pubsubtest.Rule{Method: "Publish", FirstAttempt: true, Probability: 0.1, Seed: 1}, pubsubtest.Fail(status.Error(codes.Unavailable, "busy")))
	lost := srv.Order(pubsubtest.Rule{Method: "Publish", FirstAttempt: true, Every: 7},
		pubsubtest.CarryOut(), pubsubtest.Fail(status.Error(codes.Unavailable, "lost")))
	mustExecute(ctx, t, srv.Endpoint(), "relay", "--input_subscriptions="+inSub, "--output_topic="+outTopic, "--stop_when_idle=3s")

	mustExecute(ctx, t, srv.Endpoint(), "verify", "--subscription="+relayedSub, "--expected="+sent, "--require_poison", "--report="+found, "--linger=1s")
	r := readJSON(t, found)
	if r["arrived"] != 30000.0 || r["lost"] != 0.0 {
		t.Errorf("found %v", r)
	}
	if copies, _ := r["duplicated"].(float64); (copies > 0) != (lost.Fired() > 0) {
		t.Errorf("%v duplicated, %d answers were lost", copies, lost.Fired())
	}
}

// What is missing is found: verify ends with 1.
func TestPrograms_VerifyFindsALoss(t *testing.T) {
	srv := newServer(t)
	ctx := withPrograms(t, time.Minute)
	sent := filepath.Join(t.TempDir(), "sent.json")
	mustExecute(ctx, t, srv.Endpoint(), "loadgen", "--topic="+inTopic, "--messages=1000", "--rate=0", "--report="+sent)
	must(t, srv.Seek(inSub, time.Now().Add(time.Hour))) // Whoever did that has lost them all.
	code, printed := execute(ctx, t, srv.Endpoint(), "verify", "--subscription="+inSub, "--expected="+sent, "--stop_when_idle=1s")
	if code != 1 {
		t.Errorf("ended with %d:\n%s", code, printed)
	}
}

// Against a server that is not ours.
func TestEmulator_LoadgenToVerify(t *testing.T) {
	endpoint := emulator.Start(t)
	client := emulator.Dial(t, endpoint)
	client.CreateTopic(inTopic)
	client.CreateSubscription(inSub, inTopic, func(s *pubsubpb.Subscription) { s.EnableMessageOrdering = true })
	ctx := withPrograms(t, 2*time.Minute)
	sent := filepath.Join(t.TempDir(), "sent.json")
	mustExecute(ctx, t, endpoint, "loadgen", "--topic="+inTopic, "--messages=3000", "--rate=0", "--ordering", "--poison=0.01", "--report="+sent)
	mustExecute(ctx, t, endpoint, "verify", "--subscription="+inSub, "--ordering", "--expected="+sent, "--require_poison", "--stop_when_idle=30s")
}
