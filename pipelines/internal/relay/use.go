package relay

import (
	"errors"
	"fmt"

	"github.com/beam-pubsub/beam-pubsub-go/pipelines/internal/program"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/check"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/sink"
	"github.com/beam-pubsub/beam-pubsub-go/pubsubio/source"
)

// use is what s asks of Pub/Sub: nothing beside --embedded.
func (s settings) use() program.Use {
	u := program.Use{Connection: s.Connection, Words: asFlags, Judge: s.judge}
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

// judge refuses what would have messages come round again, for ever.
func (s settings) judge(r check.Report) error {
	var faults []error
	for _, res := range r.Resources {
		switch res.Topic {
		case "":
		case s.topic:
			faults = append(faults, fmt.Errorf("--output_topic: %s is the topic of %s, which is read: every message would come round again; publish to another topic", s.topic, res.Name))
		case s.deadLetterTopic:
			faults = append(faults, fmt.Errorf("--dead_letter_topic: %s is the topic of %s, which is read: every dead letter would be read again; send them to another topic", s.deadLetterTopic, res.Name))
		}
	}
	return errors.Join(faults...)
}

// Use returns what args ask of Pub/Sub. The error joins what could not be read.
func Use(args []string) (program.Use, error) {
	s, err := parseFlags(args)
	u := s.use()
	u.Fault, u.Help = s.validate(), s.Help
	return u, err
}
