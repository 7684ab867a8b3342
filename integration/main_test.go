package integration

import (
	"flag"
	"log/slog"
	"os"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
)

func TestMain(m *testing.M) {
	flag.Parse()
	beam.Init()
	// Beam and prism tell at level info about every step of a job, and at level
	// error about the failures that tests provoke.
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError + 1})))
	if helper := os.Getenv(helperEnv); helper != "" {
		os.Exit(help(helper))
	}
	// Those that run beside each other wait for most of their time.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("8")
	}
	code := m.Run()
	for _, dir := range []string{daemonDir, programsDir} {
		if dir != "" {
			_ = os.RemoveAll(dir)
		}
	}
	os.Exit(code)
}
