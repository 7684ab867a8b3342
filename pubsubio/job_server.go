package pubsubio

import (
	"context"
	"flag"
	"sync"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	fnpb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/fnexecution_v1"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/finalize"
)

// jobServer is Beam's prism in this process. It is package state because Beam's
// own is: it keeps the server's address in the flag --endpoint.
var jobServer = newLocalServer(finalize.HarnessStarted)

type localServer struct {
	// Set once.
	started    func() <-chan struct{} // closed when the next harness starts
	submitting chan struct{}          // holds one token while a job is submitted; see submit

	mu       sync.Mutex // guards all below, and Beam's flag while start runs
	endpoint string     // of the server that start has started
}

func newLocalServer(started func() <-chan struct{}) *localServer {
	return &localServer{started: started, submitting: make(chan struct{}, 1)}
}

// submitTimeout is how long one job keeps others from being submitted, at most.
const submitTimeout = 10 * time.Second

// submit runs f, which submits a job and waits for it to end, and returns once the
// job is submitted. Prism's server keeps what jobs stage in a map without a lock:
// two that are submitted at once may bring the process down. The last thing that
// tells of a submission is that the job's harness starts.
//
// wholeBundles has prism split no bundle of the job.
func (s *localServer) submit(f func(), wholeBundles bool) (ended <-chan struct{}) {
	s.submitting <- struct{}{}
	defer func() { <-s.submitting }()
	if wholeBundles {
		restore := withExperiment(noSplits)
		defer restore()
	}
	started, done := s.started(), begin(f)
	limit := time.NewTimer(submitTimeout)
	defer limit.Stop()
	select {
	case <-started:
	case <-done:
	case <-limit.C:
	}
	return done
}

// noSplits is prism's experiment for a job whose bundles are not split. It splits a
// slow bundle of a keyed step in the middle of a key, too, and takes the key for free
// then: both parts run at once, and neither order nor state of the key holds.
const noSplits = "prism_disable_sdf_split"

// withExperiment adds an experiment to Beam's flag, from which a submission takes
// them, until restore is called.
func withExperiment(name string) (restore func()) {
	before := *jobopts.Experiments
	if before == "" {
		*jobopts.Experiments = name
	} else {
		*jobopts.Experiments = before + "," + name
	}
	return func() { *jobopts.Experiments = before }
}

// begin runs f in a goroutine of its own, and closes ended when f has returned;
// the caller waits for it.
func begin(f func()) (ended <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return done
}

// start starts the server, once: two first runs at the same time would race for
// it. Executing with a context that has ended does just that and submits
// nothing.
func (s *localServer) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *jobopts.Endpoint != "" {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p, _ := beam.NewPipelineWithRoot()
	_, _ = prism.Execute(ctx, p) // Fails, as intended.
	s.endpoint = *jobopts.Endpoint
}

// runner returns the runner that the flags choose.
func (s *localServer) runner(ctx context.Context) string {
	s.mu.Lock()
	runner, endpoint, own := *runners.Runner, *jobopts.Endpoint, s.endpoint
	s.mu.Unlock()
	if runner == "" && endpoint != "" && endpoint != own && !given("endpoint") && isPrism(ctx, endpoint) {
		own = endpoint // Started by a run that was not ours, as one of ptest.
	}
	return runnerOf(runner, endpoint, own)
}

// given reports whether the command line, or flag.Set, has set a flag. Prism assigns its
// address to the flag's variable, and so may a program.
func given(name string) (set bool) {
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

// askTimeout is how long a job server has to say what it is.
const askTimeout = 10 * time.Second

// isPrism asks the job server at endpoint whether it is prism: it serves the workers of
// its jobs at its own address, and answers one that has no id that it lacks it. Other job
// servers have no such service there.
func isPrism(ctx context.Context, endpoint string) bool {
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	_, err = fnpb.NewProvisionServiceClient(conn).GetProvisionInfo(ctx, &fnpb.GetProvisionInfoRequest{})
	return status.Code(err) == codes.Unknown
}

// runnerOf returns the runner to use where the flags --runner and --endpoint have
// those values and this process's prism listens at own. Without a runner it is prism,
// in this process. With the endpoint of a job server that is not that, whatever
// runs there is unknown: Beam's prism runner would submit to it all the same, so
// it must not be taken for prism.
func runnerOf(runner, endpoint, own string) string {
	switch {
	case runner != "":
		return runner
	case endpoint != "" && endpoint != own:
		return "universal"
	}
	return "prism"
}
