package program

import (
	"context"
	"io"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// Ready is Check for a program that is about to run. It tells what is wrong and
// returns the exit code where the program cannot, or need not any more as ctx has
// ended.
func Ready(ctx context.Context, name string, stderr io.Writer, c options.Connection, resources ...Resource) (code int, ready bool) {
	_, err := Check(ctx, c, resources...)
	switch {
	case err == nil:
		return ExitDone, true
	case ctx.Err() != nil:
		return ExitInterrupted, false
	}
	return Failed(stderr, name, err), false
}
