package program

import (
	"io"
	"log/slog"
)

// LogTo replaces the log handler that beam.Init has installed: Beam's and prism's
// lines about the life of a job, at level info, would drown the progress. What needs
// attention is a warning or an error and stays visible, but for what the program tells
// at its end.
func LogTo(w io.Writer, verbose bool) {
	if verbose {
		slog.SetDefault(slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelInfo})))
		return
	}
	slog.SetDefault(slog.New(quietHandler{slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn})}))
}
