package load_test

import (
	"fmt"
	"time"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/load"
)

func ExampleStream() {
	s := load.Stream{Run: "r1", Keys: 10, MinSize: load.MinSize, MaxSize: load.MinSize}
	m := s.Message(25, time.Unix(0, 0))
	fmt.Printf("%s\n", m.Data)
	id, ok := load.Identify(m.Attributes)
	fmt.Println(id.Run, id.Key, id.Sequence, ok)
	// Output:
	// {"key":"key-0005","sequence":2,"filler":"012345678901234567890"}
	// r1 key-0005 2 true
}
