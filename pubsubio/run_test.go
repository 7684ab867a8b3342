package pubsubio

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	jobpb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/jobmanagement_v1"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners"
	"google.golang.org/grpc"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/finalize"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// reading is a pipeline with a read that resumes.
func reading() *beam.Pipeline {
	p, s := beam.NewPipelineWithRoot()
	source.Read(s, source.Config{Subscriptions: source.From("projects/p/subscriptions/input")}, source.Bytes)
	return p
}

func TestKindOf(t *testing.T) {
	for runner, want := range map[string]kind{
		"prism":       {rule: run.Finalized, prism: true, local: true},
		"PrismRunner": {rule: run.Finalized, prism: true, local: true},
		"dataflow":    {rule: run.FinalizedOrResumed},
		"universal":   {rule: run.TwoRounds},
		"another":     {rule: run.TwoRounds},
	} {
		if got, err := kindOf(runner, reading()); err != nil || got != want {
			t.Errorf("%s is %+v, error %v, want %+v", runner, got, err, want)
		}
	}
}

func TestKindOf_RefusesRunnersThatNeverCommit(t *testing.T) {
	for runner, want := range map[string]string{
		"direct": "--runner=prism", "DirectRunner": "--runner=prism",
		"flink": "cannot be told to checkpoint", "FlinkRunner": "cannot be told to checkpoint",
		"spark": "cannot be told to checkpoint", "SparkRunner": "cannot be told to checkpoint",
	} {
		if _, err := kindOf(runner, reading()); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), runner) {
			t.Errorf("%s: error %v, want %q in it", runner, err, want)
		}
		empty, _ := beam.NewPipelineWithRoot()
		if _, err := kindOf(runner, empty); err != nil {
			t.Errorf("%s refuses a pipeline that reads nothing: %v", runner, err)
		}
	}
}

// The direct runner hands a stateful step a nil provider, which panics.
func TestKindOf_RefusesStateOnTheDirectRunner(t *testing.T) {
	p, s := beam.NewPipelineWithRoot()
	sink.Write(s, sink.Config{
		Topic: "projects/p/topics/out", OrderBy: options.OrderByKey, Publisher: options.Publisher{EnableMessageOrdering: true},
	}, sink.String, beam.Create(s, "a"))
	if _, err := kindOf("direct", p); err == nil || !strings.Contains(err.Error(), "--runner=prism") || !strings.Contains(err.Error(), "options.OrderByKey") {
		t.Errorf("error %v", err)
	}
	if _, err := kindOf("prism", p); err != nil {
		t.Error(err)
	}
}

// A job server at --endpoint is somebody else's: it may be Flink's, where the rule
// of prism loses messages.
func TestRunnerOf(t *testing.T) {
	for _, c := range []struct{ runner, endpoint, own, want string }{
		{"", "", "", "prism"},
		{"", "localhost:1", "localhost:1", "prism"},
		{"", "localhost:8099", "", "universal"},
		{"", "localhost:8099", "localhost:1", "universal"},
		{"prism", "localhost:8099", "", "prism"},
		{"dataflow", "", "", "dataflow"},
	} {
		if got := runnerOf(c.runner, c.endpoint, c.own); got != c.want {
			t.Errorf("--runner=%q --endpoint=%q beside our %q runs on %s, want %s", c.runner, c.endpoint, c.own, got, c.want)
		}
	}
}

// atEndpoint has Beam's flags say that the job server is there, until the test ends.
func atEndpoint(t *testing.T, endpoint string) {
	t.Helper()
	runner, before := *runners.Runner, *jobopts.Endpoint
	t.Cleanup(func() { *runners.Runner, *jobopts.Endpoint = runner, before })
	*runners.Runner, *jobopts.Endpoint = "", endpoint
}

// After a run of ptest, Run took prism for an unknown engine, as the address of its server
// is in Beam's flag: it did not stop a pipeline, and left the subscription of a topic.
func TestLocalServer_KnowsThePrismThatAnotherRunHasStarted(t *testing.T) {
	atEndpoint(t, "")
	newLocalServer(finalize.HarnessStarted).start() // as ptest does
	if got := newLocalServer(finalize.HarnessStarted).runner(t.Context()); got != "prism" {
		t.Errorf("it runs on %s", got)
	}
	// One that was chosen by the flag may be anywhere, and so may its workers.
	flags := flag.CommandLine
	t.Cleanup(func() { flag.CommandLine = flags })
	flag.CommandLine = flag.NewFlagSet("", flag.PanicOnError)
	flag.CommandLine.String("endpoint", "", "")
	if err := flag.CommandLine.Set("endpoint", *jobopts.Endpoint); err != nil {
		t.Fatal(err)
	}
	if got := newLocalServer(finalize.HarnessStarted).runner(t.Context()); got != "universal" {
		t.Errorf("with --endpoint it runs on %s", got)
	}
}

// A program may assign the address of Flink's job server to Beam's flag. Taken for prism,
// it would lose messages.
func TestLocalServer_AnotherJobServerIsNoPrism(t *testing.T) {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer()
	jobpb.RegisterJobServiceServer(srv, jobpb.UnimplementedJobServiceServer{})
	go func() { _ = srv.Serve(l) }() // Ends with Stop.
	t.Cleanup(srv.Stop)
	atEndpoint(t, fmt.Sprintf("localhost:%d", l.Addr().(*net.TCPAddr).Port))
	if got := newLocalServer(finalize.HarnessStarted).runner(t.Context()); got != "universal" {
		t.Errorf("it runs on %s", got)
	}
	srv.Stop()
	if got := newLocalServer(finalize.HarnessStarted).runner(t.Context()); got != "universal" {
		t.Errorf("where nobody listens it runs on %s", got)
	}
}

// A clean stop that could not acknowledge everything is none.
func TestNotClean_IsNoCleanStop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	unsettled := errors.New("3 messages were not acknowledged")
	if err := notClean(ctx, stopped(ctx), unsettled); errors.Is(err, ErrStopped) || !errors.Is(err, unsettled) || !errors.Is(err, context.Canceled) {
		t.Errorf("a stop: %v", err)
	}
	if err := notClean(ctx, nil, unsettled); !errors.Is(err, unsettled) {
		t.Errorf("a success: %v", err)
	}
}

func TestBind_TellsEveryRead(t *testing.T) {
	if n := bind(reading(), run.Binding{RunID: "r"}); n == 0 {
		t.Error("no read was told about its run")
	}
}

// A caller may cancel with a cause of its own.
func TestStopped_HoldsTheContextsErrorAndItsCause(t *testing.T) {
	cause := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	for name, err := range map[string]error{"stopped": stopped(ctx), "cut off": cutOff(ctx, errors.New("failed"), "failed")} {
		if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
			t.Errorf("%s: %v, want context.Canceled and the cause in it", name, err)
		}
		if errors.Is(err, ErrStopped) != (name == "stopped") {
			t.Errorf("%s: %v is ErrStopped: %v", name, err, name != "stopped")
		}
	}
}

func TestRun_WithAnEndedContextDoesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Run(ctx, reading()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// Prism's job server must not be given two jobs at the same time.
func TestLocalServer_SubmitsOneJobAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLocalServer(func() <-chan struct{} { return nil })
		began := time.Now()
		starts := make(chan time.Duration, 2)
		release := make(chan struct{})
		for range 2 {
			go s.submit(func() {
				starts <- time.Since(began)
				<-release
			}, false)
		}
		time.Sleep(3 * submitTimeout) //nolint:forbidigo // virtual time
		close(release)
		synctest.Wait()
		if a, b := <-starts, <-starts; a != 0 || b != submitTimeout {
			t.Errorf("jobs started at %v and %v", a, b)
		}
	})
}

func init() {
	beam.RegisterRunner("interrupted", func(ctx context.Context, _ *beam.Pipeline) (beam.PipelineResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
}

// Only prism's jobs are submitted one at a time. A runner without a harness in
// this process never tells that it has one, and an interrupt waited for the
// timeout of that.
func TestExecute_InterruptIsNotHeldByTheSubmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		p, _ := beam.NewPipelineWithRoot()
		if _, err := execute(ctx, "interrupted", p, kind{local: true}, run.Start(run.Pipeline, false), 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("the interrupt after 1s was heard after %v", took)
		}
	})
}
