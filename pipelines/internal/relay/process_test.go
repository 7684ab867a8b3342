package relay

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// process is the relay as a process of its own, killed when the test ends.
func process(t *testing.T, args ...string) (cmd *exec.Cmd, stderr *bufio.Reader) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asRelay+"=1")
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewReader(pipe)
}

// awaitDelivery returns once a relay is at work.
func awaitDelivery(t *testing.T, srv *pubsubtest.Server) {
	t.Helper()
	err := srv.Await(t.Context(), inSub, func(s pubsubtest.Stats) bool { return s.Delivered > 0 })
	if err != nil {
		t.Fatal(err)
	}
}

func send(t *testing.T, cmd *exec.Cmd, s os.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func TestProcess_SignalEndsItCleanly(t *testing.T) {
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(s.String(), func(t *testing.T) {
			srv := newServer(t)
			publish(t, srv, inTopic, 200)
			cmd, stderr := process(t, relayArgs(srv)...)
			awaitDelivery(t, srv)
			send(t, cmd, s)
			said, err := io.ReadAll(stderr)
			if err != nil {
				t.Fatal(err)
			}
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != program.ExitInterrupted {
				t.Errorf("ended with %v, want exit code %d:\n%s", err, program.ExitInterrupted, said)
			}
			if st := srv.Stats(inSub); int64(distinct(srv, outTopic)) != st.Acknowledged || st.Outstanding != 0 {
				t.Errorf("%d arrived, %+v", distinct(srv, outTopic), st)
			}
		})
	}
}

// A service that does not answer holds up a clean end; the second signal does
// not wait for it.
func TestProcess_SecondSignalKills(t *testing.T) {
	srv := newServer(t)
	publish(t, srv, inTopic, 200)
	srv.Delay("Publish", waitLimit)
	cmd, stderr := process(t, relayArgs(srv)...)
	awaitDelivery(t, srv)
	send(t, cmd, syscall.SIGINT)
	for line := ""; !strings.Contains(line, "interrupt again to kill"); {
		var err error
		if line, err = stderr.ReadString('\n'); err != nil {
			t.Fatalf("the relay did not say that it was stopping: %v", err)
		}
	}
	start := time.Now()
	send(t, cmd, syscall.SIGINT)
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || !exit.Sys().(syscall.WaitStatus).Signaled() {
		t.Errorf("ended with %v, want killed by the signal", err)
	}
	if took := time.Since(start); took > waitLimit/2 {
		t.Errorf("took %v", took)
	}
}

// What a worker on Dataflow needs must be in the job: the functions by name, and
// that bundles are to be finalized.
func TestProcess_TranslatesForDataflow(t *testing.T) {
	cmd, stderr := process(t, "--input_subscriptions="+inSub, "--output_topic="+outTopic, "--verbose",
		"--filter=attributes:region", "--output_topic_attribute=to", "--dead_letter_topic="+lettersName, "--runner=dataflow", "--project=p", "--region=europe-west1", "--staging_location=gs://b/s", "--dry_run", "--worker_binary="+os.Args[0])
	said, err := io.ReadAll(stderr)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for _, want := range []string{
		`source\.Read/source\.readFn`, `relay\.filterFn`, `relay\.router`, `dlq\.Write/dlq\.writeFn`, `sink\.Write/sink\.writeFn`,
		`beam:requirement:pardo:finalization:v1`, `JOB_TYPE_STREAMING`,
	} {
		if !regexp.MustCompile(want).Match(said) {
			t.Errorf("the job does not hold %s", want)
		}
	}
}
