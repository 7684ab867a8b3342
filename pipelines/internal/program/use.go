package program

import (
	"strings"

	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/options"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// A Use is what a program's flags ask of Pub/Sub: for check, which looks at it and
// runs nothing. Each program has a function Use that reads it from arguments; the
// error of that joins what could not be read.
type Use struct {
	// Connection says which Pub/Sub, and as whom.
	Connection options.Connection
	// Sources and Sinks are the configurations that the program makes of its flags.
	Sources []source.Config
	Sinks   []sink.Config
	// Words has the names of flags for those of the fields in what is said of the
	// configurations.
	Words *strings.Replacer
	// Fault joins what is wrong with the flags by themselves, in their words; nil if
	// nothing is.
	Fault error
	// Help is set where the manual was asked for.
	Help bool
}
