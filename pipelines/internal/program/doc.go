// Package program is what the programs under pipelines have in common: how they take
// their flags and tell what is wrong with them, their --help, exit codes, progress,
// reports and the reaction to an interrupt, and what --dry_run does.
//
// A program is a function Run, which its main calls and tests call, too:
//
//	func Run(ctx context.Context, manual string, args []string, stdout, stderr io.Writer) int {
//		s, faults := parseFlags(args)
//		return program.Frame{
//			Name:     "name",
//			Manual:   program.Manual{Source: manual, Sections: sections},
//			Flags:    ownFlags(new(settings)),
//			Common:   &s.Common,
//			Validate: func() error { return errors.Join(faults, s.validate()) },
//			Stopping: stopping,
//			Plan:     s.plan,
//			Work:     func(ctx context.Context, screen *program.Console) int { … },
//		}.Run(ctx, stdout, stderr)
//	}
//
// and a function Use, which says what its flags ask of Pub/Sub and runs nothing.
//
// Flags live in a set of the run's own, so that a program can run more than once in
// a process; Beam's, which are taken beside them, are the process's.
package program
