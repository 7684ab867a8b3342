package program

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// UntilInterrupted returns a context that ends with ctx, or at an interrupt (SIGINT,
// SIGTERM), which is then announced on w: what says what happens now. The next
// interrupt kills. Call it after InitBeam, and done at the end of the program; it
// returns once an announcement that has begun is written.
func UntilInterrupted(ctx context.Context, w io.Writer, what func() string) (interrupted context.Context, done func()) {
	ctx, release := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	unwatch := announceStop(ctx, release, w, what)
	return ctx, func() {
		unwatch()
		release()
	}
}

// announceStop says, once ctx has ended, that the program is ending and how to cut
// that short: release lets go of the signals, so that the next one kills. unwatch
// ends the waiting for that; it returns once an announcement that has begun is
// written.
func announceStop(ctx context.Context, release func(), w io.Writer, what func() string) (unwatch func()) {
	announced := make(chan struct{})
	unused := context.AfterFunc(ctx, func() {
		defer close(announced)
		release()
		fmt.Fprintf(w, "stopping: %s; interrupt again to kill\n", what())
	})
	return func() {
		if !unused() {
			<-announced
		}
	}
}
