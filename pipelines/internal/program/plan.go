package program

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// A Plan is what a program would do, as --dry_run tells it.
type Plan struct {
	// Name is the program's, and Would what it would do, as "move messages".
	Name, Would string
	// Resources are what it would use.
	Resources []Resource
	// Settings are how, each a name and a value.
	Settings [][2]string
}

// DryRun checks p and prints it: what was found of each resource, and the settings.
// It changes nothing, and returns the exit code.
func (p Plan) DryRun(ctx context.Context, c options.Connection, stdout, stderr io.Writer) int {
	findings, err := Check(ctx, c, p.Resources...)
	if err != nil {
		fmt.Fprintf(stderr, "%s cannot run as it is told:\n%v\n", p.Name, err)
		return ExitFailed
	}
	fmt.Fprintf(stdout, "%s would %s. This is a dry run: nothing is done.\n\n", p.Name, p.Would)
	t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		fmt.Fprintf(t, "  %s\t%s\n\t%s\n", f.Resource.kind(), f.Resource.Name, f.Says)
	}
	for _, s := range p.Settings {
		fmt.Fprintf(t, "  %s\t%s\n", s[0], s[1])
	}
	_ = t.Flush()
	return ExitDone
}
