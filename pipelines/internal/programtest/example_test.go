package programtest_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/programtest"
)

// greet is a program that has no flags.
func greet(_ context.Context, _ string, _ []string, stdout, _ io.Writer) int {
	fmt.Fprintln(stdout, "hello")
	return 0
}

func TestExecute(t *testing.T) {
	o := programtest.Execute[struct{}](t.Context(), t, greet)
	o.MustEnd(t, 0)
	if o.Squeezed() != "hello" {
		t.Errorf("printed %q", o.Stdout)
	}
}

func ExampleOutcome_Squeezed() {
	o := programtest.Outcome[struct{}]{Stdout: "  read   10\n  lost    0\n"}
	fmt.Println(o.Squeezed())
	// Output: read 10 lost 0
}
