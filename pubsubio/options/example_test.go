package options_test

import (
	"fmt"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

func ExampleFaults() {
	var f options.Faults
	options.Publisher{BatchElementCount: 5000, MaxInFlightBytes: -5}.Faults(&f)
	fmt.Println(f.Err())
	// Output:
	// options.Publisher.BatchElementCount: 5000: must be 1 to 1000
	// options.Publisher.MaxInFlightBytes: -5: must be positive or options.Unbounded
}
