package loadgen

import (
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
)

// Use returns what args ask of Pub/Sub. The error joins what could not be read.
func Use(args []string) (program.Use, error) {
	s, err := parseFlags(args)
	if err != nil {
		return program.Use{}, err
	}
	return program.Use{
		Connection: s.Connection,
		Sinks:      []sink.Config{sinkConfig(s)},
		Words:      asFlags,
		Fault:      s.validate(),
		Help:       s.Help,
	}, nil
}
