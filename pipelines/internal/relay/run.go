package relay

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
)

// Run is the program: it returns the exit code. manual is the comment of the program's
// package, as it stands in its source, for --help. The end of ctx is an interrupt.
func Run(ctx context.Context, manual string, args []string, stdout, stderr io.Writer) int {
	s, faults := parseFlags(args)
	return program.Frame{
		Name:     "relay",
		Manual:   program.Manual{Source: manual, Sections: sections},
		Flags:    ownFlags(new(settings)),
		Common:   &s.Common,
		Validate: func() error { return errors.Join(faults, s.validate()) },
		Stopping: stopping,
		Use:      s.use,
		// Workers elsewhere may reach what this process does not.
		ChecksFirst: !s.embedded && program.RunsHere(),
		Plan:        s.plan,
		Work: func(ctx context.Context, screen *program.Console) int {
			if s.embedded {
				return runEmbedded(ctx, s, stdout, screen)
			}
			r, err := relay(ctx, s, screen)
			return conclude(ctx, s, r, nil, err, stdout, screen)
		},
	}.Run(ctx, stdout, stderr)
}

// stopping says what becomes of messages when the relay is interrupted.
func stopping() string {
	switch {
	case program.OnDirect():
		return "the direct runner acknowledges at the end only, so everything read is returned"
	case !program.RunsHere():
		return "the job goes on without this program"
	}
	return "what is published is being acknowledged, the rest returned"
}

// conclude reports how a relay has ended and returns the exit code. check is
// what the embedded server says, nil where there is none.
func conclude(ctx context.Context, s settings, r report, check *verdict, err error, stdout, stderr io.Writer) int {
	interrupted := ctx.Err() != nil && err != nil // else it had ended already
	farewell := "interrupted: what was published is acknowledged, the rest returned"
	if interrupted && errors.Is(err, pubsubio.ErrStopped) {
		if !program.RunsHere() {
			farewell = "interrupted: " + err.Error()
		}
		err = nil
	}
	if err == nil && program.RunsHere() {
		err = r.unacknowledged()
	}
	if check != nil {
		err = errors.Join(err, check.err(interrupted))
	}
	err = errors.Join(err, program.WriteReport(s.Report, r))
	if program.RunsHere() {
		printTable(stdout, r, check)
	} else {
		fmt.Fprintln(stdout, "the workers are other processes: what they have read and published is in the job's metrics, pubsubio.source, pubsubio.sink and relay")
	}
	switch {
	case err != nil:
		return program.Failed(stderr, "relay", err)
	case interrupted:
		fmt.Fprintln(stdout, farewell)
		return program.ExitInterrupted
	case check != nil:
		fmt.Fprintln(stdout, "every message arrived and was acknowledged")
	}
	return program.ExitDone
}
