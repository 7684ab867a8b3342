package windowcount

import (
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// use is what s asks of Pub/Sub.
func (s settings) use() program.Use {
	u := program.Use{Connection: s.Connection, Sources: []source.Config{sourceConfig(s)}, Words: asFlags}
	if s.output != "" {
		u.Sinks = []sink.Config{sinkConfig(s)}
	}
	return u
}

// Use returns what args ask of Pub/Sub. The error joins what could not be read.
func Use(args []string) (program.Use, error) {
	s, err := parseFlags(args)
	u := s.use()
	u.Fault, u.Help = s.validate(), s.Help
	return u, err
}
