package program

import (
	"io"
	"log/slog"
)

// LogTo replaces the log handler that beam.Init has installed: Beam's and prism's
// lines about the life of a job, at level info, would drown the progress. What needs
// attention is a warning or an error and stays visible.
func LogTo(w io.Writer, verbose bool) {
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelInfo
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})))
}
