package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/dlq"
)

// Run is the program: it returns the exit code. manual is its package's comment, and the
// end of ctx an interrupt.
func Run(ctx context.Context, manual string, args []string, stdout, stderr io.Writer) int {
	s, faults := parseFlags(args, time.Now())
	return program.Frame{
		Name:     "replay",
		Manual:   program.Manual{Source: manual, Sections: sections},
		Flags:    ownFlags(new(settings)),
		Common:   &s.Common,
		Validate: func() error { return errors.Join(faults, s.validate()) },
		Stopping: func() string { return "what is published is being acknowledged, the rest returned" },
		Plan:     s.plan,
		Use:      s.use, ChecksFirst: true,
		Work:     func(ctx context.Context, screen *program.Console) int { return work(ctx, s, stdout, screen) },
		Rehearse: func(ctx context.Context, screen *program.Console) int { return work(ctx, s, stdout, screen) },
	}.Run(ctx, stdout, stderr)
}

// errOnlyNew ends a read to which nothing comes that was there when it began.
var errOnlyNew = errors.New("replay: only letters have come that were not there when it began")

// work replays, or on a dry run looks at the letters only, and returns the exit code.
func work(ctx context.Context, s settings, stdout io.Writer, screen *program.Console) int {
	s, err := withQueue(ctx, s, screen)
	if err != nil {
		return program.Failed(screen, "replay", err)
	}
	run, end := context.WithCancelCause(ctx)
	defer end(nil)
	all := newSorter(run, s, func() { end(errOnlyNew) })
	if !current.CompareAndSwap(nil, all) {
		return program.Failed(screen, "replay", errors.New("another replay runs in this process"))
	}
	defer current.Store(nil)
	p, scope := beam.NewPipelineWithRoot()
	if err := build(scope, s); err != nil {
		return program.Failed(screen, "replay", err)
	}
	stop := show(screen, s, all.survey, p)
	start := time.Now()
	err = pubsubio.Run(run, p)
	stop()
	stopped := errors.Is(err, pubsubio.ErrStopped)
	// What was emitted is published then and acknowledged, and the rest returned.
	clean := err == nil || stopped
	interrupted := stopped && context.Cause(run) != errOnlyNew //nolint:errorlint // end was given it as it is
	toEnd := clean && !interrupted && (s.duration == 0 || time.Since(start) < s.duration)
	all.parts.missing(toEnd, func(e dlq.Entry, why string) { all.survey.add(e, "", why) })
	if clean {
		err = sweepParts(ctx, s, all.parts, time.Since(start), screen)
	}
	r := newReport(s, all.survey, pubsubio.CountsOf(p), time.Since(start))
	if clean { // Else nobody knows which are published.
		r.PartsLeft, r.partsOf = int64(all.parts.unswept()), all.parts.unsweptLetters()
	}
	return conclude(s, r, err, interrupted, stdout, screen)
}

// show starts to tell how far the replay is, until stop is called.
func show(screen *program.Console, s settings, seen *survey, p *beam.Pipeline) (stop func()) {
	read := func() int64 { letters, _ := seen.counts(); return letters }
	progress := program.Progress{What: "looking at letters", Unit: "letters", Done: read, Line: func(int64) string {
		return "letters: read " + program.Grouped(read())
	}}
	if !s.DryRun {
		progress.What = "replaying"
		progress.Done = func() int64 { return pubsubio.CountsOf(p).Published }
		progress.Line = func(perSecond int64) string {
			letters, chosen := seen.counts()
			return fmt.Sprintf("letters: read %s, left %s; published %s (%s/s)",
				program.Grouped(letters), program.Grouped(letters-chosen), program.Grouped(pubsubio.CountsOf(p).Published), program.Grouped(perSecond))
		}
	}
	return program.ShowProgress(screen, progress)
}

// conclude reports how a replay has ended and returns the exit code.
func conclude(s settings, r report, err error, interrupted bool, stdout io.Writer, screen *program.Console) int {
	if err == nil {
		err = r.unacknowledged()
	}
	err = errors.Join(err, program.WriteReport(s.Report, r))
	r.print(stdout, err == nil)
	switch err = errors.Join(err, r.partsStay(s.subscription)); {
	case err != nil:
		return program.Failed(screen, "replay", err)
	case interrupted:
		fmt.Fprintln(stdout, "interrupted: what was published is acknowledged, the rest returned")
		return program.ExitInterrupted
	}
	return program.ExitDone
}
