package relay

import (
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// Use returns what args ask of Pub/Sub: nothing beside --embedded. The error joins what
// could not be read.
func Use(args []string) (program.Use, error) {
	s, err := parseFlags(args)
	if err != nil {
		return program.Use{}, err
	}
	u := program.Use{Connection: s.Connection, Words: asFlags, Fault: s.validate(), Help: s.Help}
	if !s.embedded {
		u.Sources, u.Sinks = []source.Config{sourceConfig(s)}, []sink.Config{sinkConfig(s)}
	}
	return u, nil
}
