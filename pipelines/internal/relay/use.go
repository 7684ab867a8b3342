package relay

import (
	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// use is what s asks of Pub/Sub: nothing beside --embedded.
func (s settings) use() program.Use {
	u := program.Use{Connection: s.Connection, Words: asFlags}
	if s.embedded {
		return u
	}
	u.Sources, u.Sinks = []source.Config{sourceConfig(s)}, []sink.Config{sinkConfig(s)}
	if s.topicAttribute != "" && s.topic != "" {
		// The topic of messages without the attribute is known, if the others are not.
		c := s
		c.topicAttribute = ""
		u.Sinks = append(u.Sinks, sinkConfig(c))
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
