package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest"
)

// helperEnv in the environment makes the test binary a helper of that name, whose
// task is in taskEnv. A helper runs a pipeline in a process of its own, where
// its memory and processor time can be told from those of the test and of the
// server.
const (
	helperEnv = "PUBSUBIO_INTEGRATION_HELPER"
	taskEnv   = "PUBSUBIO_INTEGRATION_TASK"
)

// A task is what a helper is asked to do.
type task struct {
	Endpoint string
	// Messages ends the pipeline after so many; Warmup and Duration after a time,
	// the second of which is measured.
	Messages         int64
	Warmup, Duration time.Duration
	// HeapProfile is a file to write to in the middle.
	HeapProfile string
}

// usage is what a helper has used.
type usage struct {
	PeakBytes int64         // resident, at the most
	Busy      time.Duration // of a processor, in the measured time
	Measured  time.Duration
}

// helpers are the programs that the test binary can be, by name.
var helpers = map[string]func(ctx context.Context, t task) (usage, error){}

// help is the main function of a helper; it returns the exit code.
func help(name string) int {
	var t task
	if err := json.Unmarshal([]byte(os.Getenv(taskEnv)), &t); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	u, err := helpers[name](context.Background(), t)
	if err == nil {
		u.PeakBytes, err = peakResident()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := json.NewEncoder(os.Stdout).Encode(u); err != nil {
		return 1
	}
	return 0
}

// runHelper runs a helper to its end and returns what it has used.
func runHelper(ctx context.Context, t testing.TB, name string, do task) usage {
	t.Helper()
	text, err := json.Marshal(do)
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), helperEnv+"="+name, taskEnv+"="+string(text))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("helper %s: %v: %v\n%s", name, err, context.Cause(ctx), errs.String())
	}
	var u usage
	if err := json.Unmarshal(out.Bytes(), &u); err != nil {
		t.Fatalf("helper %s wrote %q: %v", name, out.String(), err)
	}
	return u
}

// peakResident returns the most memory that this process ever had. The figure of
// getrusage would not do: a child begins with that of the process it was
// forked from.
func peakResident() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if kb, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.ParseInt(strings.Fields(kb)[0], 10, 64)
			return n << 10, err
		}
	}
	return 0, errors.New("/proc/self/status has no VmHWM")
}

// busy returns the processor time that this process has used.
func busy() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// measured skips a test whose figures mean nothing where the race detector or
// the system has its own.
func measured(t testing.TB) {
	t.Helper()
	long(t)
	if raceDetector {
		t.Skip("measures memory or processor time, of which the race detector uses most; run without -race")
	}
	if _, err := peakResident(); err != nil {
		t.Skipf("measures by what Linux tells of a process: %v", err)
	}
}

// A daemon is a server in a process of its own.
type daemon struct {
	endpoint, stats string
}

// daemonProgram is built once for all tests, and is the same as users run. It is
// in daemonDir, which TestMain removes.
var (
	daemonDir     string
	daemonProgram = sync.OnceValues(buildDaemon)
)

func buildDaemon() (string, error) {
	var err error
	if daemonDir, err = os.MkdirTemp("", "pubsubtestd"); err != nil {
		return "", err
	}
	path := filepath.Join(daemonDir, "pubsubtestd")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", path,
		"github.com/beam-pubsub/beam-pubsub-go/pubsubio/pubsubtest/pubsubtestd").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build pubsubtestd: %w\n%s", err, out)
	}
	return path, nil
}

// startDaemon starts a server with the topics and subscriptions of newServer and
// so many messages of 1 KB.
func startDaemon(t testing.TB, messages int) daemon {
	t.Helper()
	path, err := daemonProgram()
	must(t, err)
	cmd := exec.Command(path, "--until-stdin-closes", "--stats-addr=127.0.0.1:0", "--size=1024",
		"--topic="+inTopic, "--subscription="+inSub+"="+inTopic, "--publish="+strconv.Itoa(messages))
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	var d daemon
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if url, ok := strings.CutPrefix(lines.Text(), "stats on "); ok {
			d.stats = url
		}
		if endpoint, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			d.endpoint = endpoint
			return d
		}
	}
	t.Fatal("pubsubtestd has not said where it listens")
	return d
}

// counts asks the server what it has done.
func (d daemon) counts(t testing.TB) (published map[string]int64, subscriptions map[string]pubsubtest.Stats) {
	t.Helper()
	var c struct {
		Published     map[string]int64
		Subscriptions map[string]pubsubtest.Stats
	}
	response, err := http.Get(d.stats)
	must(t, err)
	defer response.Body.Close()
	must(t, json.NewDecoder(response.Body).Decode(&c))
	return c.Published, c.Subscriptions
}
