package program

import (
	"context"
	"flag"
	"io"
	"sync/atomic"
)

// A Frame is what every program does around its own work.
type Frame struct {
	// Name is the program's.
	Name string
	// Manual and Flags are what --help prints.
	Manual Manual
	Flags  *flag.FlagSet
	// Common are the flags that all programs have, as they were read.
	Common *Common
	// Validate returns everything that is wrong with the flags.
	Validate func() error
	// Stopping says what happens now, at an interrupt.
	Stopping func() string
	// Use is what the flags ask of Pub/Sub, whose words Failed tells errors in, and
	// ChecksFirst has it looked at before the work begins.
	Use         func() Use
	ChecksFirst bool
	// Plan is what --dry_run prints beside what it found of Use, which --report gets.
	Plan func() Plan
	// Rehearse is what --dry_run does once the plan is printed, where there is more to be
	// looked at, and returns the exit code; --report is its own then. Nil for nothing.
	Rehearse func(ctx context.Context, screen *Console) int
	// Work is the program's own, and returns the exit code.
	Work func(ctx context.Context, screen *Console) int
}

// Run runs the program and returns the exit code. The end of ctx is an interrupt.
func (f Frame) Run(ctx context.Context, stdout, stderr io.Writer) int {
	InitBeam()
	if f.Common.Help {
		f.Manual.Print(stdout, f.Flags)
		return ExitDone
	}
	if err := f.Validate(); err != nil {
		return Misused(stderr, f.Name, err)
	}
	screen := NewConsole(stderr)
	defer screen.Close()
	screen.say = f.Use().Say
	LogTo(screen, f.Common.Verbose)
	var working atomic.Bool
	ctx, done := UntilInterrupted(ctx, screen, func() string {
		if !working.Load() {
			return "nothing was begun"
		}
		return f.Stopping()
	})
	defer done()
	// On Dataflow the flag is Beam's own.
	if f.Common.DryRun && Runner() != "dataflow" {
		path := f.Common.Report
		if f.Rehearse != nil {
			path = "" // It writes what it finds itself.
		}
		code := f.Plan().DryRun(ctx, f.Use(), path, stdout, screen)
		if code != ExitDone || f.Rehearse == nil {
			return code
		}
		working.Store(true)
		return f.Rehearse(ctx, screen)
	}
	if f.ChecksFirst {
		if code, ready := Ready(ctx, f.Name, screen, f.Use()); !ready {
			return code
		}
	}
	working.Store(true)
	return f.Work(ctx, screen)
}
