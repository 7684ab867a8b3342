package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/check"
)

// A Plan is what a program would do, as --dry_run tells it.
type Plan struct {
	// Name is the program's, and Would what it would do, as "move messages".
	Name, Would string
	// Settings are how, each a name and a value.
	Settings [][2]string
}

// DryRun checks what p would use and prints p: what was found of each resource, and the
// settings. It changes nothing but the file of that path, into which it writes what was
// found; none if empty. It returns the exit code.
func (p Plan) DryRun(ctx context.Context, u Use, path string, stdout, stderr io.Writer) int {
	report, err := Check(ctx, u)
	if err != nil && ctx.Err() != nil {
		return ExitInterrupted
	}
	if none := (*saidError)(nil); !errors.As(err, &none) {
		err = errors.Join(err, WriteReport(path, report))
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s cannot run as it is told:\n%v\n", p.Name, err)
		return ExitFailed
	}
	fmt.Fprintf(stdout, "%s would %s. This is a dry run: nothing is done.\n\n", p.Name, p.Would)
	t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, r := range report.Resources {
		printResource(t, r)
	}
	for _, s := range p.Settings {
		fmt.Fprintf(t, "  %s\t%s\n", s[0], s[1])
	}
	_ = t.Flush()
	return ExitDone
}

// printResource prints a line about r, and what is to be warned of. What nothing is asked
// of, as the topic of a subscription, is told where there is something to say.
func printResource(w io.Writer, r check.Resource) {
	var warnings []check.Finding
	for _, f := range r.Findings {
		if f.Level == check.Warning {
			warnings = append(warnings, f)
		}
	}
	if len(r.Permissions)+len(warnings) == 0 {
		return
	}
	fmt.Fprintf(w, "  %s\t%s\n\t%s\n", r.Kind, r.Name, r.Says())
	for _, f := range warnings {
		fmt.Fprintf(w, "\twarning: %s; %s\n", f.Text, f.Remedy)
	}
}
