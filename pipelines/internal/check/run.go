package check

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/check"
)

// Run is the program: it returns the exit code. manual is the comment of the program's
// package, as it stands in its source, for --help.
func Run(ctx context.Context, manual string, args []string, stdout, stderr io.Writer) int {
	s, err := parseFlags(args)
	if s.help {
		program.Manual{Source: manual, Sections: sections, Alone: true}.Print(stdout, ownFlags(new(settings)))
		return program.ExitDone
	}
	if err != nil {
		return program.Misused(stderr, "check", err)
	}
	if s.use.Complete != nil {
		if s.use, err = s.use.Complete(ctx); err != nil {
			return program.Failed(stderr, "check", err)
		}
	}
	report, err := check.Run(ctx, s.use.Configs(), check.Options{Member: s.member()})
	if err != nil {
		return program.Failed(stderr, "check", errors.New(s.use.Say(err.Error())))
	}
	report = s.inWords(report)
	p := printer{w: stdout, account: s.account != ""}
	p.print(report)
	fmt.Fprintln(stdout, s.verdict(report))
	if err := program.WriteReport(s.report, report); err != nil {
		return program.Failed(stderr, "check", err)
	}
	if !report.Clean() {
		return program.ExitFailed
	}
	return program.ExitDone
}

// inWords returns a report in the words of the flags, or of the file, with what is wrong
// with a program's flags by themselves.
func (s settings) inWords(r check.Report) check.Report {
	if s.program == "" {
		return r
	}
	r = s.use.InFlags(r)
	if s.reportBehind {
		r.Settings = append(r.Settings, check.Finding{Level: check.Note, Text: fmt.Sprintf("--report behind %[1]s is %[1]s's, and not written now; check's own stands before %[1]s", s.program)})
	}
	told := make(map[string]bool)
	for _, f := range r.Settings {
		told[f.Text] = true
	}
	for _, f := range program.Texts(s.use.Fault) {
		if !told[f] {
			r.Settings = append(r.Settings, check.Finding{Level: check.Fault, Text: f})
		}
	}
	return r
}

// verdict is the last line.
func (s settings) verdict(r check.Report) string {
	who := "the pipeline"
	if s.program != "" {
		who = s.program
	}
	switch err := r.Err(); {
	case len(r.Resources)+len(r.Settings) == 0:
		return who + " uses no Pub/Sub: there is nothing to check"
	case err != nil:
		return fmt.Sprintf("%s cannot run as it is told: %s to mend", who, counted(len(program.Texts(err)), "fault"))
	case !r.Clean():
		return fmt.Sprintf("%s can run as it is told; see the warnings", who)
	}
	return who + " can run as it is told"
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
