package windowcount

import (
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// Use returns what args ask of Pub/Sub. The error joins what could not be read.
func Use(args []string) (program.Use, error) {
	s, err := parseFlags(args)
	if err != nil {
		return program.Use{}, err
	}
	u := program.Use{
		Connection: s.Connection,
		Sources:    []source.Config{sourceConfig(s)},
		Words:      asFlags,
		Fault:      s.validate(),
		Help:       s.Help,
	}
	if s.output != "" {
		u.Sinks = []sink.Config{sinkConfig(s)}
	}
	return u, nil
}
