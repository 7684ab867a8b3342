package program

import (
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
)

// Runner returns the chosen runner's name; Beam takes two of each.
func Runner() string {
	switch name := *runners.Runner; name {
	case "", "PrismRunner":
		return "prism"
	case "DirectRunner":
		return "direct"
	case "DataflowRunner":
		return "dataflow"
	default:
		return name
	}
}

// OnDirect reports whether the direct runner is chosen.
func OnDirect() bool { return Runner() == "direct" }

// RunsHere reports whether the workers are in this process.
func RunsHere() bool { return Runner() == "prism" || OnDirect() }

// PrismFaults records in f a runner other than prism, for a program that cannot run
// elsewhere; because says why.
func PrismFaults(f *options.Faults, because string) {
	if Runner() != "prism" {
		f.Add("--runner", *runners.Runner, "must be prism: "+because)
	}
}
