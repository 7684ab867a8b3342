package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio"
)

// Exit codes. 130 is what a shell reports of a program that Ctrl-C has ended.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// initBeam may be called once per process. In a worker it never returns.
var initBeam = sync.OnceFunc(beam.Init)

// run is the program: it returns the exit code. The end of ctx is an interrupt.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, faults := parseFlags(args)
	// Before any flag is judged: a worker is started with Beam's flags only.
	initBeam()
	if s.help {
		printUsage(stdout)
		return exitDone
	}
	if err := errors.Join(faults, s.validate()); err != nil {
		fmt.Fprintf(stderr, "%v\nrelay --help lists the flags.\n", err)
		return exitUsage
	}
	screen := newConsole(stderr)
	logTo(screen, s.verbose)
	// After beam.Init, so that a worker keeps its own reaction to signals.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	unwatch := announceStop(ctx, stop, screen)
	defer unwatch()
	if s.embedded {
		return runEmbedded(ctx, s, stdout, screen)
	}
	r, err := relay(ctx, s, screen)
	return conclude(ctx, s, r, nil, err, stdout, screen)
}

// announceStop says, once ctx has ended, that the relay is ending and how to cut
// that short: release lets go of the signals, so that the next one kills. unwatch
// ends the waiting for that; it returns once an announcement that has begun is
// written.
func announceStop(ctx context.Context, release func(), w io.Writer) (unwatch func()) {
	announced := make(chan struct{})
	unused := context.AfterFunc(ctx, func() {
		defer close(announced)
		release()
		what := "what is published is being acknowledged, the rest returned"
		switch {
		case onDirect():
			what = "the direct runner acknowledges at the end only, so everything read is returned"
		case !runsHere():
			what = "the job goes on without this program"
		}
		fmt.Fprintf(w, "stopping: %s; interrupt again to kill\n", what)
	})
	return func() {
		if !unused() {
			<-announced
		}
	}
}

// logTo replaces the log handler that beam.Init has installed: Beam's and
// prism's lines about the life of a job, at level info, would drown the
// progress. What needs attention is a warning or an error and stays visible.
func logTo(w io.Writer, verbose bool) {
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelInfo
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})))
}

// conclude reports how a relay has ended and returns the exit code. check is
// what the embedded server says, nil where there is none.
func conclude(ctx context.Context, s settings, r report, check *verdict, err error, stdout, stderr io.Writer) int {
	interrupted := ctx.Err() != nil && err != nil // else it had ended already
	farewell := "interrupted: what was published is acknowledged, the rest returned"
	if interrupted && errors.Is(err, pubsubio.ErrStopped) {
		if !runsHere() {
			farewell = "interrupted: " + err.Error()
		}
		err = nil
	}
	if err == nil && runsHere() {
		err = r.unacknowledged()
	}
	if check != nil {
		err = errors.Join(err, check.err(interrupted))
	}
	if s.report != "" {
		err = errors.Join(err, r.writeFile(s.report))
	}
	if runsHere() {
		printTable(stdout, r, check)
	} else {
		fmt.Fprintln(stdout, "the workers are other processes: what they have read and published is in the job's metrics, pubsubio.source and pubsubio.sink")
	}
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "relay failed: %v\n", err)
		return exitFailed
	case interrupted:
		fmt.Fprintln(stdout, farewell)
		return exitInterrupted
	case check != nil:
		fmt.Fprintln(stdout, "every message arrived and was acknowledged")
	}
	return exitDone
}
