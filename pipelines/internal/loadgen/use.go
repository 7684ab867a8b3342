package loadgen

import (
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
)

// use is what s asks of Pub/Sub.
func (s *settings) use() program.Use {
	return program.Use{Connection: s.Connection, Sinks: []sink.Config{sinkConfig(*s)}, Words: asFlags}
}

// Use returns what args ask of Pub/Sub. The error joins what could not be read.
func Use(args []string) (program.Use, error) {
	s, err := parseFlags(args)
	u := s.use()
	u.Fault, u.Help = s.validate(), s.Help
	return u, err
}
