package pubsubio

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx" // Beam's runners and file systems

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/internal/run"
)

const (
	// stopTimeout is how long a clean stop may take before the pipeline is cut
	// off: a sink that waits for the service holds it up. It leaves a sink its
	// default ShutdownTimeout of 30 s, and as much again for the rest.
	stopTimeout = time.Minute
	// endTimeout is how long the last acknowledgements may take once the
	// pipeline has ended.
	endTimeout = 30 * time.Second
)

// ErrStopped is in the error of [Run] where the pipeline ended cleanly because its
// context did: on prism, everything that was published is acknowledged and the
// rest returned.
var ErrStopped = errors.New("pubsubio: the pipeline was stopped and ended cleanly")

// Run runs p on the runner of the flag --runner, and returns when it has ended. Where
// the flag is not given, that is prism, or the job server at --endpoint where that one
// is. beam.Init must have been called.
//
// When ctx ends on prism, every Read of p stops pulling, what it emitted is
// published and acknowledged, the rest is returned, and Run returns [ErrStopped]
// with ctx's error: nothing that was published stays unacknowledged. If that
// takes longer than a minute, as during an outage, the pipeline is cut off and
// the error says so: what was published and not acknowledged is then read
// again. On the direct runner the pipeline fails and everything read is
// returned. On a runner that runs the job elsewhere, ctx ends the wait and not
// the job.
//
// The direct runner takes a Read with a Limit only, and acknowledges what it
// read once the whole pipeline has succeeded. Beam's own flink and spark runners
// are refused for a pipeline that reads.
func Run(ctx context.Context, p *beam.Pipeline) error {
	_, err := RunWithMetrics(ctx, p)
	return err
}

// RunAndReport is [Run] that also returns what the reads and writes of p have done in
// this process, see [CountsOf]: also where the pipeline has failed.
func RunAndReport(ctx context.Context, p *beam.Pipeline) (Counts, error) {
	err := Run(ctx, p)
	return CountsOf(p), err
}

// RunWithMetrics is [Run] that also returns Beam's result, by which the
// pipeline's metrics can be asked for. The result may be nil where the pipeline
// failed.
func RunWithMetrics(ctx context.Context, p *beam.Pipeline) (beam.PipelineResult, error) {
	name := jobServer.runner(ctx)
	kind, err := kindOf(name, p)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, stopped(ctx)
	}
	r := run.Start(kind.rule, kind.prism)
	reads := bind(p, r.Binding)
	if kind.prism {
		jobServer.start() //nolint:contextcheck // the server outlives every run
	}
	result, err := execute(ctx, name, p, kind, r, reads)
	if err == nil && kind.rule == run.Pipeline {
		r.Commit()
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if left := errors.Join(r.End(end), closePools(p)); left != nil {
		err = notClean(ctx, err, left)
	}
	return result, err
}

// notClean adds to the error of a pipeline what was left when it had ended: it
// may have succeeded otherwise, but it has not ended cleanly.
func notClean(ctx context.Context, err, left error) error {
	if errors.Is(err, ErrStopped) {
		return cutOff(ctx, left, "was stopped and has not ended cleanly")
	}
	return errors.Join(err, fmt.Errorf("pubsubio: %w", left))
}

// closePools closes what the DoFns of p have kept in this process: only the
// direct runner ever calls Teardown.
func closePools(p *beam.Pipeline) error {
	var errs []error
	for _, fn := range doFns(p) {
		if e, ok := fn.(run.Ender); ok {
			errs = append(errs, e.EndRun())
		}
	}
	return errors.Join(errs...)
}

// A kind is what a runner means for acknowledging and stopping.
type kind struct {
	rule  run.Rule
	prism bool
	local bool // the pipeline ends with this process's Beam context
}

func kindOf(runner string, p *beam.Pipeline) (kind, error) {
	switch {
	case run.IsPrism(runner):
		return kind{rule: run.Finalized, prism: true, local: true}, nil
	case run.IsDirect(runner):
		if needsState(p) {
			return kind{}, fmt.Errorf("pubsubio: --runner=%s: the runner has no state, which a sink with options.OrderByKey needs: use --runner=prism, or options.OrderInPlace, which keeps the order of a key there: the direct runner runs one bundle", runner)
		}
		if resumes(p) {
			return kind{}, fmt.Errorf("pubsubio: --runner=%s: a read without a Limit needs a runner that resumes it: use --runner=prism; a read with a Limit must be built after flag.Parse, as the flag decides how it reads", runner)
		}
		return kind{rule: run.Pipeline, local: true}, nil
	case run.IsDataflow(runner):
		return kind{rule: run.FinalizedOrResumed}, nil
	case run.NeverCheckpoints(runner) && resumes(p):
		return kind{}, fmt.Errorf("pubsubio: --runner=%s: Beam's own runner cannot be told to checkpoint, so nothing would ever be finalized, nor acknowledged: run a pipeline that reads on prism or Dataflow", runner)
	}
	return kind{}, nil
}

// A resumer is a DoFn that needs a runner which resumes it.
type resumer interface{ Resumes() }

func resumes(p *beam.Pipeline) bool {
	for _, fn := range doFns(p) {
		if _, ok := fn.(resumer); ok {
			return true
		}
	}
	return false
}

// A stateful is a DoFn that needs a runner which keeps state.
type stateful interface{ NeedsState() }

func needsState(p *beam.Pipeline) bool {
	for _, fn := range doFns(p) {
		if _, ok := fn.(stateful); ok {
			return true
		}
	}
	return false
}

// bind tells every read and write of p about its run and returns how many DoFns of
// reads it told.
func bind(p *beam.Pipeline, b run.Binding) int {
	n := 0
	for _, fn := range doFns(p) {
		if read, ok := fn.(run.Binder); ok {
			read.BindRun(b)
			n++
		}
		// Elsewhere a job may be rolled back: the count would not be.
		if write, ok := fn.(run.Joiner); ok && b.Prism {
			write.JoinRun(b.RunID)
		}
	}
	return n
}

// execute runs p and returns when it has ended, or, on a runner that is elsewhere,
// when ctx has.
func execute(ctx context.Context, name string, p *beam.Pipeline, k kind, r *run.Run, reads int) (beam.PipelineResult, error) {
	// Beam's context must outlive ctx: cancelling it fails the bundles in
	// flight, after their messages were published.
	beamCtx, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	var result beam.PipelineResult
	var err error
	submit := begin
	if k.prism {
		submit = func(f func()) <-chan struct{} { return jobServer.submit(f, needsState(p)) }
	}
	ended := submit(func() { result, err = beam.Run(beamCtx, name, p) })
	select {
	case <-ended:
		return result, err
	case <-ctx.Done():
	}
	switch {
	case k.prism && reads > 0:
		r.Stop()
		limit := time.NewTimer(stopTimeout)
		defer limit.Stop()
		select {
		case <-ended:
			if err != nil {
				return result, cutOff(ctx, err, "failed while it was stopping")
			}
			return result, stopped(ctx)
		case <-limit.C:
		}
		cut(context.Cause(ctx))
		<-ended
		return result, cutOff(ctx, err, fmt.Sprintf("did not stop within %v and was cut off: what was published and not acknowledged is read again", stopTimeout))
	case k.local:
		cut(context.Cause(ctx))
		<-ended
		return result, cutOff(ctx, err, "was cut off: what it read and did not acknowledge is read again")
	default:
		cut(context.Cause(ctx))
		<-ended
		return result, cutOff(ctx, err, "goes on without being waited for: cancel or drain the job with the tools of its runner")
	}
}

// stopped is the error of a pipeline that was asked to stop and did.
func stopped(ctx context.Context) error {
	return fmt.Errorf("%w: %w", ErrStopped, endOf(ctx))
}

// cutOff is the error of a pipeline that was left in whatever state it was in; err
// is what it said itself.
func cutOff(ctx context.Context, err error, what string) error {
	return errors.Join(fmt.Errorf("pubsubio: the pipeline %s: %w", what, endOf(ctx)), err)
}

// endOf is why ctx has ended: its error, and its cause where that says more.
func endOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
