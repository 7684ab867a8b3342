// Package program is what the programs under pipelines have in common: how they take
// their flags and tell what is wrong with them, their --help, exit codes, progress,
// reports and the reaction to an interrupt, and what --dry_run does.
//
// A program is a function run, which main calls and tests call, too:
//
//	func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
//		s, faults := parseFlags(args)
//		program.InitBeam()
//		if s.Help {
//			manual.Print(stdout, ownFlags(new(settings)))
//			return program.ExitDone
//		}
//		if err := errors.Join(faults, s.validate()); err != nil {
//			return program.Misused(stderr, "name", err)
//		}
//		screen := program.NewConsole(stderr)
//		defer screen.Close()
//		program.LogTo(screen, s.Verbose)
//		ctx, done := program.UntilInterrupted(ctx, screen, farewell)
//		defer done()
//		…
//	}
//
// Flags live in a set of the run's own, so that a program can run more than once in
// a process; Beam's, which are taken beside them, are the process's.
package program
