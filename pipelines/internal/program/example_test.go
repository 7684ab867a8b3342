package program_test

import (
	"os"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
)

func ExampleTable() {
	t := program.NewTable(os.Stdout)
	t.Count("read", 1234567)
	t.Row("runner", "prism")
	t.Seconds("seconds", 1.5)
	t.Flush()
	// Output:
	//      read  1,234,567
	//    runner      prism
	//   seconds      1.500
}
