package program

import (
	"context"
	"log/slog"
	"regexp"
	"strings"
)

// bundleAccount is what Beam says of a bundle that has failed, around the error of a DoFn:
// the plan of its stage, down to the DoFn.
var bundleAccount = regexp.MustCompile(`(?s)^(job \S+ failed:\n)?bundle .*\nDoFn\[[^\n]*\] failed:\n`)

// Cause is what err says without Beam's account of the bundle that it has ended, which
// tells a user of a program nothing. --verbose shows all of it, in the log.
func Cause(err error) string { return bundleAccount.ReplaceAllString(err.Error(), "") }

// toldAtEnd are the beginnings of the lines in which Beam and prism log an error that ends
// the job, some of them with the whole plan. The program tells the error once, at its end.
var toldAtEnd = []string{
	"[SDK] process bundle failed",
	"[SDK] bundle ",
	"Prism received bundle error",
	"stage.Execute aborting",
	"Bundle Failed.",
	"job failed",
	"Control done", // also at the end of a job that has gone well, if its worker was quicker
}

// A quietHandler leaves out what is told at the end.
type quietHandler struct{ slog.Handler }

func (h quietHandler) Handle(ctx context.Context, r slog.Record) error {
	for _, beginning := range toldAtEnd {
		if strings.HasPrefix(r.Message, beginning) {
			return nil
		}
	}
	return h.Handler.Handle(ctx, r)
}

func (h quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{h.Handler.WithAttrs(attrs)}
}

func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{h.Handler.WithGroup(name)}
}
