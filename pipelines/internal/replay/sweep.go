package replay

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/routed"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/message"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

func init() { source.RegisterDecoder(sweep) }

// sweepTime is how long a sweep has after an interrupt, and where --max_duration has passed:
// what is returned comes again at once, or after ten seconds where the subscription has a
// retry policy.
const sweepTime = 15 * time.Second

// A sweeper acknowledges the parts of published letters. It is the process's, as a sorter is.
type sweeper struct {
	choice choice
	parts  *parts
	lull   *lull
	enough func() // ends the read
}

// take reports whether a letter that the service has published then is swept out.
func (s *sweeper) take(e dlq.Entry, published time.Time) bool {
	taken := s.parts.sweep(e)
	if s.lull.over(!taken && s.choice.isNew(e, published), time.Now()) || s.parts.unswept() == 0 {
		s.enough()
	}
	return taken
}

// sweeping is the sweeper of the run in this process.
var sweeping atomic.Pointer[sweeper]

// sweep is a decoder that acknowledges the parts of published letters, and leaves all else.
func sweep(m *message.Message, _ func(routed.Message)) error {
	s := sweeping.Load()
	if s == nil || !s.take(dlq.Decode(m), m.PublishTime) {
		return errLeft
	}
	return nil
}

// errSwept ends a sweep that has nothing left to do.
var errSwept = errors.New("replay: nothing is left to sweep, or does not come")

// sweepParts reads the subscription once more, where that has parts of letters that were
// published in the time that has passed: sweepTime at most after ctx has ended.
func sweepParts(ctx context.Context, s settings, p *parts, passed time.Duration, screen *program.Console) error {
	if p.unswept() == 0 {
		return nil
	}
	s.duration = leftFor(s.duration, passed)
	ctx, end := outlive(ctx, sweepTime)
	defer end(nil)
	sweeping.Store(&sweeper{
		choice: s.choice(),
		parts:  p,
		lull:   &lull{length: s.idle},
		enough: func() { end(errSwept) },
	})
	defer sweeping.Store(nil)
	pipeline, scope := beam.NewPipelineWithRoot()
	if _, err := source.TryRead(scope, sourceConfig(s), sweep); err != nil {
		return err
	}
	stop := program.ShowProgress(screen, sweepProgress(p))
	defer stop()
	if err := pubsubio.Run(ctx, pipeline); !errors.Is(err, pubsubio.ErrStopped) {
		return err
	}
	return nil // What stays is counted.
}

// outlive returns a context that ends d after ctx does, or with end.
func outlive(ctx context.Context, d time.Duration) (longer context.Context, end context.CancelCauseFunc) {
	longer, end = context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { // The end of longer ends it.
		last, cancel := context.WithTimeout(longer, d)
		defer cancel()
		<-last.Done()
		end(context.Cause(ctx))
	})
	return longer, end
}

// leftFor is how long a sweep may take where a run has a limit in time, of which some has
// passed.
func leftFor(limit, passed time.Duration) time.Duration {
	if limit == 0 {
		return 0
	}
	return max(limit-passed, sweepTime)
}

// sweepProgress is how far a sweep is that begins now.
func sweepProgress(p *parts) program.Progress {
	total := int64(p.unswept())
	done := func() int64 { return total - int64(p.unswept()) }
	return program.Progress{
		What: "acknowledging parts of published letters", Unit: "parts", Total: total, Done: done,
		Line: func(int64) string {
			return fmt.Sprintf("parts of published letters: acknowledged %s of %s", program.Grouped(done()), program.Grouped(total))
		},
	}
}
