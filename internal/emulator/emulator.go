package emulator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	program = "cloud-pubsub-emulator"
	// packageDir is where the Debian package puts the program.
	packageDir = "/usr/lib/google-cloud-sdk/platform/pubsub-emulator/bin"
	// requireEnv set to 1 turns a skipped test into a failed one.
	requireEnv = "PUBSUBIO_REQUIRE_EMULATOR"

	startTimeout = time.Minute
	stopTimeout  = 10 * time.Second
)

// Start runs an emulator until t ends and returns its endpoint, host:port.
//
// It skips t where the program or Java is missing, and says what to install;
// with PUBSUBIO_REQUIRE_EMULATOR=1 in the environment that fails t instead. An
// emulator that does not answer within a minute fails t with its output.
func Start(t testing.TB) string {
	t.Helper()
	path, err := find()
	if err != nil {
		text := fmt.Sprintf("%s needs Google's Pub/Sub emulator: %v; install the Debian package "+
			"google-cloud-cli-pubsub-emulator and a Java runtime, such as default-jre-headless", t.Name(), err)
		if os.Getenv(requireEnv) == "1" {
			t.Fatal(text)
		}
		t.Skip(text)
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{endpoint: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), exited: make(chan struct{})}
	if err := p.start(path, port); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
	if err := p.awaitReady(t.Context()); err != nil {
		t.Fatalf("the Pub/Sub emulator is not ready: %v; it wrote:\n%s", err, p.output.String())
	}
	return p.endpoint
}

// find returns the path of the program.
func find() (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		path = filepath.Join(packageDir, program)
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("no %s on PATH or in %s", program, packageDir)
		}
	}
	if _, err := exec.LookPath("java"); err != nil {
		return "", errors.New("no java on PATH")
	}
	return path, nil
}

// freePort returns a port that was free a moment ago: the emulator does not tell
// which one it took when it may choose.
func freePort() (int, error) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = lis.Close() }()
	addr, ok := lis.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("%v is no TCP address", lis.Addr())
	}
	return addr.Port, nil
}

// A process is a running emulator.
type process struct {
	endpoint string
	cmd      *exec.Cmd
	output   buffer
	exited   chan struct{} // closed when cmd has ended and was waited for
}

func (p *process) start(path string, port int) error {
	p.cmd = exec.Command(path, "--host=127.0.0.1", "--port="+strconv.Itoa(port))
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	p.cmd.WaitDelay = stopTimeout
	inOwnGroup(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	// Ends with the process, which stop ends and waits for.
	go func() {
		_ = p.cmd.Wait() // that it was killed is no news
		close(p.exited)
	}()
	return nil
}

// awaitReady returns when the emulator answers a call.
func (p *process) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("no answer within %v", startTimeout))
	defer cancel()
	ctx, exited := context.WithCancelCause(ctx)
	defer exited(nil)
	go func() { // ends with ctx
		select {
		case <-p.exited:
			exited(errors.New("it exited"))
		case <-ctx.Done():
		}
	}()
	conn, err := grpc.NewClient(p.endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithConnectParams(impatient))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_, err = pubsubpb.NewPublisherClient(conn).ListTopics(ctx,
		&pubsubpb.ListTopicsRequest{Project: "projects/ready"}, grpc.WaitForReady(true))
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// stop kills the emulator with all that it started, and waits for its end.
func (p *process) stop() error {
	if err := killGroup(p.cmd); err != nil {
		return err
	}
	timer := time.NewTimer(stopTimeout + time.Second)
	defer timer.Stop()
	select {
	case <-p.exited:
		return nil
	case <-timer.C:
		return fmt.Errorf("the Pub/Sub emulator, process %d, did not end", p.cmd.Process.Pid)
	}
}

// A buffer may be written to and read at once.
type buffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

// Write is for the process.
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String returns what was written so far.
func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
