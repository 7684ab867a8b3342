package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
)

// Run is the program: it returns the exit code. manual is the comment of the program's
// package, as it stands in its source, for --help. The end of ctx is an interrupt.
func Run(ctx context.Context, manual string, args []string, stdout, stderr io.Writer) int {
	s, faults := parseFlags(args)
	return program.Frame{
		Name:     "verify",
		Manual:   program.Manual{Source: manual, Sections: sections},
		Flags:    ownFlags(new(settings)),
		Common:   &s.Common,
		Validate: func() error { return errors.Join(faults, s.validate()) },
		Stopping: func() string { return "what is counted is being acknowledged, the rest returned" },
		Plan:     s.plan,
		Use:      s.use, ChecksFirst: true,
		Work: func(ctx context.Context, screen *program.Console) int {
			t := newTally(s.expect)
			elapsed, err := count(ctx, s, t, screen)
			return conclude(ctx, s, t, elapsed, err, stdout, screen)
		},
	}.Run(ctx, stdout, stderr)
}

// errNothing is the verdict on a read to which nothing has come, and nothing was told
// to expect: it has verified nothing.
var errNothing = errors.New("no message of loadgen has arrived")

// conclude reports how a read has ended and returns the exit code.
func conclude(ctx context.Context, s settings, t *tally, elapsed time.Duration, err error, stdout, stderr io.Writer) int {
	interrupted := ctx.Err() != nil && errors.Is(err, pubsubio.ErrStopped)
	if interrupted {
		err = nil
	}
	r := t.result(elapsed, interrupted || err != nil)
	if err == nil {
		err = r.verdict(s.ordering)
		if err == nil && !interrupted && r.Expected == nil && r.Arrived == 0 {
			err = errNothing
		}
	}
	err = errors.Join(err, program.WriteReport(s.Report, r), writePlot(s.plotFile, &t.latency, stderr))
	r.print(stdout, &t.latency)
	switch {
	case err != nil:
		return program.Failed(stderr, "verify", err)
	case interrupted:
		fmt.Fprintln(stdout, "interrupted: what had not arrived by then may still come")
		return program.ExitInterrupted
	}
	return program.ExitDone
}
