package program

import (
	"context"
	"io"
)

// Ready is [Check] for a program that is about to run. It tells what is wrong and
// returns the exit code where the program cannot, or need not any more as ctx has
// ended.
func Ready(ctx context.Context, name string, stderr io.Writer, u Use) (code int, ready bool) {
	_, err := Check(ctx, u)
	switch {
	case err == nil:
		return ExitDone, true
	case ctx.Err() != nil:
		return ExitInterrupted, false
	}
	return Failed(stderr, name, err), false
}
