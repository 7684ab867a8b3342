package program

import (
	"context"
	"fmt"
	"io"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/check"
)

// Ready is [Check] for a program that is about to run. It tells what is to be warned of,
// or what is wrong, and returns the exit code where the program cannot run, or need not any
// more as ctx has ended.
func Ready(ctx context.Context, name string, stderr io.Writer, u Use) (code int, ready bool) {
	r, err := Check(ctx, u)
	switch {
	case err == nil:
		for _, res := range r.Resources {
			for _, f := range res.Findings {
				if f.Level == check.Warning {
					fmt.Fprintf(stderr, "warning: %s %s: %s; %s\n", res.Kind, res.Name, f.Text, f.Remedy)
				}
			}
		}
		return ExitDone, true
	case ctx.Err() != nil:
		return ExitInterrupted, false
	}
	return failed(stderr, name, err.Error()), false // in the words of u, which Check has said it in
}
