package windowcount

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
)

// Run is the program: it returns the exit code. manual is the comment of the program's
// package, as it stands in its source, for --help. The end of ctx is an interrupt.
func Run(ctx context.Context, manual string, args []string, stdout, stderr io.Writer) int {
	s, faults := parseFlags(args)
	return program.Frame{
		Name:     "windowcount",
		Manual:   program.Manual{Source: manual, Sections: sections},
		Flags:    ownFlags(new(settings)),
		Common:   &s.Common,
		Validate: func() error { return errors.Join(faults, s.validate()) },
		Stopping: func() string { return "the open windows count what they have; what was not read is returned" },
		Plan:     s.plan,
		Use:      s.use, ChecksFirst: true,
		Work: func(ctx context.Context, screen *program.Console) int {
			return count(ctx, s, stdout, screen)
		},
	}.Run(ctx, stdout, stderr)
}

// count runs the pipeline to its end, shows meanwhile what it counts, and returns the
// exit code.
func count(ctx context.Context, s settings, stdout io.Writer, screen *program.Console) int {
	b := newBoard(s.late == lateAccumulate)
	p, scope := beam.NewPipelineWithRoot()
	forget, err := build(scope, s, b)
	if err != nil {
		return program.Failed(screen, "windowcount", err)
	}
	defer forget()
	stop := show(screen, s, b)
	start := time.Now()
	err = pubsubio.Run(ctx, p)
	elapsed := time.Since(start)
	stop()
	return conclude(ctx, s, b, pubsubio.CountsOf(p), elapsed, err, stdout, screen)
}

// liveRows is how many windows the table that lives shows at most.
const liveRows = 12

// show starts to tell what b counts until stop is called: a table on a terminal, a line
// a window elsewhere.
func show(screen *program.Console, s settings, b *board) (stop func()) {
	if !screen.Terminal() {
		return program.Lines(screen, func() string { return b.takeChanged(s.top).sentences() })
	}
	return program.Redraw(screen, func() string {
		columns, rows := screen.Size()
		v := b.view(max(min(rows-4, liveRows), 1), s.top)
		if len(v.rows) == 0 {
			return "no window has counted yet\n"
		}
		return v.table(columns-1, true)
	})
}

// conclude reports how a run has ended and returns the exit code.
func conclude(ctx context.Context, s settings, b *board, c pubsubio.Counts, elapsed time.Duration, err error, stdout io.Writer, screen *program.Console) int {
	interrupted := ctx.Err() != nil && errors.Is(err, pubsubio.ErrStopped)
	if interrupted {
		err = nil
	} else if err != nil {
		err = sayInFlags(err)
	}
	r := newReport(b, c, elapsed, err != nil)
	err = errors.Join(err, program.WriteReport(s.Report, r), writePlot(s.plotFile, s, b, screen))
	columns := math.MaxInt // A file is as wide as it needs.
	if screen := program.NewConsole(stdout); screen.Terminal() {
		columns, _ = screen.Size()
	}
	r.print(stdout, s, b.view(maxRows, s.top), columns)
	switch {
	case err != nil:
		return program.Failed(screen, "windowcount", err)
	case interrupted:
		fmt.Fprintln(stdout, "interrupted: what was read is counted")
		return program.ExitInterrupted
	}
	return program.ExitDone
}
