// Package programtest runs a program in the process of its test.
package programtest

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
)

// Run is a program, as each package of one has it.
type Run func(ctx context.Context, manual string, args []string, stdout, stderr io.Writer) int

// An Outcome is what a run of a program has left.
type Outcome[R any] struct {
	Code           int
	Stdout, Stderr string
	// Report is what --report has written, the zero value if nothing.
	Report R
}

// Execute runs the program to its end, with --report. Flags of Beam's, which are the
// process's, are as before when the test ends.
func Execute[R any](ctx context.Context, t testing.TB, run Run, args ...string) Outcome[R] {
	t.Helper()
	keepBeamFlags(t)
	path := filepath.Join(t.TempDir(), "report.json")
	var stdout, stderr bytes.Buffer
	o := Outcome[R]{Code: run(ctx, "", append([]string{"--report=" + path}, args...), &stdout, &stderr)}
	o.Stdout, o.Stderr = stdout.String(), stderr.String()
	if text, err := os.ReadFile(path); err == nil {
		if err := json.Unmarshal(text, &o.Report); err != nil {
			t.Errorf("report: %v", err)
		}
	}
	return o
}

// MustEnd fails the test where the program has not ended with code.
func (o Outcome[R]) MustEnd(t testing.TB, code int) {
	t.Helper()
	if o.Code != code {
		t.Fatalf("exit code %d, want %d\n%s%s", o.Code, code, o.Stdout, o.Stderr)
	}
}

// Squeezed is what it has printed, with one space between words: the width of a table is
// that of the longest of its figures.
func (o Outcome[R]) Squeezed() string { return strings.Join(strings.Fields(o.Stdout), " ") }

// WantMisuse expects that args are refused: that the program of that name says all of want
// and where to read about its flags, and does nothing.
func WantMisuse(t testing.TB, name string, run Run, args []string, want string) {
	t.Helper()
	keepBeamFlags(t)
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), "", args, &stdout, &stderr)
	if want += "\n" + name + " --help lists the flags.\n"; code != program.ExitUsage || stderr.String() != want || stdout.Len() > 0 {
		t.Errorf("exit code %d:\n%swant:\n%s", code, stderr.String(), want)
	}
}

// WantManual expects that --help prints the comment of the program's package, which is two
// directories up in one of its name, and each of texts; and that every flag of the program's
// own is in a section.
func WantManual(t testing.TB, name string, run Run, texts ...string) {
	t.Helper()
	manual, err := os.ReadFile(filepath.Join("..", "..", name, "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), string(manual), []string{"--help"}, &stdout, &stderr); code != program.ExitDone || stderr.Len() > 0 {
		t.Fatalf("exit code %d, %s", code, stderr.String())
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(string(manual), "// "), "\n")
	for _, want := range append(texts, first, "\nEXIT CODES\n", "--worker_binary", "--runner") {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("help does not tell of %q:\n%s", want, stdout.String())
		}
	}
	if strings.Contains(stdout.String(), "OTHER FLAGS") {
		t.Errorf("a flag is in no section:\n%s", stdout.String())
	}
}

// keepBeamFlags has the flags that programs set of Beam's as they are when the test ends.
func keepBeamFlags(t testing.TB) {
	t.Helper()
	for _, name := range []string{"runner", "dry_run", "parallelism"} {
		f := flag.Lookup(name)
		if f == nil {
			continue
		}
		before := f.Value.String()
		t.Cleanup(func() {
			if err := flag.Set(name, before); err != nil {
				t.Error(err)
			}
		})
	}
}
