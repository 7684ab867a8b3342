package loadgen

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/load"
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
)

// Run is the program: it returns the exit code. manual is the comment of the program's
// package, as it stands in its source, for --help. The end of ctx is an interrupt.
func Run(ctx context.Context, manual string, args []string, stdout, stderr io.Writer) int {
	s, faults := parseFlags(args)
	return program.Frame{
		Name:     "loadgen",
		Manual:   program.Manual{Source: manual, Sections: sections},
		Flags:    ownFlags(new(settings)),
		Common:   &s.Common,
		Validate: func() error { return errors.Join(faults, s.validate()) },
		Stopping: func() string { return "no more messages are made; those on their way are waited for" },
		Plan:     s.plan,
		Use:      s.use, ChecksFirst: true,
		Work: func(ctx context.Context, screen *program.Console) int {
			r, err := generateLoad(ctx, s, screen)
			return conclude(ctx, s, r, err, stdout, screen)
		},
	}.Run(ctx, stdout, stderr)
}

// conclude reports how a run has ended and returns the exit code.
func conclude(ctx context.Context, s settings, r load.Report, err error, stdout, stderr io.Writer) int {
	if err == nil && !r.Complete {
		err = errors.New("the pipeline has ended, and not every message was answered")
	}
	err = errors.Join(err, program.WriteReport(s.Report, r))
	printTable(stdout, r)
	if err != nil {
		return program.Failed(stderr, "loadgen", err)
	}
	if ctx.Err() != nil && r.Published != s.messages { // else it had ended already
		fmt.Fprintln(stdout, "interrupted: what was sent is published")
		return program.ExitInterrupted
	}
	return program.ExitDone
}

func printTable(w io.Writer, r load.Report) {
	fmt.Fprintf(w, "run %s\n", r.Run)
	t := program.NewTable(w)
	t.Count("published", r.Published)
	if r.Complete {
		t.Count("of them poison", r.Poison)
		t.Count("keys", int64(len(r.Keys)))
	}
	t.Count("bytes", r.Bytes)
	t.Seconds("seconds", r.Seconds)
	t.Count("messages/second", int64(r.MessagesPerSecond))
	t.Flush()
}
