package sink

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/direct" //nolint:staticcheck // deprecated, and supported here
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	"go.uber.org/goleak"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/publish"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
)

const topic = "projects/p/topics/out"

func TestMain(m *testing.M) {
	flag.Parse()
	beam.Init()
	code := m.Run()
	if err := goleak.Find(
		// A process-wide worker of a dependency of the Google API libraries.
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"),
		// Prism's job server, one for the process.
		goleak.IgnoreAnyFunction("github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism/internal/jobservices.(*Server).Serve"),
	); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// onPrism builds and runs a pipeline, ends its run as the front door does, and
// returns its writeFn, if it has one.
func onPrism(ctx context.Context, build func(beam.Scope)) (beam.PipelineResult, *writeFn, error) {
	p, s := beam.NewPipelineWithRoot()
	build(s)
	result, err := prism.Execute(ctx, p)
	for _, fn := range doFns(p) {
		if e, ok := fn.(run.Ender); ok {
			err = errors.Join(err, e.EndRun())
		}
	}
	return result, writeFnOf(p), err
}

func onDirect(ctx context.Context, build func(beam.Scope)) (*writeFn, error) {
	p, s := beam.NewPipelineWithRoot()
	build(s)
	_, err := direct.Execute(ctx, p)
	return writeFnOf(p), err
}

// doFns returns the DoFns of a pipeline, as the front door finds them.
func doFns(p *beam.Pipeline) []any {
	edges, _, err := p.Build()
	if err != nil {
		return nil
	}
	var fns []any
	for _, edge := range edges {
		if edge.DoFn != nil && edge.DoFn.Recv != nil {
			fns = append(fns, edge.DoFn.Recv)
		}
	}
	return fns
}

// writeFnOf returns the write in a pipeline that publishes in place, or nil.
func writeFnOf(p *beam.Pipeline) *writeFn {
	for _, fn := range doFns(p) {
		if fn, ok := fn.(*writeFn); ok {
			return fn
		}
	}
	return nil
}

// inFlight returns what the pool of a write holds.
func inFlight(t *testing.T, fn *writeFn) int {
	t.Helper()
	b, err := publish.Open(fn.Pool, publish.Handlers{})
	if err != nil {
		t.Fatal(err)
	}
	n := b.Load().Messages
	b.Drop()
	if err := fn.EndRun(); err != nil {
		t.Error(err)
	}
	return n
}

func numbered(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%05d", i)
	}
	return out
}
